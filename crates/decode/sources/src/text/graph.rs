//! Converts lines of the function_graph tracer, which look like source code, to the events behind
//! them.
//!
//! ```text
//!                |  vcpu_run() {          a call
//!   + 31.737 us  |    kvm_load();         a call and its return: two events
//!   0.891 us     |  } /* vcpu_run */      a return; without the comment the last call at this depth has returned
//! ```

use std::collections::HashMap;

use super::functions::Functions;
use super::line::EventLine;

pub(super) const ENTRY: &str = "funcgraph_entry";
pub(super) const EXIT: &str = "funcgraph_exit";

/// Spaces before a call of depth 0, and additional spaces per level.
const INDENT: usize = 2;
/// Maximum call depth: the kernel's tracer follows about fifty.
const MAX_DEPTH: usize = 128;
/// Maximum open calls of a thread.
const MAX_OPEN: usize = 2 * MAX_DEPTH;
/// Maximum threads whose calls are followed.
const MAX_THREADS: usize = 1 << 15;
/// Marks before the durations of long calls.
const MARKS: [char; 6] = ['$', '@', '*', '#', '!', '+'];

/// The meaning of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind<'t> {
    /// A function call.
    Call(&'t str),
    /// A call and its return after this duration in nanoseconds.
    Leaf(&'t str, u64),
    /// A return after this duration in nanoseconds; has the function's name if the line has it.
    Return(Option<&'t str>, u64),
}

/// A line with a call or a return.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct GraphLine<'t> {
    depth: usize,
    pub(super) kind: Kind<'t>,
}

/// An event derived from a line, as kernels print it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct GraphEvent {
    pub(super) name: &'static str,
    pub(super) body: String,
    pub(super) stamp: u64,
}

impl GraphEvent {
    /// The event as a line of its own.
    pub(super) fn line<'t>(&'t self, event_line: &EventLine<'t>) -> EventLine<'t> {
        EventLine { name: self.name, body: &self.body, ..*event_line }
    }
}

impl<'t> GraphLine<'t> {
    /// Parses a line if it comes from the function_graph tracer.
    pub(super) fn from_line(event: &EventLine<'t>) -> Option<Self> {
        matches!(event.name, ENTRY | EXIT).then(|| Self::read(event.body))?
    }

    /// Parses the text after the thread, including its bar.
    pub(super) fn read(body: &'t str) -> Option<Self> {
        let (took, call) = body.split_once('|')?;
        let took_ns = match took.trim() {
            "" => None,
            took => Some(duration(took)?),
        };
        let (code, comment) = call.split_once("/*").unwrap_or((call, ""));
        let indent = code.len() - code.trim_start().len();
        let depth = (indent.checked_sub(INDENT)? / INDENT).min(MAX_DEPTH);
        let code = without_depth(code.trim());
        let name =
            || code.split_once('(').map(|(name, _)| name.trim()).filter(|name| !name.is_empty());
        let kind = if code.ends_with('{') {
            Kind::Call(name()?)
        } else if code.ends_with(';') {
            Kind::Leaf(name()?, took_ns?)
        } else if code == "}" {
            Kind::Return(commented(comment), took_ns?)
        } else {
            return None;
        };
        Some(Self { depth, kind })
    }

    /// The name of the ftrace event behind the line.
    pub(super) const fn name(&self) -> &'static str {
        if matches!(self.kind, Kind::Return(..)) { EXIT } else { ENTRY }
    }

    /// The events behind a line. A return with an unknown function gives no event.
    pub(super) fn events(&self, line: &EventLine<'_>, returned: Option<&str>) -> Vec<GraphEvent> {
        let (stamp, depth) = (line.time.stamp, self.depth);
        // Ticks are not nanoseconds.
        let counted = |ns| if line.time.digits.is_some() { ns } else { 0 };
        let call =
            |function| GraphEvent { name: ENTRY, body: format!("--> {function} ({depth})"), stamp };
        let exit = |function, from: u64, stamp: u64| {
            let body = format!("<-- {function} ({depth}) (start: {from:x}  end: {stamp:x})");
            GraphEvent { name: EXIT, body, stamp }
        };
        match self.kind {
            Kind::Call(function) => vec![call(function)],
            Kind::Leaf(function, took_ns) => {
                let to = stamp.saturating_add(counted(took_ns));
                vec![call(function), exit(function, stamp, to)]
            }
            Kind::Return(_, took_ns) => {
                let from = stamp.saturating_sub(counted(took_ns));
                returned.map(|function| exit(function, from, stamp)).into_iter().collect()
            }
        }
    }
}

/// `+ 31.737 us`, in nanoseconds.
fn duration(text: &str) -> Option<u64> {
    let micros = text.trim_start_matches(MARKS).trim().strip_suffix("us")?.trim_end();
    let (integer, fraction) = micros.split_once('.').unwrap_or((micros, ""));
    // Long durations have fewer digits.
    let nanos: u64 = match fraction {
        "" => 0,
        digits => format!("{digits:0<3}").parse().ok().filter(|_| digits.len() <= 3)?,
    };
    integer.parse::<u64>().ok()?.checked_mul(1000)?.checked_add(nanos)
}

/// Gives `vcpu_run() {` for `vcpu_run() { (3)`: trace-cmd can print the depth.
fn without_depth(code: &str) -> &str {
    let depth = code.strip_suffix(')').and_then(|rest| rest.rsplit_once(" ("));
    match depth {
        Some((code, depth)) if depth.parse::<u32>().is_ok() => code.trim_end(),
        _ => code,
    }
}

/// The function in the comment after a return.
fn commented(comment: &str) -> Option<&str> {
    let name = comment.trim_start().split("*/").next()?.split(" ret=").next()?.trim();
    (!name.is_empty() && !name.starts_with('<') && !name.contains('=')).then_some(name)
}

/// The open calls of threads, to find which function returns.
#[derive(Debug, Default)]
pub(super) struct OpenCalls {
    /// By buffer, thread, and CPU for idle threads: depths and functions, innermost last. An
    /// interrupt that arrives while a function returns has calls at the depth of that function.
    by_thread: HashMap<(usize, u32, u32), Vec<(usize, u32)>>,
}

impl OpenCalls {
    /// Follows a line of a buffer. Returns the function that returns, if known.
    pub(super) fn follow(
        &mut self,
        buffer: usize,
        event: &EventLine<'_>,
        line: &GraphLine<'_>,
        functions: &mut Functions,
    ) -> Option<u32> {
        let key = (buffer, event.thread, if event.thread == 0 { event.cpu } else { 0 });
        if self.by_thread.len() >= MAX_THREADS && !self.by_thread.contains_key(&key) {
            return None;
        }
        let open = self.by_thread.entry(key).or_default();
        while open.last().is_some_and(|(depth, _)| *depth > line.depth) {
            open.pop();
        }
        match line.kind {
            Kind::Call(function) => {
                if open.len() >= MAX_OPEN {
                    open.clear();
                }
                open.extend(functions.add(function).map(|function| (line.depth, function)));
                None
            }
            Kind::Leaf(function, _) => {
                functions.add(function);
                None
            }
            Kind::Return(function, _) => {
                let called = open.pop_if(|(depth, _)| *depth == line.depth);
                let called = called.map(|(_, called)| called);
                function.map_or(called, |function| functions.add(function))
            }
        }
    }

    /// Events were lost: functions may have returned, and others may have been called.
    pub(super) fn forget(&mut self) {
        self.by_thread = HashMap::new();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::line::{Line, Read};

    fn read(body: &str) -> Option<(usize, Kind<'_>)> {
        GraphLine::read(body).map(|line| (line.depth, line.kind))
    }

    #[test]
    fn lines_are_calls_and_returns() {
        for (body, depth, kind) in [
            ("  |  vcpu_run [kvm]() {", 0, Kind::Call("vcpu_run [kvm]")),
            ("|    f.isra.0() { (1)", 1, Kind::Call("f.isra.0")),
            ("+ 31.737 us  |      f();", 2, Kind::Leaf("f", 31_737)),
            ("0.8 us |  f(a=1, b=0x2); /* ret=0x0 */", 0, Kind::Leaf("f", 800)),
            ("$ 1234567 us |  f(); (0)", 0, Kind::Leaf("f", 1_234_567_000)),
            ("! 105.8 us   |    }", 1, Kind::Return(None, 105_800)),
            ("1.5 us  |  } /* f */", 0, Kind::Return(Some("f"), 1500)),
            ("1.5 us  |  } /* f ret=0x0 */", 0, Kind::Return(Some("f"), 1500)),
            ("1.5 us  |  } /* ret=0x0 */", 0, Kind::Return(None, 1500)),
        ] {
            assert_eq!(read(body), Some((depth, kind)), "{body}");
        }
        for other in
            ["--> f (1)", "func=f depth=1", "x |  f();", "|  f();", "|f() {", "|  /* a: b */"]
        {
            assert_eq!(read(other), None, "{other}");
        }
        let deep = format!("|{}f() {{", " ".repeat(2000));
        assert_eq!(read(&deep), Some((MAX_DEPTH, Kind::Call("f"))));
    }

    /// For each line: names, texts and times of its events.
    fn events(lines: &[&str]) -> Vec<(&'static str, String, u64)> {
        let (mut open, mut functions) = (OpenCalls::default(), Functions::default());
        let mut all = Vec::new();
        for line in lines {
            let Line::Event(event) = Read::new(line).line else {
                open.forget();
                continue;
            };
            let graph = GraphLine::from_line(&event).unwrap();
            let number = open.follow(0, &event, &graph, &mut functions);
            let name = number.and_then(|number| functions.name(number));
            let events = graph.events(&event, name).into_iter();
            all.extend(events.map(|event| (event.name, event.body, event.stamp)));
        }
        all
    }

    #[test]
    fn a_return_is_of_the_call_at_its_depth() {
        let at = |micros: u64, rest: &str| format!("a-7 [000] 1.0000{micros}: {rest}");
        let lines = [
            at(10, "funcgraph_exit:  5.000 us |  }"),
            at(20, "funcgraph_entry:          |  f() {"),
            at(30, "funcgraph_entry: 1.250 us |    g();"),
            at(40, "funcgraph_exit: + 20.500 us |  }"),
            at(50, "funcgraph_entry:          |  f() {"),
            "CPU:0 [LOST 3 EVENTS]".to_owned(),
            at(60, "funcgraph_exit:  5.000 us |  }"),
        ];
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let body =
            |name: &str, from: u64, to: u64| format!("<-- {name} (start: {from:x}  end: {to:x})");
        assert_eq!(
            events(&lines),
            [
                (ENTRY, "--> f (0)".to_owned(), 1_000_020_000),
                (ENTRY, "--> g (1)".to_owned(), 1_000_030_000),
                (EXIT, body("g (1)", 1_000_030_000, 1_000_031_250), 1_000_031_250),
                (EXIT, body("f (0)", 1_000_019_500, 1_000_040_000), 1_000_040_000),
                (ENTRY, "--> f (0)".to_owned(), 1_000_050_000),
            ]
        );
        let ticks = events(&["a-7 [000] 161998252032: funcgraph_entry: 1.250 us |  g();"]);
        assert_eq!(
            ticks.iter().map(|(.., stamp)| *stamp).collect::<Vec<_>>(),
            [161_998_252_032; 2]
        );
    }
}
