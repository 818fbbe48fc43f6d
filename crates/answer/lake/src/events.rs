//! Events as rows: what `events --format jsonl` writes, taken apart.

use std::io::{self, Write};

use report::events::{Style, write_events};
use serde_json::Value;

use crate::convert::{Context, Files, Output};
use crate::tables::EVENTS;
use crate::writer::TableWriter;

pub(crate) fn write<F: Files>(context: &Context<'_>, output: &mut Output<'_, F>) -> io::Result<()> {
    let mut table = output.begin(&EVENTS)?;
    let question = &context.question;
    let mut lines = Lines { context, table: &mut table, begun: Vec::new() };
    write_events(
        question.recordings,
        question.machines,
        question.events,
        Style::Jsonl,
        &mut lines,
        context.tick,
    )?;
    output.end(&EVENTS, table)
}

/// Makes a row of each line that is written to it.
struct Lines<'c, W: Write + Send> {
    context: &'c Context<'c>,
    table: &'c mut TableWriter<W>,
    /// A line that has not ended.
    begun: Vec<u8>,
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
        let fields = event.get("fields").map(Value::to_string).unwrap_or_default();
        let mut row = self.table.row();
        row.text(&self.context.ids.session).text(&self.context.ids.ingest);
        row.long(self.context.clock.unix_ns(ts_ns)).text(text("machine").unwrap_or_default());
        row.int(number("level")).int(number("cpu")).int(number("pid"));
        row.text_or_null(text("comm")).text(text("event").unwrap_or_default());
        row.text_once(&fields);
        self.table.end_row()
    }
}

impl<W: Write + Send> Write for Lines<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut begun = std::mem::take(&mut self.begun);
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            begun.extend_from_slice(piece);
            if begun.last() == Some(&b'\n') {
                self.row(&begun)?;
                begun.clear();
            }
        }
        self.begun = begun;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
