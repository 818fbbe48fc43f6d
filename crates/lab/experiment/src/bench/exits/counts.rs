//! Counts the exits of the first machine's KVM per operation, by reason, at whatever level the operation runs.

use labguest::exitcost::{AblationOptions, AblationSheet, ExitCounts, Kind};
use serde::Serialize;
use timeline::reasons::ReasonNames;

use crate::bench::error::{BenchError, Result};
use crate::bench::exits::ladder::Ladders;
use crate::bench::exits::levels::{Levels, PROGRAM};

/// Factor of operations in counted runs, compared with measured ones: unrelated page faults and interrupts are fewer
/// per operation.
const LONGER: u64 = 10;

/// Exits of the first machine's KVM per operation.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ReasonShare {
    /// The kernel's name of the reason.
    pub reason: String,
    /// Exits for each operation.
    pub per_operation: f64,
}

/// Counts of all steps on one machine, by kind.
#[derive(Clone, Debug)]
pub(super) struct StepCounts(Vec<Vec<Option<Vec<ReasonShare>>>>);

impl StepCounts {
    /// No counts yet.
    pub(super) fn new(steps: usize) -> Self {
        Self(vec![Vec::new(); steps])
    }

    /// Adds each count to its step.
    pub(super) fn put_into(self, ladders: &mut Ladders) {
        for (step, kinds) in self.0.into_iter().enumerate() {
            for (ladder, exits) in ladders.ladders.iter_mut().zip(kinds) {
                if let Some(rung) = ladder.steps.get_mut(step) {
                    rung.exits = exits;
                }
            }
        }
    }
}

impl Levels<'_> {
    /// Counts the exits of all steps of `part`, one kind after another, caused at this level.
    pub(super) fn count_exits(
        &mut self,
        level: u8,
        part: &AblationOptions,
        counts: &mut StepCounts,
    ) -> Result<()> {
        for &step in part.orders.first().into_iter().flatten() {
            let kinds = part.kinds.iter().map(|&kind| self.shares(level, part, step, kind));
            let kinds = kinds.collect::<Result<Vec<_>>>()?;
            if let Some(slot) = counts.0.get_mut(step) {
                *slot = kinds;
            }
        }
        self.check(1, &[PROGRAM, "exit-counts", "end"])?;
        Ok(())
    }

    /// Makes two runs, the second with more operations: the difference excludes the exits of making, warming up and
    /// ending a machine.
    fn shares(
        &mut self,
        level: u8,
        part: &AblationOptions,
        step: usize,
        kind: Kind,
    ) -> Result<Option<Vec<ReasonShare>>> {
        let few = kind.at_most(part.operations.saturating_mul(2 * LONGER)) / 2;
        let plan = |operations| AblationOptions {
            kinds: vec![kind],
            operations,
            orders: vec![vec![step]],
            ..part.clone()
        };
        loop {
            let repeated = self.repeated_runs();
            let before = self.exits_so_far()?;
            let sheet: AblationSheet = self.ask(level, "exit-ablation", &plan(few))?;
            let between = self.exits_so_far()?;
            self.ask::<AblationSheet>(level, "exit-ablation", &plan(few.saturating_mul(2)))?;
            let after = self.exits_so_far()?;
            if sheet.steps.get(step).is_none_or(|step| step.not_measured.is_some()) {
                return Ok(None);
            }
            // Restarted machines have restarted their counts.
            if self.repeated_runs() == repeated {
                return Ok(Some(more(&before, &between, &after, few)));
            }
        }
    }

    fn exits_so_far(&mut self) -> Result<ExitCounts> {
        let output = self.check(1, &[PROGRAM, "exit-counts"])?;
        serde_json::from_str(&output).map_err(BenchError::malformed(PROGRAM))
    }
}

/// Additional exits of the second run per additional operation; most first.
#[allow(clippy::cast_precision_loss, reason = "some millions at most")]
fn more(
    before: &ExitCounts,
    between: &ExitCounts,
    after: &ExitCounts,
    operations: u64,
) -> Vec<ReasonShare> {
    let count = |counts: &ExitCounts, isa: u8, code: u64| {
        let same = counts.reasons.iter().find(|reason| (reason.isa, reason.code) == (isa, code));
        same.map_or(0.0, |reason| reason.count as f64)
    };
    let mut names = ReasonNames::of_event_text(&after.format);
    let shares = after.reasons.iter().map(|reason| {
        let count = |counts| count(counts, reason.isa, reason.code);
        let (first, second) = (count(between) - count(before), count(after) - count(between));
        ReasonShare {
            reason: names.name(reason.isa, reason.code),
            per_operation: (second - first) / operations.max(1) as f64,
        }
    });
    let mut shares: Vec<ReasonShare> = shares.collect();
    shares.sort_by(|a, b| {
        b.per_operation.total_cmp(&a.per_operation).then_with(|| a.reason.cmp(&b.reason))
    });
    shares
}

#[cfg(test)]
mod tests {
    use labguest::exitcost::ReasonCount;

    use super::*;

    fn counts(reasons: &[(u64, u64)]) -> ExitCounts {
        let reasons = reasons.iter().map(|&(code, count)| ReasonCount { isa: 2, code, count });
        ExitCounts { format: String::new(), reasons: reasons.collect() }
    }

    #[test]
    fn an_operations_exits_are_what_more_operations_have_more() {
        // Making and warming up a machine: 64 of 129, 9 of 78. Then 100 operations of two exits each, and 200.
        let before = counts(&[(129, 1_000)]);
        let between = counts(&[(129, 1_000 + 64 + 100), (78, 9), (128, 100)]);
        let after = counts(&[(129, 1_000 + 128 + 300), (78, 18), (128, 300)]);
        let shares = more(&before, &between, &after, 100);
        let found: Vec<f64> = shares.iter().map(|share| share.per_operation).collect();
        assert_eq!(found, [1.0, 1.0, 0.0]);
    }
}
