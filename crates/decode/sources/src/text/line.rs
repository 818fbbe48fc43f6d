//! One line of text: which thread, CPU, time and event it is about.
//!
//! ```text
//!  qemu-system-x86-102   [000]    42.342151: kvm_exit:             reason HLT rip 0x…      trace-cmd report
//!  qemu-system-x86-102   [000] d..1.    42.342151: kvm_exit: reason HLT rip 0x…           the kernel's trace
//!  qemu-system-x86   102 [000]    42.342151:            kvm:kvm_exit: reason HLT rip 0x…  perf script
//! CPU:0 [12 EVENTS DROPPED]                                                               a loss
//! ```

/// What one line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Line<'t> {
    /// An event.
    Event(EventLine<'t>),
    /// Events of a CPU that were dropped; how many, where the line says so.
    Lost { cpu: u32, count: Option<u64> },
    /// The number of CPUs of the machine.
    Cpus(u32),
    /// It says nothing of an event: it is blank, a remark, or an entry of a stack.
    Nothing,
    /// It should be an event and is none, because of this.
    Unreadable(&'static str),
}

/// A line with an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct EventLine<'t> {
    pub(super) comm: &'t str,
    pub(super) thread: u32,
    pub(super) cpu: u32,
    pub(super) stamp_ns: u64,
    /// What the kernel's flags say of interrupts (`common_flags`), where the line has them.
    pub(super) flags: Option<u8>,
    /// Digits after the point of the time.
    pub(super) digits: u32,
    /// The event's system, where the line has it.
    pub(super) system: Option<&'t str>,
    pub(super) name: &'t str,
    /// What the event says.
    pub(super) body: &'t str,
}

/// What a name of an event or a system is made of, and its bytes at most.
const MOST_NAME_BYTES: usize = 64;

/// A CPU's number is less: the kernel has no more.
const MOST_CPUS: u32 = 1 << 14;

impl<'t> Line<'t> {
    /// Reads a line without its end.
    pub(super) fn read(line: &'t str) -> Self {
        let text = line.trim();
        let is_remark = text.is_empty() || text.starts_with('#') || text.starts_with("=> ");
        if is_remark || is_frame(line) {
            return Self::Nothing;
        }
        if let Some(rest) = text.strip_prefix("cpus=") {
            return rest.parse().map_or(Self::Nothing, Self::Cpus);
        }
        if let Some(lost) = text.strip_prefix("CPU:").and_then(lost) {
            return lost;
        }
        let Some((thread, cpu, rest)) = split_cpu(line) else {
            return Self::Unreadable("no CPU in brackets");
        };
        if cpu >= MOST_CPUS {
            return Self::Unreadable("no kernel has a CPU of this number");
        }
        match thread_of(thread.trim()) {
            Some((comm, thread)) => event(comm, thread, cpu, rest),
            None => Self::Unreadable("no thread id before the CPU"),
        }
    }
}

/// Whether it is an entry of a call chain, as perf script indents them.
fn is_frame(line: &str) -> bool {
    let first = line.strip_prefix('\t').and_then(|line| line.split_whitespace().next());
    first.is_some_and(|first| first.len() >= 4 && first.bytes().all(|one| one.is_ascii_hexdigit()))
}

/// `0 [12 EVENTS DROPPED]`, `0 [EVENTS DROPPED]`, `0 [LOST 12 EVENTS]`.
fn lost<'t>(text: &str) -> Option<Line<'t>> {
    let (cpu, rest) = text.split_once(" [")?;
    if !(rest.contains("DROPPED") || rest.contains("LOST")) {
        return None;
    }
    let mut words = rest.split(|one: char| !one.is_ascii_alphanumeric());
    let count = words.find_map(|word| word.parse().ok());
    Some(Line::Lost { cpu: cpu.parse().ok().filter(|cpu| *cpu < MOST_CPUS)?, count })
}

/// What stands before the CPU, the CPU, and what stands behind.
fn split_cpu(line: &str) -> Option<(&str, u32, &str)> {
    line.match_indices('[').find_map(|(at, _)| {
        let (cpu, rest) = line.get(at + 1..)?.split_once(']')?;
        let is_number = !cpu.is_empty() && cpu.bytes().all(|one| one.is_ascii_digit());
        let apart = rest.starts_with(char::is_whitespace);
        (is_number && apart).then_some(())?;
        Some((line.get(..at)?, cpu.parse().ok()?, rest))
    })
}

/// `comm-12`, `comm-12 (11)`, `comm 12` or `comm 11/12`, whatever the name is made of.
fn thread_of(text: &str) -> Option<(&str, u32)> {
    let text = match text.strip_suffix(')') {
        Some(inner) => inner.rsplit_once('(')?.0.trim_end(),
        None => text,
    };
    let at = text.rfind(|one: char| !one.is_ascii_digit())?;
    let thread = text.get(at + 1..)?.parse().ok()?;
    let before = text.get(..at)?;
    let comm = match text.as_bytes().get(at)? {
        b'-' => before,
        b' ' => before.trim_end(),
        b'/' => before.trim_end_matches(|one: char| one.is_ascii_digit()).trim_end(),
        _ => return None,
    };
    (!comm.trim().is_empty()).then(|| (comm.trim(), thread))
}

fn event<'t>(comm: &'t str, thread: u32, cpu: u32, rest: &'t str) -> Line<'t> {
    let no_time = Line::Unreadable("no time in seconds behind the CPU");
    let Some((time, rest)) = rest.split_once(": ").or_else(|| rest.split_once(":\t")) else {
        return no_time;
    };
    // Before the time there may be the kernel's flags.
    let mut words = time.split_whitespace().rev();
    let time = words.next().unwrap_or("");
    let flags = words.next().and_then(flags);
    let Some((stamp_ns, digits)) = nanoseconds(time) else { return no_time };
    let rest = rest.trim();
    if let Some(lost) = rest.strip_prefix("PERF_RECORD_LOST") {
        let count = lost.split_whitespace().find_map(|word| word.parse().ok());
        return Line::Lost { cpu, count };
    }
    let (name, body) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    let Some(name) = name.strip_suffix(':') else {
        return Line::Unreadable("no event's name behind the time");
    };
    let (system, name) = match name.split_once(':') {
        Some((system, name)) => (Some(system), name),
        None => (None, name),
    };
    if !is_name(name) || !system.is_none_or(is_name) {
        return Line::Unreadable("no event's name behind the time");
    }
    let body = body.trim_start();
    Line::Event(EventLine { comm, thread, cpu, stamp_ns, flags, digits, system, name, body })
}

/// The kernel's flags of a line (`d..2.`, `dNh1.`): interrupts, whether the thread is to give way, the
/// kind of interrupt, and depths that don't matter (`trace_print_lat_fmt` of `kernel/trace/trace_output.c`).
fn flags(word: &str) -> Option<u8> {
    let &[irqs, _, context, ..] = word.as_bytes() else { return None };
    let irqs = match irqs {
        b'd' | b'D' | b'X' => 0x01,
        b'.' | b'b' => 0,
        _ => return None,
    };
    // TRACE_FLAG_HARDIRQ, TRACE_FLAG_SOFTIRQ, TRACE_FLAG_NMI.
    let context = match context {
        b'h' => 0x08,
        b's' => 0x10,
        b'H' => 0x18,
        b'z' => 0x40,
        b'Z' => 0x48,
        b'.' => 0,
        _ => return None,
    };
    Some(irqs | context)
}

fn is_name(name: &str) -> bool {
    let is_of_name = |one: u8| one.is_ascii_alphanumeric() || matches!(one, b'_' | b'-');
    !name.is_empty() && name.len() <= MOST_NAME_BYTES && name.bytes().all(is_of_name)
}

/// Seconds with up to nine digits behind a point, in nanoseconds; and how many digits there are.
fn nanoseconds(text: &str) -> Option<(u64, u32)> {
    let (seconds, fraction) = text.split_once('.')?;
    let digits = u32::try_from(fraction.len()).ok().filter(|digits| (1..=9).contains(digits))?;
    let all = |text: &str| !text.is_empty() && text.bytes().all(|one| one.is_ascii_digit());
    if !all(seconds) || !all(fraction) {
        return None;
    }
    let fraction: u64 =
        fraction.parse::<u64>().ok()?.checked_mul(10_u64.checked_pow(9 - digits)?)?;
    Some((seconds.parse::<u64>().ok()?.checked_mul(1_000_000_000)?.checked_add(fraction)?, digits))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event_of(line: &str) -> EventLine<'_> {
        match Line::read(line) {
            Line::Event(event) => event,
            other => panic!("{line:?} is {other:?}"),
        }
    }

    #[test]
    fn lines_of_all_three_programs_are_read() {
        for line in [
            "       CPU 0/KVM-102   [003]    42.342151: kvm_exit:             reason HLT rip 0x1",
            "       CPU 0/KVM-102   [003] d..1.    42.342151: kvm_exit: reason HLT rip 0x1",
            "       CPU 0/KVM-102     (    77) [003] d..1.    42.342151: kvm_exit: reason HLT rip 0x1",
            "       CPU 0/KVM   102 [003]    42.342151:                 kvm:kvm_exit: reason HLT rip 0x1",
            "       CPU 0/KVM    77/102 [003]    42.342151:  kvm:kvm_exit: reason HLT rip 0x1",
        ] {
            let event = event_of(line);
            assert_eq!((event.comm, event.thread, event.cpu), ("CPU 0/KVM", 102, 3), "{line}");
            assert_eq!((event.stamp_ns, event.digits), (42_342_151_000, 6));
            assert_eq!((event.name, event.body), ("kvm_exit", "reason HLT rip 0x1"));
            assert_eq!(event.system.is_some(), line.contains("kvm:"));
        }
        let odd = event_of("a-1 [x]-7-12 [000] 1.000000001: x: ");
        assert_eq!(
            (odd.comm, odd.thread, odd.stamp_ns, odd.body),
            ("a-1 [x]-7", 12, 1_000_000_001, "")
        );
    }

    #[test]
    fn losses_remarks_and_rubbish_are_told_apart() {
        let lost = |count| Line::Lost { cpu: 2, count };
        assert_eq!(Line::read("CPU:2 [12 EVENTS DROPPED]"), lost(Some(12)));
        assert_eq!(Line::read("CPU:2 [LOST 12 EVENTS]"), lost(Some(12)));
        assert_eq!(Line::read("CPU:2 [EVENTS DROPPED]"), lost(None));
        assert_eq!(Line::read("perf 1 [002] 4.5: PERF_RECORD_LOST lost 9"), lost(Some(9)));
        assert_eq!(Line::read("cpus=16"), Line::Cpus(16));
        for nothing in
            ["", "# tracer: nop", "\t    ffffffff8107 do_it ([kernel])", " => do_it (ffff)"]
        {
            assert_eq!(Line::read(nothing), Line::Nothing, "{nothing:?}");
        }
        for rubbish in [
            "hello",
            "a-1 [000]",
            "a-1 [000] 12345: kvm_exit: x",
            "a-1 [000] 1.0000000001: kvm_exit: x",
            "a-1 [000] 99999999999999999999.0: kvm_exit: x",
            "a-1 [99999] 1.0: kvm_exit: x",
            "a [000] 1.0: kvm_exit: x",
            "a-1 [000] 1.0: kvm_exit x",
            "a-1 [000] 1.0: kvm\"exit: x",
        ] {
            assert!(matches!(Line::read(rubbish), Line::Unreadable(_)), "{rubbish:?}");
        }
    }
}
