//! The JSON document of critical paths: docs/critical.md says what it is.

use analyses::critical::BusyThread;
use analyses::path::Actor;
use schemars::JsonSchema;
use serde::Serialize;

use super::columns::{PartRow, ThreadRow};
use crate::column::Rows;
use crate::json::times;
use crate::losses::LossSums;
use crate::recorder_cost::CostDocument;

/// What `hyperscope critical --format json` prints: what a task or a request waited for, as parts that add up. See
/// docs/critical.md.
#[derive(Debug, JsonSchema, Serialize)]
pub(crate) struct Document<'r> {
    pub(super) schema: &'static str,
    /// Paths of the recordings, as they were named.
    pub(super) sources: &'r [String],
    /// How guests' clocks were aligned, a line each.
    pub(super) alignment: &'r [String],
    /// What the recording lost, over all sources.
    pub(super) losses: LossSums,
    /// What recording itself cost, where the recorder reported it (sessions of hyperscope record). Null: not
    /// measured.
    pub(super) recorder_cost: Option<CostDocument<'r>>,
    /// The task or the request that was asked about. Null where none was: `busiest` has threads to ask about then.
    pub(super) task: Option<&'r str>,
    #[serde(flatten)]
    pub(super) waited: Waited,
    /// Those who waited; of a request, the thread that ended it.
    pub(super) threads: Rows<ThreadRow<'r>>,
    /// What they waited for, the longest first.
    pub(super) parts: Rows<PartRow<'r>>,
    /// The longest waits, or the request.
    #[schemars(extend("maxItems" = 5))]
    pub(super) longest: Vec<Wait<'r>>,
    /// Threads to ask about, those first that were switched to and from most often. There where neither --task nor
    /// --request was given.
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
    /// Of very many steps the shortest are left out: there are gaps between the others.
    pub(super) cut: bool,
    /// What it waited for, in order, without gaps unless it is cut.
    pub(super) steps: Vec<Step<'r>>,
}

/// An interval of it.
#[derive(Debug, JsonSchema, Serialize)]
pub(super) struct Step<'r> {
    #[serde(flatten)]
    pub(super) times: StepTimes,
    /// The machine: host, or the name of a VM.
    pub(super) machine: &'r str,
    /// The thread: as its kernel called it then, by its vCPU where it runs one; interrupt for none.
    pub(super) thread: &'r str,
    /// Its id, of a vCPU in its guest that of the host's thread; null: an interrupt.
    // Documents of older versions don't have it.
    #[schemars(skip_serializing_if = "Option::is_none")]
    pub(super) tid: Option<u32>,
    /// What the thread is: of a guest, the thread that runs a vCPU, another thread of the VMM, a vhost worker, an
    /// interrupt, any other thread of the host, or one that is the recording itself.
    #[schemars(extend("enum" = Actor::ALL.map(Actor::name)))]
    pub(super) on: &'static str,
    /// What it did: ran on a CPU of its machine; ran a guest of which nothing else is recorded; ran a guest's idle
    /// loop; handled an exit in the kernel, or in the VMM; handled an interrupt; was woken and waited for a CPU;
    /// was taken off its CPU; slept, and no other thread's event says why; is not known.
    #[schemars(extend("enum" = ["running", "guest", "guest_idle", "exit_kernel", "exit_user", "interrupt", "waiting", "preempted", "blocked", "unknown"]))]
    pub(super) state: &'static str,
    /// Of an exit: its reason. Of a wait for a CPU: who had it, or idle. Of blocked and unknown: why nothing more
    /// is known, such as timer, irq 27, interrupt, events lost, no wake-up event. Null: there is none, or it is not
    /// recorded.
    pub(super) reason: Option<&'r str>,
}

#[derive(Debug, JsonSchema, Serialize)]
pub(super) struct BusiestThread<'r> {
    /// Machine of the thread: host, or the name of the VM.
    pub(super) machine: &'r str,
    /// Its name; a vCPU's thread goes by its vCPU. Threads of one name count together.
    pub(super) thread: &'r str,
    /// How often it got a CPU of its machine, or lost one.
    #[schemars(extend("minimum" = 1))]
    pub(super) switches: u64,
}

times! {
    /// How long all threads waited.
    pub(super) struct Waited {
        /// All that was waited: what `parts` add up to, exactly.
        waited = "waited",
    }
}

times! {
    /// When a thread waited.
    pub(super) struct WaitTimes {
        /// When it began to wait, on the host's clock. Nanoseconds. Null where the recording's clock has no
        /// nanoseconds.
        from = "from",
        /// When it went on. Nanoseconds. Null where the recording's clock has no nanoseconds.
        to = "to",
    }
}

times! {
    /// When a step was.
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
