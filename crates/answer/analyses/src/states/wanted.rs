//! Events that show the activity of a guest, and their meanings.

use std::fmt;

use ftrace::eventfmt::EventFormat;
use sources::Recording;
use timeline::cycles::{OWN_TAGS, SWITCH_TAG, VcpuCycles, is_host_work};
use timeline::trace_events::EventRequest;

/// Meaning of an event for the guest CPU on which it was recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub(super) enum ActivityEvent {
    /// An interrupt handler starts.
    IrqBegins,
    IrqEnds,
    /// Soft interrupt handlers start.
    SoftIrqBegins,
    /// Soft interrupt handlers end.
    SoftIrqEnds,
    /// The thread is in the kernel.
    Kernel,
    /// The thread is about to return to user space.
    User,
    /// The thread was in user space; the kernel works for a short time without an end event.
    OfUser,
    /// The thread may continue in the kernel or in user space.
    Open,
    /// A soft interrupt is raised; the CPU's activity does not change.
    SoftIrqDue,
}

const SIGNS: [ActivityEvent; 9] = [
    ActivityEvent::IrqBegins,
    ActivityEvent::IrqEnds,
    ActivityEvent::SoftIrqBegins,
    ActivityEvent::SoftIrqEnds,
    ActivityEvent::Kernel,
    ActivityEvent::User,
    ActivityEvent::OfUser,
    ActivityEvent::Open,
    ActivityEvent::SoftIrqDue,
];
/// Bits of a tag that contain the [`ActivityEvent`].
const SIGN_BITS: u16 = 0x3f;

/// Flag in the tags of events that are also host work.
const WORK: u16 = 0x80;

/// Tag of `sched_process_fork`, which is also host work.
pub(super) const FORK_TAG: u16 = OWN_TAGS + WORK + FORK_BIT;
const FORK_BIT: u16 = 0x40;
/// Unit of handler sources in tags: a handler event's tag contains the source's number, from 1.
const SOURCE: u16 = 0x100;
const FORK: &str = "sched:sched_process_fork";
/// Fields of an event tagged [`FORK_TAG`].
const FORK_FIELDS: &[&str] = &["parent_pid", "child_pid"];

/// Numbers the sources of interrupt handlers.
pub(crate) trait HandlerSources {
    /// The source of a handler event, and the fields to read.
    fn source_of(&self, format: &EventFormat) -> Option<(u8, &'static [&'static str])>;
}

/// Needs of a sink in addition to states.
#[derive(Clone, Copy, Default)]
pub struct StateNeeds<'s> {
    /// Needs calls of [`StateSink::event`](super::StateSink::event) and [`StateSink::gap`](super::StateSink::gap).
    pub(crate) events: bool,
    /// Needs [`ExitOf::guest_pc`](super::ExitOf::guest_pc).
    pub(crate) guest_pc: bool,
    /// Needs events of interrupt handlers.
    pub(crate) handlers: Option<&'s dyn HandlerSources>,
}

impl fmt::Debug for StateNeeds<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { events, guest_pc, handlers } = self;
        f.debug_tuple("StateNeeds")
            .field(events)
            .field(guest_pc)
            .field(&handlers.is_some())
            .finish()
    }
}

impl StateNeeds<'_> {
    /// Combined needs of two sinks.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            events: self.events || other.events,
            guest_pc: self.guest_pc || other.guest_pc,
            handlers: self.handlers.or(other.handlers),
        }
    }
}

/// The fields to read of an event; guests' events are read if they show activity.
pub(super) fn wanted(
    recording: &Recording,
    format: &EventFormat,
    of_guest: bool,
    needs: StateNeeds<'_>,
) -> Option<EventRequest> {
    if let Some(sources) = needs.handlers
        && let Some((sign, (source, fields))) = sign(format).zip(sources.source_of(format))
    {
        let work = if is_host_work(format) { WORK } else { 0 };
        let number = (u16::from(source) + 1).checked_mul(SOURCE)?.checked_add(OWN_TAGS)?;
        return Some(EventRequest { tag: number + work + sign as u16, fields });
    }
    if format.full_name() == FORK {
        return Some(EventRequest { tag: FORK_TAG, fields: FORK_FIELDS });
    }
    match sign(format).filter(|_| of_guest) {
        Some(sign) => {
            let work = if is_host_work(format) { WORK } else { 0 };
            Some(EventRequest { tag: OWN_TAGS + work + sign as u16, fields: &[] })
        }
        None if needs.guest_pc => VcpuCycles::wanted_with_pc(format, recording.is_nanoseconds()),
        None => VcpuCycles::wanted(format, recording.is_nanoseconds()),
    }
}

/// [`wanted`] for a pass that only follows a host's CPUs: most events only need their thread.
pub(super) fn wanted_of_cpus(recording: &Recording, format: &EventFormat) -> Option<EventRequest> {
    let wanted = wanted(recording, format, false, StateNeeds::default())?;
    let says_more = matches!(wanted.tag, SWITCH_TAG | FORK_TAG);
    Some(if says_more { wanted } else { EventRequest { fields: &[], ..wanted } })
}

/// The activity event of a tag.
pub(super) fn sign_of(tag: u16) -> Option<ActivityEvent> {
    let number = tag.checked_sub(OWN_TAGS)?;
    SIGNS.get(usize::from(number & SIGN_BITS)).copied().filter(|_| number & FORK_BIT == 0)
}

/// Meaning of a handler event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HandlerEdge {
    Due,
    Begins,
    Ends,
}

/// The handler source of a tag, see [`StateNeeds::handlers`].
pub(crate) fn handler_of(tag: u16) -> Option<(u8, HandlerEdge)> {
    let source = (tag.checked_sub(OWN_TAGS)? / SOURCE).checked_sub(1)?;
    let edge = match sign_of(tag)? {
        ActivityEvent::SoftIrqDue => HandlerEdge::Due,
        ActivityEvent::IrqBegins | ActivityEvent::SoftIrqBegins => HandlerEdge::Begins,
        ActivityEvent::IrqEnds | ActivityEvent::SoftIrqEnds => HandlerEdge::Ends,
        ActivityEvent::Kernel
        | ActivityEvent::User
        | ActivityEvent::OfUser
        | ActivityEvent::Open => return None,
    };
    Some((u8::try_from(source).ok()?, edge))
}

/// Whether an event with this tag concerns vCPU threads.
pub(super) fn concerns_cycles(tag: u16) -> bool {
    tag.checked_sub(OWN_TAGS).is_none_or(|number| number & WORK != 0)
}

fn sign(format: &EventFormat) -> Option<ActivityEvent> {
    let (system, name) = (format.system(), format.name());
    let begins = name.ends_with("_entry");
    let ends = name.ends_with("_exit");
    Some(match (system, name) {
        ("irq", "irq_handler_entry") | ("ipi", "ipi_entry") => ActivityEvent::IrqBegins,
        ("irq", "irq_handler_exit") | ("ipi", "ipi_exit") => ActivityEvent::IrqEnds,
        ("irq_vectors", _) if begins => ActivityEvent::IrqBegins,
        ("irq_vectors", _) if ends => ActivityEvent::IrqEnds,
        ("irq", "softirq_entry") => ActivityEvent::SoftIrqBegins,
        ("irq", "softirq_exit") => ActivityEvent::SoftIrqEnds,
        ("irq", "softirq_raise") => ActivityEvent::SoftIrqDue,
        ("raw_syscalls", "sys_enter") | ("context_tracking", "user_exit") => ActivityEvent::Kernel,
        ("raw_syscalls", "sys_exit") | ("context_tracking", "user_enter") => ActivityEvent::User,
        ("exceptions", "page_fault_user") => ActivityEvent::OfUser,
        // A recording of single system calls may miss others: only the time inside the recorded calls is known.
        // The `ioctl` that enters guests is among the events of vCPU cycles.
        ("syscalls", "sys_enter_ioctl") => return None,
        ("syscalls", _) if name.starts_with("sys_enter_") => ActivityEvent::Kernel,
        ("syscalls", _) if name.starts_with("sys_exit_") => ActivityEvent::Open,
        _ => return None,
    })
}
