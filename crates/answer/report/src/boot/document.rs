//! The JSON document of boots, as docs/formats/boot.md defines it.

use schemars::JsonSchema;
use serde::Serialize;

use crate::json::{RawCode, times};
use crate::losses::LossSums;

times! {
    /// Begin of the first phase, and end of the last.
    pub(super) struct EndTimes {
        /// Its first entry, or its first event without a host.
        begin = "begin",
        /// Its last exit or entry, or its last event.
        end = "end",
    }
}

times! {
    /// The time of an event.
    pub(super) struct MarkTimes {
        /// The time.
        at = "at",
        /// The time since the machine's first phase.
        since_begin = "since_begin",
    }
}

times! {
    /// The time of a phase.
    pub(super) struct PhaseTimes {
        /// Its begin.
        from = "from",
        /// Its begin, since the machine's first phase.
        since_begin = "since_begin",
        /// Its duration.
        duration = "duration",
    }
}

times! {
    /// Durations of initcalls.
    pub(super) struct InitcallTimes {
        /// Time in outermost initcalls.
        initcalls = "initcalls",
    }
}

times! {
    /// Duration of a section.
    pub(super) struct SectionTimes {
        /// Time in its initcalls.
        time = "time",
    }
}

times! {
    /// Time of exits on the host.
    pub(super) struct HostTimes {
        /// Their sum, from exit to entry. With several vCPUs it may exceed the elapsed time.
        time = "time",
        /// Part of it in waiting exits.
        waiting = "waiting",
        /// Part in which the host's kernel handled exits. Null: can't be distinguished from user space or waiting;
        /// the time is in not_split_ns.
        kernel = "kernel",
        /// Part of time_ns in the VMM; null: not recorded.
        user = "user",
        /// Replaces user_ns if the return from the VMM was not recorded.
        user_and_return = "user_and_return",
        /// Part of time_ns off the CPU; null: not recorded.
        off_cpu = "off_cpu",
        /// Part of time_ns in halt polling; null: not recorded.
        halt_poll = "halt_poll",
        /// Time that can't be split into kernel, user space and waiting.
        not_split = "not_split",
    }
}

times! {
    /// Time of exits of one reason.
    pub(super) struct ReasonTimes {
        /// Sum of their times.
        time = "time",
    }
}

times! {
    /// The time of a call.
    pub(super) struct CallTimes {
        /// Its begin, since the machine's first phase.
        since_begin = "since_begin",
        /// Its duration; null: its end was not seen.
        duration = "duration",
    }
}

/// Output of `hyperscope boot --format json`: boots and shutdowns of guests, and their cost on the host. See
/// docs/boot.md.
#[derive(Debug, JsonSchema, Serialize)]
pub(crate) struct Document<'b> {
    pub(super) schema: &'static str,
    /// Paths of the recordings.
    pub(super) sources: &'b [String],
    /// How guests were aligned to their host's clock, one line per guest.
    pub(super) alignment: &'b [String],
    /// Losses of all sources.
    pub(super) losses: LossSums,
    /// Machines; guests with a recording of their own first.
    pub(super) machines: Vec<Machine<'b>>,
}

/// A machine that boots or shuts down.
#[derive(Debug, JsonSchema, Serialize)]
pub(super) struct Machine<'b> {
    /// The VM; null for a guest's recording without its host's.
    pub(super) vm: Option<&'b str>,
    /// Path of the host's recording.
    pub(super) host: Option<&'b str>,
    /// Path of its own recording.
    pub(super) guest: Option<&'b str>,
    #[serde(flatten)]
    pub(super) ends: EndTimes,
    /// The first program of the first process; null: not seen.
    pub(super) init: Option<Init<'b>>,
    /// The mark that ended the boot; null: there was no mark.
    pub(super) mark: Option<Mark<'b>>,
    /// Exits of its vCPUs in the whole recording; null without a host.
    pub(super) exits: Option<u64>,
    /// Pages of its own recording that could not be read.
    pub(super) pages_damaged: u64,
    /// Ends of initcalls without a begin.
    pub(super) initcall_ends_without_beginning: u64,
    /// Cost of an event in this guest's kernel, as its agent measured it after the boot; null: not measured.
    pub(super) event_cost: Option<OneEvent<'b>>,
    /// Phases in order, without gaps.
    pub(super) phases: Vec<OnePhase<'b>>,
    /// Initcalls in the order of their begin.
    pub(super) initcalls: Vec<OneCall<'b>>,
}

/// The first program of the first process; null: not seen.
#[derive(Debug, JsonSchema, Serialize)]
pub(super) struct Init<'b> {
    /// Its path.
    pub(super) program: &'b str,
    #[serde(flatten)]
    pub(super) times: MarkTimes,
}

/// The mark that ended the boot; null: there was no mark.
#[derive(Debug, JsonSchema, Serialize)]
pub(super) struct Mark<'b> {
    /// Its text.
    pub(super) text: &'b str,
    #[serde(flatten)]
    pub(super) times: MarkTimes,
}

/// The cost of one event, with a precision of 0.1 ns or better, so that the cost of a phase is not a sum of rounded
/// numbers.
#[derive(Debug, JsonSchema, Serialize)]
pub(super) struct OneEvent<'b> {
    /// The measured event, as SYSTEM:NAME.
    pub(super) event: &'b str,
    /// Rounds; each measures with the event off and on.
    #[schemars(extend("minimum" = 1))]
    pub(super) rounds: usize,
    /// Number of events in each measured interval.
    #[schemars(extend("minimum" = 1))]
    pub(super) repeats: u32,
    /// Cost of the event: the median over all rounds, in picoseconds; negative if it is less than the noise.
    pub(super) median_ps: i64,
    /// Lower end of the median's interval, with 95% confidence.
    pub(super) low_ps: i64,
    /// The upper end.
    pub(super) high_ps: i64,
}

/// A phase, from its begin to that of the next; on the host's clock if there is a host.
#[derive(Debug, JsonSchema, Serialize)]
pub(super) struct OnePhase<'b> {
    /// before: until the guest's first event. kernel: outside initcalls. level: initcalls of a level. user: from
    /// the first program to the mark. running: after the mark, or without a boot. shutdown: during the shutdown.
    /// after: from the guest's last event until its vCPUs stop.
    #[schemars(extend("enum" = ["before", "kernel", "level", "user", "running", "shutdown", "after"]))]
    pub(super) kind: &'static str,
    /// The name of a level, a program, a mark, or a step of a shutdown.
    pub(super) name: &'b str,
    #[serde(flatten)]
    pub(super) times: PhaseTimes,
    /// Numbers from the guest's recording; null without one.
    pub(super) guest: Option<Guest<'b>>,
    /// Cost on the host; null: not recorded.
    pub(super) host: Option<Host<'b>>,
}

/// Numbers from the guest's recording; null without one.
#[derive(Debug, JsonSchema, Serialize)]
pub(super) struct Guest<'b> {
    /// Initcalls that begin in the phase, including those of modules.
    pub(super) initcalls: u64,
    /// Initcalls whose end was not seen.
    pub(super) unfinished: u64,
    #[serde(flatten)]
    pub(super) in_initcalls: InitcallTimes,
    /// Initcalls by section of the kernel's table of initcalls (con, early, 0 to 7, 1s to 7s, rootfs), in the order
    /// of the calls; empty if symbols don't show it.
    pub(super) sections: Vec<Section<'b>>,
    /// New threads.
    pub(super) forks: u64,
    /// Started programs.
    pub(super) execs: u64,
    /// Loaded modules.
    pub(super) modules: u64,
    /// The recorded events and losses.
    pub(super) recorded: Recorded,
    /// Cost of recording the guest's events: their number times the cost of one; null: not measured.
    pub(super) tracing: Option<Tracing>,
}

/// A section.
#[derive(Debug, JsonSchema, Serialize)]
pub(super) struct Section<'b> {
    /// Its name.
    pub(super) section: &'b str,
    /// Its initcalls.
    pub(super) initcalls: u64,
    #[serde(flatten)]
    pub(super) time: SectionTimes,
}

/// Cost of recording the guest's events: their number times the cost of one; null: not measured.
#[derive(Debug, JsonSchema, Serialize)]
pub(super) struct Tracing {
    /// By the median cost. Nanoseconds.
    pub(super) time_ns: u64,
    /// By the lower end of its interval (95%). Nanoseconds.
    pub(super) low_ns: u64,
    /// By the upper end. Nanoseconds.
    pub(super) high_ns: u64,
}

/// The recorded events and losses.
#[derive(Debug, JsonSchema, Serialize)]
pub(super) struct Recorded {
    /// Events that the guest's kernel recorded.
    pub(super) events: u64,
    /// Their bytes in its buffer: payloads, and headers of four bytes.
    pub(super) event_bytes: u64,
    /// Places where its buffer was full.
    pub(super) losses: u64,
    /// Events lost there, if they were counted.
    pub(super) events_lost: u64,
}

/// Cost on the host; null: not recorded.
#[derive(Debug, JsonSchema, Serialize)]
pub(super) struct Host<'b> {
    /// Exits of the VM's vCPUs that begin in the interval.
    pub(super) exits: u64,
    /// Exits with a time.
    pub(super) paired: u64,
    #[serde(flatten)]
    pub(super) times: HostTimes,
    /// By reason, in descending order of time.
    pub(super) reasons: Vec<Reason<'b>>,
}

/// Exits of one reason.
#[derive(Debug, JsonSchema, Serialize)]
pub(super) struct Reason<'b> {
    /// The kernel's symbol.
    pub(super) reason: &'b str,
    /// The raw code: a number, or "ret:esr_ec" on arm64.
    pub(super) code: RawCode<'b>,
    /// Exits.
    pub(super) count: u64,
    #[serde(flatten)]
    pub(super) time: ReasonTimes,
    /// Whether they are waiting exits.
    pub(super) waiting: bool,
}

/// An initcall.
#[derive(Debug, JsonSchema, Serialize)]
pub(super) struct OneCall<'b> {
    /// The function; null if symbols don't show it.
    pub(super) function: Option<&'b str>,
    /// Its address.
    pub(super) address: u64,
    /// The module, or the part of the kernel.
    pub(super) module: Option<&'b str>,
    /// Whether a loaded module contains it.
    pub(super) loaded: bool,
    /// The level; null: a module's.
    pub(super) level: Option<&'b str>,
    /// The section of the kernel's table.
    pub(super) section: Option<&'b str>,
    #[serde(flatten)]
    pub(super) times: CallTimes,
    /// Its result; null: not seen.
    pub(super) result: Option<i64>,
    /// Nesting depth: the number of initcalls of its thread around it.
    pub(super) depth: usize,
    /// Recorded events and losses during it; null for nested or unfinished initcalls.
    pub(super) recorded: Option<Recorded>,
    /// Cost on the host during it, including all other work of the VM; null: unknown.
    pub(super) host: Option<Host<'b>>,
}
