//! Histories of vCPUs that are known in advance, and how streams of a host and its guests are put in order.

// Helpers of tests are not `#[test]` functions, which clippy.toml lets unwrap.
#![allow(clippy::cast_possible_truncation, clippy::indexing_slicing, clippy::unwrap_used)]

mod align;
mod histories;
mod rounds;
