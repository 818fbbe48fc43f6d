//! Pages of a recording to [`ThreadEvent`]s: the hot loop of every report about exits.
//!
//! The rules of [`crate::kvm_events`] are compiled against the recording's own formats into a table
//! indexed by event id; reading an event is then a few loads at known offsets.

use abi::ByteOrder;
use eventfmt::{EventFormat, NumberAt};
use ringbuf::{Missed, Page, Record};
use sources::{Block, Damage, Recording, Stream};

use crate::kvm_events::{ARM64_EXIT, DETAIL_RULES, HOST_WORK_SYSTEMS, RULES, Rule, SCHED_SWITCH};
use crate::rounds::{Batch, Decode, Input};
use crate::thread_event::{Kind, ThreadEvent};

/// Bits of `prev_state` that say why a thread sleeps; none set: it stays runnable. Above them
/// kernels put markers such as "preempted" (`TASK_REPORT`, `TASK_REPORT_MAX`).
const SLEEP_STATES: u64 = 0xff;

/// What to do with an event of some id.
#[derive(Clone, Copy, Debug)]
enum Action {
    Ignore,
    Thread(ThreadAction),
    Switch(SwitchAction),
}

#[derive(Clone, Copy, Debug)]
struct ThreadAction {
    kind: Kind,
    thread: NumberAt,
    value: Option<NumberAt>,
    /// Added to `value`: 1 tells "vCPU 0" from "no vCPU id".
    value_bias: u64,
    /// Put above `value`'s low 32 bits.
    value_high: Option<NumberAt>,
    extra: Option<NumberAt>,
    flag: Option<NumberAt>,
    fixed_flag: u8,
    only_if: Option<(NumberAt, u64)>,
}

#[derive(Clone, Copy, Debug)]
struct SwitchAction {
    prev_pid: NumberAt,
    prev_state: NumberAt,
    next_pid: NumberAt,
}

/// Compiled rules of one recording.
#[derive(Debug)]
pub(crate) struct Extractor {
    order: ByteOrder,
    type_at: NumberAt,
    actions: Vec<Action>,
}

/// The events of one block that concern threads.
#[derive(Debug, Default)]
pub(crate) struct ThreadBatch {
    /// In time order.
    pub(crate) events: Vec<ThreadEvent>,
    /// Stamp of the first page.
    pub(crate) first_ns: Option<u64>,
    last_ns: Option<u64>,
    /// Lost before the first page: how many events, 0 if the kernel did not say.
    pub(crate) head_gap: Option<u64>,
    /// Something after the last readable page could not be read.
    pub(crate) tail_gap: bool,
    /// Events lost, as far as the kernel counted them.
    pub(crate) events_lost: u64,
    /// Places where an uncounted number of events was lost.
    pub(crate) uncounted_losses: u64,
    pub(crate) damage: Vec<Damage>,
    pub(crate) records: u64,
}

impl Batch for ThreadBatch {
    fn clear(&mut self) {
        let mut events = std::mem::take(&mut self.events);
        events.clear();
        *self = Self { events, ..Self::default() };
    }

    fn last_stamp_ns(&self) -> Option<u64> {
        self.last_ns
    }

    fn set_unreadable(&mut self, damage: Damage) {
        self.damage.push(damage);
        self.tail_gap = true;
    }
}

impl Extractor {
    /// Compiles the rules against the formats of `recording`; details are read if `details`.
    #[must_use]
    pub(crate) fn new(recording: &Recording, details: bool) -> Self {
        let formats = recording.formats();
        let mut actions = Vec::new();
        for (id, format) in formats.iter() {
            let action = compile(format, details);
            let at = usize::from(id);
            if actions.len() <= at {
                actions.resize(at + 1, Action::Ignore);
            }
            if let Some(slot) = actions.get_mut(at) {
                *slot = action;
            }
        }
        Self { order: recording.abi().order, type_at: formats.type_at(), actions }
    }

    #[inline]
    fn record(&self, stream: u16, stamp_ns: u64, payload: &[u8], events: &mut Vec<ThreadEvent>) {
        let id = self.type_at.read(payload, self.order).unwrap_or(u64::MAX);
        match usize::try_from(id).ok().and_then(|at| self.actions.get(at)) {
            Some(Action::Thread(action)) => {
                if let Some(event) = action.read(stream, stamp_ns, payload, self.order) {
                    events.push(event);
                }
            }
            Some(Action::Switch(action)) => {
                action.read(stream, stamp_ns, payload, self.order, events);
            }
            Some(Action::Ignore) | None => {}
        }
    }
}

impl Decode for Extractor {
    type Batch = ThreadBatch;

    fn decode(&self, index: usize, input: Input<'_>, block: &Block<'_>, batch: &mut ThreadBatch) {
        let stream = input.stream;
        let number = u16::try_from(index).unwrap_or(u16::MAX);
        let correction = input.recording.correction(stream);
        let mut walk = PageWalk { stream: number, gap: None, batch };
        let identity = correction.is_identity();
        let page_size = stream.layout().page_size;
        for (number_in_block, bytes) in block.pages.chunks(page_size).enumerate() {
            let offset = block.page_offset(number_in_block * page_size);
            let page = match Page::parse(bytes, stream.layout()) {
                Ok(page) => page,
                Err(damage) => {
                    walk.damaged(stream, offset, &damage);
                    continue;
                }
            };
            walk.begin(correction.ns(page.stamp, stream.cpu()), page.missed);
            let mut last_stamp = None;
            let batch = &mut *walk.batch;
            let result = page.for_each(|Record { stamp, payload }| {
                let stamp_ns = if identity { stamp } else { correction.ns(stamp, stream.cpu()) };
                batch.records += 1;
                last_stamp = Some(stamp_ns);
                self.record(number, stamp_ns, payload, &mut batch.events);
            });
            batch.last_ns = batch.last_ns.max(last_stamp);
            if let Err(damage) = result {
                walk.damaged(stream, offset, &damage);
            }
        }
        walk.batch.tail_gap = walk.gap.is_some();
    }
}

/// Keeps account of losses from page to page of one block.
struct PageWalk<'b> {
    stream: u16,
    /// A loss since the last readable event: how many events, 0 if unknown.
    gap: Option<u64>,
    batch: &'b mut ThreadBatch,
}

impl PageWalk<'_> {
    fn damaged(&mut self, stream: &Stream, offset: u64, what: &dyn std::fmt::Display) {
        self.batch.damage.push(Damage::on_cpu(stream.cpu(), offset, what.to_string()));
        self.gap = Some(0);
    }

    /// A readable page begins at `stamp_ns`: whatever was lost before it is placed.
    fn begin(&mut self, stamp_ns: u64, missed: Missed) {
        match missed {
            Missed::Nothing => {}
            Missed::Unknown => {
                self.batch.uncounted_losses += 1;
                self.gap.get_or_insert(0);
            }
            Missed::Events(count) => {
                self.batch.events_lost = self.batch.events_lost.saturating_add(count);
                self.gap = Some(self.gap.unwrap_or(0).saturating_add(count));
            }
        }
        if self.batch.last_ns.is_some_and(|last_ns| stamp_ns < last_ns) {
            // A page can't begin before the one before it ended, unless its stamp is damaged.
            self.gap.get_or_insert(0);
        }
        if let Some(count) = self.gap.take() {
            match self.batch.last_ns {
                Some(last_ns) => {
                    let event = lost(self.stream, last_ns, stamp_ns, count);
                    self.batch.events.push(event);
                }
                None => self.batch.head_gap = Some(count),
            }
        }
        self.batch.first_ns.get_or_insert(stamp_ns);
        self.batch.last_ns = self.batch.last_ns.max(Some(stamp_ns));
    }
}

/// The marker of a loss on `stream` between two moments.
pub(crate) fn lost(stream: u16, from_ns: u64, to_ns: u64, count: u64) -> ThreadEvent {
    ThreadEvent {
        stamp_ns: from_ns,
        value: to_ns,
        extra: count,
        thread: u32::MAX,
        stream,
        kind: Kind::Lost,
        flag: 0,
    }
}

impl ThreadAction {
    #[inline]
    fn read(
        &self,
        stream: u16,
        stamp_ns: u64,
        payload: &[u8],
        order: ByteOrder,
    ) -> Option<ThreadEvent> {
        let read = |at: &NumberAt| at.read(payload, order);
        if let Some((field, wanted)) = &self.only_if
            && read(field)? != *wanted
        {
            return None;
        }
        let mut value = match &self.value {
            Some(value) => read(value)?.wrapping_add(self.value_bias),
            None => 0,
        };
        if let Some(high) = &self.value_high {
            value = (value & u64::from(u32::MAX)) | (read(high)? << 32);
        }
        Some(ThreadEvent {
            stamp_ns,
            value,
            extra: self.extra.as_ref().and_then(read).unwrap_or(0),
            thread: read(&self.thread)? as u32,
            stream,
            kind: self.kind,
            flag: self.flag.as_ref().and_then(read).map_or(self.fixed_flag, |flag| flag as u8),
        })
    }
}

impl SwitchAction {
    #[inline]
    fn read(
        &self,
        stream: u16,
        stamp_ns: u64,
        payload: &[u8],
        order: ByteOrder,
        events: &mut Vec<ThreadEvent>,
    ) {
        let (Some(prev), Some(state), Some(next)) = (
            self.prev_pid.read(payload, order),
            self.prev_state.read(payload, order),
            self.next_pid.read(payload, order),
        ) else {
            return;
        };
        let switch = |thread: u64, kind, flag| ThreadEvent {
            stamp_ns,
            value: 0,
            extra: 0,
            thread: thread as u32,
            stream,
            kind,
            flag,
        };
        let runnable = state & SLEEP_STATES == 0;
        events.push(switch(prev, Kind::SchedOut, u8::from(runnable)));
        events.push(switch(next, Kind::SchedIn, 0));
    }
}

/// The action for events of one format.
fn compile(format: &EventFormat, details: bool) -> Action {
    let name = format.full_name();
    if name == SCHED_SWITCH {
        return compile_switch(format).map_or(Action::Ignore, Action::Switch);
    }
    if let Some(rule) = RULES.iter().find(|rule| rule.event == name) {
        return compile_rule(format, rule, 0).map_or(Action::Ignore, Action::Thread);
    }
    if let Some((detail, rule)) = DETAIL_RULES.iter().find(|(_, rule)| rule.event == name) {
        let action = details.then(|| compile_rule(format, rule, *detail as u8)).flatten();
        return action.map_or(Action::Ignore, Action::Thread);
    }
    if HOST_WORK_SYSTEMS.contains(&format.system()) {
        let host_work = Rule {
            event: "",
            kind: Kind::HostWork,
            thread: "",
            value: &[],
            extra: &[],
            flag: &[],
            only_if: None,
        };
        return compile_rule(format, &host_work, 0).map_or(Action::Ignore, Action::Thread);
    }
    Action::Ignore
}

fn compile_switch(format: &EventFormat) -> Option<SwitchAction> {
    let number = |name: &str| format.field(name)?.number();
    Some(SwitchAction {
        prev_pid: number("prev_pid")?,
        prev_state: number("prev_state")?,
        next_pid: number("next_pid")?,
    })
}

fn compile_rule(format: &EventFormat, rule: &Rule, fixed_flag: u8) -> Option<ThreadAction> {
    let number = |name: &str| format.field(name)?.number();
    let first = |names: &[&str]| names.iter().find_map(|name| number(name));
    let thread = if rule.thread.is_empty() { "common_pid" } else { rule.thread };
    let only_if = match rule.only_if {
        Some((name, value)) => Some((number(name)?, value)),
        None => None,
    };
    let mut action = ThreadAction {
        kind: rule.kind,
        thread: number(thread)?,
        value: None,
        value_bias: 0,
        value_high: None,
        extra: first(rule.extra),
        flag: first(rule.flag),
        fixed_flag,
        only_if,
    };
    match first(rule.value) {
        Some(value) => {
            action.value = Some(value);
            action.value_bias = u64::from(rule.kind == Kind::Entry);
        }
        None if rule.kind == Kind::Exit => {
            action.value_high = Some(number(ARM64_EXIT.0)?);
            action.value = Some(number(ARM64_EXIT.1)?);
        }
        None => {}
    }
    Some(action)
}
