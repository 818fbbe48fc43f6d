//! Definitions of all tables: they determine what is written, what SQL shows, and what `docs/formats/lake.md`
//! documents.

mod of_exits;
mod of_sessions;
mod over_time;

use crate::column::{Column, Names, Table, text};

pub use of_exits::{BUCKETS, EXIT_DETAILS, EXIT_HIST, EXIT_ROLLUP, EXITS, NESTED_ROLLUP};
pub use of_sessions::{ALIGNMENT, LABELS, LOSSES, MACHINES, REJECTED, SESSIONS, VMS};
pub use over_time::{EVENTS, HOPS, REQUESTS, SPANS, STATE_ROLLUP, VCPU_STATES};

/// Version of this schema. A new column at the end of a table does not change it.
pub const SCHEMA_VERSION: i32 = 1;

/// All tables of a recording, in the order of their documentation.
pub const TABLES: [&Table; 18] = [
    &SESSIONS,
    &LABELS,
    &MACHINES,
    &VMS,
    &ALIGNMENT,
    &LOSSES,
    &EXITS,
    &EXIT_DETAILS,
    &EXIT_ROLLUP,
    &EXIT_HIST,
    &BUCKETS,
    &NESTED_ROLLUP,
    &VCPU_STATES,
    &STATE_ROLLUP,
    &REQUESTS,
    &HOPS,
    &SPANS,
    &EVENTS,
];

/// The table of that name.
#[must_use]
pub fn table(name: &str) -> Option<&'static Table> {
    TABLES.into_iter().chain([&REJECTED]).find(|table| table.name == name)
}

/// The owner of a row: the first two columns of all tables except `buckets`.
pub(crate) const SESSION: Column = text("session_id", "The session, as in `sessions`");
pub(crate) const INGEST: Column = text(
    "ingest_id",
    "The set of rows: those of a session count that have the `ingest_id` of its row in `sessions`",
);
/// The recorded machine.
pub(crate) const MACHINE: Column = text(
    "machine",
    "The machine that was recorded: `host`, or a guest with a recording of its own",
)
.with(Names::Machine);
