//! Formats and print fmts: of real kernels, made by hand, and made to do harm.

// Helpers of tests are not `#[test]` functions, which clippy.toml lets unwrap.
#![allow(clippy::unwrap_used)]

mod formats;
mod hostile;
mod print_fmts;
mod trace_printk;
