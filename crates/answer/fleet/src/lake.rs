//! Recordings as Parquet tables: for SQL, on one machine or on many.
//!
//! [`tables`] says which tables there are; [`write_tables`] reads recordings and fills them row by row, in
//! bounded memory. The numbers are those of `analyses`: sums over `exits` are what the exits report shows, and
//! sums over `vcpu_states` what the cpu report does, to the nanosecond.
//!
//! A first reading finds vCPUs and what was recorded (`survey`); then exits with their sums (`exit_tables`, `rollup`, `nested`),
//! states, requests and calls are written, one row group at a time. In an object store, `hyperscope lake` starts hyperscope-sql and
//! sends its calls over pipes (`by_process`, `served`), so that no other program contains the store's client.

#![deny(clippy::indexing_slicing, clippy::print_stdout, clippy::print_stderr)]

mod buckets;
mod clock;
mod convert;
mod events;
mod exit_tables;
mod gaps;
mod nested;
mod requests;
mod rollup;
mod session;
mod spans;
mod states;
mod survey;

pub use buckets::write_buckets;
pub use clock::{SLICE_NS, UnixClock, slice_of};
pub use convert::{Origin, Question, Written, identify, write_tables};
pub use events::{NeededEvents, write_needed_events};
// What the tables are and where they are kept, for users of both.
pub use lake_store as store;
pub use lake_store::{
    CONVERTER, Column, Files, Group, Ids, Kind, Names, Pseudonyms, Row, SourceHash, Table,
    TableWriter, TextId, Values, each_group, hash_sources, name_of, tables,
};
