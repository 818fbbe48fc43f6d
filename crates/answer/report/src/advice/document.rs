//! The JSON document of advice, as docs/advice.md defines it.

use analyses::advice::{Advice, Amount, Fact};
use schemars::JsonSchema;
use serde::Serialize;

use super::{about_name, checked, reason_of};
use crate::losses::LossSums;

/// Output of `hyperscope advice --format json`: why exits and waits happen, what usually helps, and the evidence.
/// See docs/advice.md.
#[derive(Debug, JsonSchema, Serialize)]
pub(crate) struct Document<'r> {
    pub(super) schema: &'static str,
    /// Paths of the recordings, as they were named.
    pub(super) sources: &'r [String],
    /// Losses of all sources.
    pub(super) losses: LossSums,
    /// Pieces of advice; within a recording, in descending order of the possible saving.
    pub(super) rows: Vec<AdviceRow<'r>>,
}

/// The advice of a rule for a VM.
#[derive(Debug, JsonSchema, Serialize)]
pub(crate) struct AdviceRow<'r> {
    /// Path of the recording, as given.
    source: &'r str,
    /// Name of the rule; docs/advice.md lists them.
    rule: &'static str,
    /// The VM.
    vm: &'r str,
    /// The subject: exits of a reason, waits in the run queue, halt polling, or exits of nested guests.
    #[schemars(extend("enum" = ["exits", "run_queue", "halt_polling", "nested"]))]
    about: &'static str,
    /// Level of the guest that exits; null: the subject is not exits of a reason.
    #[schemars(extend("minimum" = 1))]
    level: Option<u8>,
    /// The kernel's name of the exit reason that takes most of the time; null: the subject is not exits of a
    /// reason.
    reason: Option<&'r str>,
    /// What happens, in a few words.
    title: &'r str,
    /// Why it happens.
    why: &'r str,
    /// Settings and changes that usually help, the likeliest first.
    #[schemars(extend("minItems" = 1))]
    helps: &'r [String],
    /// The evidence in the recording.
    #[schemars(extend("minItems" = 1))]
    evidence: Vec<FactRow<'r>>,
    /// Lower bound of the saving; 0: the recording doesn't show how much time would remain. Nanoseconds.
    saving_at_least_ns: u64,
    /// Upper bound of the saving: never more than was measured. Nanoseconds.
    saving_at_most_ns: u64,
    /// The kind of time: cost of exits on CPUs; time of exits, if the recording can't distinguish running from
    /// waiting; waiting for a CPU; halt polling.
    #[schemars(extend("enum" = ["cost", "time", "waiting", "halt polling"]))]
    saving_of: &'static str,
    /// How far savings of the rule were verified: how many savings measured in the lab were in the predicted
    /// interval (docs/advice.md).
    #[schemars(extend("pattern" = "^(saving not verified|(verified in the lab:|saving not verified here, on SVM) [0-9]+ of [0-9]+)$"))]
    checked: String,
}

/// A number.
#[derive(Debug, JsonSchema, Serialize)]
struct FactRow<'r> {
    /// The meaning of the number.
    what: &'r str,
    /// The number, in this unit.
    #[schemars(with = "f64", extend("minimum" = 0))]
    value: FactValue,
    /// count: a number; ns: nanoseconds; share: a part of a total, 0 to 1; ratio: how many of one for each of
    /// another.
    #[schemars(extend("enum" = ["count", "ns", "share", "ratio"]))]
    unit: &'static str,
}

/// An integer, or a number with a fraction.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum FactValue {
    Whole(u64),
    Fraction(f64),
}

impl<'r> AdviceRow<'r> {
    /// A piece of advice as a row of the document.
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
