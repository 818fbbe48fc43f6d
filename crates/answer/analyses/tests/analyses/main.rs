//! Tests the results of each question with synthetic histories, and with real recordings and their truths.

// Helpers of tests are not `#[test]` functions, which clippy.toml lets unwrap.
#![allow(clippy::cast_possible_truncation, clippy::indexing_slicing, clippy::unwrap_used)]

mod advice;
mod align;
mod architectures;
mod boot;
mod calls;
mod critical;
mod diff;
mod hypertrace;
mod machinery;
mod nested;
mod oracle;
mod path;
mod profile;
mod profile_mixtures;
mod readings;
mod states_for_all;
mod vmm;
