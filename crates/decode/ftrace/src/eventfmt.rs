//! Converts the kernel's event formats to field layouts and print programs.
//!
//! Every kernel event describes itself in a `format` text: the layout of its fields in a record,
//! and a C expression that prints a record. This crate converts the first part to [`Field`]s that
//! read a record in place, and the second to a [`PrintProgram`] that is compiled once and then
//! prints records without allocation.
//!
//! Texts and records are untrusted: sizes and nesting are bounded, and a record that is shorter
//! than its format is an error of that record only.
//!
//! ```
//! use ftrace::eventfmt::{EventFormat, Kallsyms, PrintContext, PrintProgram, PrintkFormats};
//! use raw_bytes::{Abi, ByteOrder, LongSize};
//!
//! let format = EventFormat::parse("kvm", b"name: kvm_fpu\nID: 67\nformat:\n\
//!     \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\n\
//!     \tfield:u32 load;\toffset:8;\tsize:4;\tsigned:0;\n\n\
//!     print fmt: \"%s\", __print_symbolic(REC->load, {0, \"unload\"}, {1, \"load\"})\n")?;
//! let abi = Abi { order: ByteOrder::Little, long: LongSize::Eight };
//! let mut record = format.blank_record();
//! format.field("load").unwrap().poke(&mut record, abi.order, 1);
//!
//! let (kallsyms, printk) = (Kallsyms::default(), PrintkFormats::default());
//! let context = PrintContext { kallsyms: &kallsyms, printk: &printk };
//! let mut text = Vec::new();
//! PrintProgram::compile(&format, abi)?.write(&record, &context, &mut text)?;
//! assert_eq!(text, b"load");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Differences from `trace-cmd report -N`
//!
//! Records are printed as their own kernel prints them. libtraceevent 1.7, which trace-cmd uses,
//! computes all numbers as unsigned 64-bit values and supports less of C, so some lines differ:
//!
//! | event | here | trace-cmd | why |
//! |---|---|---|---|
//! | `kvm_wfx_arm64` | `wfi at: 0xffff…` | `wf>c< at: 0x0000000000000000` | it has no `%c`, and takes the next argument for the one after |
//! | `kvm_inj_exception` | `#GP (0x0)` | `[FAILED TO PARSE]` | an empty table |
//! | `kvm_sys_access` | the text | `[FAILED TO PARSE]` | `a ?: b` |
//! | `kvm_pvclock_update` | `tsc_shift -1` | `tsc_shift 255` | an `s8` field |
//! | `kvm_wait_lapic_expire` with a negative delta | `(early)` | `(late)` | `delta < 0` of an `s64` |
//! | `kvm_userspace_exit` with an error | `reason restart (4)` | `reason KVM_EXIT_UNKNOWN (0)` | `errno < 0` of an `int` |
//! | `timer_start` | `flags=D` | `flags=D\|P\|I` | `a & (b \| c)` is taken for `(a & b) \| c` |
//!
//! Names of kernel-internal enums without values in the text (`HRTIMER_MODE_ABS`) match no value in
//! either; the value is shown in hex.

#![deny(clippy::indexing_slicing, clippy::arithmetic_side_effects)]
#![deny(clippy::print_stdout, clippy::print_stderr)]

mod ctype;
mod declaration;
mod digits;
mod error;
mod field;
mod format;
mod glob;
mod header_page;
mod kallsyms;
mod number;
mod often;
mod print;
mod printk_formats;
mod raw;
mod text;
mod value;

pub use digits::{append_decimal, six_digits};
pub use error::{FormatError, PrintError, WriteError};
pub use field::{Element, ElementForm, Field, FieldKind, NumberForm};
pub use format::EventFormat;
pub use glob::glob;
pub use header_page::HeaderPage;
pub use kallsyms::{Coverage, Kallsyms, Symbol};
pub use number::NumberAt;
pub use often::OftenText;
pub use print::{NamedValue, PrintContext, PrintProgram, ShownValue};
pub use printk_formats::PrintkFormats;
pub use raw::write_raw;
pub use value::{Elements, Value};
