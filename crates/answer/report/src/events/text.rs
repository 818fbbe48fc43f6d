//! The line an event is printed on, laid out as `trace-cmd report` does.
//!
//! ```text
//!  qemu-system-x86-102   [000]    42.342151: kvm_exit:             vcpu 0 reason stgi …
//! |     16       |  5    |        |   12   | |       21         |
//! ```

use std::io::Write;

use ftrace::eventfmt::{OftenText, six_digits};
use rustc_hash::FxHashMap;
use sources::Recording;

use super::line_batch::{EventStart, LineBatch};

/// Min columns of an event's name and its colon.
const NAME_WIDTH: usize = 21;

/// The repeated parts of lines: made once per thread and event.
#[derive(Debug)]
pub(super) struct LineParts {
    /// `comm-pid` by thread, padded.
    threads: FxHashMap<u32, Box<[u8]>>,
    nanoseconds: bool,
}

impl LineParts {
    pub(super) fn new(recording: &Recording) -> Self {
        let threads = recording.threads().map(|(pid, comm)| (pid, thread_part(comm, pid)));
        Self { threads: threads.collect(), nanoseconds: recording.is_nanoseconds() }
    }

    /// Whether the recording has the thread's name.
    #[inline]
    pub(super) fn knows(&self, pid: u32) -> bool {
        self.threads.contains_key(&pid)
    }

    /// Writes everything before the event's name.
    #[inline]
    pub(super) fn begin(&self, batch: &mut LineBatch, start: EventStart) {
        let EventStart { stamp_ns, cpu, pid } = start;
        // Rounded to microseconds, half up.
        let micros = stamp_ns.saturating_add(500) / 1000;
        let seconds = self.nanoseconds.then_some(micros / 1_000_000);
        if batch.start.key != Some((pid, cpu, seconds)) {
            self.set(batch, (pid, cpu, seconds));
        }
        let out = &mut batch.text;
        batch.start.often.append(out);
        if self.nanoseconds {
            let [a, b, c, d, e, f] = six_digits(micros % 1_000_000);
            out.extend_from_slice(&[a, b, c, d, e, f, b':', b' ']);
        } else {
            decimal(out, stamp_ns, 12, b' ');
            out.extend_from_slice(b": ");
        }
    }

    #[inline(never)]
    fn set(&self, batch: &mut LineBatch, key: (u32, u32, Option<u64>)) {
        let (pid, cpu, seconds) = key;
        batch.start.key = Some(key);
        let out = &mut batch.start.text;
        out.clear();
        if let Some(part) = self.threads.get(&pid) {
            out.extend_from_slice(part);
        } else {
            let (line, at) = ((batch.lines.len(), pid), batch.text.len());
            let names = batch.names.get_or_insert_default();
            if !names.write(line, at, out, || thread_part("<...>", pid)) {
                // Each line has its own blank, so it shares no beginning with others.
                batch.start.key = None;
            }
        }
        out.extend_from_slice(b" [");
        decimal(out, u64::from(cpu), 3, b'0');
        out.extend_from_slice(b"] ");
        if let Some(seconds) = seconds {
            decimal(out, seconds, 5, b' ');
            out.push(b'.');
        }
        batch.start.often = OftenText::new(out);
    }
}

/// A thread as printed in its lines.
pub(super) fn thread_part(comm: &str, pid: u32) -> Box<[u8]> {
    format!("{:>16}-{pid:<5}", printable::line(comm)).into_bytes().into()
}

/// An event's name as printed in its lines.
pub(super) fn name_part(name: &str) -> Box<[u8]> {
    format!("{:<NAME_WIDTH$} ", format!("{}:", printable::line(name))).into_bytes().into()
}

/// The line for dropped events.
pub(super) fn dropped(out: &mut Vec<u8>, cpu: u32, count: Option<u64>) {
    // Writing to memory can't fail.
    let _ = match count {
        Some(count) => writeln!(out, "CPU:{cpu} [{count} EVENTS DROPPED]"),
        None => writeln!(out, "CPU:{cpu} [EVENTS DROPPED]"),
    };
}

/// Writes a number with at least `width` digits, padded on the left.
#[inline]
pub(super) fn decimal(out: &mut Vec<u8>, mut value: u64, width: usize, fill: u8) {
    let mut digits = [fill; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        if let Some(slot) = digits.get_mut(at) {
            *slot = b'0' + (value % 10) as u8;
        }
        value /= 10;
        if value == 0 {
            break;
        }
    }
    let begin = at.min(digits.len() - width);
    out.extend_from_slice(digits.get(begin..).unwrap_or(&[]));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_filled_up() {
        let text = |value, width, fill| {
            let mut out = Vec::new();
            decimal(&mut out, value, width, fill);
            String::from_utf8(out).unwrap()
        };
        assert_eq!(text(0, 3, b'0'), "000");
        assert_eq!(text(42, 5, b' '), "   42");
        assert_eq!(text(123_456, 3, b'0'), "123456");
        assert_eq!(text(u64::MAX, 12, b' '), u64::MAX.to_string());
    }

    #[test]
    fn names_are_as_wide_as_in_trace_cmd() {
        assert_eq!(&*name_part("kvm_exit"), b"kvm_exit:             ");
        assert_eq!(&*name_part("vgic_update_irq_pending"), b"vgic_update_irq_pending: ");
    }
}
