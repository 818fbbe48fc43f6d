//! Machines, build ids and addresses to names of functions.
//!
//! Each machine has tables of its own ([`Machine`]): its kernel's list of symbols, and what its processes had
//! mapped when ([`ProcessLog`], [`Processes`]). They make a [`Place`] of an address: a place in that kernel, or in
//! a file, which is the same wherever the file was mapped. [`Names`] make a [`Name`] of a place: of files by their
//! build ids, in debug files of this system and in those that a [`Fetch`] gets, where the program has one ([`fetch_by`]).
//!
//! What is not known has no name: a place in a file is `libc.so.6+0x2f1a3` then, with the offset in the file, and
//! any other its address. Nothing is taken for what it may not be: a file without the build id that was recorded,
//! what lies beyond a function's end, the paths of another machine.
//!
//! ```
//! use symbols::{Kallsyms, Machine, Names, ProcessLog};
//!
//! let kernel = Kallsyms::parse(b"ffffffff81000000 T _stext\nffffffff81000010 T schedule\n");
//! let machine = Machine::elsewhere(&kernel, ProcessLog::default().finish());
//! let mut names = Names::of_files_here();
//! let place = machine.kernel_place(0xffff_ffff_8100_0014);
//! assert_eq!(names.name(&machine, place).to_string(), "schedule");
//! ```
//!
//! Lists, records, names and files are not trusted: their sizes are bounded, and what is damaged names nothing.

#![forbid(unsafe_code)]
#![warn(missing_docs)]
#![deny(
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation,
    clippy::print_stdout,
    clippy::print_stderr
)]

mod debug_files;
mod demangle;
mod elf;
mod fetch;
mod files;
pub mod instructions;
mod kernel_code;
mod machine;
mod names;
mod process_log;
mod processes;

pub use debug_files::DebugFiles;
pub use demangle::demangle;
pub use elf::{ElfError, ElfFunctions, Function, Segment};
pub use fetch::{Fetch, WantedFile, fetch_by};
pub use files::{Files, MappedFile};
pub use ftrace::eventfmt::{Coverage, Kallsyms};
pub use kernel_code::KernelCode;
pub use machine::{Machine, Place};
pub use names::{FileCode, Name, Names};
pub use perfdata::BuildId;
pub use process_log::ProcessLog;
pub use processes::Processes;
