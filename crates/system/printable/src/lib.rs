//! Untrusted text made safe to print: names, fields and messages from guests, files and other machines.
//!
//! A terminal obeys control characters, moves text about for bidirectional controls, and doesn't show
//! zero-width characters at all; a line break in a name looks like a line of its own. So all of these are
//! printed as escapes:
//!
//! | What | How |
//! |---|---|
//! | tab, line feed, carriage return | `\t`, `\n`, `\r` |
//! | other control characters of ASCII, and bytes that are no UTF-8 | `\x1b`, `\xff` |
//! | C1 controls, bidirectional and zero-width characters, line separators, tags | `\u{202e}` |
//!
//! All else stays as it is, a backslash too: text without such characters is printed byte by byte as it
//! was recorded, as other tools do. Where the two must be told apart, JSON does.

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
