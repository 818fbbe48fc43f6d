//! Compares two recordings or two sets of recordings: every metric of every group, with a ratio, its interval and
//! a p-value. `docs/diff.md` has the method and its reasons.

mod boot;
mod compare;
mod condition;
mod cpu;
mod estimate;
mod exits;
mod grid;
mod histogram;
mod matching;
mod moved;
mod nested;
mod path;
mod profile;
mod question;
mod series;
mod stack_changes;
mod stacks;

pub use compare::{Diff, DiffRow, Options, Values, diff};
pub use condition::{Condition, ConditionError, Judged, MatchingRow, judge};
pub use grid::MAX_SLICES;
pub use moved::{Moved, MovedFrom};
pub use question::{
    CallTime, Estimator, KeyValue, Lost, Measure, MeasuredGroup, Metric, Question, Run, RunInput,
    RunVm, Unit,
};
pub use series::{SUMS, Series, Sums};
pub use stack_changes::{ChangedStack, StackChanges, stack_changes};
pub use stacks::{StackFrame, Stacks};
pub use stats::Scale;

/// Comparable reports. The first is the default.
pub static QUESTIONS: [Question; 6] = [
    exits::QUESTION,
    nested::QUESTION,
    path::QUESTION,
    cpu::QUESTION,
    boot::QUESTION,
    profile::QUESTION,
];
