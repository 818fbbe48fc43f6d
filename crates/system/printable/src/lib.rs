//! Makes untrusted text safe to print: names, fields and messages from guests, files and other
//! machines.
//!
//! A terminal executes control characters, reorders text at bidirectional controls, and hides
//! zero-width characters; a line break in a name looks like a separate line. So these characters
//! are escaped:
//!
//! | What | How |
//! |---|---|
//! | tab, line feed, carriage return | `\t`, `\n`, `\r` |
//! | other control characters of ASCII, and bytes that are no UTF-8 | `\x1b`, `\xff` |
//! | C1 controls, bidirectional and zero-width characters, line separators, tags | `\u{202e}` |
//!
//! All other text is not changed, including backslashes: it is printed byte by byte as recorded, as
//! in other tools. JSON distinguishes an escape from the same text in the input.

#![forbid(unsafe_code)]
#![deny(clippy::indexing_slicing, clippy::arithmetic_side_effects)]

mod ascii;
pub mod calendar;
mod causes;
mod forms;
mod hidden;
mod label;
mod messages;

pub use ascii::{ascii, locale_has_utf8};
pub use causes::with_causes;
pub use forms::{csv_cell, json, line, line_of_bytes, lines};
pub use hidden::escape_event;
pub use label::label;
pub use messages::{Messages, messages, print_message, without_error_numbers};
