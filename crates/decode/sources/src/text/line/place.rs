//! Parses the text before a line's time: thread and CPU.

use super::{Why, all_digits};

/// The content of a line before its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place<'t> {
    pub(super) comm: &'t str,
    pub(super) thread: u32,
    pub(super) cpu: u32,
    /// The kernel's interrupt flags (`common_flags`), if the line has them.
    pub(super) flags: Option<u8>,
}

/// Upper bound of CPU numbers; no kernel has more.
const MAX_CPUS: u32 = 1 << 14;
/// Maximum words between the CPU in brackets and the time: flags, perf's cpumode, a date and a time
/// of day.
const MAX_WORDS: usize = 4;
/// Characters of a thread name in formats that truncate it (`%8.8s`).
const SHORT_COMM: usize = 8;

/// Parses the text before a time.
pub(super) fn place(before: &str) -> Result<Place<'_>, Why> {
    let before = before.trim_end();
    let found = match bracketed(before) {
        Some(found) => found,
        None => latency(before)
            .or_else(|| verbose(before))
            .or_else(|| perf_latency(before))
            .ok_or_else(|| missing(before)),
    }?;
    if found.cpu >= MAX_CPUS { Err(Why::Cpu) } else { Ok(found) }
}

/// A CPU number in the kernel's range.
pub(super) fn cpu(text: &str) -> Option<u32> {
    text.parse().ok().filter(|cpu| *cpu < MAX_CPUS)
}

/// `comm-12 [003] d..2.`, with any text between the last CPU in brackets and the time; `None` if
/// there is no CPU in brackets.
fn bracketed(before: &str) -> Option<Result<Place<'_>, Why>> {
    let (at, cpu, rest) = before.rmatch_indices('[').find_map(|(at, _)| {
        let (cpu, rest) = before.get(at + 1..)?.split_once(']')?;
        let apart = rest.is_empty() || rest.starts_with(char::is_whitespace);
        (apart && all_digits(cpu) && rest.split_whitespace().count() <= MAX_WORDS)
            .then_some((at, cpu, rest))
    })?;
    let flags = rest.split_whitespace().next_back().and_then(flags);
    let thread = before.get(..at).unwrap_or("").trim();
    let Some((comm, thread)) = thread_of(thread) else { return Some(Err(Why::Thread)) };
    let Ok(cpu) = cpu.parse() else { return Some(Err(Why::Cpu)) };
    Some(Ok(Place { comm, thread, cpu, flags }))
}

/// `qemu-sys-119     1d.h2.`: the latency format of trace-cmd, of the kernel and of its dumps; also
/// `1-0x9` from trace-cmd's raw format.
fn latency(before: &str) -> Option<Place<'_>> {
    let (thread, word) = before.rsplit_once(char::is_whitespace)?;
    let digits = word.find(|letter: char| !letter.is_ascii_digit())?;
    let (cpu, letters) = word.split_at_checked(digits)?;
    let number_of_flags = || u8::from_str_radix(letters.strip_prefix("-0x")?, 16).ok();
    let flags = Some(flags(letters).or_else(number_of_flags)?);
    let (comm, thread) = thread.trim().rsplit_once('-')?;
    Some(Place { comm: comm.trim(), thread: number(thread)?, cpu: number(cpu)?, flags })
}

/// `qemu-sys     119   1 0 00000000 00000001 [4ed97145]`: the latency format with the kernel's
/// option `verbose`.
fn verbose(before: &str) -> Option<Place<'_>> {
    let (before, hex) = before.strip_suffix(']')?.rsplit_once(" [")?;
    let is_hex = |text: &str| text.len() >= 8 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let mut words = before.rsplitn(6, ' ').filter(|_| is_hex(hex));
    let (index, preempt, flags) = (words.next()?, words.next()?, words.next()?);
    // The remaining numbers are padded with spaces.
    let (rest, cpu) = before
        .get(..before.len() - index.len() - preempt.len() - flags.len() - 3)?
        .trim_end()
        .rsplit_once(' ')?;
    let (comm, thread) = rest.trim_end().rsplit_once(' ')?;
    let is_such = is_hex(index) && is_hex(preempt);
    is_such.then_some(Place {
        comm: comm.trim(),
        thread: number(thread)?,
        cpu: number(cpu)?,
        flags: flags.parse().ok(),
    })
}

/// `   sleep 25906   1`: perf script's option `--Latency`, which truncates names.
fn perf_latency(before: &str) -> Option<Place<'_>> {
    let (before, cpu) = before.rsplit_once(char::is_whitespace)?;
    let before = before.trim();
    let id = before.rsplit(char::is_whitespace).next()?;
    let is_id = id.split('/').all(all_digits);
    let (comm, thread) = thread_of(before).filter(|_| is_id)?;
    let is_short = !comm.is_empty() && comm.chars().count() <= SHORT_COMM;
    is_short.then_some(Place { comm, thread, cpu: number(cpu)?, flags: None })
}

/// The missing part.
fn missing(before: &str) -> Why {
    match thread_of(before.trim()) {
        Some(_) => Why::NoCpu,
        None => Why::Thread,
    }
}

/// `comm-12`, `comm-12 (11)`, `comm 12`, `comm 11/12` or `12`; the name can have any characters,
/// and is empty if there is none.
fn thread_of(text: &str) -> Option<(&str, u32)> {
    let text = match text.strip_suffix(')') {
        Some(inner) => inner.rsplit_once('(')?.0.trim_end(),
        None => text,
    };
    let Some(at) = text.rfind(|letter: char| !letter.is_ascii_digit()) else {
        return Some(("", text.parse().ok()?));
    };
    let thread = text.get(at + 1..)?.parse().ok()?;
    let before = text.get(..at)?;
    let comm = match text.as_bytes().get(at)? {
        // perf prints -1 for a thread that has exited.
        b'-' if before.ends_with(' ') => return Some((before.trim(), u32::MAX)),
        b'-' => before,
        b' ' => before.trim_end(),
        b'/' => {
            let comm = before.trim_end_matches(|letter: char| letter.is_ascii_digit()).trim_end();
            return Some((comm, thread));
        }
        _ => return None,
    };
    (!comm.trim().is_empty()).then(|| (comm.trim(), thread))
}

fn number(text: &str) -> Option<u32> {
    all_digits(text).then(|| text.parse().ok())?
}

/// The kernel's flags in a line (`d..2.`, `dNh1.`): interrupts, need-resched, the kind of
/// interrupt; the depths after them are ignored (`trace_print_lat_fmt` of
/// `kernel/trace/trace_output.c`).
fn flags(word: &str) -> Option<u8> {
    let &[irqs, resched, context, ref depths @ ..] = word.as_bytes() else { return None };
    let is_depth = |byte: &u8| byte.is_ascii_hexdigit() || matches!(byte, b'.' | b'-');
    if !(resched == b'.' || resched.is_ascii_alphabetic()) || !depths.iter().all(is_depth) {
        return None;
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_and_cpus_are_read_in_every_form() {
        for (text, comm, thread, cpu, flags) in [
            ("       CPU 0/KVM-102   [003]", "CPU 0/KVM", 102, 3, None),
            ("       CPU 0/KVM-102   [003] d.h1.", "CPU 0/KVM", 102, 3, Some(0x09)),
            ("       CPU 0/KVM-102   (   99) [003] ....", "CPU 0/KVM", 102, 3, Some(0)),
            ("       CPU 0/KVM-102   (-------) [003]", "CPU 0/KVM", 102, 3, None),
            ("CPU 0/KVM   102 [003]", "CPU 0/KVM", 102, 3, None),
            ("CPU 0/KVM   99/102  [003] KGg   ", "CPU 0/KVM", 102, 3, None),
            ("a 7 [003] U     2021-05-05 10:00:00.123456", "a", 7, 3, None),
            ("102 [003]", "", 102, 3, None),
            ("99/102 [003]", "", 102, 3, None),
            ("  :-1    -1 [003]", ":-1", u32::MAX, 3, None),
            ("a [7] b-102 [003]", "a [7] b", 102, 3, None),
            ("CPU 0/KV-102     3dNs3.", "CPU 0/KV", 102, 3, Some(0x11)),
            ("<idle>-0     127.....", "<idle>", 0, 127, Some(0)),
            ("    vmm-171     3-0x9", "vmm", 171, 3, Some(9)),
            ("   sleep 25906   1", "sleep", 25906, 1, None),
            ("   sleep    99/25906   1", "sleep", 25906, 1, None),
            (
                " CPU 0/KVM   10724   1 9 00000000 0000000a [4ed97144]",
                "CPU 0/KVM",
                10724,
                1,
                Some(9),
            ),
        ] {
            assert_eq!(place(text), Ok(Place { comm, thread, cpu, flags }), "{text}");
        }
        for (text, why) in [
            ("[000]", Why::Thread),
            ("comm [000]", Why::Thread),
            ("a-1 [99999]", Why::Cpu),
            ("CPU 0/KVM  1237", Why::NoCpu),
            ("CPU 0/KVM", Why::Thread),
            ("", Why::Thread),
        ] {
            assert_eq!(place(text), Err(why), "{text}");
        }
    }
}
