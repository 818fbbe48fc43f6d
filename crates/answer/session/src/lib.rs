//! Recordings opened together: guests on their host's clock, a part of them, what their recorder said of itself.
//!
//! [`Session::open`] opens files, and folders that a recorder wrote. A [`Selection`] says what of them is read; it is set either
//! with guests on their host's clock, where recordings are read as one, or with each on its own, where durations are
//! what counts. A [`View`] is what analyses take.

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

/// Says something in a line of its own on standard error, after the program's name.
fn say(text: &str) {
    printable::print_message(format_args!("hyperscope: {text}"));
}
