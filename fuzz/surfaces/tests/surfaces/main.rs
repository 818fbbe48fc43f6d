//! Every surface that reads what strangers send, fed with damage.

// Helpers of tests are not `#[test]` functions, which clippy.toml lets unwrap.
#![allow(clippy::unwrap_used)]

mod damaged_folders;
mod damaged_recordings;
mod large;
mod replay;
