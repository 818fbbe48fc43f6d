//! The content of a lake, as a report.

use std::collections::BTreeMap;
use std::io;
use std::num::NonZeroU64;

use schemars::JsonSchema;
use serde::Serialize;
use tables::{Report, Table, units::count, units::plural};

use super::session_row::{SessionRow, read_all};
use super::storage::Storage;

/// The sessions of a lake.
#[derive(Clone, Debug)]
pub struct LakeList {
    /// By day, host and time.
    pub sessions: Vec<SessionRow>,
}

/// Reads the rows of all sessions.
///
/// # Errors
/// When a row can't be read.
pub fn list<S: Storage>(storage: &S) -> io::Result<LakeList> {
    let mut sessions = read_all(storage)?;
    sessions.sort_by(|session, other| {
        let key = |row: &SessionRow| {
            (row.date.clone(), row.host.clone(), row.begun_unix_ns, row.session.clone())
        };
        key(session).cmp(&key(other))
    });
    Ok(LakeList { sessions })
}

/// Output of `hyperscope lake list --format json`: the sessions of a lake. See docs/fleet.md.
#[derive(JsonSchema, Serialize)]
struct Document<'l> {
    schema: &'static str,
    /// Sessions, by day.
    sessions: Vec<Row<'l>>,
}

/// A session: a recording, or the recordings of a host and its guests.
#[derive(JsonSchema, Serialize)]
struct Row<'l> {
    /// The UTC day of its start, which names the folders of its files; 1970-01-01 if the start is unknown.
    #[schemars(extend("pattern" = "^[0-9]{4}-[0-9]{2}-[0-9]{2}$"))]
    date: &'l str,
    /// Id of the session: a hash of the recording and its start.
    #[schemars(extend("pattern" = "^[0-9a-f]{32}$"))]
    session_id: &'l str,
    /// Id of the valid rows: a hash of the bytes read, the options, and the converter. After compaction, a dot and
    /// the part's name follow.
    ingest_id: &'l str,
    /// hot: in files of its own. cold: in parts of its day, after compaction.
    #[schemars(extend("enum" = ["hot", "cold"]))]
    tier: &'l str,
    /// The host: from --host, otherwise its host name. Null: unknown.
    host_id: Option<&'l str>,
    /// The host's kernel. Null: not recorded.
    kernel_release: Option<&'l str>,
    /// Time of the first event in Unix time, in nanoseconds. Null: unknown.
    begun_unix_ns: Option<i64>,
    /// Version of the converter that made its rows.
    #[schemars(extend("minimum" = 1))]
    converter: i32,
    /// The paths of the recordings when they were added.
    source_uri: &'l str,
    /// Number of rows by table; tables without rows are left out.
    #[schemars(with = "BTreeMap<String, NonZeroU64>")]
    rows: &'l BTreeMap<&'static str, u64>,
}

impl<'l> Row<'l> {
    fn new(session: &'l SessionRow) -> Self {
        Self {
            date: &session.date,
            session_id: &session.session,
            ingest_id: &session.ingest,
            tier: &session.tier,
            host_id: known(&session.host),
            kernel_release: known(&session.kernel),
            begun_unix_ns: session.begun_unix_ns,
            converter: session.converter,
            source_uri: &session.source_uri,
            rows: &session.rows,
        }
    }
}

fn known(text: &str) -> Option<&str> {
    (!text.is_empty()).then_some(text)
}

impl LakeList {
    fn texts(&self, text_of: impl Fn(&SessionRow) -> String) -> Vec<String> {
        self.sessions.iter().map(text_of).collect()
    }

    fn table(&self, number: &dyn Fn(u64) -> String) -> Table {
        let exits = |row: &SessionRow| number(row.rows.get("exits").copied().unwrap_or(0));
        let mut table = Table::default();
        table.names("date", 0, self.texts(|row| row.date.clone()));
        table.names("host", 0, self.texts(|row| row.host.clone()));
        table.names("kernel", 2, self.texts(|row| row.kernel.clone()));
        table.numbers("exits", 0, self.texts(exits));
        table.names("tier", 1, self.texts(|row| row.tier.clone()));
        table.names("session", 3, self.texts(|row| row.session.clone()));
        table.names("source", 1, self.texts(|row| row.source_uri.clone()));
        table
    }
}

impl Report for LakeList {
    fn headline(&self) -> String {
        match self.sessions.len() {
            0 => "No session.".to_owned(),
            sessions => format!("{}.", plural(sessions as u64, "session")),
        }
    }

    fn tables(&self, width: Option<usize>) -> String {
        if self.sessions.is_empty() {
            return String::new();
        }
        self.table(&count).draw(width).0
    }

    fn document(&self) -> impl Serialize {
        Document {
            schema: "hyperscope.lake/1",
            sessions: self.sessions.iter().map(Row::new).collect(),
        }
    }

    fn csv(&self) -> Table {
        self.table(&|number| number.to_string())
    }
}

#[cfg(test)]
mod tests {
    use testkit::{PublishedSchema, assert_published};

    use super::*;

    #[test]
    fn its_schema_is_published() {
        assert_published::<Document<'_>>(&PublishedSchema::new("lake"));
    }
}
