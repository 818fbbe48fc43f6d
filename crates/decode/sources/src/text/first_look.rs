//! A first pass over all lines of a recording: finds CPUs, events with their fields, and the CPU of
//! each line.

use std::collections::{BTreeMap, HashMap};

use tracedat::Correction;

use super::events::Events;
use super::functions::Functions;
use super::graph::{GraphLine, Kind, OpenCalls};
use super::line::{EventLine, Head, Line, Time, Why};
use super::reasons::Reasons;
use super::stream::CpuLines;
use super::{LineAt, MAX_LINE_BYTES};
use raw_bytes::counted;

use crate::recording::{BufferInfo, RecordingInfo};
use crate::{Damage, Doubt, Ending, KernelCount};

/// Maximum threads with names.
const MAX_THREADS: usize = 1 << 20;
/// Maximum number of unreadable lines that are reported one by one.
const MAX_UNREADABLE: usize = 100;
/// Maximum lines with times before their predecessors: clocks of CPUs differ a little, but more
/// lines are damage.
const MAX_BACKWARDS: u64 = 8;
/// Characters of a line to show in a message.
const SHOWN: usize = 60;

/// The result of the first pass.
#[derive(Debug, Default)]
pub(super) struct FirstLook {
    pub(super) events: Events,
    pub(super) reasons: Reasons,
    pub(super) functions: Functions,
    open_calls: OpenCalls,
    /// By buffer and CPU.
    pub(super) cpus: BTreeMap<(usize, u32), CpuLines>,
    /// Names of buffers; empty for the top-level buffer.
    pub(super) buffers: Vec<String>,
    pub(super) comms: HashMap<u32, String>,
    pub(super) cpu_count: Option<u32>,
    heads: Heads,
    clock: Option<TextClock>,
    pub(super) damage: Vec<Damage>,
    /// Unreadable lines that are not in `damage`.
    more: u64,
    /// Lines before the first event that do not look like events.
    pub(super) before: u64,
    /// Number of event lines.
    event_lines: u64,
    /// The time of the last event line, and the number of event lines with a time before their
    /// predecessor.
    last: u64,
    backwards: u64,
}

/// Counts in headings.
#[derive(Debug, Default)]
struct Heads {
    /// Offset of the first heading.
    offset: u64,
    in_buffer: u64,
    written: u64,
    found: bool,
}

/// The unit of times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TextClock {
    /// Seconds; the minimum number of digits after the decimal point.
    Seconds {
        digits: u32,
    },
    Ticks,
}

impl FirstLook {
    /// Whether it has an event or a loss, and so is a trace.
    pub(super) fn is_trace(&self) -> bool {
        !self.cpus.is_empty()
    }

    /// Processes a line.
    pub(super) fn line(&mut self, number: u64, at: &LineAt<'_>, buffer: usize, line: &Line<'_>) {
        match *line {
            Line::Event(ref event) => self.event(number, at, buffer, event),
            Line::Lost { cpu, count } => {
                self.cpus.entry((buffer, cpu)).or_default().lost(at.offset, count);
                self.open_calls.forget();
            }
            Line::Cpus(count) => self.cpu_count = Some(count),
            Line::Head(head) => self.head(at, head),
            Line::BufferStart(_) | Line::DumpBorder | Line::Nothing => {}
            Line::Unreadable(Why::Foreign) if self.event_lines == 0 => self.before += 1,
            Line::Unreadable(why) => self.unreadable(number, at, why.text()),
        }
    }

    /// Called after all lines.
    pub(super) fn finish(&mut self) {
        self.events.list.iter_mut().for_each(super::layout::Event::lay_out);
        if self.more > 0 {
            let what = counted(self.more, "more line", "more lines") + " cannot be read";
            self.damage.push(Damage::at(0, what));
        }
        let (backwards, lines) = (self.backwards, self.event_lines);
        if backwards > MAX_BACKWARDS && backwards > lines / 4 {
            let what = format!(
                "times go back in {backwards} of {}: if each counts from the line before (perf script \
                 --deltatime), print the text without that option",
                counted(lines, "line", "lines")
            );
            self.damage.push(Damage::at(0, what));
        }
        let overwritten = self.heads.overwritten().filter(|count| *count > 0);
        let offset = self.heads.offset;
        if let Some(count) = overwritten.filter(|_| self.only_cpu().is_some()) {
            self.cpus.values_mut().for_each(|lines| lines.begins_after(offset, count));
        }
    }

    fn event(&mut self, number: u64, at: &LineAt<'_>, buffer: usize, event: &EventLine<'_>) {
        if !self.takes(event.time) {
            let why = "its time has a different unit from the lines before";
            return self.unreadable(number, at, why);
        }
        let is_known = match GraphLine::from_line(event) {
            Some(line) => self.call(number, at, buffer, event, &line),
            None => self.look_at(number, event),
        };
        if !is_known {
            return self.unreadable(number, at, "it has one event more than can be distinguished");
        }
        self.cpus.entry((buffer, event.cpu)).or_default().event(at.offset);
        self.event_lines += 1;
        self.backwards += u64::from(event.time.stamp < self.last);
        self.last = event.time.stamp;
        self.name(event);
        if at.is_cut() {
            let why = format!("it is longer than {MAX_LINE_BYTES} bytes: the rest is ignored");
            self.unreadable(number, at, &why);
        }
    }

    /// Adds the fields of a line to its event; `false` if there are too many events.
    fn look_at(&mut self, number: u64, event: &EventLine<'_>) -> bool {
        let Some(known) = self.events.get_or_add(event) else { return false };
        known.look_at(number, event, (&mut self.reasons, &mut self.functions));
        true
    }

    /// The same for a line that can be two events: a function call and its return.
    fn call(
        &mut self,
        number: u64,
        at: &LineAt<'_>,
        buffer: usize,
        event: &EventLine<'_>,
        line: &GraphLine<'_>,
    ) -> bool {
        let returned = self.open_calls.follow(buffer, event, line, &mut self.functions);
        if let (Kind::Return(..), Some(function)) = (line.kind, returned) {
            self.cpus.entry((buffer, event.cpu)).or_default().returned(at.offset, function);
        }
        let name = returned.and_then(|function| self.functions.name(function));
        let events = line.events(event, name);
        events.iter().all(|call_event| self.look_at(number, &call_event.line(event)))
    }

    /// Whether a time has the same unit as those before.
    fn takes(&mut self, time: Time) -> bool {
        let (clock, fits) = match (self.clock, time.digits) {
            (None | Some(TextClock::Ticks), None) => (TextClock::Ticks, true),
            (None, Some(digits)) => (TextClock::Seconds { digits }, true),
            (Some(TextClock::Seconds { digits: fewest }), Some(digits)) => {
                (TextClock::Seconds { digits: fewest.min(digits) }, true)
            }
            (Some(clock), _) => (clock, false),
        };
        self.clock = Some(clock);
        fits
    }

    /// Records the thread name of a line.
    fn name(&mut self, event: &EventLine<'_>) {
        // trace-cmd and perf script print these if they do not know the thread's name.
        let unknown = matches!(event.comm, "" | "<...>" | ":-1")
            || event.comm.strip_prefix(':').is_some_and(|id| id.parse() == Ok(event.thread));
        if unknown || event.thread == 0 {
            return;
        }
        let room = self.comms.len() < MAX_THREADS;
        match self.comms.get_mut(&event.thread) {
            Some(comm) if comm == event.comm => {}
            Some(comm) => event.comm.clone_into(comm),
            None if room => drop(self.comms.insert(event.thread, event.comm.to_owned())),
            None => {}
        }
    }

    fn head(&mut self, at: &LineAt<'_>, head: Head) {
        self.cpu_count = head.cpus.or(self.cpu_count);
        let Some((in_buffer, written)) = head.counts else { return };
        if !self.heads.found {
            self.heads.offset = at.offset as u64;
        }
        self.heads.found = true;
        self.heads.in_buffer = self.heads.in_buffer.saturating_add(in_buffer);
        self.heads.written = self.heads.written.saturating_add(written);
    }

    fn unreadable(&mut self, number: u64, at: &LineAt<'_>, why: &str) {
        if self.damage.len() >= MAX_UNREADABLE {
            self.more += 1;
            return;
        }
        let shown: String = at.text().chars().take(SHOWN).collect();
        let what = format!("line {number}: {why}: {shown:?}");
        self.damage.push(Damage::at(at.offset as u64, what));
    }

    pub(super) fn info(&self) -> RecordingInfo {
        let resolution_ns = match self.clock {
            Some(TextClock::Seconds { digits }) => Some(10_u64.pow(9_u32.saturating_sub(digits))),
            _ => None,
        };
        let buffer = |name: &String| BufferInfo { name: name.clone(), ..BufferInfo::default() };
        RecordingInfo {
            format: "text".to_owned(),
            buffers: self.buffers.iter().map(buffer).collect(),
            cpu_count: self.cpu_count,
            resolution_ns,
            notes: self.notes(),
            ..RecordingInfo::default()
        }
    }

    /// Facts for readers of reports that are not damage.
    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.before > 0 {
            let (singular, many) =
                ("line before the first event has", "lines before the first event have");
            notes.push(counted(self.before, singular, many) + " no event; ignored");
        }
        notes.extend(self.events.list.iter().filter_map(super::layout::Event::note));
        notes
    }

    /// The conversion of times: none for nanoseconds, otherwise ticks.
    pub(super) fn correction(&self) -> Correction {
        match self.clock {
            // Stands for any clock with other units than nanoseconds.
            Some(TextClock::Ticks) => Correction::of_clock(Some("counter")),
            _ => Correction::identity(),
        }
    }

    /// Lost events according to the headings; `None` if unknown.
    pub(super) fn ending(&self) -> Option<Ending> {
        let lost = self.heads.overwritten()?;
        let cpu = self.only_cpu();
        let counts = cpu.map(|cpu| {
            let events_kept = Some(self.heads.in_buffer);
            KernelCount { buffer: String::new(), cpu, lost, events_kept }
        });
        let lost_anywhere = if cpu.is_some() { 0 } else { lost };
        let (lines, held) = (self.event_lines, self.heads.in_buffer);
        let doubt = self.is_excerpt().then_some(Doubt::Excerpt { lines, held });
        Some(Ending { counts: counts.into_iter().collect(), lost_anywhere, doubt })
    }

    /// Whether the headings count more events than there are lines.
    fn is_excerpt(&self) -> bool {
        self.heads.found && self.event_lines < self.heads.in_buffer
    }

    /// The CPU of all events, if only one CPU was recorded. With several CPUs, it is unknown which
    /// of them lost the overwritten events.
    fn only_cpu(&self) -> Option<u32> {
        let mut cpus = self.cpus.keys().map(|(_, cpu)| *cpu);
        let (first, second) = (cpus.next(), cpus.next());
        first.filter(|_| second.is_none() && !self.is_excerpt())
    }
}

impl Heads {
    /// Events that were overwritten before the first one; `None` if no heading counts them.
    fn overwritten(&self) -> Option<u64> {
        self.found.then(|| self.written.saturating_sub(self.in_buffer))
    }
}
