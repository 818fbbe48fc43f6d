//! Recordings as Parquet tables: for SQL, on one machine or on many.
//!
//! [`tables`] says which tables there are; [`write_tables`] reads recordings and fills them row by row, in
//! bounded memory. The numbers are those of `analyses`: sums over `exits` are what the exits report shows, and
//! sums over `vcpu_states` what the cpu report does, to the nanosecond.

#![forbid(unsafe_code)]
#![deny(clippy::indexing_slicing, clippy::print_stdout, clippy::print_stderr)]

mod buckets;
mod clock;
mod column;
mod convert;
mod events;
mod exit_tables;
mod gaps;
mod identity;
mod nested;
mod pseudonyms;
mod reader;
mod requests;
mod rollup;
mod session;
mod spans;
mod states;
pub mod store;
mod survey;
pub mod tables;
mod writer;

pub use buckets::write_buckets;
pub use clock::{SLICE_NS, UnixClock, slice_of};
pub use column::{Column, Kind, Names, Table};
pub use convert::{Files, Ids, Origin, Question, Written, identify, write_tables};
pub use events::{NeededEvents, write_needed_events};
pub use identity::{CONVERTER, SourceHash, hash_sources, name_of};
pub use pseudonyms::Pseudonyms;
pub use reader::{Group, Values, each_group};
pub use writer::{Row, TableWriter, TextId};
