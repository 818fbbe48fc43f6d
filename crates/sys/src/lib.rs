//! The only crate with unsafe code: file mappings behind safe types.

#![allow(unsafe_code, reason = "this crate exists to hold the workspace's unsafe code")]

mod file_map;

pub use file_map::{FileMap, OpenError};
