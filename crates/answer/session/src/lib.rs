//! Recordings that are opened together: guests on their host's clock, a selected part, and what the recorder reported.
//!
//! [`Session::open`] opens files and folders that a recorder wrote. A [`Selection`] names the part to read. It is
//! applied either with guests on their host's clock, if recordings are read as one, or with each recording on its own
//! clock, if only durations count. Analyses take a [`View`].

#![forbid(unsafe_code)]

mod alignment;
mod belonging;
mod boots;
mod files;
mod losses;
mod misuse;
mod opened;
mod reported;
mod seconds;
mod selection;
mod vm_names;

pub use analyses::view::View;
pub use belonging::refuse_to_compare_processors;
pub use boots::DEFAULT_STEPS as DEFAULT_BOOT_STEPS;
pub use files::{file_names, is_of_guest, refuse_twice};
pub use losses::{losses_of, say_losses, say_losses_of};
pub use misuse::Misuse;
pub use opened::Session;
pub use reported::Reported;
pub use seconds::{NoTime, Seconds, When, ends_before_it_begins};
pub use selection::Selection;
pub use vm_names::{VmName, VmNames};

/// Prints a line on standard error, after the program's name.
fn say(text: &str) {
    printable::print_message(format_args!("hyperscope: {text}"));
}
