//! A lake: the tables of many recordings in folders by day. Each recording is valid completely or not at all.
//!
//! ```text
//! v1/sessions/date=2026-11-22/SESSION.parquet              one row; written last, replaced atomically
//! v1/exits/hot/date=2026-11-22/SESSION-INGEST.parquet      its rows
//! v1/exits/cold/date=2026-11-22/part-PART.parquet          rows of several sessions, after `compact`
//! ```
//! Rows are valid if their `ingest_id` equals that of their session's row. Added, replaced or compacted rows are first
//! written under a new id, next to the valid ones. Then one step makes them valid: a rename of the session's file or,
//! in an object store, a conditional put in its place. A run that is killed at any moment leaves only invalid rows,
//! which [`gc`] removes.
//!
//! [`tables`] lists the tables. A [`TableWriter`] writes one as Parquet; [`each_group`] reads it.

#![forbid(unsafe_code)]
#![deny(clippy::indexing_slicing, clippy::print_stdout, clippy::print_stderr)]

mod add;
mod anywhere;
mod by_table;
mod column;
mod compact;
mod counted;
mod each_open;
mod files;
mod gc;
mod identity;
mod key_check;
mod list;
mod local;
mod object;
mod places;
mod pseudonyms;
mod reader;
mod session_row;
mod storage;
pub mod tables;
mod verify;
mod writer;

pub use add::{Added, Addition, reject, unreject};
pub use anywhere::{Lake, Opened, Unfinished, is_in_store};
pub use column::{Column, Kind, Names, Table};
pub use compact::{Compacted, compact};
pub use counted::{TableFiles, counted};
pub use each_open::each_open;
pub use files::{Files, Ids};
pub use gc::{Collected, Retention, gc};
pub use identity::{CONVERTER, SourceHash, hash_sources, name_of};
pub use key_check::{KeyFault, check_key};
pub use list::{LakeList, list};
pub use local::{LocalFolder, UnfinishedFile};
pub use object::{
    Before, ObjectFile, ObjectLake, Objects, ObjectsByProcess, UnfinishedObject, serve,
};
pub use places::date_in;
pub use pseudonyms::Pseudonyms;
pub use reader::{Group, Values, each_group};
pub use session_row::SessionRow;
pub use storage::{Entry, Storage};
pub use verify::{Verified, verify};
pub use writer::{Row, TableWriter, TextId, saturated};
