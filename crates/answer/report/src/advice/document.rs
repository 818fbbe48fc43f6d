//! The JSON document of advice: docs/advice.md says what it is.

use analyses::advice::{Advice, Amount, Fact};
use schemars::JsonSchema;
use serde::Serialize;

use super::{about_name, checked, reason_of};
use crate::losses::LossSums;

/// What `hyperscope advice --format json` prints: why exits and waits happen, what usually helps, and what shows
/// it. See docs/advice.md.
#[derive(Debug, JsonSchema, Serialize)]
pub(crate) struct Document<'r> {
    pub(super) schema: &'static str,
    /// Paths of the recordings, as they were named.
    pub(super) sources: &'r [String],
    /// What the recording lost, over all sources.
    pub(super) losses: LossSums,
    /// Pieces of advice; of each recording that first which could save most.
    pub(super) rows: Vec<AdviceRow<'r>>,
}

/// What a rule says of a VM.
#[derive(Debug, JsonSchema, Serialize)]
pub(crate) struct AdviceRow<'r> {
    /// Path of the recording, as given.
    source: &'r str,
    /// Name of the rule; docs/advice.md lists them.
    rule: &'static str,
    /// The VM.
    vm: &'r str,
    /// What it is about: exits of a reason, waits in the run queue, halt polling, or exits of nested guests.
    #[schemars(extend("enum" = ["exits", "run_queue", "halt_polling", "nested"]))]
    about: &'static str,
    /// Level of the guest that exits; null: not about exits of a reason.
    #[schemars(extend("minimum" = 1))]
    level: Option<u8>,
    /// The kernel's name of the exit reason that takes most of it; null: not about exits of a reason.
    reason: Option<&'r str>,
    /// What happens, in a few words.
    title: &'r str,
    /// Why it happens.
    why: &'r str,
    /// Settings and changes that usually help, the likeliest first.
    #[schemars(extend("minItems" = 1))]
    helps: &'r [String],
    /// What of the recording shows it.
    #[schemars(extend("minItems" = 1))]
    evidence: Vec<FactRow<'r>>,
    /// The time that it should save at least; 0: the recording doesn't show how much remains. Nanoseconds.
    saving_at_least_ns: u64,
    /// The time that it could save at most: never more than was measured. Nanoseconds.
    saving_at_most_ns: u64,
    /// What that time is: cost of exits on CPUs; their time, where the recording can't distinguish running from
    /// waiting; waiting for a CPU; halt polling.
    #[schemars(extend("enum" = ["cost", "time", "waiting", "halt polling"]))]
    saving_of: &'static str,
    /// How far savings of the rule were checked: how many of those that were predicted and then measured in the lab
    /// lay in the predicted interval (docs/advice.md).
    #[schemars(extend("pattern" = "^(saving not verified|(verified in the lab:|saving not verified here, on SVM) [0-9]+ of [0-9]+)$"))]
    checked: String,
}

/// A number.
#[derive(Debug, JsonSchema, Serialize)]
struct FactRow<'r> {
    /// What it is.
    what: &'r str,
    /// How much, in this unit.
    #[schemars(with = "f64", extend("minimum" = 0))]
    value: FactValue,
    /// count: how many; ns: nanoseconds; share: a part of a whole, 0 to 1; ratio: how many of one for each of
    /// another.
    #[schemars(extend("enum" = ["count", "ns", "share", "ratio"]))]
    unit: &'static str,
}

/// A whole number, or one with a fraction.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum FactValue {
    Whole(u64),
    Fraction(f64),
}

impl<'r> AdviceRow<'r> {
    /// What the document says of a piece of advice.
    pub(crate) fn new(source: &'r str, advice: &'r Advice) -> Self {
        let reason = reason_of(advice);
        Self {
            source,
            rule: advice.rule,
            vm: &advice.vm,
            about: about_name(&advice.about),
            level: reason.map(|(level, _)| level),
            reason: reason.map(|(_, reason)| reason),
            title: &advice.title,
            why: &advice.why,
            helps: &advice.helps,
            evidence: advice.evidence.iter().map(FactRow::new).collect(),
            saving_at_least_ns: advice.saving_at_least_ns,
            saving_at_most_ns: advice.saving_at_most_ns,
            saving_of: advice.saving_of.name(),
            checked: checked(advice),
        }
    }
}

impl<'r> FactRow<'r> {
    fn new(fact: &'r Fact) -> Self {
        let (value, unit) = match &fact.amount {
            Amount::Count(number) => (FactValue::Whole(*number), "count"),
            Amount::Time(ns) => (FactValue::Whole(*ns), "ns"),
            Amount::Share(part) => (FactValue::Fraction(*part), "share"),
            Amount::Ratio(ratio) => (FactValue::Fraction(*ratio), "ratio"),
        };
        Self { what: &fact.what, value, unit }
    }
}
