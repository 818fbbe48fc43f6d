//! The report of `hyperscope advice`: why exits and waits happen, what usually helps, and the evidence.

mod document;

use analyses::advice::{About, Advice, Amount, ExitEvidence, Fact, RULES, Verified, verified};
use printable::line;
use serde::Serialize;
use timeline::arch::Isa;

pub(crate) use self::document::{AdviceRow, Document};
use crate::losses::LossSums;
use crate::sentences::after_label;
use crate::table::Table;
use crate::units::{count, plural, time};
use crate::{Report, losses};

/// How far the lab verified the predicted savings: for these exits, or only for exits of AMD processors.
#[must_use]
fn checked(advice: &Advice) -> String {
    match verified(advice.rule) {
        Some(Verified { held, predictions, .. }) if advice.isa == Isa::Svm => {
            format!("verified in the lab: {held} of {predictions}")
        }
        Some(Verified { held, predictions, .. }) => {
            format!("saving not verified here, on SVM {held} of {predictions}")
        }
        None => "saving not verified".to_owned(),
    }
}

/// The advice for all given recordings.
#[derive(Debug, Default)]
pub struct AdviceReport {
    /// Paths of the recordings, as the user named them.
    pub sources: Vec<String>,
    /// Each piece of advice, with the index of its recording.
    pub advice: Vec<(usize, Advice)>,
    /// By recording, the evidence that it offers to the rules.
    pub seen: Vec<Seen>,
    /// By recording.
    pub losses: Vec<timeline::Losses>,
}

/// Evidence that a recording offers to the rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen {
    /// Exits, with details of some of them.
    Details,
    /// Exits without details.
    Exits,
    /// No exits.
    Nothing,
    /// Times that are not in nanoseconds, so that thresholds don't apply.
    Ticks,
}

impl Seen {
    fn from_exits(exits: &ExitEvidence) -> Self {
        match exits {
            _ if !exits.has_exits() => Self::Nothing,
            _ if !exits.nanoseconds => Self::Ticks,
            _ if exits.has_details() => Self::Details,
            _ => Self::Exits,
        }
    }

    /// A hint for a reader who gets little or no advice.
    const fn note(self) -> Option<&'static str> {
        match self {
            Self::Details => None,
            Self::Exits => Some(
                "no exit has a register, port or address, which most rules need: record kvm:kvm_msr, kvm_pio, kvm_page_fault and \
                 kvm_mmio",
            ),
            Self::Nothing => Some("there are no VM exits"),
            Self::Ticks => {
                Some("its clock does not count nanoseconds, but the thresholds are in nanoseconds")
            }
        }
    }
}

impl Report for AdviceReport {
    fn headline(&self) -> String {
        let found = Self::summary(self.advice.len());
        match self.sources.as_slice() {
            [path] => format!("{}: {found}.", line(path)),
            sources => format!("{}: {found}.", plural(sources.len() as u64, "recording")),
        }
    }

    fn tables(&self, width: Option<usize>) -> String {
        let mut out = String::new();
        for (at, path) in self.sources.iter().enumerate() {
            if at > 0 {
                out.push('\n');
            }
            let source_advice: Vec<&Advice> = self
                .advice
                .iter()
                .filter(|(source, _)| *source == at)
                .map(|(_, advice)| advice)
                .collect();
            if self.sources.len() > 1 {
                out += &format!("{}: {}\n", line(path), Self::summary(source_advice.len()));
            }
            source_advice.iter().for_each(|advice| out += &text_of(advice, width));
            if let Some(note) = self.seen.get(at).and_then(|seen| seen.note()) {
                out += &format!("{note}\n");
            }
            for note in
                self.losses.get(at).map(|losses| losses::notes(losses, 0)).unwrap_or_default()
            {
                out += &format!("{}\n", line(&note));
            }
        }
        out
    }

    fn document(&self) -> impl Serialize {
        self.document_of()
    }

    fn csv(&self) -> Table {
        let mut table = Table::default();
        let all = || self.advice.iter();
        let mut texts = |title: &str, cell_of: &dyn Fn(&(usize, Advice)) -> String| {
            table.names(title, 0, all().map(cell_of).collect());
        };
        texts("source", &|(at, _)| self.source(*at).to_owned());
        texts("rule", &|(_, advice)| advice.rule.to_owned());
        texts("vm", &|(_, advice)| advice.vm.clone());
        texts("about", &|(_, advice)| about_name(&advice.about).to_owned());
        texts("level", &|(_, advice)| {
            reason_of(advice).map_or(String::new(), |(level, _)| level.to_string())
        });
        texts("reason", &|(_, advice)| {
            reason_of(advice).map_or(String::new(), |(_, reason)| reason.to_owned())
        });
        texts("title", &|(_, advice)| advice.title.clone());
        texts("why", &|(_, advice)| advice.why.clone());
        texts("helps", &|(_, advice)| advice.helps.join(" | "));
        texts("evidence", &|(_, advice)| shown_facts(&advice.evidence, " | "));
        texts("saving_at_least_ns", &|(_, advice)| advice.saving_at_least_ns.to_string());
        texts("saving_at_most_ns", &|(_, advice)| advice.saving_at_most_ns.to_string());
        texts("saving_of", &|(_, advice)| advice.saving_of.name().to_owned());
        texts("checked", &|(_, advice)| checked(advice));
        table
    }
}

impl AdviceReport {
    /// Adds the advice for another recording.
    pub fn add(
        &mut self,
        path: String,
        exits: &ExitEvidence,
        losses: timeline::Losses,
        advice: Vec<Advice>,
    ) {
        let at = self.sources.len();
        self.sources.push(path);
        self.losses.push(losses);
        self.seen.push(Seen::from_exits(exits));
        self.advice.extend(advice.into_iter().map(|advice| (at, advice)));
    }

    pub(crate) fn document_of(&self) -> Document<'_> {
        let rows = self.advice.iter();
        Document {
            schema: "hyperscope.advice/1",
            sources: &self.sources,
            losses: LossSums::new(self.losses.iter(), 0),
            rows: rows.map(|(at, advice)| AdviceRow::new(self.source(*at), advice)).collect(),
        }
    }

    fn source(&self, at: usize) -> &str {
        self.sources.get(at).map_or("", String::as_str)
    }

    fn summary(found: usize) -> String {
        match found {
            0 => {
                let rules = plural(RULES.len() as u64, "rule");
                format!("no advice: none of {rules} found evidence")
            }
            1 => "1 piece of advice".to_owned(),
            _ => format!("{found} pieces of advice, sorted by largest possible saving"),
        }
    }
}

/// A piece of advice as text.
fn text_of(advice: &Advice, width: Option<usize>) -> String {
    let about = match &advice.about {
        About::Reason { level: 2, reason } => format!("{reason} (level 2)"),
        About::Reason { reason, .. } => reason.clone(),
        About::RunQueue => "run queue".to_owned(),
        About::HaltPolling => "halt polling".to_owned(),
        About::Nested => "nested exits".to_owned(),
    };
    let mut out = format!(
        "\n{}, {}: {} [{}]\n",
        line(&advice.vm),
        line(&about),
        line(&advice.title),
        advice.rule
    );
    let mut add = |label: &str, text: &str| out += &after_label(label, &line(text), width);
    add("  why    ", &advice.why);
    add("  shown  ", &shown_facts(&advice.evidence, "; "));
    for (at, help) in advice.helps.iter().enumerate() {
        add(if at == 0 { "  helps  - " } else { "         - " }, help);
    }
    let checked = checked(advice);
    add("  saves  ", &format!("{} of {}; {checked}", saving(advice), advice.saving_of.name()));
    out
}

/// The predicted saving of time: an interval, or an upper bound.
pub(crate) fn saving(advice: &Advice) -> String {
    let at_most = time(advice.saving_at_most_ns, true);
    match advice.saving_at_least_ns {
        0 => format!("at most {at_most}"),
        at_least => format!("{} to {at_most}", time(at_least, true)),
    }
}

fn shown_facts(facts: &[Fact], between: &str) -> String {
    facts.iter().map(shown_fact).collect::<Vec<_>>().join(between)
}

/// A number with its unit, after what it is.
pub(crate) fn shown_fact(fact: &Fact) -> String {
    format!("{}: {}", fact.what, shown_amount(&fact.amount))
}

fn shown_amount(amount: &Amount) -> String {
    match amount {
        Amount::Count(number) => count(*number),
        Amount::Time(ns) => time(*ns, true),
        Amount::Share(part) => format!("{:.1}%", part * 100.0),
        Amount::Ratio(ratio) => format!("{ratio:.1}"),
    }
}

const fn about_name(about: &About) -> &'static str {
    match about {
        About::Reason { .. } => "exits",
        About::RunQueue => "run_queue",
        About::HaltPolling => "halt_polling",
        About::Nested => "nested",
    }
}

fn reason_of(advice: &Advice) -> Option<(u8, &str)> {
    match &advice.about {
        About::Reason { level, reason } => Some((*level, reason)),
        _ => None,
    }
}
