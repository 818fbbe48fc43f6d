//! Counts the events in recordings that a scenario expects.

use std::io::{self, Write};

use analyses::exits::exits;
use analyses::group::By;
use lab::{Key, Truth};
use report::events::{Machine, Style, write_events};
use serde_json::Value;
use sources::Recording;
use timeline::event_filter::Filter;

/// The number of events in the recordings that a truth describes.
///
/// # Errors
/// When the truth names an unknown property of exits, or an event can't be printed.
pub(crate) fn count(truth: &Truth, recordings: &[Recording]) -> anyhow::Result<u64> {
    if truth.by == "event" {
        return events(truth, recordings);
    }
    let by = By::NAMES.iter().find(|(name, _)| *name == truth.by);
    let Some(&(_, by)) = by else { anyhow::bail!("exits have no property {}", truth.by) };
    let rows =
        recordings.iter().flat_map(|recording| exits(recording, &[by, By::Level], &|_| {}).rows);
    let wanted = rows.filter(|row| {
        let group = &row.group;
        let is_key = match &truth.key {
            Key::Number(number) => group.detail.is_some_and(|(_, value)| value == *number),
            Key::Name(name) => [&group.reason, &group.vm, &group.task, &group.symbol]
                .into_iter()
                .any(|value| value.as_ref() == Some(name)),
        };
        is_key && (truth.level.is_none() || truth.level == group.level)
    });
    Ok(wanted.map(|row| row.tally.count).sum())
}

/// Whether this count satisfies the truth.
pub(crate) fn holds(truth: &Truth, counted: u64) -> bool {
    if truth.at_least { counted >= truth.count } else { counted == truth.count }
}

fn events(truth: &Truth, recordings: &[Recording]) -> anyhow::Result<u64> {
    let Key::Name(name) = &truth.key else { anyhow::bail!("an event has a name, not a number") };
    let filter = Filter { events: vec![name.clone()], ..Filter::default() };
    let machines: Vec<Machine> = recordings
        .iter()
        .map(|_| Machine { name: String::new(), level: 0, threads: None })
        .collect();
    let mut counter =
        OfTask { task: truth.task.as_deref().unwrap_or(""), line: Vec::new(), count: 0 };
    write_events(recordings, &machines, &filter, Style::Jsonl, &mut counter, &|_| {})?;
    Ok(counter.count)
}

/// Counts lines of JSON whose task has this name prefix.
struct OfTask<'a> {
    task: &'a str,
    line: Vec<u8>,
    count: u64,
}

impl Write for OfTask<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        for &byte in bytes {
            if byte != b'\n' {
                self.line.push(byte);
                continue;
            }
            let event: Value = serde_json::from_slice(&self.line)?;
            let task = event.get("comm").and_then(Value::as_str).unwrap_or("");
            self.count += u64::from(task.starts_with(self.task));
            self.line.clear();
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
