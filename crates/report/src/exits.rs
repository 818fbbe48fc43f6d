//! The report of `hyperscope exits`: how often, how long, and who pays.

mod notes;
mod rows;
mod tables;

use std::collections::HashMap;

use analyses::{By, ExitRow, Exits, Tally};
use serde_json::Value;

use self::rows::{row_json, rows_json, vms_json};
use self::tables::source_text;
use crate::json::Object;
use crate::table::Table;
use crate::{RecorderCost, Report, losses};

/// The exits of one recording.
#[derive(Debug)]
pub struct Source {
    /// The recording, as the user named it.
    pub path: String,
    /// Its exits.
    pub exits: Exits,
    /// It was made inside a guest, whose exits are in its host's recording.
    pub of_guest: bool,
    /// What recording cost, where the recorder reported it.
    pub recorder_cost: Option<RecorderCost>,
    /// Processes of VMs by their vCPU threads, where the recorder reported them.
    pub processes: HashMap<u32, u32>,
}

impl Source {
    /// Parts of exits that there are no events for, and what would record them.
    pub(crate) fn exits_missing(&self) -> Vec<String> {
        notes::missing_parts(&self.exits.recorded)
    }
}

/// The exits of all recordings given.
#[derive(Debug)]
pub struct ExitsReport {
    /// One per recording.
    pub sources: Vec<Source>,
    /// Rows that tables show at most, those that took longest; JSON and CSV have all.
    pub top: Option<usize>,
}

/// Percentiles shown, in thousandths.
const PERCENTILES: [u64; 4] = [500, 900, 990, 999];

impl Report for ExitsReport {
    fn text(&self, width: Option<usize>) -> String {
        let texts: Vec<String> =
            self.sources.iter().map(|source| source_text(source, self.top, width)).collect();
        texts.join("\n")
    }

    fn json(&self) -> Value {
        let all = || self.sources.iter().map(|source| &source.exits);
        let nanoseconds = all().all(|exits| exits.nanoseconds);
        let paths: Vec<&str> = self.sources.iter().map(|source| source.path.as_str()).collect();
        let dropped = all().flat_map(|exits| &exits.rows).map(|row| row.tally.dropped).sum();
        let mut document = Object::default();
        document
            .set("schema", "hyperscope.exits/1")
            .set("sources", paths)
            .time("span", nanoseconds, all().map(|exits| exits.span_ns).max())
            .set("losses", losses::json(all().map(|exits| &exits.losses), dropped))
            .set("recorder_cost", self.recorder_cost())
            .set("vms", self.sources.iter().flat_map(vms_json).collect::<Vec<_>>())
            .set("rows", self.sources.iter().flat_map(rows_json).collect::<Vec<_>>());
        document.done()
    }

    fn csv(&self) -> Table {
        let rows: Vec<Value> = self.sources.iter().flat_map(rows_json).collect();
        let mut table = Table::default();
        for title in self.titles() {
            let cells = rows.iter().map(|row| plain(flat(row, &title))).collect();
            table.names(&title, 0, cells);
        }
        table
    }
}

impl ExitsReport {
    /// That of the first recording that has it: guests are recorded by their hosts' recorder.
    fn recorder_cost(&self) -> Value {
        let mut costs = self.sources.iter().filter_map(|source| source.recorder_cost.as_ref());
        costs.next().map_or(Value::Null, RecorderCost::json)
    }

    /// Titles of the columns, the same whether or not there are rows.
    fn titles(&self) -> Vec<String> {
        let group = analyses::Group::default();
        let blank = ExitRow { group, waiting: false, tally: Tally::default() };
        let mut titles: Vec<String> = Vec::new();
        for source in &self.sources {
            let row = row_json(&blank, source);
            let keys = row.as_object().map(flat_keys).unwrap_or_default();
            let fresh: Vec<_> = keys.into_iter().filter(|key| !titles.contains(key)).collect();
            titles.extend(fresh);
        }
        titles
    }
}

/// Keys of a row, those of objects within it joined by `_`.
fn flat_keys(row: &serde_json::Map<String, Value>) -> Vec<String> {
    row.iter()
        .flat_map(|(key, value)| match value {
            Value::Object(inner) => inner.keys().map(|name| format!("{key}_{name}")).collect(),
            _ => vec![key.clone()],
        })
        .collect()
}

fn flat<'v>(row: &'v Value, title: &str) -> &'v Value {
    if let Some(value) = row.get(title) {
        return value;
    }
    let inner = title.split_once('_').and_then(|(key, name)| row.get(key)?.get(name));
    inner.unwrap_or(&Value::Null)
}

fn plain(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn rounded(value: f64) -> u64 {
    value.round() as u64
}

fn name_of(by: By) -> &'static str {
    By::NAMES.iter().find(|(_, one)| *one == by).map_or("", |(name, _)| name)
}
