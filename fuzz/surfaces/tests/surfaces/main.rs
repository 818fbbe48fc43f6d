//! Damaged input for every surface that reads untrusted data.

// Helpers of tests are not `#[test]` functions, which clippy.toml lets unwrap.
#![allow(clippy::unwrap_used)]

mod damaged_folders;
mod large;
mod replay;
