//! Whole files: real, generated and damaged.

// clippy.toml allows unwrap in `#[test]` functions only, not in their helpers.
#![allow(clippy::unwrap_used, clippy::cast_possible_truncation)]

mod clocks;
mod hostile;
mod real;
mod round_trip;
mod support;
mod trace_cmd;
mod trace_cmd_times;
