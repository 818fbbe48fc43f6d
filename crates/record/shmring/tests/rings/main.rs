//! What the rings promise, with a temp file mapped twice in place of a guest's memory.

// Helpers of tests are not `#[test]` functions, which clippy.toml lets unwrap.
#![allow(clippy::unwrap_used)]

mod control;
mod files;
mod hostile;
mod killed;
mod layout;
mod region;
mod restarts;
mod two_threads;
