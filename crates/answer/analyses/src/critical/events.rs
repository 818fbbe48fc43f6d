//! Events that the analysis reads, and their meanings.

use ftrace::eventfmt::EventFormat;
use rustc_hash::FxHashMap;
use sources::{Recording, X86_VECTORS};
use timeline::Kind;
use timeline::arch::{self, Rule};
use timeline::trace_events::{EventRequest, TraceEvent};

/// Meaning of an event; each comment lists the fields that are read, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    /// `sched_switch`: previous thread, its state, next thread.
    Switch,
    /// `sched_waking`: thread, `common_flags`.
    Waking,
    /// `sched_wakeup`: as [`Self::Waking`].
    Wakeup,
    /// `sched_wakeup_new`: as [`Self::Waking`].
    Born,
    /// `irq_handler_entry`: number.
    Irq,
    /// `irq_handler_exit`, or `irq_vectors:*_exit`.
    IrqEnds,
    /// `irq_vectors:*_entry` except for timers: index in [`X86_VECTORS`].
    Vector(u8),
    /// `softirq_entry`: number.
    Softirq,
    /// `softirq_exit`.
    SoftirqEnds,
    /// `block_rq_issue`: disk, first sector, `common_flags`.
    DiskIssue,
    /// `block_rq_complete`: as [`Self::DiskIssue`].
    DiskComplete,
    /// A timer function starts.
    Timer,
    TimerEnds,
    /// `kvm_exit` and other architectures' exits: the fields of its rule.
    Exit,
    /// `kvm_entry` and other architectures' entries.
    Entry,
    /// `kvm_userspace_exit`.
    ToUser,
    /// The VMM returns to the kernel: the fields of its rule.
    FromUser,
    /// A guest's interrupt is raised: vCPU, level, `common_flags`, vector.
    Inject,
    /// `kvm_inj_virq`: the next entry injects an interrupt: vector, whether it is a software interrupt, whether it
    /// is reinjected.
    Injected,
}

use Meaning as M;

const WAKE: &[&str] = &["pid", "common_flags"];
const INJECTED: &[&str] = &["vector|irq", "soft", "reinjected"];
const DISK: &[&str] = &["dev", "sector", "common_flags"];

/// Events of hosts and guests.
const ANY: &[(&str, Meaning, &[&str])] = &[
    ("sched:sched_switch", M::Switch, &["prev_pid", "prev_state", "next_pid"]),
    ("sched:sched_waking", M::Waking, WAKE),
    ("sched:sched_wakeup", M::Wakeup, WAKE),
    ("sched:sched_wakeup_new", M::Born, WAKE),
    ("irq:irq_handler_entry", M::Irq, &["irq"]),
    ("irq:irq_handler_exit", M::IrqEnds, &[]),
    ("irq:softirq_entry", M::Softirq, &["vec"]),
    ("irq:softirq_exit", M::SoftirqEnds, &[]),
    ("block:block_rq_issue", M::DiskIssue, DISK),
    ("block:block_rq_complete", M::DiskComplete, DISK),
    ("irq_vectors:local_timer_entry", M::Timer, &[]),
    ("irq_vectors:local_timer_exit", M::TimerEnds, &[]),
    ("timer:hrtimer_expire_entry", M::Timer, &[]),
    ("timer:hrtimer_expire_exit", M::TimerEnds, &[]),
];

/// All events to read. A trace event's tag is an index into `list`.
#[derive(Debug, Default)]
pub(super) struct Events {
    list: Vec<(Meaning, Option<&'static Rule>)>,
    by_id: FxHashMap<(usize, u16), EventRequest>,
}

impl Events {
    /// The events of `recordings`; `is_guest` identifies guests' recordings by index.
    pub(super) fn new(recordings: &[Recording], is_guest: &dyn Fn(usize) -> bool) -> Self {
        let mut events = Self::default();
        for (at, recording) in recordings.iter().enumerate() {
            for (id, format) in recording.formats().iter() {
                let of_kvm = if is_guest(at) { None } else { of_host(format) };
                let Some((meaning, rule, fields)) = of_kvm.or_else(|| of_any(format)) else {
                    continue;
                };
                let Ok(tag) = u16::try_from(events.list.len()) else { return events };
                events.list.push((meaning, rule));
                events.by_id.insert((at, id), EventRequest { tag, fields });
            }
        }
        events
    }

    /// The fields to read of a recording's event.
    pub(super) fn wanted(&self, recording: usize, id: u16) -> Option<EventRequest> {
        self.by_id.get(&(recording, id)).copied()
    }

    /// Meaning of an event; `None` if it is irrelevant.
    #[inline]
    pub(super) fn meaning(&self, event: &TraceEvent) -> Option<Meaning> {
        let (meaning, rule) = self.list.get(usize::from(event.tag))?;
        rule.is_none_or(|rule| rule.counts(event)).then_some(*meaning)
    }
}

type Found = (Meaning, Option<&'static Rule>, &'static [&'static str]);

/// Meaning of a host's KVM event.
fn of_host(format: &EventFormat) -> Option<Found> {
    if format.full_name() == "kvm:kvm_inj_virq" {
        return Some((M::Injected, None, INJECTED));
    }
    let Some((_, rule)) = arch::rule_for(format) else {
        return arch::injection_for(format).map(|injection| (M::Inject, None, injection.fields));
    };
    let meaning = match rule.kind() {
        Kind::Exit => M::Exit,
        Kind::Entry => M::Entry,
        Kind::UserExit => M::ToUser,
        Kind::UserReturn => M::FromUser,
        _ => return None,
    };
    Some((meaning, Some(rule), rule.fields()))
}

fn of_any(format: &EventFormat) -> Option<Found> {
    let name = format.full_name();
    let rule = ANY.iter().find(|(event, ..)| *event == name);
    rule.map(|(_, meaning, fields)| (*meaning, None, *fields)).or_else(|| of_vector(format))
}

/// Meaning of an `irq_vectors` event.
fn of_vector(format: &EventFormat) -> Option<Found> {
    let name = Some(format.name()).filter(|_| format.system() == "irq_vectors")?;
    let (vector, meaning) = match name.strip_suffix("_entry") {
        Some(vector) => (vector, None),
        None => (name.strip_suffix("_exit")?, Some(M::IrqEnds)),
    };
    let at = X86_VECTORS.iter().position(|known| *known == vector)?;
    Some((meaning.unwrap_or(M::Vector(at as u8)), None, &[]))
}
