//! Decodes events that a guest sends to its host in the arguments of hypercalls.
//!
//! A kernel module in the guest (`kmod/hyperscope_guest`) packs events into *frames*, and makes a
//! hypercall with each: the arguments are the frame's words. The host's recording of
//! `kvm:kvm_hypercall` has them, with host times. A [`Decoder`] converts the frames of a vCPU to
//! the guest's events, on the host's clock. `docs/formats/hypertrace.md` has the bit layout.
//!
//! The crate only converts words to events; it reads no files and no clocks. A guest is not
//! trusted: invalid frames are counted and skipped, and all tables have a bounded size.
//!
//! In the guest's module, `pack.h` implements the format, `stream.c` a CPU's stream, `probes.c` and
//! `functions.c` the sources of events, and `hypercall.c` sends frames through `struct
//! hsg_channel`. `memory.c` stores them in shared memory instead, from which the crate `shmring`
//! reads them. On the host, frames come from `kvm:kvm_hypercall`, or with all registers from
//! `bpf/collect.bpf.c` ([`collected`]). `timeline` finds them, and `analyses` orders the guest's
//! events. A test compiles `pack.h` and compares both sides.

#![forbid(unsafe_code)]
#![warn(missing_docs)]
#![deny(
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation
)]

mod bits;
mod clock;
pub mod collected;
mod decoder;
mod event;
mod frame;
mod frame_words;
mod lateness;
mod marks;
mod relation;
mod stored;
mod tables;

pub use decoder::Decoder;
pub use event::{Call, Event, Interrupt, Kind, Losses, Syscall, Task, TaskState, Wake};
pub use frame_words::FrameWords;
pub use marks::{MARK_BYTES, Mark, Marks, mark_words};
pub use relation::ToHost;
pub use stored::{STORED_MAGIC, Stored, StoredCpu, StoredFrame, StoredWriter};

/// Default hypercall number for frames; a module parameter changes it.
pub const NUMBER: u64 = 0x4853_0000;

/// Hypercall number for marks of programs.
pub const MARK_NUMBER: u64 = 0x4853_0001;

/// Words of the shortest frames: the arguments that every host records.
pub const MIN_WORDS: usize = 4;

/// Words of the longest frames.
pub const MAX_WORDS: usize = 13;
