//! Every surface that reads what strangers send, fed with damage.

// Helpers of tests are not `#[test]` functions, which clippy.toml lets unwrap.
#![allow(clippy::unwrap_used)]

mod damaged_folders;
mod large;
mod replay;
