//! Recordings as Parquet tables, for SQL.
//!
//! [`tables`] lists the tables; [`write_tables`] reads recordings and fills them row by row, in bounded memory. The
//! numbers are those of `analyses`: sums over `exits` equal the exits report, and sums over `vcpu_states` equal the cpu
//! report, to the nanosecond.
//!
//! A first reading finds vCPUs and the recorded range (`survey`). Then exits with their sums (`exit_tables`, `rollup`,
//! `nested`), states, requests and calls are written, one row group at a time. For object stores, `hyperscope lake`
//! starts hyperscope-sql and sends it calls over pipes (`by_process`, `served`), so that no other program contains the
//! store's client.

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
// Table definitions and lake storage, re-exported.
pub use lake_store as store;
pub use lake_store::{
    CONVERTER, Column, Files, Group, Ids, Kind, Names, Pseudonyms, Row, SourceHash, Table,
    TableWriter, TextId, Values, each_group, hash_sources, name_of, tables,
};
