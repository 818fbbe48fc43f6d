//! Statistical properties of comparisons, on random runs with a known truth: rate of false positives, coverage of
//! intervals, and detection of known changes.

mod made;
mod rates;
mod recordings;
mod several;
mod sparse;
mod stacks;
