//! The sessions of a lake, and the facts about each.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use crate::lake::store::{Entry, Storage, TableFiles, each_open};
use crate::lake::tables::{LABELS, SESSIONS};
use crate::lake::{Values, each_group};
use printable::calendar::date_of;

use crate::fact::Fact;
use crate::selection::{Selection, SelectionError};

#[derive(Clone, Debug, Default)]
pub(crate) struct Session {
    pub(crate) session: String,
    pub(crate) ingest: String,
    /// Start and end in Unix time, if known.
    pub(crate) span_ns: Option<(i64, i64)>,
    facts: BTreeMap<String, Fact>,
}

#[cfg(test)]
impl Session {
    /// A session with these facts.
    pub(crate) fn with(facts: &[(&str, &str)]) -> Self {
        let fact = |(name, text): &(&str, &str)| ((*name).into(), Fact::Text((*text).into()));
        Self { facts: facts.iter().map(fact).collect(), ..Self::default() }
    }
}

impl Session {
    /// A column of its row, its day, or a label.
    pub(crate) fn fact(&self, name: &str) -> Option<&Fact> {
        self.facts.get(name)
    }

    pub(crate) fn text(&self, name: &str) -> Option<String> {
        self.fact(name).map(Fact::text)
    }

    /// The share of its events that were lost.
    pub(crate) fn lost(&self) -> f64 {
        let number = |name| match self.fact(name) {
            Some(Fact::Number(number)) => *number,
            _ => 0.0,
        };
        let (lost, read) = (number("events_lost"), number("events"));
        if lost > 0.0 { lost / (lost + read) } else { 0.0 }
    }
}

#[derive(Debug)]
pub(crate) struct Sessions {
    pub(crate) all: Vec<Session>,
    labels: BTreeSet<String>,
}

/// Columns of `sessions` that describe a host's hardware and software.
const TRAITS: [&str; 7] =
    ["cpu_model", "microcode", "kernel_release", "vmm", "arch", "isa", "cpus"];

/// The day on which a session began.
const DATE: &str = "date";

impl Sessions {
    /// Reads the sessions of a lake.
    pub(crate) fn read<S: Storage>(storage: &S, tables: &[TableFiles]) -> io::Result<Self> {
        let mut sessions = Self { all: Vec::new(), labels: BTreeSet::new() };
        let names: Vec<&str> = SESSIONS.columns.iter().map(|column| column.name).collect();
        each_open(storage, &files(tables, SESSIONS.name), &mut |_, file| {
            each_group(file, &SESSIONS, &names, &mut |group| {
                let rows = 0..group.rows;
                sessions.all.extend(rows.map(|row| session(&names, group.all(), row)));
                Ok(())
            })
        })?;
        sessions.read_labels(storage, tables)?;
        Ok(sessions)
    }

    fn read_labels<S: Storage>(&mut self, storage: &S, tables: &[TableFiles]) -> io::Result<()> {
        let by_id = |session: &Session| (session.session.clone(), session.ingest.clone());
        let places: BTreeMap<_, _> =
            self.all.iter().map(by_id).enumerate().map(|(at, id)| (id, at)).collect();
        let columns = ["session_id", "ingest_id", "key", "value"];
        each_open(storage, &files(tables, LABELS.name), &mut |_, file| {
            each_group(file, &LABELS, &columns, &mut |group| {
                let [session, ingest, key, value] = group.columns()?;
                for row in 0..group.rows {
                    let text = |column: &Values| column.text(row).unwrap_or_default().to_owned();
                    let place = places.get(&(text(session), text(ingest)));
                    let Some(session) = place.and_then(|at| self.all.get_mut(*at)) else {
                        continue;
                    };
                    // A column with the same name takes precedence.
                    session.facts.entry(text(key)).or_insert_with(|| Fact::Text(text(value)));
                    self.labels.insert(text(key));
                }
                Ok(())
            })
        })
    }

    /// Whether sessions can have this fact.
    pub(crate) fn knows(&self, name: &str) -> bool {
        name == DATE
            || self.labels.contains(name)
            || SESSIONS.columns.iter().any(|column| column.name == name)
    }

    /// Checks that conditions and columns use names that sessions can have.
    pub(crate) fn check<'q>(
        &self,
        selections: impl IntoIterator<Item = Option<&'q Selection>>,
        columns: &[&str],
    ) -> io::Result<()> {
        let wrong = |error: SelectionError| io::Error::new(io::ErrorKind::InvalidInput, error);
        let known = self.known();
        for selection in selections.into_iter().flatten() {
            selection.check(&|name| self.knows(name), &known).map_err(wrong)?;
        }
        for column in columns.iter().filter(|column| !self.knows(column)) {
            let selection: Selection = format!("{column} IS NULL").parse().map_err(wrong)?;
            selection.check(&|name| self.knows(name), &known).map_err(wrong)?;
        }
        Ok(())
    }

    /// Names of facts that distinguish hosts: columns about their hardware and software, and
    /// labels.
    pub(crate) fn traits(&self) -> impl Iterator<Item = &str> {
        let labels = self.labels.iter().map(String::as_str);
        TRAITS.into_iter().chain(labels.filter(|label| !TRAITS.contains(label)))
    }

    /// Names of all facts, as text.
    fn known(&self) -> String {
        let columns = SESSIONS.columns.iter().map(|column| column.name);
        let labels = self.labels.iter().map(String::as_str);
        columns.chain([DATE]).chain(labels).collect::<Vec<_>>().join(", ")
    }
}

pub(crate) fn files<'t>(tables: &'t [TableFiles], name: &str) -> Vec<&'t Entry> {
    let matching_tables = tables.iter().filter(|table| table.table.name == name);
    matching_tables.flat_map(|table| &table.files).collect()
}

fn session(names: &[&str], columns: &[Values], row: usize) -> Session {
    let mut facts = BTreeMap::new();
    for (name, values) in names.iter().zip(columns) {
        let fact = match values {
            Values::Text(_) => values.text(row).map(|text| Fact::Text(text.to_owned())),
            Values::Flag(_) => values.flag(row).map(|flag| Fact::Text(flag.to_string())),
            Values::Number(_) => values.number(row).map(|number| Fact::Number(number as f64)),
            Values::Double(_) => values.double(row).map(Fact::Number),
        };
        facts.extend(fact.map(|fact| ((*name).to_owned(), fact)));
    }
    let number = |name| {
        let at = names.iter().position(|candidate| *candidate == name)?;
        columns.get(at)?.number(row)
    };
    let begin_ns = number("begun_unix_ns");
    let span_ns = begin_ns
        .map(|begin_ns| (begin_ns, begin_ns.saturating_add(number("span_ns").unwrap_or(0))));
    facts.extend(begin_ns.map(|begin_ns| (DATE.to_owned(), Fact::Text(date_of(begin_ns)))));
    let text = |name: &str| facts.get(name).map(Fact::text).unwrap_or_default();
    let (session, ingest) = (text("session_id"), text("ingest_id"));
    Session { session, ingest, span_ns, facts }
}
