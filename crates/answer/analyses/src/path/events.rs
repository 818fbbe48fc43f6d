//! Events that paths consist of, and their meanings.

use ftrace::eventfmt::EventFormat;
use rustc_hash::FxHashMap;
use sources::Recording;
use timeline::Kind;
use timeline::arch::{self, AccessKind};
use timeline::trace_events::EventRequest;

use super::labels::{Label, Labels};
use super::{NoSuchEvent, PathEnds};
use crate::align::GuestAlignment;
use crate::view::View;

/// Meaning of an event; each comment lists the fields that are read, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Meaning {
    /// `kvm_exit` and other architectures' exits: the fields of its rule ([`arch::Rule`]).
    Exit,
    /// `kvm_entry` and other architectures' entries.
    Entry,
    /// `kvm_userspace_exit`.
    ToUser,
    /// The guest accesses something outside: see [`AccessKind`].
    Access(AccessKind),
    /// A guest's interrupt is raised: vCPU, level, `common_flags`.
    Inject,
    /// `sched_switch`: previous thread, its state, next thread.
    Switch,
    /// `sched_waking`: thread, `common_flags`.
    Waking,
    /// `sched_wakeup`: the same fields, for kernels and recordings without `sched_waking`.
    Wakeup,
    /// `block_rq_issue`: device, sector, `common_flags`.
    BlockIssue,
    /// `block_rq_complete`: the same fields.
    BlockComplete,
    /// `irq_handler_entry` or an interrupt vector's entry in a guest.
    GuestInterrupt,
    /// Another event that is a step: unused, unused, `common_flags`.
    Work,
}

use Meaning as M;

/// An event that all architectures have.
type Rule = (&'static str, Meaning, &'static [&'static str]);

/// Events of hosts and guests.
const ANY: &[Rule] = &[
    ("sched:sched_switch", M::Switch, &["prev_pid", "prev_state", "next_pid"]),
    ("sched:sched_waking", M::Waking, &["pid", "common_flags"]),
    ("sched:sched_wakeup", M::Wakeup, &["pid", "common_flags"]),
    ("block:block_rq_issue", M::BlockIssue, &["dev", "sector", "common_flags"]),
    ("block:block_rq_complete", M::BlockComplete, &["dev", "sector", "common_flags"]),
];

/// Events of guests.
const GUEST: &[Rule] = &[
    ("irq:irq_handler_entry", M::GuestInterrupt, &[]),
    ("irq_vectors:call_function_single_entry", M::GuestInterrupt, &[]),
    ("irq_vectors:reschedule_entry", M::GuestInterrupt, &[]),
];

/// Other events that are steps on any machine; a system stands for all of its events.
const WORK: &[&str] = &[
    "net:net_dev_queue",
    "net:net_dev_start_xmit",
    "net:netif_rx",
    "net:netif_receive_skb",
    "kprobes",
    "uprobes",
    "probe",
    "vhost",
];

const WORK_FIELDS: &[&str] = &["none", "none", "common_flags"];

#[derive(Clone, Copy, Debug)]
pub(super) struct Event {
    pub(super) meaning: Meaning,
    pub(super) label: Label,
    /// Whether the user selected it as start or end of paths.
    pub(super) starts: bool,
    pub(super) ends: bool,
    fields: &'static [&'static str],
}

/// All events to read. A trace event's tag is an index into `list`.
#[derive(Debug)]
pub(crate) struct Events {
    list: Vec<Event>,
    /// Indexes by recording and event id.
    by_id: FxHashMap<(usize, u16), u16>,
    pub(super) labels: Labels,
    /// Steps that raise an interrupt of a guest.
    injections: Vec<Label>,
    /// Whether the user selected starts and ends of paths.
    pub(super) asked_start: bool,
    pub(super) asked_end: bool,
}

impl Events {
    pub(super) fn new(view: View<'_>, ends: &PathEnds) -> Result<Self, NoSuchEvent> {
        let View { recordings, guests } = view;
        let events = Self::of_all(recordings, &is_guest(guests), ends);
        let any = |predicate: fn(&Event) -> bool| events.list.iter().any(predicate);
        let missing =
            [(&ends.start, any(|event| event.starts)), (&ends.end, any(|event| event.ends))];
        match missing.into_iter().find(|(pattern, found)| pattern.is_some() && !found) {
            Some((Some(pattern), _)) => Err(NoSuchEvent(pattern.clone())),
            _ => Ok(events),
        }
    }

    /// Events of hosts' recordings, with default ends.
    pub(super) fn of_hosts(recordings: &[Recording]) -> Self {
        Self::of_all(recordings, &|_| false, &PathEnds::default())
    }

    /// Events of the recordings in `view`, with default ends.
    pub(crate) fn by_themselves(view: View<'_>) -> Self {
        let View { recordings, guests } = view;
        Self::of_all(recordings, &is_guest(guests), &PathEnds::default())
    }

    fn of_all(recordings: &[Recording], is_guest: &dyn Fn(usize) -> bool, ends: &PathEnds) -> Self {
        let (asked_start, asked_end) = (ends.start.is_some(), ends.end.is_some());
        let (list, by_id) = (Vec::new(), FxHashMap::default());
        let (labels, injections) = (Labels::default(), Vec::new());
        let mut events = Self { list, by_id, labels, injections, asked_start, asked_end };
        for (at, recording) in recordings.iter().enumerate() {
            for (id, format) in recording.formats().iter() {
                if let Some(event) = events.event(format, is_guest(at), ends)
                    && let Ok(tag) = u16::try_from(events.list.len())
                {
                    if event.meaning == Meaning::Inject {
                        events.injections.push(event.label);
                    }
                    events.list.push(event);
                    events.by_id.insert((at, id), tag);
                }
            }
        }
        events
    }

    fn event(&mut self, format: &EventFormat, is_guest: bool, ends: &PathEnds) -> Option<Event> {
        let is_end = |end_pattern: &Option<String>| {
            end_pattern.as_ref().is_some_and(|pattern| format.is_named(pattern))
        };
        let (starts, ends) = (is_end(&ends.start), is_end(&ends.end));
        let name = format.full_name();
        let is_work =
            starts || ends || WORK.iter().any(|work| [format.system(), &name].contains(work));
        let of_kvm = if is_guest { None } else { of_host(format) };
        let (meaning, fields) = of_kvm
            .or_else(|| of_any(&name, is_guest))
            .or_else(|| is_work.then_some((M::Work, WORK_FIELDS)))?;
        let label = self.labels.intern(format.name());
        Some(Event { meaning, label, starts, ends, fields })
    }

    /// The fields to read of a recording's event.
    pub(super) fn wanted(&self, recording: usize, id: u16) -> Option<EventRequest> {
        let tag = *self.by_id.get(&(recording, id))?;
        Some(EventRequest { tag, fields: self.by_tag(tag)?.fields })
    }

    /// Whether a step raises an interrupt of a guest.
    pub(super) fn is_injection(&self, step: Label) -> bool {
        self.injections.contains(&step)
    }

    /// The event with a trace event's tag.
    #[inline]
    pub(super) fn by_tag(&self, tag: u16) -> Option<&Event> {
        self.list.get(usize::from(tag))
    }
}

/// Meaning and fields of a host's KVM event.
fn of_host(format: &EventFormat) -> Option<(Meaning, &'static [&'static str])> {
    if let Some((_, rule)) = arch::rule_for(format) {
        let meaning = match rule.kind() {
            Kind::Exit => M::Exit,
            Kind::Entry => M::Entry,
            Kind::UserExit => M::ToUser,
            _ => return None,
        };
        return Some((meaning, rule.fields()));
    }
    let access = arch::access_for(format).map(|access| (M::Access(access.kind), access.fields));
    access.or_else(|| arch::injection_for(format).map(|injection| (M::Inject, injection.fields)))
}

/// Meaning and fields of an event that any machine has, or that only guests have.
fn of_any(name: &str, is_guest: bool) -> Option<(Meaning, &'static [&'static str])> {
    let guest_rules = if is_guest { GUEST } else { &[] };
    let rule = guest_rules.iter().chain(ANY).find(|(event, ..)| *event == name);
    rule.map(|(_, meaning, fields)| (*meaning, *fields))
}

/// Tests whether a recording was made in a guest.
fn is_guest(guests: &[GuestAlignment]) -> impl Fn(usize) -> bool {
    |at| guests.iter().any(|guest| guest.guest == at)
}
