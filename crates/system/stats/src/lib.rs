//! Statistics of repeated measurements: estimates of a number that was measured a few times, or
//! over a period, and comparisons of two such numbers.
//!
//! The crate only processes numbers and does not depend on recordings. `docs/diff.md` explains
//! which method is used when, and why.

#![forbid(unsafe_code)]
#![allow(clippy::cast_precision_loss, reason = "counts of runs and slices are small")]

mod adjust;
mod binomial;
mod blocks;
mod chance;
mod comparison;
mod estimate;
mod gamma;
mod pairs;
mod permutation;
mod student;

pub use adjust::{benjamini_hochberg, holm};
pub use binomial::two_sided as binomial_two_sided;
pub use blocks::{Blocks, Resamples, weighted_sum};
pub use chance::Chance;
pub use comparison::{Comparison, Scale, Side, compare};
pub use estimate::{Estimate, mean, median, standard_deviation};
pub use pairs::{compare_pairs, trend};
pub use permutation::{Permutation, flip_signs, permute};
pub use student::{quantile as student_quantile, two_sided as student_two_sided};
