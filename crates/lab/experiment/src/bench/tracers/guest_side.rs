//! Starts and ends tracers inside a guest.

use super::Subject;
use super::tracer::InGuest;
use crate::bench::error::{BenchError, Result};
use crate::bench::machines::{BootedMachine, FOLDER};

/// The tracefs instance of ftrace's runs.
const INSTANCE: &str = "/sys/kernel/tracing/instances/bench";
/// Size of each CPU's buffer: all events of a run fit.
const BUFFER_KIB: u32 = 16 * 1024;

/// Starts a tracer.
pub(crate) fn begin(subject: Subject, how: InGuest, guest: &mut BootedMachine) -> Result<()> {
    let script = match how {
        // perf runs the subject itself.
        InGuest::Nothing | InGuest::Perf => return Ok(()),
        InGuest::Ftrace => {
            let on = |event: &&str| format!("echo 1 > events/{}/enable", event.replace(':', "/"));
            let on: Vec<String> = subject.events().iter().map(on).collect();
            format!(
                "mkdir {INSTANCE} && cd {INSTANCE} && echo x86-tsc > trace_clock && \
                 echo {BUFFER_KIB} > buffer_size_kb && {}",
                on.join(" && ")
            )
        }
        InGuest::Lttng => {
            let events = match subject {
                Subject::Syscalls => "--syscall --all",
                Subject::Switches => "sched_switch",
            };
            // Only in memory, and large enough for all events of a run.
            format!(
                "export HOME=/root; mkdir -p /root /var/run; \
                 pidof lttng-sessiond >/dev/null || lttng-sessiond -b 2>{FOLDER}/lttng.log || \
                 cat {FOLDER}/lttng.log >&2; \
                 (lttng create bench --snapshot && lttng enable-channel -k --overwrite \
                 --subbuf-size 4M --num-subbuf 4 all && lttng enable-event -k -c all {events} && \
                 lttng start) >{FOLDER}/lttng.log 2>&1 || {{ cat {FOLDER}/lttng.log >&2; exit 1; }}"
            )
        }
        InGuest::Module(module) => {
            format!("insmod {} probes={} {}", lab::MODULE, subject.probes(), module.parameters())
        }
    };
    guest.shell(&script).map(drop)
}

/// The command that runs a subject.
pub(crate) fn traced(subject: Subject, how: InGuest, command: &str) -> String {
    if how != InGuest::Perf {
        return format!("exec {command}");
    }
    let events: Vec<String> = subject.events().iter().map(|event| format!("-e {event}")).collect();
    // The buffers hold all events, so that perf itself runs only after the subject has ended.
    format!(
        "exec perf record -q -a -m {BUFFER_KIB}K {} -o {FOLDER}/perf.data -- {command} 2>{FOLDER}/perf.log",
        events.join(" ")
    )
}

/// Ends it; returns the number of the subject's events that it kept, if requested and if it kept any.
pub(crate) fn end(
    subject: Subject,
    how: InGuest,
    counts: bool,
    guest: &mut BootedMachine,
) -> Result<Option<u64>> {
    let pattern = subject.pattern();
    let count = |from: &str| {
        if counts { format!("{from} | grep -c '{pattern}' || true") } else { "true".into() }
    };
    let script = match how {
        InGuest::Nothing => return Ok(None),
        InGuest::Ftrace => format!(
            "cd {INSTANCE} && echo 0 > tracing_on && {}; cd / && rmdir {INSTANCE}",
            count("cat trace")
        ),
        InGuest::Perf => {
            let script = format!("perf script -F event,trace -i {FOLDER}/perf.data 2>/dev/null");
            format!("{}; rm {FOLDER}/perf.data", count(&script))
        }
        InGuest::Lttng => {
            "export HOME=/root; lttng stop >/dev/null && lttng destroy bench >/dev/null".into()
        }
        InGuest::Module(_) => "rmmod hyperscope_guest".into(),
    };
    let output = guest.shell(&script)?;
    if !counts || matches!(how, InGuest::Module(_) | InGuest::Lttng) {
        return Ok(None);
    }
    output.trim().parse().map(Some).map_err(BenchError::malformed("grep"))
}
