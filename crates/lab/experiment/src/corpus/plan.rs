//! Which recordings a corpus has, and in which order they are made.

use std::collections::BTreeMap;

use lab::Description;
use stats::Chance;

use super::cause::{CauseFile, Scripts, Variant};
use super::draw::{filled, number_of, parameters};
use super::effect::Effect;
use super::kind::RecordingKind;
use super::label::Planted;

/// What is asked for.
#[derive(Clone, Debug)]
pub struct CorpusPlan {
    /// What is planted.
    pub files: Vec<CauseFile>,
    /// What parameters, variants and names are drawn from.
    pub seed: u64,
    /// How many variants there are of each file.
    pub variants: u32,
    /// What is recorded of each.
    pub kinds: Vec<RecordingKind>,
    /// Whether workloads whose cause can be removed are recorded without it, too.
    pub counterfactuals: bool,
}

/// A recording to be made.
#[derive(Clone, Debug)]
pub struct CorpusItem {
    /// The name of its folder: tells nothing.
    pub name: String,
    /// What it shows, for messages: cause, variant, number and kind.
    pub title: String,
    /// Its machines.
    pub machines: Description,
    pub(super) kind: RecordingKind,
    pub(super) source: String,
    pub(super) variant: String,
    pub(super) draw: u32,
    pub(super) causes: Vec<Planted>,
    pub(super) without_cause_of: Option<String>,
    pub(super) parameters: BTreeMap<String, String>,
    pub(super) scripts: Scripts,
    pub(super) effects: Vec<Effect>,
    pub(super) fresh_guest: bool,
}

/// All recordings; those in the same machines follow each other.
#[must_use]
pub fn plan(plan: &CorpusPlan) -> Vec<CorpusItem> {
    let mut items = Vec::new();
    for file in &plan.files {
        for (variant, draw) in chosen(file, plan) {
            for kind in CauseFile::kinds_of(variant, &plan.kinds) {
                items.push(item(file, variant, draw, kind, plan));
            }
        }
    }
    name(&mut items, plan.seed);
    if plan.counterfactuals {
        let without: Vec<CorpusItem> = items.iter().filter_map(CorpusItem::without_cause).collect();
        items.extend(without);
    }
    grouped(items)
}

/// The variants of a file, in an order by chance, and how often each was there before.
fn chosen<'f>(file: &'f CauseFile, plan: &CorpusPlan) -> Vec<(&'f Variant, u32)> {
    let mut order: Vec<&Variant> = file.variants.iter().collect();
    Chance::of_part(plan.seed, number_of(&file.name)).shuffle(&mut order);
    let count = plan.variants.saturating_mul(file.times);
    let rounds = (0..).flat_map(|round| order.iter().map(move |&variant| (variant, round)));
    rounds.take(usize::try_from(count).unwrap_or(usize::MAX)).collect()
}

fn item(
    file: &CauseFile,
    variant: &Variant,
    draw: u32,
    kind: RecordingKind,
    plan: &CorpusPlan,
) -> CorpusItem {
    let title = format!("{} {} {draw} {}", file.name, variant.name, kind.name());
    // All kinds of recordings are of the same workload.
    let drawn_for = format!("{} {} {draw}", file.name, variant.name);
    let parameters = parameters(&file.draws_of(variant), plan.seed, &drawn_for);
    let planted = |cause: &String| Planted {
        cause: cause.clone(),
        // A perf.data names no VM.
        vm: (!file.is_healthy() && kind != RecordingKind::Perf)
            .then(|| variant.vm.as_ref().unwrap_or(&file.vm).clone()),
        vcpu: file.vcpu,
        removable: file.removable,
    };
    CorpusItem {
        name: String::new(),
        title,
        machines: file.machines_of(variant, plan.kinds.contains(&RecordingKind::Perf)),
        kind,
        source: file.name.clone(),
        variant: variant.name.clone(),
        draw,
        causes: file.causes.iter().map(planted).collect(),
        without_cause_of: None,
        scripts: variant.scripts.filled(&parameters),
        parameters,
        effects: file.effects_of(variant).cloned().collect(),
        fresh_guest: variant.fresh_guest,
    }
}

/// Gives names in an order by chance, so that neighbours have nothing in common.
fn name(items: &mut [CorpusItem], seed: u64) {
    let mut numbers: Vec<usize> = (1..=items.len()).collect();
    Chance::of_part(seed, number_of("names")).shuffle(&mut numbers);
    for (item, number) in items.iter_mut().zip(numbers) {
        item.name = format!("r{number:04}");
    }
}

/// Machines are started in the order in which they are first needed.
fn grouped(items: Vec<CorpusItem>) -> Vec<CorpusItem> {
    let mut groups: Vec<Vec<CorpusItem>> = Vec::new();
    for item in items {
        let same = |group: &&mut Vec<CorpusItem>| {
            group.first().is_some_and(|first| first.machines == item.machines)
        };
        match groups.iter_mut().find(same) {
            Some(group) => group.push(item),
            None => groups.push(vec![item]),
        }
    }
    groups.into_iter().flatten().collect()
}

impl CorpusItem {
    /// The same workload without the cause, in a recording of the host.
    fn without_cause(&self) -> Option<Self> {
        let is_removable = self.causes.iter().all(|planted| planted.removable);
        (is_removable && self.kind == RecordingKind::Host).then(|| Self {
            name: format!("{}-b", self.name),
            title: format!("{} without the cause", self.title),
            causes: Vec::new(),
            without_cause_of: Some(self.name.clone()),
            scripts: Scripts {
                host_before: String::new(),
                host_beside: String::new(),
                host_after: String::new(),
                record: String::new(),
                record_with: String::new(),
                ..self.scripts.clone()
            },
            effects: Vec::new(),
            ..self.clone()
        })
    }
}

impl Scripts {
    fn filled(&self, parameters: &BTreeMap<String, String>) -> Self {
        let with = |script: &String| filled(script, parameters);
        Self {
            host_before: with(&self.host_before),
            guest_before: with(&self.guest_before),
            host_beside: with(&self.host_beside),
            guest: with(&self.guest),
            host: with(&self.host),
            nested: with(&self.nested),
            guest_after: with(&self.guest_after),
            host_after: with(&self.host_after),
            record: with(&self.record),
            record_with: with(&self.record_with),
        }
    }

    /// Those that there are, by name.
    pub(super) fn named(&self) -> BTreeMap<String, String> {
        let all = [
            ("host_before", &self.host_before),
            ("guest_before", &self.guest_before),
            ("host_beside", &self.host_beside),
            ("guest", &self.guest),
            ("host", &self.host),
            ("nested", &self.nested),
            ("guest_after", &self.guest_after),
            ("host_after", &self.host_after),
            ("record", &self.record),
            ("record_with", &self.record_with),
        ];
        let there = all.into_iter().filter(|(_, script)| !script.is_empty());
        there.map(|(name, script)| (name.to_owned(), script.clone())).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn of_seed(seed: u64, names: &[&str]) -> Vec<CorpusItem> {
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        let files = CauseFile::find(&names).unwrap();
        plan(&CorpusPlan {
            files,
            seed,
            variants: 2,
            kinds: RecordingKind::ALL.into(),
            counterfactuals: false,
        })
    }

    fn parameters_of(items: &[CorpusItem]) -> BTreeMap<String, BTreeMap<String, String>> {
        items.iter().map(|item| (item.title.clone(), item.parameters.clone())).collect()
    }

    #[test]
    fn a_seed_gives_the_same_recordings_again_and_another_one_others() {
        let (first, again, other) = (of_seed(1, &[]), of_seed(1, &[]), of_seed(2, &[]));
        assert_eq!(parameters_of(&first), parameters_of(&again));
        assert_ne!(parameters_of(&first), parameters_of(&other));
    }

    #[test]
    fn a_recording_is_the_same_whatever_else_is_made() {
        let all = parameters_of(&of_seed(1, &[]));
        for (title, parameters) in parameters_of(&of_seed(1, &["exit_storm"])) {
            assert_eq!(all.get(&title), Some(&parameters), "{title}");
        }
    }

    #[test]
    fn workloads_are_repeated_without_causes_that_can_be_removed() {
        let files = CauseFile::find(&["vcpu_preempted".into(), "exit_storm".into()]).unwrap();
        let kinds = RecordingKind::ALL.into();
        let items = plan(&CorpusPlan { files, seed: 1, variants: 2, kinds, counterfactuals: true });
        let without: Vec<_> = items.iter().filter(|item| item.without_cause_of.is_some()).collect();
        assert_eq!(without.len(), 2, "two variants of vcpu_preempted alone, of the host");
        for item in without {
            let with = items.iter().find(|with| Some(&with.name) == item.without_cause_of.as_ref());
            let with = with.unwrap();
            assert_eq!(item.parameters, with.parameters);
            assert_eq!(item.scripts.guest, with.scripts.guest);
            assert!(item.scripts.host_beside.is_empty() && !with.scripts.host_beside.is_empty());
            assert!(item.causes.is_empty());
        }
    }

    #[test]
    fn names_tell_nothing_and_are_unique() {
        let items = of_seed(1, &[]);
        let names: BTreeSet<&str> = items.iter().map(|item| item.name.as_str()).collect();
        assert_eq!(names.len(), items.len());
        assert!(names.iter().all(|name| name.len() == 5 && name.starts_with('r')));
    }

    #[test]
    fn machines_are_started_once_each() {
        let items = of_seed(1, &[]);
        let mut changes: Vec<&Description> = items.iter().map(|item| &item.machines).collect();
        changes.dedup();
        let texts: BTreeSet<String> = changes.iter().map(|lab| format!("{lab:?}")).collect();
        assert_eq!(changes.len(), texts.len());
    }

    #[test]
    fn there_are_healthy_recordings_and_scripts_have_all_parameters() {
        let items = of_seed(1, &[]);
        let healthy = items.iter().filter(|item| item.causes.iter().all(|c| c.cause == "none"));
        assert!(healthy.count() >= 10);
        for item in &items {
            for script in item.scripts.named().into_values() {
                let rest = script.split('{').skip(1).map(|rest| rest.split('}').next());
                let is_name = |word: &str| word.chars().all(|c| c.is_ascii_lowercase() || c == '_');
                let open = rest.flatten().find(|word| !word.is_empty() && is_name(word));
                assert_eq!(open, None, "{}: {script}", item.title);
            }
        }
    }
}
