//! The only crate with unsafe code: file mappings, memory shared with others, sockets between host and
//! guests, instructions that only a guest has a use for.

#![allow(unsafe_code, reason = "this crate exists to hold the workspace's unsafe code")]

mod file_map;
pub mod guest_instructions;
mod physical_page;
mod shared_map;
mod tsc;
mod tsc_conversion;
pub mod vsock;

pub use file_map::{FileMap, OpenError};
pub use physical_page::PhysicalPage;
pub use shared_map::{Access, SharedMap};
pub use tsc::tsc;
pub use tsc_conversion::tsc_conversion;
