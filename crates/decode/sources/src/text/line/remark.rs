//! Lines without an event: output of tools before and between events, headings, and stacks.

use super::{Head, Line, all_digits, place};

/// Prefixes of other output of trace-cmd, its library and perf.
const TOOLS: &[&str] = &[
    "version = ",
    "registering plugin: ",
    "overriding event ",
    "removing override handler ",
    "TIME EXTEND: ",
    "TIME STAMP: ",
    "Error: expected type ",
    "Average wakeup latency: ",
    "Maximum Latency: ",
    "Minimum Latency: ",
    "RT task timings:",
    "trace-cmd: ",
    "unwind: ",
    "build id event received for ",
    "PERF_RECORD_FINISHED_",
    "Dumping ftrace ",
    "(ftrace buffer empty)",
];
/// Minimum dashes in the lines before and after a kernel's dump of its trace buffer.
const FEWEST_DASHES: usize = 20;

/// The content of a line that has neither an event nor a thread.
pub(super) fn remark<'t>(line: &'t str) -> Option<Line<'t>> {
    let text = line.trim();
    if let Some(rest) = text.strip_prefix("#####") {
        return Some(buffer_start(rest).map_or(Line::Nothing, Line::BufferStart));
    }
    if let Some(rest) = text.strip_prefix('#') {
        return Some(head(rest).map_or(Line::Nothing, Line::Head));
    }
    if text.len() >= FEWEST_DASHES && text.bytes().all(|byte| byte == b'-') {
        return Some(Line::DumpBorder);
    }
    if let Some(rest) = text.strip_prefix("cpus=") {
        return Some(rest.parse().map_or(Line::Nothing, Line::Cpus));
    }
    if let Some(buffer_line) = text.strip_prefix("CPU:").and_then(of_buffer) {
        return Some(buffer_line);
    }
    let is_nothing = text.is_empty()
        || text.starts_with("=> ")
        || is_frame(line)
        || is_empty_cpu(text)
        || is_of_library(text)
        || TOOLS.iter().any(|begin| text.starts_with(begin));
    is_nothing.then_some(Line::Nothing)
}

/// `CPU 0 is empty`.
fn is_empty_cpu(text: &str) -> bool {
    let cpu = text.strip_prefix("CPU ").and_then(|rest| rest.strip_suffix(" is empty"));
    cpu.is_some_and(all_digits)
}

/// `[kvm:kvm_inj_exception] bad op token }` from trace-cmd's library; `'trace' not valid for …`
/// from perf.
fn is_of_library(text: &str) -> bool {
    let event = text.strip_prefix('[').and_then(|rest| rest.split_once("] "));
    let is_event =
        event.and_then(|(name, _)| name.split_once(':')).is_some_and(|(system, name)| {
            let is_word = |text: &str| {
                !text.is_empty()
                    && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
            };
            is_word(system) && is_word(name) && !all_digits(system)
        });
    is_event || (text.starts_with('\'') && text.contains("' not valid for "))
}

/// Whether it is an entry of a call chain with perf script's indentation.
fn is_frame(line: &str) -> bool {
    let Some(rest) = line.strip_prefix('\t') else { return false };
    let mut words = rest.split_whitespace();
    let first = words.next().unwrap_or("");
    let is_hex = first.bytes().all(|byte| byte.is_ascii_hexdigit());
    let is_of_file = rest.trim_end().ends_with(')') && rest.contains(" (");
    is_hex || is_of_file
}

/// `0 [12 EVENTS DROPPED]`, `0 [EVENTS DROPPED]`, `0 [LOST 12 EVENTS]`, `0 [SUBBUFFER START] […]`.
fn of_buffer<'t>(text: &str) -> Option<Line<'t>> {
    let (cpu, rest) = text.split_once(" [")?;
    let cpu = place::cpu(cpu)?;
    if rest.starts_with("SUBBUFFER START]") {
        return Some(Line::Nothing);
    }
    if !(rest.contains("DROPPED]") || rest.starts_with("LOST ")) {
        return None;
    }
    let mut words = rest.split(|letter: char| !letter.is_ascii_alphanumeric());
    let count = words.find_map(|word| word.parse().ok());
    Some(Line::Lost { cpu, count })
}

/// ` CPU 1 buffer started ####`.
fn buffer_start(rest: &str) -> Option<u32> {
    place::cpu(rest.trim().strip_prefix("CPU ")?.split_once(" buffer started")?.0)
}

/// The counts in a heading: ` entries-in-buffer/entries-written: 3/903   #P:8` of the kernel's
/// `trace`, ` latency: 0 us, #3/903, CPU#1 | (M:server VP:0 #P:8)` of its latency format, and `
/// nrcpus online : 8` of `perf script --header`.
fn head(rest: &str) -> Option<Head> {
    let number = |text: &str| -> Option<u64> {
        let end = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
        text.get(..end)?.parse().ok()
    };
    let behind = |name: &str| rest.split_once(name).map(|(_, behind)| behind.trim_start());
    let counts = behind("entries-in-buffer/entries-written:").or_else(|| behind(" us, #"));
    let counts = counts.and_then(|text| {
        let (_, written) = text.split_once('/')?;
        Some((number(text)?, number(written)?))
    });
    let cpus = behind("#P:").or_else(|| behind("nrcpus online :")).and_then(number);
    let cpus = cpus.and_then(|cpus| u32::try_from(cpus).ok());
    (counts.is_some() || cpus.is_some()).then_some(Head { counts, cpus })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings_count_events_and_cpus() {
        let kernel = "# entries-in-buffer/entries-written: 3/903   #P:8";
        let latency = "# latency: 0 us, #3/903, CPU#1 | (M:PREEMPT(none) VP:0, SP:0 HP:0 #P:8)";
        for line in [kernel, latency] {
            let expected = Head { counts: Some((3, 903)), cpus: Some(8) };
            assert_eq!(remark(line), Some(Line::Head(expected)), "{line}");
        }
        let perf = Head { counts: None, cpus: Some(4) };
        assert_eq!(remark("# nrcpus online : 4"), Some(Line::Head(perf)));
        assert_eq!(remark("# tracer: nop"), Some(Line::Nothing));
        assert_eq!(remark("##### CPU 1 buffer started ####"), Some(Line::BufferStart(1)));
    }

    #[test]
    fn losses_and_what_tools_say_besides_are_told_apart() {
        let lost = |count| Some(Line::Lost { cpu: 2, count });
        assert_eq!(remark("CPU:2 [12 EVENTS DROPPED]"), lost(Some(12)));
        assert_eq!(remark("CPU:2 [LOST 12 EVENTS]"), lost(Some(12)));
        assert_eq!(remark("CPU:2 [LOST EVENTS]"), lost(None));
        assert_eq!(remark("CPU:2 [EVENTS DROPPED]"), lost(None));
        assert_eq!(remark("cpus=16"), Some(Line::Cpus(16)));
        for nothing in [
            "",
            "version = 7",
            "CPU 0 is empty",
            "CPU:0 [SUBBUFFER START] [63736967512:0x1000]",
            "[kvm:kvm_inj_exception] bad op token }",
            "'trace' not valid for software events. Ignoring.",
            "\t    ffffffff8107 do_it ([kernel])",
            "\t               0 [unknown] ([unknown])",
            "\t\t do_it ([kernel.kallsyms])",
            " => do_it (ffff)",
            "PERF_RECORD_FINISHED_ROUND",
        ] {
            assert_eq!(remark(nothing), Some(Line::Nothing), "{nothing:?}");
        }
        for other in ["hello", "CPU 0/KVM-7 [000] 1.5: x: y", "[000] 1.5: kvm:x: y", "CPU:x"] {
            assert_eq!(remark(other), None, "{other:?}");
        }
    }
}
