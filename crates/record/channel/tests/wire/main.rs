//! Messages and page streams, of this release and of others.

// Helpers of tests are not `#[test]` functions, which clippy.toml lets unwrap.
#![allow(clippy::unwrap_used)]

mod streams;
mod trace_cmd;
mod version_2;
