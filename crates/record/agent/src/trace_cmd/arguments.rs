//! A host's request: arguments of `trace-cmd record`, restricted to those that trace.

use channel::wire::{EventFilter, TracedFunctions};

use crate::error::{AgentError, Result};

/// What to record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct RecordRequest {
    pub(super) events: Vec<WantedEvent>,
    /// The trace clock; `None`: the kernel's default.
    pub(super) clock: Option<String>,
    /// Size of each CPU's buffer in the kernel.
    pub(super) buffer_kib: Option<u32>,
    /// Names for `trace_options`.
    pub(super) options: Vec<String>,
    /// Missing events are skipped.
    pub(super) may_miss_events: bool,
    pub(super) tracer: Option<TracedFunctions>,
}

/// The events of a pattern.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct WantedEvent {
    pub(super) pattern: String,
    /// Filter in the kernel's syntax.
    pub(super) filter: Option<String>,
}

impl RecordRequest {
    /// Patterns of events.
    pub(super) fn patterns(&self) -> Vec<String> {
        self.events.iter().map(|event| event.pattern.clone()).collect()
    }

    pub(super) fn filters(&self) -> Vec<EventFilter> {
        let filtered = self.events.iter().filter_map(|wanted| {
            let (event, filter) = (wanted.pattern.clone(), wanted.filter.clone()?);
            Some(EventFilter { event, filter })
        });
        filtered.collect()
    }
}

/// Options without effect here: quiet, the time between reads, no function tracer in addition to events, compression of
/// the host's file.
const WITHOUT_EFFECT: [&str; 3] = ["-q", "-d", "-D"];
const WITHOUT_EFFECT_WITH_VALUE: [&str; 2] = ["-s", "--compression"];

/// Parses the arguments.
///
/// # Errors
/// When an argument does anything but tracing.
pub(super) fn parse(arguments: &[String]) -> Result<RecordRequest> {
    let mut wanted = RecordRequest::default();
    // Filters of a tracer may precede it.
    let (mut calls, mut tracer) = (TracedFunctions::default(), None);
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        let mut value = || match rest.next() {
            Some(value) => Ok(value.clone()),
            None => Err(refused(argument, "it needs a value")),
        };
        match argument.as_str() {
            "-e" => wanted.events.push(event(value()?)),
            "-a" => wanted.events.push(event("all".into())),
            "-f" => filter(&mut wanted, &value()?)?,
            "-C" => wanted.clock = Some(value()?),
            "-b" => wanted.buffer_kib = Some(buffer(&value()?)?),
            "-O" => wanted.options.push(option(value()?)?),
            "-i" => wanted.may_miss_events = true,
            "-p" => tracer = plugin(&value()?)?,
            "-l" => calls.functions.push(value()?),
            "-n" => calls.except.push(value()?),
            "-g" => calls.within.push(value()?),
            "--max-graph-depth" => calls.depth = depth(&value()?)?,
            "--file-version" => file_version(&value()?)?,
            known if WITHOUT_EFFECT.contains(&known) => {}
            known if WITHOUT_EFFECT_WITH_VALUE.contains(&known) => drop(value()?),
            other => return Err(refused(other, why_not(other))),
        }
    }
    wanted.tracer = tracer.map(|returns| TracedFunctions { returns, ..calls });
    Ok(wanted)
}

fn refused(argument: &str, why: &str) -> AgentError {
    AgentError::Refused(format!("refused {argument}: {why}"))
}

fn why_not(argument: &str) -> &'static str {
    match argument {
        "--date" => "times of a guest stay in its trace clock",
        _ if argument.starts_with('-') => {
            "of trace-cmd record, this agent supports -e, -f, -a, -i, -b, -C, -O, -p, -l, -n, -g and --max-graph-depth"
        }
        _ => "this agent runs no commands for its host",
    }
}

fn event(name: String) -> WantedEvent {
    let pattern = if name == "all" { "*:*".into() } else { name };
    WantedEvent { pattern, filter: None }
}

/// Several filters of an event must all match, as in trace-cmd.
fn filter(wanted: &mut RecordRequest, filter: &str) -> Result<()> {
    let Some(last) = wanted.events.last_mut() else {
        return Err(refused("-f", "a filter must follow its event"));
    };
    last.filter = Some(match last.filter.take() {
        Some(before) => format!("{before}&&({filter})"),
        None => format!("({filter})"),
    });
    Ok(())
}

/// The kernel refuses buffers that exceed the guest's memory; this refuses text that is no size.
fn buffer(text: &str) -> Result<u32> {
    text.parse()
        .ok()
        .filter(|&kib| kib > 0)
        .ok_or_else(|| refused("-b", "it needs a number of KiB"))
}

fn option(name: String) -> Result<String> {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if !name.is_empty() && name.chars().all(fits) {
        return Ok(name);
    }
    Err(refused("-O", "it needs the name of a tracing option"))
}

/// Whether a tracer records returns as well; `None`: it traces nothing.
fn plugin(name: &str) -> Result<Option<bool>> {
    match name {
        "nop" => Ok(None),
        "function" => Ok(Some(false)),
        "function_graph" => Ok(Some(true)),
        _ => Err(refused(
            &format!("-p {name}"),
            "this agent supports only the tracers function and function_graph",
        )),
    }
}

fn depth(text: &str) -> Result<u32> {
    text.parse().map_err(|_| refused("--max-graph-depth", "it needs a number of calls"))
}

fn file_version(version: &str) -> Result<()> {
    if version == "7" {
        return Ok(());
    }
    Err(refused("--file-version", "this agent writes only files of version 7"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<RecordRequest> {
        parse(&line.split(' ').map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn arguments_that_trace_are_taken() {
        let wanted = parsed("-C x86-tsc -b 512 -e sched -e irq:* -f irq>3 -f irq<9 -O stacktrace");
        let wanted = wanted.unwrap();
        assert_eq!(wanted.clock.as_deref(), Some("x86-tsc"));
        assert_eq!(wanted.buffer_kib, Some(512));
        assert_eq!(wanted.options, ["stacktrace"]);
        let [sched, irq] = &wanted.events[..] else { panic!("{wanted:?}") };
        assert_eq!((sched.pattern.as_str(), &sched.filter), ("sched", &None));
        assert_eq!(irq.filter.as_deref(), Some("(irq>3)&&(irq<9)"));
        let calls = parsed("-g do_idle -p function_graph -n *lock* --max-graph-depth 3").unwrap();
        let calls = calls.tracer.unwrap();
        assert_eq!((calls.returns, calls.depth), (true, 3));
        assert_eq!((calls.within, calls.except), (vec!["do_idle".into()], vec!["*lock*".into()]));
        assert_eq!(parsed("-l vfs_* -e sched").unwrap().tracer, None);
        assert_eq!(parsed("-p nop -a -q -s 100").unwrap().events[0].pattern, "*:*");
    }

    #[test]
    fn anything_else_is_refused_by_name() {
        for (line, named) in [
            ("-e sched sh -c true", "sh"),
            ("-F", "-F"),
            ("-o /etc/passwd", "-o"),
            ("--date", "--date"),
            ("-p osnoise", "-p osnoise"),
            ("-p function --max-graph-depth deep", "--max-graph-depth"),
            ("-e", "-e"),
            ("-f x>1", "-f"),
            ("-b many", "-b"),
            ("-O ../x", "-O"),
            ("-R traceoff", "-R"),
        ] {
            let error = parsed(line).unwrap_err().to_string();
            assert!(error.starts_with(&format!("refused {named}: ")), "{line}: {error}");
        }
    }
}
