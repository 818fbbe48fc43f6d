//! Prefixes of lines from logs and tools: the time of a kernel message, and the recording's name.

use super::all_digits;

/// Maximum length of a log prefix.
const MAX_LOG_HEAD: usize = 160;
/// Maximum bytes of a thread name (`TASK_COMM_LEN` without its NUL).
const MAX_COMM: usize = 15;

/// The line without the prefix of a kernel log, and whether it had one: `[   12.345678] `, `<0>[
/// 12.345678][    C1] `, `Nov 27 10:00:00 name kernel: [   12.345678] `.
pub(super) fn without_log_head(line: &str) -> (&str, bool) {
    let text = line.trim_start();
    let text = without_syslog(text).unwrap_or(text);
    let text = match text.strip_prefix('<').and_then(|rest| rest.split_once('>')) {
        Some((level, rest)) if all_digits(level) => rest,
        _ => text,
    };
    let Some(behind) = bracketed(text, is_time) else { return (line, false) };
    let behind = bracketed(behind.trim_start(), is_context).unwrap_or(behind);
    (behind, true)
}

/// The text after `… HH:MM:SS … kernel: `.
fn without_syslog(text: &str) -> Option<&str> {
    let mut end = text.len().min(MAX_LOG_HEAD);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let head = text.get(..end)?;
    let at = head.find(" kernel: ")?;
    let is_log = head.get(..at)?.bytes().filter(|byte| *byte == b':').count() >= 2;
    text.get(at + " kernel: ".len()..).filter(|_| is_log)
}

/// The text after `[…]` at the beginning, if the brackets contain such a text.
fn bracketed(text: &str, is_such: fn(&str) -> bool) -> Option<&str> {
    let (inner, behind) = text.strip_prefix('[')?.split_once(']')?;
    is_such(inner.trim()).then_some(behind)
}

/// Seconds since boot, with microseconds.
fn is_time(text: &str) -> bool {
    let parts = text.split_once('.');
    parts.is_some_and(|(seconds, micros)| {
        all_digits(seconds) && micros.len() == 6 && all_digits(micros)
    })
}

/// The thread or the CPU of a message (`CONFIG_PRINTK_CALLER`).
fn is_context(text: &str) -> bool {
    text.strip_prefix(['T', 'C']).is_some_and(all_digits)
}

/// Splits the recording's name from a thread's name, if a tool printed several recordings to one
/// text: the tool pads, so that both together are longer than any thread name.
pub(super) fn recording_of(comm: &str) -> (Option<&str>, &str) {
    match comm.split_once(": ") {
        Some((name, rest))
            if (comm.len() > MAX_COMM || rest.starts_with(' ')) && is_file_name(name) =>
        {
            (Some(name), rest.trim_start())
        }
        _ => (None, comm),
    }
}

/// Splits the recording's name from the line.
pub(super) fn recording_before(line: &str) -> Option<(&str, &str)> {
    let (name, rest) = line.trim_start().split_once(": ")?;
    is_file_name(name).then_some((name, rest))
}

fn is_file_name(name: &str) -> bool {
    !name.is_empty() && !name.contains(|letter: char| letter.is_whitespace() || letter.is_control())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_of_logs_are_left_out() {
        for line in [
            "[   12.345678] qemu-7",
            "<0>[   12.345678] qemu-7",
            "[   12.345678][    C1] qemu-7",
            "[   12.345678] [  T123] qemu-7",
            "Nov 27 10:00:00 name kernel: [   12.345678] qemu-7",
        ] {
            let (text, is_log) = without_log_head(line);
            assert_eq!((text.trim(), is_log), ("qemu-7", true), "{line}");
        }
        for line in ["  qemu-7 [001] 1.5: x: y", "[001] 1.5: x: y", "[12.5] x", "<idle>-0 [000]"] {
            assert_eq!(without_log_head(line), (line, false));
        }
    }

    #[test]
    fn recordings_and_names_of_threads_differ() {
        let host = Some("host.dat");
        assert_eq!(recording_of("host.dat:        CPU 0/KVM"), (host, "CPU 0/KVM"));
        assert_eq!(recording_of("host.dat: qemu-sys"), (host, "qemu-sys"));
        assert_eq!(recording_of("a:        sh"), (Some("a"), "sh"));
        assert_eq!(recording_of("a: b"), (None, "a: b"));
        assert_eq!(recording_of("kworker/0:1"), (None, "kworker/0:1"));
    }
}
