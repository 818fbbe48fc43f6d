//! The JSON document of boots: docs/formats/boot.md says what it is.

use schemars::JsonSchema;
use serde::Serialize;

use crate::json::{RawCode, times};
use crate::losses::LossSums;

times! {
    /// When the first phase begins, and the last ends.
    pub(super) struct EndTimes {
        /// Its first entry, or its first event without a host.
        begin = "begin",
        /// Its last exit or entry, or its last event.
        end = "end",
    }
}

times! {
    /// When something happened.
    pub(super) struct MarkTimes {
        /// When.
        at = "at",
        /// The same, since the machine's first phase.
        since_begin = "since_begin",
    }
}

times! {
    /// When a phase was.
    pub(super) struct PhaseTimes {
        /// When it begins.
        from = "from",
        /// The same, since the machine's first phase.
        since_begin = "since_begin",
        /// How long it lasts.
        duration = "duration",
    }
}

times! {
    /// How long initcalls took.
    pub(super) struct InitcallTimes {
        /// Time in initcalls that are within no other.
        initcalls = "initcalls",
    }
}

times! {
    /// How long a section took.
    pub(super) struct SectionTimes {
        /// Time in them.
        time = "time",
    }
}

times! {
    /// What exits took of the host.
    pub(super) struct HostTimes {
        /// Their sum, from exit to entry. With several vCPUs it may be more than the time that went by.
        time = "time",
        /// Of that, exits that wait for work.
        waiting = "waiting",
        /// The host's kernel handled the exits. Null: that can't be distinguished from user space, or from waiting;
        /// the time is in not_split_ns.
        kernel = "kernel",
        /// Of time_ns: in the VMM; null where that was not recorded.
        user = "user",
        /// In place of user_ns, where the return from the VMM was not recorded.
        user_and_return = "user_and_return",
        /// Of time_ns: off the CPU; null where that was not recorded.
        off_cpu = "off_cpu",
        /// Of time_ns: polling for work; null where that was not recorded.
        halt_poll = "halt_poll",
        /// Time that can't be split into kernel, user space and waiting.
        not_split = "not_split",
    }
}

times! {
    /// What exits of one reason took.
    pub(super) struct ReasonTimes {
        /// Sum of their times.
        time = "time",
    }
}

times! {
    /// When a call was.
    pub(super) struct CallTimes {
        /// When it began, since the machine's first phase.
        since_begin = "since_begin",
        /// How long it took; null: its end was not seen.
        duration = "duration",
    }
}

/// What `hyperscope boot --format json` prints: how guests boot and go down, and what that costs their host. See
/// docs/boot.md.
#[derive(Debug, JsonSchema, Serialize)]
pub(crate) struct Document<'b> {
    pub(super) schema: &'static str,
    /// Paths of the recordings.
    pub(super) sources: &'b [String],
    /// How guests' times were brought to their host's clock, a line each.
    pub(super) alignment: &'b [String],
    /// What the recording lost, over all sources.
    pub(super) losses: LossSums,
    /// Guests with a recording of their own first.
    pub(super) machines: Vec<Machine<'b>>,
}

/// A machine that boots or goes down.
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
    /// The mark that ended the boot; null: there was none.
    pub(super) mark: Option<Mark<'b>>,
    /// Exits of its vCPUs in the whole recording; null without a host.
    pub(super) exits: Option<u64>,
    /// Pages of its own recording that can't be read.
    pub(super) pages_damaged: u64,
    /// Ends of initcalls whose beginnings were not seen.
    pub(super) initcall_ends_without_beginning: u64,
    /// What an event costs this guest's kernel that records it, as its agent has measured it once the boot was
    /// over; null: it was not measured.
    pub(super) event_cost: Option<OneEvent<'b>>,
    /// In order, without gaps.
    pub(super) phases: Vec<OnePhase<'b>>,
    /// In the order in which they began.
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

/// The mark that ended the boot; null: there was none.
#[derive(Debug, JsonSchema, Serialize)]
pub(super) struct Mark<'b> {
    /// Its text.
    pub(super) text: &'b str,
    #[serde(flatten)]
    pub(super) times: MarkTimes,
}

/// To a tenth of a nanosecond or better: what a phase took is not made of rounded numbers.
#[derive(Debug, JsonSchema, Serialize)]
pub(super) struct OneEvent<'b> {
    /// The event that was made, as SYSTEM:NAME.
    pub(super) event: &'b str,
    /// Rounds, each with the event off and on.
    #[schemars(extend("minimum" = 1))]
    pub(super) rounds: usize,
    /// How often it was made in each stretch that was measured.
    #[schemars(extend("minimum" = 1))]
    pub(super) repeats: u32,
    /// What it cost, the median over all rounds, in picoseconds; below 0 where noise is more than that.
    pub(super) median_ps: i64,
    /// The lower end of the median's interval, with 95% confidence.
    pub(super) low_ps: i64,
    /// The upper end.
    pub(super) high_ps: i64,
}

/// From its own beginning to that of the next; times are the host's where there is a host.
#[derive(Debug, JsonSchema, Serialize)]
pub(super) struct OnePhase<'b> {
    /// before: until the guest's first event. kernel: outside initcalls. level: initcalls of a level. user: from
    /// the first program to the mark. running: after the mark, or without a boot. shutdown: on the way down. after:
    /// from the guest's last event until its vCPUs run no more.
    #[schemars(extend("enum" = ["before", "kernel", "level", "user", "running", "shutdown", "after"]))]
    pub(super) kind: &'static str,
    /// A level's name, a program, a mark's text, a step of a shutdown.
    pub(super) name: &'b str,
    #[serde(flatten)]
    pub(super) times: PhaseTimes,
    /// What the guest's recording has; null where there is none.
    pub(super) guest: Option<Guest<'b>>,
    /// What it cost the host; null where that was not recorded.
    pub(super) host: Option<Host<'b>>,
}

/// What the guest's recording has; null where there is none.
#[derive(Debug, JsonSchema, Serialize)]
pub(super) struct Guest<'b> {
    /// Initcalls that begin in it, those of modules included.
    pub(super) initcalls: u64,
    /// Those whose end was not seen.
    pub(super) unfinished: u64,
    #[serde(flatten)]
    pub(super) in_initcalls: InitcallTimes,
    /// The same by section of the kernel's table of initcalls (con, early, 0 to 7, 1s to 7s, rootfs), in the order
    /// of the calls; empty where symbols don't show it.
    pub(super) sections: Vec<Section<'b>>,
    /// Threads that were made.
    pub(super) forks: u64,
    /// Programs that were started.
    pub(super) execs: u64,
    /// Modules that were loaded.
    pub(super) modules: u64,
    /// What recording it took.
    pub(super) recorded: Recorded,
    /// What recording its events has cost the guest: events times what one cost; null where that was not measured.
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

/// What recording its events has cost the guest: events times what one cost; null where that was not measured.
#[derive(Debug, JsonSchema, Serialize)]
pub(super) struct Tracing {
    /// By the median. Nanoseconds.
    pub(super) time_ns: u64,
    /// By the lower end of its interval (95%). Nanoseconds.
    pub(super) low_ns: u64,
    /// By the upper end. Nanoseconds.
    pub(super) high_ns: u64,
}

/// What recording it took.
#[derive(Debug, JsonSchema, Serialize)]
pub(super) struct Recorded {
    /// Events that the guest's kernel recorded.
    pub(super) events: u64,
    /// Their bytes in its buffer: payloads, and heads of four bytes.
    pub(super) event_bytes: u64,
    /// Places where its buffer had no room.
    pub(super) losses: u64,
    /// Events lost there, as far as they were counted.
    pub(super) events_lost: u64,
}

/// What it cost the host; null where that was not recorded.
#[derive(Debug, JsonSchema, Serialize)]
pub(super) struct Host<'b> {
    /// Exits of the VM's vCPUs that begin in this time.
    pub(super) exits: u64,
    /// Those with a time.
    pub(super) paired: u64,
    #[serde(flatten)]
    pub(super) times: HostTimes,
    /// By reason, those first that took longest.
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
    /// They wait for work.
    pub(super) waiting: bool,
}

/// An initcall.
#[derive(Debug, JsonSchema, Serialize)]
pub(super) struct OneCall<'b> {
    /// The function; null where symbols don't show it.
    pub(super) function: Option<&'b str>,
    /// Its address.
    pub(super) address: u64,
    /// The module, or the part of the kernel.
    pub(super) module: Option<&'b str>,
    /// It came with a module that was loaded.
    pub(super) loaded: bool,
    /// The level; null: a module's.
    pub(super) level: Option<&'b str>,
    /// The section of the kernel's table.
    pub(super) section: Option<&'b str>,
    #[serde(flatten)]
    pub(super) times: CallTimes,
    /// What it returned; null: that was not seen.
    pub(super) result: Option<i64>,
    /// How many others of its thread it is within.
    pub(super) depth: usize,
    /// What recording that time took; null for those within others or without an end.
    pub(super) recorded: Option<Recorded>,
    /// What that time cost the host, whatever else the VM did then; null where that is not known.
    pub(super) host: Option<Host<'b>>,
}
