//! Attaches advice to the findings that it explains; other advice becomes a finding.

use analyses::advice::{About, Advice};
use rustc_hash::FxHashMap;

use super::{Finding, Link, Weight};
use crate::advice::saving;
use crate::counted;

/// Max findings per recording that consist only of advice.
const MAX_BY_THEMSELVES: usize = 100;

/// Attaches each piece of advice on a recording, in descending order of the possible saving.
pub(super) fn attach<'a>(
    source: &str,
    advice: impl Iterator<Item = &'a Advice>,
    findings: &mut Vec<Finding>,
) {
    let mut by_vm: FxHashMap<String, Vec<usize>> = FxHashMap::default();
    for (at, finding) in findings.iter().enumerate() {
        if let Some(vm) = finding.link.as_ref().and_then(|link| link.vm.clone()) {
            by_vm.entry(vm).or_default().push(at);
        }
    }
    let (mut added, mut left_out) = (0, 0);
    for piece in advice {
        let of_vm = by_vm.entry(piece.vm.clone()).or_default();
        let explains_at =
            |at: &&usize| findings.get(**at).is_some_and(|finding| explains(piece, finding));
        let place = of_vm.iter().find(explains_at).copied();
        if place.is_none() && added >= MAX_BY_THEMSELVES {
            left_out += 1;
            continue;
        }
        let place = place.unwrap_or_else(|| {
            added += 1;
            findings.push(by_itself(piece));
            of_vm.push(findings.len() - 1);
            findings.len() - 1
        });
        if let Some(finding) = findings.get_mut(place) {
            finding.advice.push((source.to_owned(), piece.clone()));
        }
    }
    findings.extend(further(left_out));
}

/// A finding with the number of omitted pieces of advice.
fn further(left_out: u64) -> Option<Finding> {
    let number = counted(left_out, "more piece of advice", "more pieces of advice");
    let sentence = "*{}* with smaller possible savings: hyperscope advice prints all.";
    (left_out > 0).then(|| Finding::new(Weight::Info, sentence, &[number]))
}

fn explains(advice: &Advice, finding: &Finding) -> bool {
    let vm = finding.link.as_ref().and_then(|link| link.vm.as_deref());
    vm == Some(advice.vm.as_str()) && finding.about.as_ref() == Some(&advice.about)
}

/// Findings for advice that no other finding covers.
fn by_itself(advice: &Advice) -> Finding {
    let values = [advice.title.as_str(), &advice.vm, &saving(advice), advice.saving_of.name()];
    let found = Finding::new(Weight::Info, "*{}*, in {}: {} of {}.", &values);
    let link =
        |section, level, reason| Link { section, vm: Some(advice.vm.clone()), level, reason };
    let link = match &advice.about {
        About::Reason { level, reason } => link("exits", Some(*level), Some(reason.clone())),
        About::RunQueue | About::HaltPolling => link("timeline", None, None),
        About::Nested => link("nested", None, None),
    };
    found.to(link).about(advice.about.clone())
}
