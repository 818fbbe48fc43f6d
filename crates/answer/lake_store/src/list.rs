//! What a lake holds, as a report.

use std::io;

use serde::Serialize;
use tables::{Report, Table, units::count};

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
/// When one can't be read.
pub fn list<S: Storage>(storage: &S) -> io::Result<LakeList> {
    let mut sessions = read_all(storage)?;
    sessions.sort_by(|one, other| {
        let key = |row: &SessionRow| {
            (row.date.clone(), row.host.clone(), row.begun_unix_ns, row.session.clone())
        };
        key(one).cmp(&key(other))
    });
    Ok(LakeList { sessions })
}

#[derive(Serialize)]
struct Row<'l> {
    date: &'l str,
    session_id: &'l str,
    ingest_id: &'l str,
    tier: &'l str,
    host_id: Option<&'l str>,
    kernel_release: Option<&'l str>,
    begun_unix_ns: Option<i64>,
    converter: i32,
    source_uri: &'l str,
    rows: &'l std::collections::BTreeMap<&'static str, u64>,
}

fn known(text: &str) -> Option<&str> {
    (!text.is_empty()).then_some(text)
}

impl LakeList {
    fn texts(&self, of: impl Fn(&SessionRow) -> String) -> Vec<String> {
        self.sessions.iter().map(of).collect()
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
    fn text(&self, width: Option<usize>) -> String {
        if self.sessions.is_empty() {
            return "no session\n".to_owned();
        }
        self.table(&count).draw(width).0
    }

    fn document(&self) -> impl Serialize {
        let row = |row: &'_ SessionRow| -> serde_json::Value {
            serde_json::to_value(Row {
                date: &row.date,
                session_id: &row.session,
                ingest_id: &row.ingest,
                tier: &row.tier,
                host_id: known(&row.host),
                kernel_release: known(&row.kernel),
                begun_unix_ns: row.begun_unix_ns,
                converter: row.converter,
                source_uri: &row.source_uri,
                rows: &row.rows,
            })
            .unwrap_or_default()
        };
        let sessions: Vec<_> = self.sessions.iter().map(row).collect();
        serde_json::json!({ "schema": "hyperscope.lake/1", "sessions": sessions })
    }

    fn csv(&self) -> Table {
        self.table(&|number| number.to_string())
    }
}
