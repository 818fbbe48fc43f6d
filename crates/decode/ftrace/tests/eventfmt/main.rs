//! Formats and print fmts: from real kernels, handwritten, and hostile.

// clippy.toml allows unwrap in `#[test]` functions only, not in their helpers.
#![allow(clippy::unwrap_used)]

mod formats;
mod hostile;
mod print_fmts;
mod trace_printk;
