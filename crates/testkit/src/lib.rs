//! Test material: ring-buffer pages and kernel formats built byte by byte, and a naive decoder.
//!
//! It shares no code with the readers under test, so that a mistake in one is not repeated in the
//! other. Only the names for byte order and long size come from `raw_bytes`. Use it from
//! `[dev-dependencies]` only: it panics on invalid arguments.
//!
//! ```
//! use raw_bytes::{Abi, ByteOrder, LongSize};
//! use testkit::{KernelFormats, Machine, PageBuilder, naive};
//!
//! let abi = Abi { order: ByteOrder::Little, long: LongSize::Eight };
//! let formats = KernelFormats::new(Machine::X86, abi);
//! let exit = formats.event("kvm_exit").pid(17).set("exit_reason", 0x400).set("isa", 2).build();
//!
//! let mut page = PageBuilder::new(abi, 4096, 1_000);
//! page.event(50, &exit);
//! let page = page.build();
//! assert_eq!(page.records[0].stamp, 1_050);
//! assert_eq!(naive::decode(abi, &page.bytes).unwrap().records, page.records);
//! ```

#![forbid(unsafe_code)]

mod bytes;
mod ctf;
mod event;
mod format;
mod formats;
mod golden;
mod layout;
mod machine;
pub mod naive;
mod page;
mod perf_data;
mod program;
mod published_schema;
mod random;
mod record_head;
mod sampled;
mod shapes;
mod skipped;
mod stream;
mod thread_ids;

pub use ctf::{CtfBits, ctf_metadata, ctf_packet};
pub use event::{EventBuilder, Value};
pub use format::{Field, Format};
pub use formats::{HEADER_EVENT, KernelFormats};
pub use golden::assert_golden;
pub use machine::Machine;
pub use page::{BuiltPage, ExpectedRecord, MissedEvents, PageBuilder};
pub use perf_data::{PerfBytes, PerfDataBuilder, PerfEvent};
pub use program::{copy_program, program_of};
pub use published_schema::{PublishedSchema, assert_published};
pub use random::Random;
pub use record_head::MAX_DELTA;
pub use sampled::sampled;
pub use skipped::skipped;
pub use stream::StreamBuilder;
pub use thread_ids::has_kernels_ids;
