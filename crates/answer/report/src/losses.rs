//! Losses and deliberate omissions, with every result.

use printable::line;
use schemars::JsonSchema;
use serde::Serialize;
use sources::{Doubt, Tracer};
use timeline::Losses;

use crate::units::{plural, time};

/// Max damages that a table's notes list.
const MAX_LISTED: usize = 5;

/// Losses over all recordings.
#[derive(Clone, Copy, Debug, JsonSchema, Serialize)]
pub(crate) struct LossSums {
    /// Events the kernels dropped and counted.
    events_lost: u64,
    /// Places where a kernel dropped events without a count.
    uncounted_losses: u64,
    /// Parts of the container, pages, records and compressed chunks that could not be read.
    pages_damaged: u64,
    /// Events that a kernel kept, by its counts of whole CPUs, but that are not in the recording.
    events_missing: u64,
    /// Exits, calls or requests during a loss: counted, but left out of all times. 0 in documents without such times:
    /// there, time during a loss is in the state unknown.
    pairs_dropped: u64,
    /// Whether nothing else was lost, with certainty. False if the recording lacks the kernel's counts for some CPUs,
    /// its recorder was killed or reports faults, or parts could not be read: `hyperscope info` gives the reason.
    known: bool,
}

impl LossSums {
    /// The sums of these losses, with the number of dropped exits, calls or requests.
    pub(crate) fn new<'l>(losses: impl Iterator<Item = &'l Losses> + Clone, dropped: u64) -> Self {
        let sum =
            |count: fn(&Losses) -> u64| losses.clone().map(count).fold(0, u64::saturating_add);
        Self {
            events_lost: sum(|loss| loss.events_lost),
            uncounted_losses: sum(|loss| loss.uncounted_losses),
            pages_damaged: sum(Losses::pages_damaged),
            events_missing: sum(|loss| loss.events_missing),
            pairs_dropped: dropped,
            known: losses.clone().all(Losses::is_known),
        }
    }
}

/// Notes on losses; empty if there were none.
pub(crate) fn notes(losses: &Losses, dropped: u64) -> Vec<String> {
    let mut notes = Vec::new();
    if let Some(ns) = losses.resolution_ns {
        notes.push(format!(
            "times come from a text, with a resolution of {}; it has no exit codes",
            time(ns, true)
        ));
    }
    notes.extend(losses.notes.iter().map(|note| line(note).into_owned()));
    notes.extend(lost(losses, dropped));
    notes
}

/// The losses of a recording, as in [`notes`]; empty if none are known.
#[must_use]
pub fn lost(losses: &Losses, dropped: u64) -> Vec<String> {
    let mut notes = Vec::new();
    if losses.events_lost > 0 || losses.uncounted_losses > 0 {
        let uncounted = match losses.uncounted_losses {
            0 => String::new(),
            places => format!(" and, at {}, an unknown number", plural(places, "place")),
        };
        let (who, option) = dropper(losses.tracer);
        notes.push(format!(
            "{who} dropped {}{uncounted}: use larger buffers{option}",
            plural(losses.events_lost, "event")
        ));
    }
    if losses.events_missing > 0 {
        notes.push(format!(
            "{} that the kernel counted but the recording does not contain",
            plural(losses.events_missing, "event")
        ));
    }
    // Most of trace-cmd's recordings of guests have no counts, so a note would be noise.
    if let Some(doubt) = losses.doubt.as_ref().filter(|doubt| **doubt != Doubt::NoCounts) {
        notes.push(format!("the number of missing events is unknown: {doubt}"));
    }
    if dropped > 0 {
        let verb = if dropped == 1 { "is" } else { "are" };
        notes.push(format!(
            "{} overlapped a loss and {verb} left out of the times",
            plural(dropped, "exit")
        ));
    }
    if losses.pages_damaged() > 0 {
        notes.push(format!("{} could not be read:", plural(losses.pages_damaged(), "place")));
        notes.extend(
            losses
                .damage
                .as_slice()
                .iter()
                .take(MAX_LISTED)
                .map(|damage| format!("  {}", line(&damage.to_string()))),
        );
    }
    notes
}

/// The tracer that dropped events, and its option for larger buffers.
const fn dropper(tracer: Tracer) -> (&'static str, &'static str) {
    match tracer {
        Tracer::Kernel => ("the kernel", " (hyperscope record --buffer, trace-cmd record -b)"),
        Tracer::Perf => ("the kernel", " (perf record --mmap-pages)"),
        Tracer::Lttng | Tracer::LttngOfPrograms => {
            ("LTTng", " (lttng enable-channel --subbuf-size)")
        }
        Tracer::Program => ("the program's tracer", ""),
    }
}

/// A note on buffers that hold the same exits.
pub(crate) fn repeats(buffers: &[String]) -> Option<String> {
    let names = buffers.iter().map(|name| match name.as_str() {
        "" => "the top buffer",
        name => name,
    });
    let names: Vec<&str> = names.collect();
    let note = "exits recorded in several buffers count once; ignored are those of";
    (!names.is_empty()).then(|| format!("{note} {}", line(&names.join(", "))))
}
