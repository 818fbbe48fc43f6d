//! Events that show the activity of a VMM's threads, and their meanings.

use ftrace::eventfmt::EventFormat;
use sources::Recording;
use timeline::arch::{self, Rule, THREAD};
use timeline::cycles::{OWN_TAGS, SWITCH_TAG, VcpuCycles};
use timeline::trace_events::{EventRequest, TraceEvent};
use timeline::{Detail, Kind};

/// Tag of `raw_syscalls:sys_enter`.
const ENTERS: u16 = OWN_TAGS;
/// Tag of `raw_syscalls:sys_exit`.
const LEAVES: u16 = OWN_TAGS + 1;
/// Tag of `signal:signal_deliver`.
const SIGNAL: u16 = OWN_TAGS + 2;
/// The first tag of details of exits: one tag per [`Detail`].
const DETAILS: u16 = OWN_TAGS + 0x10;

/// Fields of an event tagged [`ENTERS`].
const ENTERS_FIELDS: &[&str] = &["id", "args[0]", "args[1]", "args[2]"];

/// Meaning of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum VmmEvent {
    /// The thread enters a system call: its number and first arguments.
    Enters(u32, [u64; 3]),
    /// The thread leaves a system call.
    Leaves,
    /// A signal handler runs next.
    Handler,
    /// An exit goes to the VMM.
    ReturnToUser,
    /// The vCPU's thread left its guest.
    Exits,
    /// Detail of the exit.
    About(Detail, u64),
    /// The thread wakes another thread.
    Wakes(u32),
    /// The thread leaves its CPU, to sleep or preempted; `to` is the next thread.
    Switches { from: u32, sleeps: bool, to: u32 },
    /// The thread with this id exits.
    Ends(u32),
    /// An event that only concerns exits.
    Other,
}

pub(super) fn wanted(recording: &Recording, format: &EventFormat) -> Option<EventRequest> {
    let is_called = |system, name| format.system() == system && format.name() == name;
    if is_called("raw_syscalls", "sys_enter") {
        return Some(EventRequest { tag: ENTERS, fields: ENTERS_FIELDS });
    }
    if is_called("raw_syscalls", "sys_exit") {
        return Some(EventRequest { tag: LEAVES, fields: &[] });
    }
    if is_called("signal", "signal_deliver") {
        return Some(EventRequest { tag: SIGNAL, fields: &["sa_handler"] });
    }
    if arch::rule_for(format).is_none()
        && let Some((detail, rule)) = arch::detail_for(format)
    {
        return Some(EventRequest { tag: DETAILS + detail as u16, fields: rule.fields() });
    }
    VcpuCycles::wanted(format, recording.is_nanoseconds())
}

/// Whether events with this tag are for [`VcpuCycles`].
pub(super) fn concerns_cycles(tag: u16) -> bool {
    tag < OWN_TAGS
}

/// Whether events of this format are system calls.
pub(super) fn is_call(format: &EventFormat) -> bool {
    format.system() == "raw_syscalls"
}

/// Meaning of an event.
#[inline]
pub(super) fn sign(event: &TraceEvent) -> VmmEvent {
    match event.tag {
        ENTERS => {
            let argument = |at| event.value(at).unwrap_or(0);
            let number = event.value(0).map_or(u32::MAX, |number| number as u32);
            VmmEvent::Enters(number, [argument(1), argument(2), argument(3)])
        }
        LEAVES => VmmEvent::Leaves,
        // 0 (`SIG_DFL`) and 1 (`SIG_IGN`) are no handlers.
        SIGNAL if event.value(0).is_some_and(|handler| handler > 1) => VmmEvent::Handler,
        SWITCH_TAG => switch(event).unwrap_or(VmmEvent::Other),
        tag => match tag.checked_sub(DETAILS) {
            Some(detail) => about(event, detail),
            None => arch::rule(tag).map_or(VmmEvent::Other, |rule| of_rule(event, rule)),
        },
    }
}

fn switch(event: &TraceEvent) -> Option<VmmEvent> {
    let (from, to) = (event.thread_value(0)?, event.thread_value(2)?);
    Some(VmmEvent::Switches { from, sleeps: arch::sleeps(event.value(1)?), to })
}

fn about(event: &TraceEvent, detail: u16) -> VmmEvent {
    let detail = u8::try_from(detail).ok().and_then(Detail::from_number);
    let about = detail.zip(event.value(arch::VALUE));
    about.map_or(VmmEvent::Other, |(detail, value)| VmmEvent::About(detail, value))
}

fn of_rule(event: &TraceEvent, rule: &Rule) -> VmmEvent {
    let thread = || event.thread_value(THREAD);
    if !rule.counts(event) {
        return VmmEvent::Other;
    }
    match rule.kind() {
        Kind::Exit => VmmEvent::Exits,
        Kind::UserExit => VmmEvent::ReturnToUser,
        Kind::Wake => thread().map_or(VmmEvent::Other, VmmEvent::Wakes),
        Kind::ThreadGone => thread().map_or(VmmEvent::Other, VmmEvent::Ends),
        _ => VmmEvent::Other,
    }
}
