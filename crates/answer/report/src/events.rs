//! Prints all events as lines, merged by time: the output of `hyperscope events`.
//!
//! Lines are made where pages are decoded, in parallel; merging copies finished lines.

mod csv;
mod guest_events;
mod jsonl;
mod line_batch;
mod merge;
mod names;
mod neighbours;
mod printer;
mod text;

use std::collections::{BTreeMap, HashSet};
use std::io::{self, Write};

use analyses::machine_names::MachineName;
use analyses::view::View;
use sources::Recording;
use timeline::event_filter::Filter;
use timeline::rounds::{self, Input};

pub use guest_events::{GuestEventStyle, GuestEventWriter};
pub use neighbours::Near;

/// The format of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style<'c> {
    /// A line as `trace-cmd report` prints it, with its special forms for events of KVM and the scheduler.
    TraceCmd,
    /// A line with all events as their kernel prints them: `trace-cmd report -N`.
    Text,
    /// A line with the recorded fields instead of the text.
    Raw,
    /// One JSON object per line.
    Jsonl,
    /// JSON objects without values of fields, for callers that do not need them.
    JsonlHeads,
    /// JSON objects with the text of [`Style::Text`] instead of the fields.
    JsonText,
    /// Comma-separated values with a header: the named fields of events in a column each or, if none are
    /// named, all fields as one JSON object.
    Csv(&'c [String]),
}

/// A recording with the name of its machine.
#[derive(Clone, Debug)]
pub struct Machine {
    /// `host`, the name of a VM, or `guest`.
    pub name: String,
    /// 0 for the host, 1 for its guests.
    pub level: u32,
    /// Threads whose events are printed; `None`: all.
    pub threads: Option<HashSet<u32>>,
}

impl Machine {
    /// The machines of all recordings, with all their threads.
    #[must_use]
    pub fn of_all(view: View<'_>) -> Vec<Self> {
        let machine = |MachineName { name, is_guest }| Self {
            name,
            level: u32::from(is_guest),
            threads: None,
        };
        view.machines().map(machine).collect()
    }
}

/// The result of printing besides the lines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventsSummary {
    /// Events printed.
    pub printed: u64,
    /// Events whose print fmt could not be evaluated, by name: they were printed raw.
    pub unprintable: BTreeMap<String, u64>,
    /// Pages, records and chunks that could not be read.
    pub damaged: u64,
}

/// Writes the events of all recordings to `out`, in the order of their times.
///
/// # Errors
/// When `out` can't be written.
pub fn write_events(
    recordings: &[Recording],
    machines: &[Machine],
    filter: &Filter,
    style: Style<'_>,
    out: &mut (dyn Write + Send),
    progress: &(dyn Fn(u64) + Sync),
) -> io::Result<EventsSummary> {
    write_events_near(recordings, machines, (filter, None), style, out, progress)
}

/// As [`write_events`], with events near those that pass the filter. Near are events of the same CPUs,
/// threads and times, whatever their type.
///
/// # Errors
/// When `out` can't be written.
pub fn write_events_near(
    recordings: &[Recording],
    machines: &[Machine],
    (filter, near): (&Filter, Option<Near>),
    style: Style<'_>,
    out: &mut (dyn Write + Send),
    progress: &(dyn Fn(u64) + Sync),
) -> io::Result<EventsSummary> {
    let printers: Vec<printer::Printer<'_>> = recordings
        .iter()
        .zip(machines)
        .map(|(recording, machine)| {
            let several = recordings.len() > 1;
            printer::Printer::new(recording, machine, several, (filter, near.is_some()), style)
        })
        .collect();
    let mut inputs = Vec::new();
    let mut owners = Vec::new();
    for (owner, recording) in recordings.iter().enumerate() {
        for input in Input::all_of(recording) {
            if filter.wants_cpu(input.stream.cpu()) {
                inputs.push(input);
                owners.push(owner);
            }
        }
    }
    if let Style::Csv(columns) = style {
        let ticks = recordings.iter().all(|recording| !recording.is_nanoseconds());
        csv::write_heading(out, !ticks, columns)?;
    }
    for printer in &printers {
        printer.write_heading(out)?;
    }
    let decoder = printer::Decoder { printers: &printers, owners: &owners };
    let has_separators = matches!(style, Style::TraceCmd | Style::Text | Style::Raw);
    let near = near.map(|near| neighbours::Neighbours::new(near, has_separators));
    let mut merger = merge::Merger::new(&owners, near, out);
    rounds::run(&inputs, &decoder, &mut merger, progress);
    let (printed, damaged) = merger.finish()?;
    let mut unprintable = BTreeMap::new();
    for printer in &printers {
        printer.add_unprintable(&mut unprintable);
    }
    Ok(EventsSummary { printed, unprintable, damaged })
}
