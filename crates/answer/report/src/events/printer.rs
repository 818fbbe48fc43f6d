//! Turns records into finished lines: the loop that runs once per event.

use std::collections::{BTreeMap, HashSet};
use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};

use ftrace::eventfmt::{
    EventFormat, Kallsyms, NumberAt, OftenText, PrintContext, PrintProgram, PrintkFormats,
    write_raw,
};
use ftrace::ringbuf::{Missed, PageTime, Record, RecordDamage};
use raw_bytes::ByteOrder;
use sources::{Block, Packet, Recording};
use timeline::event_filter::{CompiledCondition, Filter};
use timeline::rounds::{Decode, Input};
use timeline::trace_cmd_forms::TraceCmdForm;

use super::csv::{self, CsvParts};
use super::jsonl::{self, JsonEvent, JsonParts};
use super::line_batch::{EventStart, Line, LineBatch};
use super::names::{CommSource, CommSources};
use super::text::{self, LineParts, name_part};
use super::{Machine, Style};

/// Prints the events of one recording.
pub(super) struct Printer<'r> {
    recording: &'r Recording,
    filter: &'r Filter,
    /// Whether to print events that the filter leaves out, because some are near requested ones.
    with_others: bool,
    style: Style<'r>,
    order: ByteOrder,
    type_at: NumberAt,
    pid_at: NumberAt,
    /// By event id; `None` for events without a format and those filtered out.
    events: Vec<Option<EventPrinter<'r>>>,
    /// Whether to print events without a format: only if no filter names events or fields.
    unknown_too: bool,
    unknown: AtomicU64,
    lines: LineParts,
    json: JsonParts,
    csv: CsvParts,
    tellers: CommSources<'r>,
    /// Threads whose events are printed; `None`: all.
    threads: Option<HashSet<u32>>,
    /// Name of the machine, if several recordings are printed together.
    prefix: Box<[u8]>,
    /// Empty kernel data, for recordings without any.
    no_kernel: (Kallsyms, PrintkFormats),
}

/// Whether a text may contain characters that must be escaped.
#[derive(Clone, Copy, PartialEq)]
enum Escapes {
    None,
    Possible,
}

/// Prints the events of one format.
struct EventPrinter<'r> {
    format: &'r EventFormat,
    full_name: String,
    name_part: OftenText,
    /// Its fields as JSON, for styles that need them.
    json: Option<JsonEvent<'r>>,
    program: Option<PrintProgram>,
    /// The special form of trace-cmd, if requested.
    form: Option<TraceCmdForm>,
    /// `None`: such events are printed only near others.
    conditions: Option<Vec<CompiledCondition>>,
    unprintable: AtomicU64,
}

impl<'r> EventPrinter<'r> {
    fn new(
        format: &'r EventFormat,
        recording: &Recording,
        conditions: Option<Vec<CompiledCondition>>,
        style: Style<'_>,
    ) -> Self {
        // Raw fields need it too: the print fmt determines their form (hex, string).
        let program = match style {
            Style::TraceCmd | Style::Text | Style::Raw | Style::JsonText => {
                PrintProgram::compile(format, recording.abi()).ok()
            }
            Style::Jsonl | Style::JsonlHeads | Style::Csv(_) => None,
        };
        let full_name = format.full_name();
        let json = match style {
            Style::Jsonl | Style::Csv(_) => Some(JsonEvent::new(format, &full_name)),
            Style::JsonlHeads => Some(JsonEvent::without_fields(&full_name)),
            Style::TraceCmd | Style::Text | Style::Raw | Style::JsonText => None,
        };
        let form =
            (style == Style::TraceCmd).then(|| TraceCmdForm::for_event(format, recording.abi()));
        Self {
            format,
            json,
            full_name,
            name_part: OftenText::new(&name_part(format.name())),
            program,
            form: form.flatten(),
            conditions,
            unprintable: AtomicU64::new(0),
        }
    }
}

impl<'r> Printer<'r> {
    pub(super) fn new(
        recording: &'r Recording,
        machine: &Machine,
        several: bool,
        (filter, with_others): (&'r Filter, bool),
        style: Style<'r>,
    ) -> Self {
        let mut events = Vec::new();
        for (id, format) in recording.formats().iter() {
            let conditions = filter.compile(format, recording.abi());
            if conditions.is_some() || with_others {
                let at = usize::from(id);
                if events.len() <= at {
                    events.resize_with(at + 1, || None);
                }
                if let Some(slot) = events.get_mut(at) {
                    *slot = Some(EventPrinter::new(format, recording, conditions, style));
                }
            }
        }
        let prefix = if several {
            format!("{:>10}: ", printable::line(&machine.name))
        } else {
            String::new()
        };
        Self {
            recording,
            filter,
            with_others,
            style,
            order: recording.abi().order,
            type_at: recording.formats().type_at(),
            pid_at: recording.formats().pid_at(),
            events,
            unknown_too: with_others || filter.events.is_empty() && filter.conditions.is_empty(),
            unknown: AtomicU64::new(0),
            lines: LineParts::new(recording),
            json: JsonParts::new(&machine.name, machine.level, recording.is_nanoseconds()),
            csv: CsvParts::new(&machine.name, machine.level),
            tellers: CommSources::new(recording),
            threads: machine.threads.clone(),
            prefix: prefix.into_bytes().into(),
            no_kernel: <_>::default(),
        }
    }

    /// Writes the heading of text lines: as `trace-cmd report` does, the number of CPUs.
    pub(super) fn write_heading(&self, out: &mut dyn Write) -> io::Result<()> {
        let cpus = self.recording.cpus();
        if matches!(self.style, Style::Jsonl | Style::JsonlHeads | Style::JsonText | Style::Csv(_))
            || cpus == 0
        {
            return Ok(());
        }
        out.write_all(&self.prefix)?;
        writeln!(out, "cpus={cpus}")
    }

    /// Adds the number of events whose print fmt could not be evaluated.
    pub(super) fn add_unprintable(&self, counts: &mut BTreeMap<String, u64>) {
        let known = self.events.iter().flatten();
        let counted = known.map(|event| (event.full_name.as_str(), &event.unprintable));
        for (name, count) in counted.chain([("events without a format", &self.unknown)]) {
            let count = count.load(Ordering::Relaxed);
            if count > 0 {
                *counts.entry(name.to_owned()).or_default() += count;
            }
        }
    }

    /// Prints a packet, and learns names if requested; returns its last stamp.
    fn packet<const LEARN: bool>(
        &self,
        packet: &Packet<'_>,
        input: Input<'_>,
        batch: &mut LineBatch,
    ) -> (u64, Result<(), RecordDamage>) {
        let mut last = packet.stamp;
        let (cpu, correction) = (input.stream.cpu(), input.recording.correction(input.stream));
        let page_ns = correction.ns(packet.stamp, cpu);
        batch.last_ns = batch.last_ns.max(Some(page_ns));
        match packet.missed {
            Missed::Nothing => {}
            Missed::Unknown => self.dropped(batch, page_ns, cpu, None),
            Missed::Events(count) => self.dropped(batch, page_ns, cpu, Some(count)),
        }
        let result = packet.for_each(|Record { stamp, payload }| {
            last = stamp;
            let stamp_ns = correction.ns(stamp, cpu);
            batch.last_ns = batch.last_ns.max(Some(stamp_ns));
            let lines = batch.lines.len();
            let is_new = LEARN && self.learn(batch, stamp_ns, payload);
            if self.filter.wants_time(stamp_ns) {
                self.record(batch, stamp_ns, cpu, payload);
            }
            if is_new && batch.lines.len() == lines {
                batch.end_line(stamp_ns);
            }
        });
        (last, result)
    }

    /// Learns the names in the first packets of a block, the last of which has a line without a name.
    /// The merger receives each with the next line after it.
    fn catch_up(&self, block: &Block<'_>, packets: usize, input: Input<'_>, batch: &mut LineBatch) {
        let (cpu, correction) = (input.stream.cpu(), input.recording.correction(input.stream));
        let mut is_new = false;
        for packet in block.packets().take(packets).filter_map(|(_, packet)| packet.ok()) {
            // Damage in the packet's records has been reported before.
            let _ = packet.for_each(|Record { stamp, payload }| {
                is_new |= self.learn(batch, correction.ns(stamp, cpu), payload);
            });
        }
        if is_new {
            batch.end_line(batch.last_ns.unwrap_or(0));
        }
    }

    /// Learns the names in an event, whether or not it is printed; `false` if none is new. After a new
    /// name a line must follow: the merger receives names in the order of lines.
    #[inline]
    fn learn(&self, batch: &mut LineBatch, stamp_ns: u64, payload: &[u8]) -> bool {
        let id = self.type_at.read(payload, self.order).unwrap_or(0) as u16;
        let tellers = self.tellers.for_event(id);
        !tellers.is_empty() && self.learn_from(batch, tellers, (stamp_ns, payload))
    }

    fn learn_from(
        &self,
        batch: &mut LineBatch,
        tellers: &[CommSource<'_>],
        (stamp_ns, payload): (u64, &[u8]),
    ) -> bool {
        let LineBatch { names: Some(names), lines, start, .. } = batch else { return false };
        let mut new = false;
        for teller in tellers {
            let pid = teller.pid(payload, self.order);
            if names.is_repeated(pid, teller, payload) || self.lines.knows(pid) {
                continue;
            }
            let Some(comm) = teller.comm(payload, self.order) else { continue };
            let before = |line: &Line| line.stamp_ns < stamp_ns;
            let line = match lines.last() {
                Some(last) if !before(last) => lines.partition_point(before),
                _ => lines.len(),
            };
            new |= names.name((line, pid), comm, || self.on_lines(pid, comm));
        }
        if new {
            start.clear();
        }
        new
    }

    /// A thread's name as printed in its lines.
    fn on_lines(&self, pid: u32, comm: &[u8]) -> Box<[u8]> {
        let mut out = Vec::new();
        match self.style {
            Style::TraceCmd | Style::Text | Style::Raw => {
                return text::thread_part(&String::from_utf8_lossy(comm), pid);
            }
            Style::Jsonl | Style::JsonlHeads | Style::JsonText => jsonl::string(&mut out, comm),
            Style::Csv(_) => csv::text(&mut out, comm),
        }
        out.into()
    }

    #[inline]
    fn record(&self, batch: &mut LineBatch, stamp_ns: u64, cpu: u32, payload: &[u8]) {
        let id = self.type_at.read(payload, self.order).unwrap_or(0) as u16;
        let event = self.events.get(usize::from(id)).and_then(Option::as_ref);
        if event.is_none() && !(self.unknown_too && self.recording.formats().by_id(id).is_none()) {
            return;
        }
        let pid = self.pid_at.read(payload, self.order).unwrap_or(0) as u32;
        if self.threads.as_ref().is_some_and(|threads| !threads.contains(&pid)) {
            return;
        }
        match event {
            Some(event) => {
                let holds = |all: &Vec<CompiledCondition>| {
                    all.iter().all(|condition| condition.holds(payload, self.order))
                };
                let is_wanted = event.conditions.as_ref().is_some_and(holds);
                if self.with_others && is_wanted {
                    batch.wanted.push(batch.lines.len());
                }
                if self.with_others || is_wanted {
                    self.known(batch, event, EventStart { stamp_ns, cpu, pid }, payload);
                }
            }
            None => self.unknown(batch, id, EventStart { stamp_ns, cpu, pid }, payload),
        }
    }

    fn known(
        &self,
        batch: &mut LineBatch,
        event: &EventPrinter<'_>,
        start: EventStart,
        payload: &[u8],
    ) {
        self.begin(batch, start);
        let out = &mut batch.text;
        match self.style {
            Style::Jsonl | Style::JsonlHeads => {
                if let Some(json) = &event.json {
                    json.write(out, payload, self.order);
                }
            }
            Style::JsonText => {
                let mut text = Vec::new();
                self.body(&mut text, event, payload);
                jsonl::text(out, &event.full_name, &text);
            }
            Style::Csv(columns) => {
                let event_parts =
                    (Some(event.format), event.json.as_ref(), event.full_name.as_str());
                csv::event(out, event_parts, payload, self.order, columns);
            }
            Style::TraceCmd | Style::Text | Style::Raw => {
                event.name_part.append(out);
                let begin = out.len();
                if self.body(out, event, payload) == Escapes::Possible {
                    printable::escape_event(out, begin);
                }
                out.push(b'\n');
            }
        }
        batch.events += 1;
        batch.end_line(start.stamp_ns);
    }

    /// Writes everything before the event.
    #[inline(always)]
    fn begin(&self, batch: &mut LineBatch, start: EventStart) {
        let EventStart { stamp_ns, cpu, pid } = start;
        let out = &mut batch.text;
        match self.style {
            Style::TraceCmd | Style::Text | Style::Raw => {
                if !self.prefix.is_empty() {
                    out.extend_from_slice(&self.prefix);
                }
                self.lines.begin(batch, start);
            }
            Style::Jsonl | Style::JsonlHeads | Style::JsonText => {
                self.json.begin(batch, start, || self.recording.comm(pid));
            }
            Style::Csv(_) => {
                self.csv.begin(out, stamp_ns, cpu);
                csv::thread(out, pid);
                if let Some(comm) = self.recording.comm(pid) {
                    csv::text(out, comm.as_bytes());
                } else {
                    let (line, at) = ((batch.lines.len(), pid), out.len());
                    batch.names.get_or_insert_default().write(line, at, out, || b"");
                }
            }
        }
    }

    /// The text after the event's name; the raw fields if the print fmt can't be evaluated.
    fn body(&self, out: &mut Vec<u8>, event: &EventPrinter<'_>, payload: &[u8]) -> Escapes {
        let begin = out.len();
        if let Some(program) = &event.program {
            // The kernel has many symbols, so they are read only if they may be needed.
            let (kallsyms, printk) = if self.style == Style::Raw || program.needs_kernel() {
                (self.recording.kallsyms(), self.recording.printk())
            } else {
                (&self.no_kernel.0, &self.no_kernel.1)
            };
            let context = PrintContext { kallsyms, printk };
            if self.style == Style::Raw {
                program.write_fields(event.format, payload, &context, out);
                return Escapes::Possible;
            }
            let form = event.form.as_ref().filter(|form| form.fits(payload, self.order));
            let program = form.map_or(program, TraceCmdForm::program);
            if program.write(payload, &context, out).is_ok() {
                let none = program.is_always_plain();
                return if none { Escapes::None } else { Escapes::Possible };
            }
            out.truncate(begin);
        }
        if matches!(self.style, Style::TraceCmd | Style::Text | Style::JsonText) {
            event.unprintable.fetch_add(1, Ordering::Relaxed);
        }
        write_raw(event.format, payload, self.order, out);
        Escapes::Possible
    }

    fn unknown(&self, batch: &mut LineBatch, id: u16, start: EventStart, payload: &[u8]) {
        self.unknown.fetch_add(1, Ordering::Relaxed);
        self.begin(batch, start);
        let out = &mut batch.text;
        let name = format!("unknown:{id}");
        match self.style {
            Style::Jsonl | Style::JsonlHeads | Style::JsonText => jsonl::unknown(out, &name),
            Style::Csv(columns) => {
                csv::event(out, (None, None, &name), payload, self.order, columns);
            }
            Style::TraceCmd | Style::Text | Style::Raw => {
                out.extend_from_slice(&name_part(&name));
                for byte in payload {
                    out.extend_from_slice(format!(" {byte:02x}").as_bytes());
                }
                out.push(b'\n');
            }
        }
        batch.events += 1;
        batch.end_line(start.stamp_ns);
    }

    fn dropped(&self, batch: &mut LineBatch, stamp_ns: u64, cpu: u32, count: Option<u64>) {
        if !self.filter.wants_time(stamp_ns) {
            return;
        }
        let out = &mut batch.text;
        match self.style {
            Style::Jsonl | Style::JsonlHeads | Style::JsonText => {
                self.json.dropped(out, (stamp_ns, cpu), count);
            }
            Style::Csv(columns) => {
                self.csv.begin(out, stamp_ns, cpu);
                csv::dropped(out, count, columns);
            }
            Style::TraceCmd | Style::Text | Style::Raw => {
                out.extend_from_slice(&self.prefix);
                text::dropped(out, cpu, count);
            }
        }
        batch.end_line(stamp_ns);
    }
}

/// Prints the events of all recordings.
pub(super) struct Decoder<'p, 'r> {
    pub(super) printers: &'p [Printer<'r>],
    /// By input, the printer of its recording.
    pub(super) owners: &'p [usize],
}

impl Decode for Decoder<'_, '_> {
    type Batch = LineBatch;

    fn decode(&self, index: usize, input: Input<'_>, block: &Block<'_>, batch: &mut LineBatch) {
        let printer = self.owners.get(index).and_then(|&owner| self.printers.get(owner));
        let Some(printer) = printer else { return };
        let mut learning = false;
        let packets = block.packets_and_next();
        for (number, (offset, packet, next)) in packets.enumerate() {
            let Ok(packet) = packet else {
                batch.damaged += 1;
                continue;
            };
            let (last, read) = if learning {
                printer.packet::<true>(&packet, input, batch)
            } else {
                printer.packet::<false>(&packet, input, batch)
            };
            let time = batch.stamps.page(offset, (packet.stamp, last), read, next);
            batch.damaged += u64::from(matches!(time, PageTime::OutOfOrder(Some(_))));
            batch.damaged += u64::from(read.is_err());
            if !learning && batch.names.is_some() {
                learning = true;
                printer.catch_up(block, number + 1, input, batch);
            }
        }
    }
}
