//! Output of `hyperscope top`: intervals as tables, as lines of JSON, and on an interactive screen.

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
