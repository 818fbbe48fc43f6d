//! Parses a line of text: its thread, CPU, time and event.
//!
//! ```text
//!  qemu-system-x86-102   [000]    42.342151: kvm_exit:             reason HLT rip 0x…      trace-cmd report
//!  qemu-system-x86-102   [000] d..1.    42.342151: kvm_exit: reason HLT rip 0x…           the kernel's trace
//! qemu-sys-102     0d..1. 42342151us : kvm_exit: reason HLT rip 0x…                       the same, latency format
//!  qemu-system-x86   102 [000]    42.342151:            kvm:kvm_exit: reason HLT rip 0x…  perf script
//! CPU:0 [12 EVENTS DROPPED]                                                               a loss
//! ```

mod graph;
mod name;
mod place;
mod prefix;
mod remark;
mod time;

use name::{AfterTime, Named};
use place::Place;

pub(super) use name::Form;
pub(super) use time::Time;

/// A line with its prefixes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Read<'t> {
    /// The recording of the line, if several were printed to one text.
    pub(super) recording: Option<&'t str>,
    /// The line belongs to a kernel log, which mostly has lines that are not part of a trace.
    pub(super) is_of_log: bool,
    pub(super) line: Line<'t>,
}

/// The content of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Line<'t> {
    /// An event.
    Event(EventLine<'t>),
    /// Events of a CPU that were dropped, with their number if the line has it.
    Lost { cpu: u32, count: Option<u64> },
    /// The number of CPUs of the machine.
    Cpus(u32),
    /// The counts in a heading.
    Head(Head),
    /// The events of this CPU start here: older events were overwritten.
    BufferStart(u32),
    /// The start or the end of a kernel's dump of its trace buffer.
    DumpBorder,
    /// No event: an empty line, a remark, or a stack entry.
    Nothing,
    /// A line that should be an event but cannot be parsed, for this reason.
    Unreadable(Why),
}

/// The counts in the heading of a kernel's `trace` file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Head {
    /// Events in the buffer, and events that were written to it.
    pub(super) counts: Option<(u64, u64)>,
    /// Number of CPUs of the machine.
    pub(super) cpus: Option<u32>,
}

/// Why a line cannot be parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Why {
    /// No part of the line looks like an event.
    Foreign,
    Time,
    Name,
    Thread,
    Cpu,
    NoCpu,
    /// It belongs to a recording beyond the maximum number per text.
    Recording,
}

impl Why {
    pub(super) const fn text(self) -> &'static str {
        match self {
            Self::Foreign => "no CPU and no time",
            Self::Time => "no time after the CPU",
            Self::Name => "no event name after the time",
            Self::Thread => "no thread id before the CPU",
            Self::Cpu => "the CPU number is too large",
            Self::NoCpu => "no CPU before the time",
            Self::Recording => "it has one recording more than can be distinguished",
        }
    }
}

/// An event line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct EventLine<'t> {
    /// The thread's name; empty if the line has none.
    pub(super) comm: &'t str,
    pub(super) thread: u32,
    pub(super) cpu: u32,
    pub(super) time: Time,
    /// The kernel's interrupt flags (`common_flags`), if the line has them.
    pub(super) flags: Option<u8>,
    pub(super) form: Form,
    /// The event's system, if the line has it.
    pub(super) system: Option<&'t str>,
    /// The event's name without the prefix of its form.
    pub(super) name: &'t str,
    /// The text after the event's name.
    pub(super) body: &'t str,
}

/// Maximum colons in a line to check for a preceding time: thread names have few.
const MAX_COLONS: usize = 24;

impl<'t> Read<'t> {
    /// Parses a line without its line break.
    pub(super) fn new(line: &'t str) -> Self {
        let line = line.trim_start_matches('\u{feff}').trim_end();
        let (text, is_of_log) = prefix::without_log_head(line);
        let without_recording = |line| Self { recording: None, is_of_log, line };
        if let Some(line) = remark::remark(text) {
            return without_recording(line);
        }
        let why = match event(text) {
            Ok((recording, line)) => return Self { recording, is_of_log, line },
            Err(why) => why,
        };
        if let Some(line) = graph::graph(text) {
            return without_recording(line);
        }
        let prefixed = prefix::recording_before(text)
            .and_then(|(name, rest)| Some((name, remark::remark(rest)?)))
            .filter(|(_, line)| *line != Line::Nothing || why == Why::Foreign);
        match prefixed {
            Some((name, line)) => Self { recording: Some(name), is_of_log, line },
            None => without_recording(Line::Unreadable(why)),
        }
    }
}

fn all_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// The event in a line, and its recording.
fn event(text: &str) -> Result<(Option<&str>, Line<'_>), Why> {
    let mut why = Why::Foreign;
    for (at, _) in text.match_indices(':').take(MAX_COLONS) {
        let (Some(before), Some(rest)) = (text.get(..at), text.get(at + 1..)) else { continue };
        if !(rest.is_empty() || rest.starts_with(char::is_whitespace)) {
            continue;
        }
        let Some((before, time)) = time::last(before) else { continue };
        match place::place(before) {
            Ok(place) => return after(place, time, rest),
            // Prose can also have numbers before colons.
            Err(missing) if time.digits.is_some() || missing == Why::Cpu => why = why.max(missing),
            Err(_) => {}
        }
    }
    Err(if why == Why::Foreign && has_cpu(text) { Why::Time } else { why })
}

/// The content of a line after its place and time have been parsed.
fn after<'t>(
    place: Place<'t>,
    time: Time,
    rest: &'t str,
) -> Result<(Option<&'t str>, Line<'t>), Why> {
    let Place { comm, thread, cpu, flags } = place;
    let (recording, comm) = prefix::recording_of(comm);
    let line = match name::after_time(rest) {
        AfterTime::Event(Named { form, system, name, body }) => {
            Line::Event(EventLine { comm, thread, cpu, time, flags, form, system, name, body })
        }
        AfterTime::Lost(count) => Line::Lost { cpu, count },
        AfterTime::Nothing => Line::Nothing,
        AfterTime::Unreadable => return Err(Why::Name),
    };
    Ok((recording, line))
}

/// Whether there is a CPU number in brackets.
fn has_cpu(text: &str) -> bool {
    let mut brackets = text.match_indices('[').take(MAX_COLONS);
    brackets.any(|(at, _)| {
        let inner = text.get(at + 1..).and_then(|rest| rest.split_once(']'));
        inner.is_some_and(|(cpu, _)| cpu.len() >= 3 && all_digits(cpu))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event_of(line: &str) -> EventLine<'_> {
        match Read::new(line).line {
            Line::Event(event) => event,
            other => panic!("{line:?}: {other:?}"),
        }
    }

    #[test]
    fn lines_of_every_tool_are_read() {
        for line in [
            "       CPU 0/KVM-102   [003]    42.342151: kvm_exit:             reason HLT rip 0x1",
            "       CPU 0/KVM-102   [003] d..1.    42.342151: kvm_exit: reason HLT rip 0x1",
            "       CPU 0/KVM-102   [003]    42.342151: (+36)    kvm_exit: reason HLT rip 0x1\r",
            "       CPU 0/KVM   102 [003]    42.342151:             kvm:kvm_exit: reason HLT rip 0x1",
            "       CPU 0/KVM   99/102  [003] KGg     42.342151: 1  kvm:kvm_exit: reason HLT rip 0x1",
            "CPU 0/KVM-102     3d.h2. 42342151us+: kvm_exit: reason HLT rip 0x1",
            "[   99.000001] CPU 0/KVM-102     3d.h2. 42342151us : kvm_exit: reason HLT rip 0x1",
            "  host.dat:      CPU 0/KVM-102   [003]    42.342151: kvm_exit:   reason HLT rip 0x1",
        ] {
            let event = event_of(line);
            assert_eq!((event.comm, event.thread, event.cpu), ("CPU 0/KVM", 102, 3), "{line}");
            assert_eq!(event.time, Time { stamp: 42_342_151_000, digits: Some(6) });
            assert_eq!((event.name, event.body), ("kvm_exit", "reason HLT rip 0x1"));
            assert_eq!(event.system.is_some(), line.contains("kvm:"));
            let recording = line.contains("host.dat").then_some("host.dat");
            assert_eq!(Read::new(line).recording, recording);
        }
        let odd = event_of("a-1 [x]-7-12 [000] 1.000000001: x: ");
        assert_eq!((odd.comm, odd.thread, odd.body), ("a-1 [x]-7", 12, ""));
        assert_eq!(odd.time, Time { stamp: 1_000_000_001, digits: Some(9) });
        let switch =
            event_of("qemu-sys-119     1d..2.    63.7: sched_switch: a:119 [120] R ==> b:15 [120]");
        assert_eq!((switch.cpu, switch.name), (1, "sched_switch"));
    }

    #[test]
    fn losses_remarks_and_rubbish_are_told_apart() {
        assert_eq!(
            Read::new("perf 1 [002] 4.5: PERF_RECORD_LOST lost 9").line,
            Line::Lost { cpu: 2, count: Some(9) }
        );
        let of_guest = Read::new("  guest.dat: cpus=3");
        assert_eq!((of_guest.recording, of_guest.line), (Some("guest.dat"), Line::Cpus(3)));
        let lost = Read::new("  guest.dat: CPU:1 [7 EVENTS DROPPED]");
        assert_eq!(lost.line, Line::Lost { cpu: 1, count: Some(7) });
        for (rubbish, why) in [
            ("hello", Why::Foreign),
            ("note: it took 12: long", Why::Foreign),
            ("a-1 [000]", Why::Time),
            ("a-1 [000] 1.0000000001: kvm_exit: x", Why::Time),
            ("a-1 [000] 99999999999999999999.0: kvm_exit: x", Why::Time),
            ("a-1 [99999] 1.0: kvm_exit: x", Why::Cpu),
            ("a [000] 1.0: kvm_exit: x", Why::Thread),
            ("a 7 1.0: kvm_exit: x", Why::NoCpu),
            ("a-1 [000] 1.0: kvm_exit x", Why::Name),
            ("a-1 [000] 1.0: kvm\"exit: x", Why::Name),
        ] {
            assert_eq!(Read::new(rubbish).line, Line::Unreadable(why), "{rubbish:?}");
        }
    }
}
