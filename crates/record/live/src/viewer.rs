//! What `hyperscope top` shows of a host: intervals as tables, as lines of JSON, and on a screen with keys.

#![deny(clippy::print_stdout, clippy::print_stderr)]

mod draw;
mod guests;
mod jsonl;
mod jsonl_guest;
mod ran_instead;
mod screen;
mod table;
mod tree;

pub use draw::draw;
pub use jsonl::line;
pub use screen::{ChosenVm, Key, Screen};
pub use table::text;
pub use tree::{Line, Place, Sort};
