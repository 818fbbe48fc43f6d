//! Kernel functions that ran: counts, times and callers.
//!
//! The function_graph tracer records each call and each return, with the depth on the thread's stack; interrupts
//! nest into the stack of the interrupted thread. The function tracer only records calls with their return
//! addresses, so functions have counts and callers, but no times.
//!
//! Self times, off-CPU time and time outside recorded calls add up to the traced time of a thread. A call counts
//! only if its entry and return were recorded with no loss in between.

mod events;
mod follower;
mod functions;
mod guest_calls;
mod patterns;
mod stack;
mod thread;
mod tree;

use sources::Recording;
use timeline::Losses;
use timeline::reading::each_trace_event;

use crate::distribution::Distribution;

use self::follower::{CallFollower, CallTotals};
use self::functions::Functions;

pub use events::tracer_recorded;
pub use functions::{Function, PerCall};
pub use guest_calls::{GuestCalls, guest_calls};
pub use patterns::Saving;
pub use thread::ThreadCalls;
pub use tree::{CallNode, CallNodeKind, CallTree};

#[derive(Clone, Debug)]
pub struct CallQuestion {
    /// Patterns of functions whose savings are estimated.
    pub patterns: Vec<String>,
    /// Max distinct stacks.
    pub most_stacks: usize,
}

impl CallQuestion {
    /// Default limit of distinct stacks: about 100 MB of memory.
    pub const MAX_STACKS: usize = 1 << 20;
}

impl Default for CallQuestion {
    fn default() -> Self {
        Self { patterns: Vec::new(), most_stacks: Self::MAX_STACKS }
    }
}

/// Which tracer recorded calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallTracer {
    /// Calls and returns: `function_graph`.
    Graph,
    /// Calls alone: `function`.
    Function,
    /// The kernel module in a guest.
    Module {
        /// The guest's kernel has fprobes, so returns are recorded.
        returns: bool,
    },
}

impl CallTracer {
    /// The kernel's name of the tracer, or the module's name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Graph => "function_graph",
            Self::Function => "function",
            Self::Module { .. } => "hyperscope_guest",
        }
    }

    /// Whether returns are recorded, so that calls have times.
    #[must_use]
    pub const fn records_returns(self) -> bool {
        match self {
            Self::Graph => true,
            Self::Function => false,
            Self::Module { returns } => returns,
        }
    }
}

/// Upper bounds of the tracer's own cost: no call can be faster.
#[derive(Clone, Debug, Default)]
pub struct TracerCost {
    /// Times of calls without traced callees: the function itself and the tracer's work between its two clock
    /// readings.
    pub leaves: Distribution,
    /// Times from a return to the next call by the same caller: the tracer's work outside of calls, and the
    /// caller's own work.
    pub between: Distribution,
}

/// A call that returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Called {
    pub thread: u32,
    /// CPU of an idle thread, because all idle threads have id 0.
    pub idle_cpu: Option<u16>,
    /// Index in [`RecordedCalls::functions`].
    pub function: u32,
    /// Stack depth as the kernel counts it.
    pub depth: i64,
    /// Time of the call event.
    pub from_ns: u64,
    /// Time of the return event, or of the next call at the same depth if the return event is missing.
    pub to_ns: u64,
}

/// Receives calls as they return: callees come before their callers.
pub trait CallSink: Send {
    fn call(&mut self, call: &Called, function: &Function);
}

/// Ignores single calls.
impl CallSink for () {
    fn call(&mut self, _: &Called, _: &Function) {}
}

impl<S: CallSink> CallSink for &mut S {
    fn call(&mut self, call: &Called, function: &Function) {
        (**self).call(call, function);
    }
}

#[derive(Debug)]
pub struct RecordedCalls {
    /// The tracer that recorded the calls; `None` if there are no calls.
    pub tracer: Option<CallTracer>,
    /// Whether times are nanoseconds; else they are ticks.
    pub nanoseconds: bool,
    /// Whether thread switches are recorded. Without them off-CPU time is not separated.
    pub switches: bool,
    /// Functions in the order of first appearance.
    pub functions: Vec<Function>,
    /// Threads in the order of first appearance; some have no calls.
    pub threads: Vec<ThreadCalls>,
    /// Callers and callees.
    pub tree: CallTree,
    /// Cost of the tracer, from the fastest calls.
    pub cost: TracerCost,
    /// Calls that a loss interrupted; a part of the calls without a return.
    pub interrupted: u64,
    /// Estimated savings of patterns: the requested ones first, then those found.
    pub savings: Vec<Saving>,
    pub losses: Losses,
}

impl RecordedCalls {
    /// Whether calls have times.
    #[must_use]
    pub fn has_times(&self) -> bool {
        self.tracer.is_some_and(CallTracer::records_returns)
    }

    /// Threads that made calls.
    pub fn calling_threads(&self) -> impl Iterator<Item = &ThreadCalls> {
        self.threads.iter().filter(|thread| thread.count > 0)
    }

    /// Sum of a value over all functions.
    #[must_use]
    pub fn sum(&self, value_of: impl Fn(&Function) -> u64) -> u64 {
        self.functions.iter().map(value_of).fold(0, u64::saturating_add)
    }
}

/// Gathers the calls in `recording` and gives each to `sink`; `progress` receives the number of bytes read.
pub fn calls<S: CallSink>(
    recording: &Recording,
    question: &CallQuestion,
    sink: &mut S,
    progress: &(dyn Fn(u64) + Sync),
) -> RecordedCalls {
    let nanoseconds = recording.is_nanoseconds();
    let functions = Functions::new(recording.kallsyms());
    let tree = CallTree::new(question.most_stacks);
    let mut follower = CallFollower::new(functions, tree, nanoseconds, sink);
    let recordings = std::slice::from_ref(recording);
    let pass = each_trace_event(recordings, &mut follower, progress);
    follower.finish();
    let losses = pass.losses.into_iter().next().unwrap_or_default();
    let mut all = follower.totals().named(nanoseconds, &question.patterns, losses);
    for thread in &mut all.threads {
        let names = pass.names.first();
        thread.name = names.and_then(|names| names.get(thread.thread)).map(str::to_owned);
    }
    all
}

impl CallTotals {
    fn named(self, nanoseconds: bool, patterns: &[String], losses: Losses) -> RecordedCalls {
        let Self { tracer, switches, functions, tree, threads, cost, interrupted } = self;
        let savings = patterns::savings(&functions, patterns);
        RecordedCalls {
            tracer,
            nanoseconds,
            switches,
            functions,
            threads,
            tree,
            cost,
            interrupted,
            savings,
            losses,
        }
    }
}
