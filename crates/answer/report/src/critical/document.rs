//! The JSON document of critical paths, as docs/critical.md defines it.

use analyses::critical::BusyThread;
use analyses::path::Actor;
use schemars::JsonSchema;
use serde::Serialize;

use super::columns::{PartRow, ThreadRow};
use crate::column::Rows;
use crate::json::times;
use crate::losses::LossSums;
use crate::recorder_cost::CostDocument;

/// Output of `hyperscope critical --format json`: the causes of a task's or a request's waits, as parts that add
/// up. See docs/critical.md.
#[derive(Debug, JsonSchema, Serialize)]
pub(crate) struct Document<'r> {
    pub(super) schema: &'static str,
    /// Paths of the recordings, as they were named.
    pub(super) sources: &'r [String],
    /// How guests' clocks were aligned, one line per guest.
    pub(super) alignment: &'r [String],
    /// Losses of all sources.
    pub(super) losses: LossSums,
    /// Cost of the recording itself, if the recorder reported it (sessions of hyperscope record). Null: not
    /// measured.
    pub(super) recorder_cost: Option<CostDocument<'r>>,
    /// The requested task or request. Null without one: then `busiest` lists threads.
    pub(super) task: Option<&'r str>,
    #[serde(flatten)]
    pub(super) waited: Waited,
    /// The threads that waited; for a request, the thread that ended it.
    pub(super) threads: Rows<ThreadRow<'r>>,
    /// The causes of their waits, the longest first.
    pub(super) parts: Rows<PartRow<'r>>,
    /// The longest waits, or the request.
    #[schemars(extend("maxItems" = 5))]
    pub(super) longest: Vec<Wait<'r>>,
    /// Candidate threads, in descending order of switches. Only if neither --task nor --request was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Vec<BusiestThread<'_>>")]
    pub(super) busiest: Option<Vec<BusiestThread<'r>>>,
}

/// A wait.
#[derive(Debug, JsonSchema, Serialize)]
pub(super) struct Wait<'r> {
    /// The machine of the thread that waited.
    pub(super) machine: &'r str,
    /// Its id.
    pub(super) tid: u32,
    #[serde(flatten)]
    pub(super) times: WaitTimes,
    /// Whether steps are left out: if there are too many, the shortest are, which leaves gaps.
    pub(super) cut: bool,
    /// Its steps, in order, without gaps unless it is cut.
    pub(super) steps: Vec<Step<'r>>,
}

/// A step of the wait.
#[derive(Debug, JsonSchema, Serialize)]
pub(super) struct Step<'r> {
    #[serde(flatten)]
    pub(super) times: StepTimes,
    /// The machine: host, or the name of a VM.
    pub(super) machine: &'r str,
    /// The thread: by its name at that time, or by its vCPU; interrupt for an interrupt.
    pub(super) thread: &'r str,
    /// Its id; for a vCPU, that of the host's thread; null: an interrupt.
    // Older versions' documents lack it.
    #[schemars(skip_serializing_if = "Option::is_none")]
    pub(super) tid: Option<u32>,
    /// The kind of thread: of a guest, the thread that runs a vCPU, another thread of the VMM, a vhost worker, an
    /// interrupt, any other thread of the host, or a thread of the recording itself.
    #[schemars(extend("enum" = Actor::ALL.map(Actor::name)))]
    pub(super) on: &'static str,
    /// Its state: ran on a CPU of its machine; ran a guest without a recording; ran a guest's idle loop; handled an
    /// exit in the kernel, or in the VMM; handled an interrupt; was woken and waited for a CPU; was preempted;
    /// slept, and no other thread's event says why; unknown.
    #[schemars(extend("enum" = ["running", "guest", "guest_idle", "exit_kernel", "exit_user", "interrupt", "waiting", "preempted", "blocked", "unknown"]))]
    pub(super) state: &'static str,
    /// For an exit: its reason. For a wait for a CPU: the thread that had the CPU, or idle. For blocked and
    /// unknown: why nothing more is known, such as timer, irq 27, interrupt, events lost, no wake-up event. Null:
    /// there is none, or it was not recorded.
    pub(super) reason: Option<&'r str>,
}

#[derive(Debug, JsonSchema, Serialize)]
pub(super) struct BusiestThread<'r> {
    /// Machine of the thread: host, or the name of the VM.
    pub(super) machine: &'r str,
    /// Its name; a vCPU's thread is named after its vCPU. Threads of one name count together.
    pub(super) thread: &'r str,
    /// How often it got or lost a CPU of its machine.
    #[schemars(extend("minimum" = 1))]
    pub(super) switches: u64,
}

times! {
    /// Waiting time of all threads.
    pub(super) struct Waited {
        /// Sum of all waits; equals the sum of `parts`.
        waited = "waited",
    }
}

times! {
    /// The time of a wait.
    pub(super) struct WaitTimes {
        /// Its begin, on the host's clock. Nanoseconds. Null where the recording's clock has no nanoseconds.
        from = "from",
        /// Its end. Nanoseconds. Null where the recording's clock has no nanoseconds.
        to = "to",
    }
}

times! {
    /// The time of a step.
    pub(super) struct StepTimes {
        /// Its beginning, on the host's clock. Nanoseconds. Null where the recording's clock has no nanoseconds.
        from = "from",
        /// Its end. Nanoseconds. Null where the recording's clock has no nanoseconds.
        to = "to",
    }
}

impl<'r> BusiestThread<'r> {
    pub(super) fn new(busy: &'r BusyThread) -> Self {
        Self { machine: &busy.machine, thread: &busy.thread, switches: busy.switches }
    }
}
