//! Why a text has no readable trace: its first line, and what its lines lack.

use super::known;
use super::line::Why;

/// Characters of the first line to show.
const SHOWN: usize = 80;

/// Maximum words of a line to check for its fields.
const MAX_WORDS: usize = 32;

/// The fields that lines lack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Lack {
    Everything,
    Context,
    Graph,
    Raw,
    Cpu,
    Thread,
    Time,
    Name,
}

/// All values in order of their numbers.
const LACKS: [Lack; 8] = [
    Lack::Everything,
    Lack::Context,
    Lack::Graph,
    Lack::Raw,
    Lack::Cpu,
    Lack::Thread,
    Lack::Time,
    Lack::Name,
];

impl Lack {
    fn new(line: &str, why: Why) -> Self {
        match why {
            Why::Recording => Self::Name,
            _ if is_graph(line) => Self::Graph,
            Why::NoCpu => Self::Cpu,
            Why::Thread => Self::Thread,
            Why::Time => Self::Time,
            Why::Name | Why::Cpu => Self::Name,
            Why::Foreign if is_raw(line) => Self::Raw,
            Why::Foreign if is_event(line) => Self::Context,
            Why::Foreign => Self::Everything,
        }
    }

    /// Whether it is a field that `perf script` can print.
    const fn is_field(self) -> bool {
        matches!(self, Self::Cpu | Self::Thread | Self::Time | Self::Name)
    }

    const fn text(self) -> &'static str {
        match self {
            Self::Everything => "no line has a thread, a CPU and a time",
            Self::Context => {
                "its lines have events but no thread, CPU or time: the kernel prints these with the option \
                 context-info, and perf script with -F comm,tid,cpu,time,event,trace"
            }
            Self::Graph => {
                "its lines come from the kernel's function_graph tracer without times or threads: set the kernel's options \
                 funcgraph-abstime and funcgraph-proc, or use trace-cmd report"
            }
            Self::Raw => {
                "the kernel printed it with the option raw or hex, which omits the events' fields: turn that \
                 option off"
            }
            Self::Cpu => "its lines have no CPU: perf script prints it with -F +cpu",
            Self::Thread => "its lines have no thread id: perf script prints it with -F +tid",
            Self::Time => "its lines have no time: perf script prints it with -F +time",
            Self::Name => {
                "its lines have no event name after the time: perf script prints it with -F +event"
            }
        }
    }
}

/// ` 0)   0.5 us    |  schedule();`, optionally after a time and a thread, or without the CPU.
fn is_graph(line: &str) -> bool {
    let (head, call) = line.rsplit_once('|').unwrap_or(("", ""));
    let call = call.trim_end();
    // A comment after the brace names the function that returns.
    let call = call.split_once(" /*").map_or(call, |(call, _)| call);
    let is_call = call.ends_with(';') || call.ends_with('{') || call.ends_with('}');
    let head = head.trim();
    let is_head = head.contains(')') || head.is_empty() || head.ends_with(" us");
    is_call && is_head && call.starts_with("  ")
}

/// `10723 0 1318304573868 type: 443`.
fn is_raw(line: &str) -> bool {
    let mut words = line.split_whitespace();
    let numbers = words.by_ref().take(3);
    let is_number = |word: &str| word.bytes().all(|byte| byte.is_ascii_hexdigit());
    numbers.filter(|word| is_number(word)).count() == 3 && words.next() == Some("type:")
}

/// `kvm_exit: vcpu 0`, `kvm:kvm_exit: vcpu 0`.
fn is_event(line: &str) -> bool {
    let name = line.split_whitespace().next().and_then(|word| word.strip_suffix(':'));
    name.is_some_and(|name| name.contains(':') || known::system_of(name) != known::UNKNOWN)
}

/// Facts about a text that may not be a trace.
#[derive(Debug, Default)]
pub(super) struct Refusal {
    first: Option<(u64, String)>,
    lacks: [u64; LACKS.len()],
    /// The missing fields of the first line that lacks fields.
    fields: Option<String>,
}

impl Refusal {
    /// Processes a line that is not a remark.
    pub(super) fn line(&mut self, line: &str, why: Why) {
        let lack = Lack::new(line, why);
        if let Some(count) =
            LACKS.iter().position(|known| *known == lack).and_then(|at| self.lacks.get_mut(at))
        {
            *count += 1;
        }
        if lack.is_field() && self.fields.is_none() {
            self.fields = missing_fields(line);
        }
    }

    /// Records the first non-empty line.
    pub(super) fn see(&mut self, number: u64, line: &str) {
        if self.first.is_none() && !line.trim().is_empty() {
            self.first = Some((number, line.trim_end().chars().take(SHOWN).collect()));
        }
    }

    /// The text's first line, and what its lines lack.
    pub(super) fn reason(&self) -> (String, String) {
        let first = self.first.as_ref();
        let first = first.map_or_else(
            || "it has only blank lines".to_owned(),
            |(number, line)| format!("line {number} is {line:?}"),
        );
        // Prose around an excerpt does not count: report what most other lines lack.
        let most = LACKS.iter().zip(self.lacks).skip(1).max_by_key(|(_, count)| *count);
        let lack = most.filter(|(_, count)| *count > 0).map_or(Lack::Everything, |(lack, _)| *lack);
        let fields = self.fields.clone().filter(|_| lack.is_field());
        (first, fields.unwrap_or_else(|| lack.text().to_owned()))
    }
}

/// Names all fields that a line lacks, so that one more run of `perf script` is enough. `None` if
/// the line lacks no field, but is malformed in another way.
fn missing_fields(line: &str) -> Option<String> {
    let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let is_cpu = |word: &str| {
        let number = word.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
        number.is_some_and(is_digits)
    };
    let is_time = |word: &str| {
        let parts = word.strip_suffix(':').and_then(|time| time.split_once('.'));
        parts.is_some_and(|(seconds, rest)| is_digits(seconds) && is_digits(rest))
    };
    let is_name = |word: &str| word.ends_with(':') && word.starts_with(char::is_alphabetic);
    let words: Vec<&str> = line.split_whitespace().take(MAX_WORDS).collect();
    let head = words.iter().position(|word| is_cpu(word) || is_time(word) || is_name(word));
    let (before, rest) = words.split_at_checked(head?)?;
    // `102`, `102/102`, `CPU 0/KVM-102`.
    let is_thread = |word: &&str| word.rsplit(['/', '-']).next().is_some_and(is_digits);
    let fields = [
        (before.last().is_some_and(is_thread), "thread id", "+tid"),
        (rest.iter().any(|word| is_cpu(word)), "CPU", "+cpu"),
        (rest.iter().any(|word| is_time(word)), "time", "+time"),
        (rest.iter().any(|word| is_name(word)), "event name", "+event"),
    ];
    let missing: Vec<_> = fields.iter().filter(|(is_there, ..)| !is_there).collect();
    let names: Vec<String> = missing.iter().map(|(_, name, _)| format!("no {name}")).collect();
    let options: Vec<&str> = missing.iter().map(|(.., option)| *option).collect();
    (!missing.is_empty()).then(|| {
        let (names, options) = (names.join(" and "), options.join(","));
        format!("its lines have {names}: perf script prints that with -F {options}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::line::{Line, Read};

    /// `perf script -F` without some fields: the message names all of them.
    #[test]
    fn all_missing_fields_of_a_line_are_named() {
        for (line, names) in [
            (
                " qemu   102    42.342151:   kvm:kvm_exit: reason HLT",
                "no CPU: perf script prints that with -F +cpu",
            ),
            (
                " qemu    42.342151:   kvm:kvm_exit: reason HLT",
                "no thread id and no CPU: perf script prints that with -F +tid,+cpu",
            ),
            (
                " qemu   102 [000]   kvm:kvm_exit: reason HLT",
                "no time: perf script prints that with -F +time",
            ),
            (
                " qemu   102 [000]    42.342151:  reason HLT",
                "no event name: perf script prints that with -F +event",
            ),
            (
                " 42.342151:   kvm:kvm_exit: reason HLT",
                "no thread id and no CPU: perf script prints that with -F +tid,+cpu",
            ),
            (
                " CPU 0/KVM-102   kvm:kvm_exit: reason HLT",
                "no CPU and no time: perf script prints that with -F +cpu,+time",
            ),
        ] {
            let message = missing_fields(line);
            assert_eq!(message, Some(format!("its lines have {names}")), "{line}");
        }
        assert_eq!(missing_fields("qemu 102 [000] 42.3: kvm:kvm_exit: reason HLT"), None);
    }

    #[test]
    fn what_lines_lack_is_named() {
        for (line, lack) in [
            (" 0)   0.524 us    |  kvm_arch_vcpu_load();", Lack::Graph),
            (" 0)               |  vcpu_run() {", Lack::Graph),
            (" 0)   3.234 us    |  } /* vcpu_run */", Lack::Graph),
            ("   0.524 us    |  kvm_arch_vcpu_load();", Lack::Graph),
            ("  123.456789 |   0)   0.524 us    |  kvm_load();", Lack::Graph),
            ("   0)   CPU 0/KVM-102 |               |  vcpu_run() {", Lack::Graph),
            ("let all = one | two;", Lack::Everything),
            ("10723 0 1318304573868 type: 443", Lack::Raw),
            ("00003a5a 00000001 0000013305b9bb17 type: 443", Lack::Raw),
            ("kvm_exit: vcpu 0 reason HLT", Lack::Context),
            ("kvm:kvm_entry: PC: 0x4fcbbc", Lack::Context),
            (" :1237  1237   355.524918: kvm:kvm_entry: PC: 0x4fcbbc", Lack::Cpu),
            (" :1237 [000]   355.524918: kvm:kvm_entry: PC: 0x4fcbbc", Lack::Thread),
            (" :1237  1237 [000] kvm:kvm_entry: PC: 0x4fcbbc", Lack::Time),
            ("Dear all,", Lack::Everything),
        ] {
            let Line::Unreadable(why) = Read::new(line).line else { panic!("{line}") };
            assert_eq!(Lack::new(line, why), lack, "{line}");
        }
    }
}
