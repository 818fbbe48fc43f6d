//! Decodes the frames of a vCPU, in order, to events.

use crate::clock::Clock;
use crate::event::{Event, Interrupt, Kind, Losses, Task, TaskState};
use crate::frame::{Frame, Hello, Raw, Record};
use crate::frame_words::FrameWords;
use crate::lateness::Lateness;
use crate::tables::{Names, Tables};

/// The decoder of a vCPU's stream.
#[derive(Debug, Default)]
pub struct Decoder {
    stream: Option<Stream>,
    losses: Losses,
    /// The stream's frames have more words than were recorded.
    cut: bool,
    /// Time stamp of the last event.
    last_ns: u64,
}

/// A stream since its first record.
#[derive(Debug)]
struct Stream {
    hello: Hello,
    clock: Clock,
    tables: Tables,
    names: Names,
    current: Option<Task>,
    next_number: u8,
    events: u32,
    /// Whether its first record was seen, so that `events` counts all events.
    from_start: bool,
    /// Events are missing before the next event.
    is_missing: bool,
    guest_time: GuestTime,
}

/// The stream's position on the guest's counter.
#[derive(Clone, Copy, Debug, Default)]
struct GuestTime {
    /// Units from an origin to the last event; `None` if frames were lost since.
    last: Option<u64>,
    lateness: Lateness,
}

/// A time stamp for a hypercall, with its reliability.
struct Stamped {
    /// Time of the hypercall; if its age is unknown, the latest possible time of the last event.
    host_ns: u64,
    /// See [`Event::at_latest`].
    at_latest: bool,
    /// See [`Event::late_ns`].
    late_ns: Option<u64>,
}

impl GuestTime {
    /// Advances to a frame whose events span `units`.
    fn frame(&mut self, frame: &Frame, units: u64, clock: Clock, host_ns: u64) -> Stamped {
        let as_stamped = Stamped { host_ns, at_latest: frame.age.is_none(), late_ns: None };
        let Some(since_before) = frame.since_before else {
            self.last = None;
            return as_stamped;
        };
        if self.last.is_none() {
            self.lateness = Lateness::default();
        }
        let last = self.last.unwrap_or(0).saturating_add(since_before).saturating_add(units);
        self.last = Some(last);
        let Some(age) = frame.age else {
            let last_ns = self.lateness.host_ns(clock.ns(last), host_ns);
            let at_latest = last_ns.is_none();
            return Stamped { host_ns: last_ns.unwrap_or(host_ns), at_latest, late_ns: None };
        };
        let Some(late_ns) = self.lateness.measure(clock.ns(last.saturating_add(age)), host_ns)
        else {
            return Stamped { at_latest: true, ..as_stamped };
        };
        let host_ns = host_ns.saturating_sub(late_ns);
        Stamped { host_ns, at_latest: false, late_ns: Some(late_ns) }
    }
}

impl Decoder {
    /// Decodes a frame; `host_ns` is the host's time of its hypercall. Appends its events in order.
    ///
    /// Frames must arrive in time order. Time stamps are later than the events by the time from the
    /// guest's last clock reading to the host's time stamp, as for the fastest hypercalls around
    /// this one ([`Event::late_ns`]; streams of versions before 3 do not have it), and have an
    /// error of up to one more unit. Events that would precede an event of the previous frame get
    /// that event's time, to keep their order.
    pub fn frame(&mut self, words: &[u64], host_ns: u64, events: &mut Vec<Event>) {
        let frame = Frame::read(words, self.version());
        if let Some(Record::Hello(hello)) = frame.records.first() {
            self.cut = usize::from(hello.words) > words.len();
        }
        self.read(&frame, &Base::Sent { host_ns }, events);
    }

    /// Decodes a frame from shared memory; appends its events in order, at the times that `clock`
    /// derives from the guest's TSC. Without a clock, times are nanoseconds since TSC 0.
    ///
    /// Time stamps are exact to a unit.
    pub fn stored(
        &mut self,
        words: &FrameWords,
        clock: Option<&dyn Fn(u64) -> u64>,
        events: &mut Vec<Event>,
    ) {
        self.cut = false;
        let base = Base::Last { guest_tsc: words.last_tsc, clock };
        self.read(&Frame::stored(words, self.version()), &base, events);
    }

    /// The stream's version; 0 before it is known.
    fn version(&self) -> u8 {
        self.stream.as_ref().map_or(0, |stream| stream.hello.version)
    }

    /// `frames` are missing here, according to the program that stored the frames.
    pub fn missed(&mut self, frames: u64) {
        count(&mut self.losses.frames_lost, frames);
        if let Some(stream) = &mut self.stream {
            stream.forget();
            let [low, ..] = frames.to_le_bytes();
            stream.next_number = stream.next_number.wrapping_add(low);
        }
    }

    fn read(&mut self, frame: &Frame, base: &Base<'_>, events: &mut Vec<Event>) {
        match frame.records.first() {
            Some(Record::Unknown) => {
                self.stream = None;
                count(&mut self.losses.frames_unknown, 1);
            }
            _ if self.cut => {
                self.stream = None;
                count(&mut self.losses.frames_cut, 1);
            }
            // The stream's version is unknown, so the frame cannot be validated.
            first if self.stream.is_none() && !matches!(first, Some(Record::Hello(_))) => {
                count(&mut self.losses.frames_early, 1);
            }
            _ if !frame.is_whole => self.damaged(),
            _ => self.decode_frame(frame, base, events),
        }
    }

    /// Frames are missing here, according to the host's recording: state that they could have
    /// changed becomes unknown.
    pub fn gap(&mut self) {
        if let Some(stream) = &mut self.stream {
            stream.forget();
        }
    }

    /// The losses so far.
    #[must_use]
    pub fn losses(&self) -> Losses {
        self.losses
    }

    /// The guest's CPU, if the stream has named it.
    #[must_use]
    pub fn cpu(&self) -> Option<u16> {
        Some(self.stream.as_ref()?.hello.cpu)
    }

    fn damaged(&mut self) {
        count(&mut self.losses.frames_damaged, 1);
        if let Some(stream) = &mut self.stream {
            stream.forget();
            stream.next_number = stream.next_number.wrapping_add(1);
        }
    }

    fn decode_frame(&mut self, frame: &Frame, base: &Base<'_>, events: &mut Vec<Event>) {
        if let Some(Record::Hello(hello)) = frame.records.first() {
            self.greet(hello, frame.number);
        }
        let Some(stream) = &mut self.stream else {
            count(&mut self.losses.frames_early, 1);
            return;
        };
        let lost = frame.number.wrapping_sub(stream.next_number);
        if lost > 0 {
            count(&mut self.losses.frames_lost, lost.into());
            stream.forget();
        }
        stream.next_number = frame.number.wrapping_add(1);
        let first_new = events.len();
        let mut units = stream.apply(frame, &mut self.losses, events);
        let new = events.get_mut(first_new..).unwrap_or_default();
        let last = units.last().copied().unwrap_or(0);
        let (mut base, mut late_ns) = (*base, None);
        let mut at_latest = false;
        if let Base::Sent { host_ns } = &mut base
            && !units.is_empty()
        {
            let stamped = stream.guest_time.frame(frame, last, stream.clock, *host_ns);
            Stamped { host_ns: *host_ns, at_latest, late_ns } = stamped;
        }
        let mut last_ns = self.last_ns.min(base.end_ns(stream.clock));
        for (event, unit) in new.iter_mut().zip(units.drain(..)) {
            let stamp_ns = base.stamp_ns(stream.clock, last.saturating_sub(unit), frame.age);
            event.stamp_ns = stamp_ns.max(last_ns);
            event.at_latest = at_latest;
            event.late_ns = late_ns;
            last_ns = event.stamp_ns;
            count(&mut self.losses.stamps_at_latest, event.at_latest.into());
        }
        self.last_ns = last_ns;
        if let Some(Record::Bye { events }) = frame.records.last() {
            self.bye(*events);
        }
    }

    fn greet(&mut self, hello: &Hello, number: u8) {
        let Some(clock) = Clock::new(hello.counter_khz, hello.shift) else {
            self.stream = None;
            return;
        };
        // The frames of a new stream have their own numbers.
        let before = self.stream.take().filter(|_| hello.again);
        // A stream continues after a repeated `Hello`.
        let is_missing = before.as_ref().is_none_or(|before| before.is_missing);
        let (next_number, events, from_start, names, guest_time) = match before {
            Some(Stream { next_number, events, from_start, names, guest_time, .. }) => {
                (next_number, events, from_start, names, guest_time)
            }
            None => (number, 0, !hello.again, Names::default(), GuestTime::default()),
        };
        let tables = Tables::new(hello.cpu);
        self.stream = Some(Stream {
            hello: *hello,
            clock,
            tables,
            names,
            current: None,
            next_number,
            events,
            from_start,
            is_missing,
            guest_time,
        });
    }

    /// The stream ends with a total of `sent` events.
    fn bye(&mut self, sent: u32) {
        if let Some(stream) = self.stream.take().filter(|stream| stream.from_start) {
            let missing = sent.wrapping_sub(stream.events);
            count(&mut self.losses.events_missing, missing.into());
        }
    }
}

/// The reference for a frame's times.
#[derive(Clone, Copy)]
enum Base<'c> {
    /// The host's time of the hypercall.
    Sent { host_ns: u64 },
    /// The guest's TSC at the last event, and the conversion from TSC to host time.
    Last { guest_tsc: u64, clock: Option<&'c dyn Fn(u64) -> u64> },
}

impl Base<'_> {
    /// The latest possible time of an event in the frame.
    fn end_ns(&self, clock: Clock) -> u64 {
        match self {
            Self::Sent { host_ns } => *host_ns,
            Self::Last { .. } => self.stamp_ns(clock, 0, None),
        }
    }

    /// The time of an event, `units` before the last event, which was `age` old at the hypercall.
    fn stamp_ns(&self, clock: Clock, units: u64, age: Option<u64>) -> u64 {
        match *self {
            Self::Sent { host_ns } => {
                host_ns.saturating_sub(clock.ns(units.saturating_add(age.unwrap_or(0))))
            }
            Self::Last { guest_tsc, clock: to_host } => {
                let tsc = guest_tsc.saturating_sub(clock.cycles(units));
                to_host.map_or_else(|| clock.ns_of_cycles(tsc), |to_host| to_host(tsc))
            }
        }
    }
}

impl Stream {
    /// Resets the tables: their content becomes unknown.
    fn forget(&mut self) {
        self.tables = Tables::new(self.hello.cpu);
        self.names.forget_pieces();
        self.current = None;
        self.is_missing = true;
        self.guest_time.last = None;
    }

    /// Appends the events without time stamps; returns the units from the frame's first event to
    /// each.
    fn apply(&mut self, frame: &Frame, losses: &mut Losses, events: &mut Vec<Event>) -> Vec<u64> {
        let mut units = Vec::new();
        let mut since_first = 0_u64;
        for record in &frame.records {
            match *record {
                Record::Current(slot) => self.current = self.tables.task(slot),
                Record::Lost(lost) => {
                    count(&mut losses.events_dropped, lost.into());
                    self.is_missing = true;
                }
                Record::Function { slot, address } => self.tables.set_function(slot, address),
                Record::Name { slot, more, piece } => {
                    if let Some(address) = self.tables.function(slot) {
                        let text = piece.split(|&byte| byte == 0).next().unwrap_or_default();
                        self.names.piece(address, text, more);
                    }
                }
                Record::IrqName { irq, name } => self.tables.set_irq(irq, name),
                Record::Task { slot, task } => self.tables.set_task(slot, task),
                Record::Event { after, raw } => {
                    since_first = since_first.saturating_add(after);
                    units.push(since_first);
                    events.push(self.event(raw));
                }
                Record::Hello(_) | Record::Bye { .. } | Record::Unknown => {}
            }
        }
        units
    }

    fn event(&mut self, raw: Raw) -> Event {
        self.events = self.events.wrapping_add(1);
        let running = self.current;
        let kind = match raw {
            Raw::Switch { state, slot } => {
                let next = self.tables.task(slot);
                self.current = next;
                let state = TaskState { index: state, preempted_bit: self.hello.preempted_bit };
                Kind::Switch { state, next }
            }
            Raw::Wake { wake, slot, cpu } => {
                let target_cpu = cpu.unwrap_or(self.hello.cpu);
                Kind::Wake { wake, task: self.tables.task(slot), target_cpu }
            }
            Raw::Irq { irq, handled } => {
                let entry = || Interrupt::Entry(self.tables.irq(irq));
                let what = handled.map_or_else(entry, |handled| Interrupt::Exit { handled });
                Kind::Interrupt { irq, what }
            }
            Raw::Syscall { number, what } => Kind::Syscall { number, what },
            Raw::Call { slot, what } => {
                let address = self.tables.function(slot);
                Kind::Call { address, name: self.names.get(address), what }
            }
        };
        let after_loss = std::mem::take(&mut self.is_missing);
        let cpu = self.hello.cpu;
        Event { stamp_ns: 0, at_latest: false, late_ns: None, cpu, after_loss, running, kind }
    }
}

fn count(sum: &mut u64, more: u64) {
    *sum = sum.saturating_add(more);
}
