//! Whole files: real ones, written ones, damaged ones.

// Helpers of tests are not `#[test]` functions, which clippy.toml lets unwrap.
#![allow(clippy::unwrap_used, clippy::cast_possible_truncation)]

mod clocks;
mod hostile;
mod real;
mod round_trip;
mod support;
mod trace_cmd;
mod trace_cmd_times;
