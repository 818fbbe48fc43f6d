//! The only crate with unsafe code: file mappings, shared memory, sockets between host and guests,
//! instructions for guests, virtual machines, a counting allocator.

#![allow(unsafe_code, reason = "this crate exists to hold the workspace's unsafe code")]

mod clock;
mod cut;
mod file_map;
pub mod guest_instructions;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
pub mod kvm;
mod memory;
mod open_error;
mod perf_ring;
mod physical_page;
mod shared_map;
mod spool;
mod standard_output;
mod tap;
mod tsc;
mod tsc_conversion;
pub mod vsock;

pub use clock::{ClockId, clock_ns, process_cpu_ns};
pub use file_map::{CutShort, FileMap, check_mapped_files};
#[cfg(target_arch = "x86_64")]
pub use guest_instructions::time_stamp_counter;
pub use memory::{CountedMemory, bound_memory, memory_in_use};
pub use open_error::{OpenError, OpenFault, SaidOfFile};
pub use perf_ring::PerfRing;
pub use physical_page::PhysicalPage;
pub use shared_map::{Access, SharedMap};
pub use spool::bound_spool;
pub use standard_output::standard_output_was_closed;
pub use tap::Tap;
pub use tsc::tsc;
pub use tsc_conversion::tsc_conversion;
