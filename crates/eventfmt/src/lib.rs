//! Kernel event formats to field layouts and print programs.
//!
//! Every event of the kernel describes itself in a `format` text: where its fields lie in a record,
//! and, as a piece of C, how a record is printed. This crate turns the first half into [`Field`]s
//! that read a record in place, and the second into a [`PrintProgram`] that is compiled once and
//! then writes records without allocating.
//!
//! Texts and records are untrusted: sizes are bounded, nesting is bounded, and a record that is
//! shorter than its format is an error of that record only.

#![forbid(unsafe_code)]
#![deny(clippy::indexing_slicing, clippy::arithmetic_side_effects)]
#![deny(clippy::print_stdout, clippy::print_stderr)]

mod ctype;
mod declaration;
mod digits;
mod error;
mod field;
mod format;
mod header_page;
mod kallsyms;
mod number;
mod print;
mod printk_formats;
mod raw;
mod text;
mod value;

pub use error::{FormatError, PrintError, WriteError};
pub use field::{Element, ElementForm, Field, FieldKind, NumberForm};
pub use format::EventFormat;
pub use header_page::HeaderPage;
pub use kallsyms::{Kallsyms, Symbol};
pub use number::NumberAt;
pub use print::{PrintContext, PrintProgram};
pub use printk_formats::PrintkFormats;
pub use raw::write_raw;
pub use value::{Elements, Value};
