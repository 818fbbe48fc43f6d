//! What is done with an event of some id: the rules of `kvm_events`, compiled.

use eventfmt::EventFormat;

use super::load::Load;
use crate::kvm_events::{ARM64_EXIT, DETAIL_RULES, HOST_WORK_SYSTEMS, RULES, Rule, SCHED_SWITCH};
use crate::thread_event::{Kind, ThreadEvent};

/// Bits of `prev_state` that say why a thread sleeps; none set: it stays runnable. Above them
/// kernels put markers such as "preempted" (`TASK_REPORT`, `TASK_REPORT_MAX`).
const SLEEP_STATES: u64 = 0xff;

/// What to do with an event.
#[derive(Clone, Copy, Debug)]
pub(super) enum Action {
    /// It concerns one thread.
    Thread(ThreadAction),
    /// It is a switch from one thread to another.
    Switch(SwitchAction),
    /// A thread wakes another: it concerns that one, and is work of the thread that wakes.
    Wake { waker: ThreadAction, woken: ThreadAction },
}

#[derive(Clone, Copy, Debug)]
pub(super) struct ThreadAction {
    kind: Kind,
    thread: Load,
    value: Load,
    /// Added to `value`: 1 tells "vCPU 0" from "no vCPU id".
    value_bias: u64,
    /// Where the guest's program counter is, if it is asked for.
    guest_pc: Option<Load>,
    flag: Load,
    fixed_flag: u8,
    special: Special,
}

/// What few events need.
#[derive(Clone, Copy, Debug)]
enum Special {
    No,
    /// The event counts only if the number is this.
    OnlyIf(Load, u64),
    /// A number to be put above `value`'s low 32 bits.
    High(Load),
}

#[derive(Clone, Copy, Debug)]
pub(super) struct SwitchAction {
    prev_pid: Load,
    prev_state: Load,
    next_pid: Load,
}

impl Action {
    /// What the event says of the thread it concerns; of a switch, that the thread goes.
    pub(super) fn kind(&self) -> Kind {
        match self {
            Self::Thread(action) | Self::Wake { woken: action, .. } => action.kind,
            Self::Switch(_) => Kind::SchedOut,
        }
    }
}

impl ThreadAction {
    #[inline(always)]
    pub(super) fn read<const BIG: bool>(
        &self,
        stream: u16,
        stamp_ns: u64,
        payload: &[u8],
    ) -> Option<ThreadEvent> {
        let mut value = self.value.read::<BIG>(payload)?.wrapping_add(self.value_bias);
        match &self.special {
            Special::No => {}
            Special::OnlyIf(load, wanted) => {
                if load.read::<BIG>(payload)? != *wanted {
                    return None;
                }
            }
            Special::High(load) => value |= load.read::<BIG>(payload)? << 32,
        }
        Some(ThreadEvent {
            stamp_ns,
            value,
            thread: self.thread.read::<BIG>(payload)? as u32,
            stream,
            kind: self.kind,
            flag: self.flag.read::<BIG>(payload)? as u8 | self.fixed_flag,
        })
    }

    /// The event that tells the guest's program counter, behind one that [`Self::read`] gave.
    #[inline(always)]
    pub(super) fn guest_pc<const BIG: bool>(
        &self,
        exit: &ThreadEvent,
        payload: &[u8],
    ) -> Option<ThreadEvent> {
        let value = self.guest_pc.as_ref()?.read::<BIG>(payload)?;
        Some(ThreadEvent { value, kind: Kind::GuestPc, ..*exit })
    }

    pub(super) fn kind(&self) -> Kind {
        self.kind
    }
}

impl SwitchAction {
    /// The event as it concerns the thread that goes and the one that comes.
    #[inline(always)]
    pub(super) fn read<const BIG: bool>(
        &self,
        stream: u16,
        stamp_ns: u64,
        payload: &[u8],
    ) -> Option<[ThreadEvent; 2]> {
        let runnable = self.prev_state.read::<BIG>(payload)? & SLEEP_STATES == 0;
        let switch = |thread: u64, kind, flag| {
            let thread = thread as u32;
            ThreadEvent { stamp_ns, value: 0, thread, stream, kind, flag }
        };
        let prev = self.prev_pid.read::<BIG>(payload)?;
        let next = self.next_pid.read::<BIG>(payload)?;
        Some([switch(prev, Kind::SchedOut, u8::from(runnable)), switch(next, Kind::SchedIn, 0)])
    }
}

/// The action for events of a format; `None` for those that concern no vCPU.
pub(super) fn compile(format: &EventFormat, details: bool) -> Option<Action> {
    let name = format.full_name();
    if name == SCHED_SWITCH {
        return compile_switch(format).map(Action::Switch);
    }
    if let Some(rule) = RULES.iter().find(|rule| rule.event == name) {
        let action = compile_rule(format, rule, 0, details)?;
        return match rule.kind {
            Kind::Wake => {
                let waker = compile_rule(format, &Rule::HOST_WORK, 0, false)?;
                Some(Action::Wake { waker, woken: action })
            }
            _ => Some(Action::Thread(action)),
        };
    }
    if let Some((detail, rule)) = DETAIL_RULES.iter().find(|(_, rule)| rule.event == name) {
        let action = details.then(|| compile_rule(format, rule, *detail as u8, false)).flatten();
        return action.map(Action::Thread);
    }
    if HOST_WORK_SYSTEMS.contains(&format.system()) {
        return compile_rule(format, &Rule::HOST_WORK, 0, false).map(Action::Thread);
    }
    None
}

fn compile_switch(format: &EventFormat) -> Option<SwitchAction> {
    let load = |name: &str| format.field(name)?.number().map(Load::new);
    Some(SwitchAction {
        prev_pid: load("prev_pid")?,
        prev_state: load("prev_state")?,
        next_pid: load("next_pid")?,
    })
}

fn compile_rule(
    format: &EventFormat,
    rule: &Rule,
    fixed_flag: u8,
    details: bool,
) -> Option<ThreadAction> {
    let load = |name: &str| format.field(name)?.number().map(Load::new);
    let first = |names: &[&str]| names.iter().find_map(|name| load(name));
    let thread = if rule.thread.is_empty() { "common_pid" } else { rule.thread };
    let mut special = match rule.only_if {
        Some((name, value)) => Special::OnlyIf(load(name)?, value),
        None => Special::No,
    };
    let mut value_bias = 0;
    let value = match first(rule.value) {
        Some(value) => {
            value_bias = u64::from(rule.kind == Kind::Entry);
            value
        }
        None if rule.kind == Kind::Exit => {
            special = Special::High(load(ARM64_EXIT.0)?);
            load(ARM64_EXIT.1)?
        }
        None => Load::ABSENT,
    };
    Some(ThreadAction {
        kind: rule.kind,
        thread: load(thread)?,
        value,
        value_bias,
        guest_pc: first(rule.guest_pc).filter(|_| details),
        flag: first(rule.flag).unwrap_or(Load::ABSENT),
        fixed_flag,
        special,
    })
}
