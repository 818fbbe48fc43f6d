//! The action for each event id: the compiled rules of [`crate::arch`].

use ftrace::eventfmt::EventFormat;

use crate::arch::{
    self, FLAG, HIGH, HOST_WORK_SYSTEMS, ONLY_IF, Rule, SCHED_SWITCH, SLEEP_STATES, THREAD, VALUE,
};
use crate::load::Load;
use crate::thread_batch::ThreadBatch;
use crate::thread_event::{Kind, ThreadEvent};

/// The action for an event.
#[derive(Clone, Copy, Debug)]
pub(super) enum Action {
    /// Concerns one thread and needs at most three numbers.
    Thread(ThreadAction),
    /// Concerns one thread and needs more.
    Special(ThreadAction, Special),
    /// Switches from one thread to another.
    Switch(SwitchAction),
    /// Concerns the woken thread, and is host work of the waking thread.
    Wake { waker: ThreadAction, woken: ThreadAction },
}

#[derive(Clone, Copy, Debug)]
pub(super) struct ThreadAction {
    thread: Load,
    value: Load,
    flag: Load,
    /// Added to `value`: 1 separates "vCPU 0" from "no vCPU id".
    value_bias: u64,
    kind: Kind,
    fixed_flag: u8,
}

/// Parts that few events need.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Special {
    /// The event counts only if this number has this value.
    only_if: Option<(Load, u64)>,
    /// A number for the bits above the low 32 bits of `value`.
    high: Option<Load>,
    /// The guest's program counter if requested; it becomes a separate event.
    guest_pc: Option<Load>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct SwitchAction {
    prev_pid: Load,
    prev_state: Load,
    next_pid: Load,
}

/// Time and stream of an event.
#[derive(Clone, Copy, Debug)]
pub(super) struct EventTime {
    pub(super) stamp_ns: u64,
    pub(super) stream: u16,
}

impl Action {
    /// The event's meaning for its thread; for a switch, that the thread goes off CPU.
    pub(super) fn kind(&self) -> Kind {
        match self {
            Self::Thread(action) | Self::Special(action, _) | Self::Wake { woken: action, .. } => {
                action.kind
            }
            Self::Switch(_) => Kind::SchedOut,
        }
    }

    /// Adds the thread events of an event to `batch`; adds none if the record is too short.
    #[inline(always)]
    pub(super) fn take<const BIG: bool>(
        &self,
        time: EventTime,
        payload: &[u8],
        batch: &mut ThreadBatch,
    ) {
        if let Self::Thread(action) = self
            && let Some(event) = action.read(time, |load| load.read_inside::<BIG>(payload))
        {
            batch.push(event);
        } else {
            let _ = self.take_with_care::<BIG>(time, payload, batch);
        }
    }

    /// [`Self::take`] for all events. It stays outside the loop over records, which is faster with
    /// fewer registers.
    #[inline(never)]
    fn take_with_care<const BIG: bool>(
        &self,
        time: EventTime,
        payload: &[u8],
        batch: &mut ThreadBatch,
    ) -> Option<()> {
        let load = |load: &Load| load.read::<BIG>(payload);
        match self {
            Self::Thread(action) => batch.push(action.read(time, load)?),
            Self::Special(action, special) => {
                let mut event = action.read(time, load)?;
                if let Some((condition, wanted)) = &special.only_if
                    && load(condition)? != *wanted
                {
                    return None;
                }
                if let Some(high) = &special.high {
                    event.value |= load(high)? << 32;
                }
                batch.push(event);
                if let Some(value) = special.guest_pc.as_ref().and_then(load) {
                    batch.push(ThreadEvent { value, kind: Kind::GuestPc, ..event });
                }
            }
            Self::Switch(action) => {
                let [goes, comes] = action.read(time, load)?;
                batch.push(goes);
                batch.push(comes);
            }
            Self::Wake { waker, woken } => {
                let (work, wake) = (waker.read(time, load)?, woken.read(time, load)?);
                batch.push(work);
                batch.push(wake);
            }
        }
        Some(())
    }
}

impl ThreadAction {
    /// The thread event, with its numbers read by `load`.
    #[inline(always)]
    fn read(&self, time: EventTime, load: impl Fn(&Load) -> Option<u64>) -> Option<ThreadEvent> {
        let EventTime { stamp_ns, stream } = time;
        Some(ThreadEvent {
            stamp_ns,
            value: load(&self.value)?.wrapping_add(self.value_bias),
            thread: load(&self.thread)? as u32,
            stream,
            kind: self.kind,
            flag: load(&self.flag)? as u8 | self.fixed_flag,
        })
    }
}

impl SwitchAction {
    /// The thread events for the threads that go off CPU and on CPU.
    fn read(
        &self,
        time: EventTime,
        load: impl Fn(&Load) -> Option<u64>,
    ) -> Option<[ThreadEvent; 2]> {
        let EventTime { stamp_ns, stream } = time;
        let runnable = load(&self.prev_state)? & SLEEP_STATES == 0;
        let switch = |thread: u64, kind, flag| {
            let thread = thread as u32;
            ThreadEvent { stamp_ns, value: 0, thread, stream, kind, flag }
        };
        let (prev, next) = (load(&self.prev_pid)?, load(&self.next_pid)?);
        Some([switch(prev, Kind::SchedOut, u8::from(runnable)), switch(next, Kind::SchedIn, 0)])
    }
}

/// The action for events of a format; `None` if they do not concern vCPUs. `ran` is the position of
/// `common_pid` in all events of the recording.
pub(super) fn compile(format: &EventFormat, ran: Load, details: bool) -> Option<Action> {
    if format.full_name() == SCHED_SWITCH {
        return compile_switch(format).map(Action::Switch);
    }
    if let Some((_, rule)) = arch::rule_for(format) {
        return compile_rule(format, rule, ran, details);
    }
    if let Some((detail, rule)) = arch::detail_for(format) {
        let mut action = compile_thread(format, rule, ran).filter(|_| details)?;
        action.fixed_flag = detail as u8;
        return Some(Action::Thread(action));
    }
    if HOST_WORK_SYSTEMS.contains(&format.system()) {
        return compile_thread(format, &Rule::HOST_WORK, ran).map(Action::Thread);
    }
    None
}

fn compile_switch(format: &EventFormat) -> Option<SwitchAction> {
    Some(SwitchAction {
        prev_pid: first(format, "prev_pid")?,
        prev_state: first(format, "prev_state")?,
        next_pid: first(format, "next_pid")?,
    })
}

fn compile_rule(format: &EventFormat, rule: &Rule, ran: Load, details: bool) -> Option<Action> {
    let action = compile_thread(format, rule, ran)?;
    if rule.kind == Kind::Wake {
        let waker = compile_thread(format, &Rule::HOST_WORK, ran)?;
        return Some(Action::Wake { waker, woken: action });
    }
    let mut special = Special {
        guest_pc: first(format, rule.guest_pc()).filter(|_| details),
        high: first(format, rule.field(HIGH)),
        only_if: None,
    };
    let condition = rule.field(ONLY_IF);
    if !condition.is_empty() {
        special.only_if = Some((first(format, condition)?, rule.only_if));
    }
    let Special { only_if, high, guest_pc } = &special;
    let plain = only_if.is_none() && high.is_none() && guest_pc.is_none();
    Some(if plain { Action::Thread(action) } else { Action::Special(action, special) })
}

fn compile_thread(format: &EventFormat, rule: &Rule, ran: Load) -> Option<ThreadAction> {
    let thread = rule.field(THREAD);
    let value = first(format, rule.field(VALUE));
    Some(ThreadAction {
        thread: if thread.is_empty() { ran } else { first(format, thread)? },
        value: value.unwrap_or(Load::ABSENT),
        flag: first(format, rule.field(FLAG)).unwrap_or(Load::ABSENT),
        value_bias: u64::from(rule.kind == Kind::Entry && value.is_some()),
        kind: rule.kind,
        fixed_flag: 0,
    })
}

/// The first of several field names that the format has.
fn first(format: &EventFormat, names: &str) -> Option<Load> {
    names.split('|').find_map(|name| format.field(name)?.number()).map(Load::new)
}
