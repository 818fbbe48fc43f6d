//! Events as rows: the fields of the lines that `events --format jsonl` writes.

use std::io::{self, Write};

use lake_store::tables::EVENTS;
use lake_store::{Files, Ids, TableWriter};
use report::events::{Style, write_events};
use serde_json::Value;
use timeline::event_filter::Filter;

use crate::lake::convert::{Context, Output, Question, Written};

/// The part of the table of events that a query needs.
#[derive(Clone, Debug)]
pub struct NeededEvents {
    /// Ids of the complete table's rows.
    pub ids: Ids,
    /// Only rows from this trace clock time on.
    pub from_ns: Option<u64>,
    /// Rows before this time.
    pub to_ns: Option<u64>,
    /// Complete names of events with formats; empty: all events, including those without a format.
    pub events: Vec<String>,
    /// Whether the query uses fields.
    pub fields: bool,
    /// Whether the query uses names of threads. They come from any event, so all events are read.
    pub comm: bool,
}

impl NeededEvents {
    /// The table's filter, limited to the needed part.
    fn within(&self, table_filter: &Filter) -> Filter {
        let filter = table_filter.clone();
        let events = if filter.events.is_empty() { self.events.clone() } else { filter.events };
        let to_ns = [filter.to_ns, self.to_ns].into_iter().flatten().min();
        Filter { events, from_ns: filter.from_ns.max(self.from_ns), to_ns, ..filter }
    }

    fn has(&self, ts_ns: u64, event: &str) -> bool {
        self.from_ns.is_none_or(|from_ns| ts_ns >= from_ns)
            && self.to_ns.is_none_or(|to_ns| ts_ns < to_ns)
            && (self.events.is_empty() || self.events.iter().any(|name| name == event))
    }
}

/// Writes the needed part of the table of events; its rows and columns are as in the complete table. Reads nothing
/// else, and stays within the ranges that the recordings were limited to.
///
/// # Errors
/// When the table can't be written.
pub fn write_needed_events<F: Files>(
    question: Question<'_>,
    needed: &NeededEvents,
    files: &mut F,
    progress: &(dyn Fn(u64) + Sync),
) -> io::Result<Written> {
    let (ids, clock) = (needed.ids.clone(), question.origin.clock);
    let within = needed.within(question.events);
    let events = if needed.comm { question.events } else { &within };
    let question = Question { events, ..question };
    let mut output = Output::new(files, &question, ids.clone());
    let context = Context { question, surveys: Vec::new(), ids, clock, tick: progress };
    write_part(&context, Some(needed), &mut output)?;
    Ok(output.written())
}

pub(crate) fn write<F: Files>(context: &Context<'_>, output: &mut Output<'_, F>) -> io::Result<()> {
    write_part(context, None, output)
}

fn write_part<F: Files>(
    context: &Context<'_>,
    needed: Option<&NeededEvents>,
    output: &mut Output<'_, F>,
) -> io::Result<()> {
    let mut table = output.begin(&EVENTS)?;
    let question = &context.question;
    let mut lines = Lines { context, needed, table: &mut table, partial_line: Vec::new() };
    let with_fields = needed.is_none_or(|needed| needed.fields);
    write_events(
        question.view.recordings,
        question.machines,
        question.events,
        if with_fields { Style::Jsonl } else { Style::JsonlHeads },
        &mut lines,
        context.tick,
    )?;
    output.end(&EVENTS, table)
}

/// Turns each line written to it into a row.
struct Lines<'c, W: Write + Send> {
    context: &'c Context<'c>,
    /// Which lines become rows; `None`: all.
    needed: Option<&'c NeededEvents>,
    table: &'c mut TableWriter<W>,
    /// A line without its newline yet.
    partial_line: Vec<u8>,
}

impl<W: Write + Send> Lines<'_, W> {
    fn row(&mut self, line: &[u8]) -> io::Result<()> {
        let event: Value = serde_json::from_slice(line)?;
        let text = |key: &str| event.get(key).and_then(Value::as_str);
        let number = |key: &str| {
            let number = event.get(key).and_then(Value::as_i64).unwrap_or(0);
            i32::try_from(number).unwrap_or(i32::MAX)
        };
        let ts_ns = event.get("ts_ns").and_then(Value::as_u64).unwrap_or(0);
        let name = text("event").unwrap_or_default();
        if self.needed.is_some_and(|needed| !needed.has(ts_ns, name)) {
            return Ok(());
        }
        let fields = event.get("fields").map(Value::to_string).unwrap_or_default();
        let mut row = self.table.row();
        row.text(&self.context.ids.session).text(&self.context.ids.ingest);
        row.long(self.context.clock.unix_ns(ts_ns)).text(text("machine").unwrap_or_default());
        row.int(number("level")).int(number("cpu")).int(number("pid"));
        row.text_or_null(text("comm")).text(name);
        row.text_once(&fields);
        self.table.end_row()
    }
}

impl<W: Write + Send> Write for Lines<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut partial_line = std::mem::take(&mut self.partial_line);
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            partial_line.extend_from_slice(piece);
            if partial_line.last() == Some(&b'\n') {
                self.row(&partial_line)?;
                partial_line.clear();
            }
        }
        self.partial_line = partial_line;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
