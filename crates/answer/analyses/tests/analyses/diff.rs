//! The statistics of comparisons keep what they promise, on runs made by chance of which the truth
//! is known: how often equal runs are called different, how often intervals hold the truth, and
//! whether a known change is found.

mod made;
mod rates;
mod recordings;
mod several;
mod sparse;
mod stacks;
