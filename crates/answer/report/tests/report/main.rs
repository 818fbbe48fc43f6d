//! Compares events as text with the recording itself and with trace-cmd.

// Helpers of tests are not `#[test]` functions, for which clippy.toml allows unwrap.
#![allow(clippy::cast_possible_truncation, clippy::expect_used, clippy::unwrap_used)]

mod names;
mod printed_by_kernels;
mod printed_shapes;
mod printed_texts;
mod text_against_trace_cmd;
