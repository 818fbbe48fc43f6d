//! Names functions by machine, build id and address.
//!
//! Each machine has its own tables ([`Machine`]): its kernel's symbol list, and its processes'
//! mappings over time ([`ProcessLog`], [`Processes`]). They convert an address to a [`Place`]: an
//! address in that kernel, or an offset in a file, independent of where the file was mapped.
//! [`Names`] converts a place to a [`Name`]: for files by build id, with debug files on this system
//! and files from a [`Fetch`], if the program has set one ([`fetch_by`]).
//!
//! Without a known function, a place in a file is shown as `libc.so.6+0x2f1a3` with the file
//! offset, and any other place as its address. Doubtful matches are not used: a file without the
//! recorded build id, an address past a function's end, the paths of another machine.
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
//! Lists, records, names and files are not trusted: their sizes are bounded, and damaged ones give
//! no names.

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
