//! Which kernel functions ran, how often and how long, and their callers.
//!
//! The function_graph tracer records each call and each return, with the depth on the thread's stack;
//! interrupts nest into the stack of the thread that they interrupt. The function tracer records calls
//! alone, with the address that they return to: those have counts and callers, and no times.
//!
//! Self times, the time off the CPU and the time outside recorded calls add up to the time that a thread was
//! traced. A call counts only where both its ends were seen with no loss between them.

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

/// What is asked of a recording's calls.
#[derive(Clone, Debug)]
pub struct CallQuestion {
    /// Patterns of functions, whose savings are told.
    pub patterns: Vec<String>,
    /// Stacks that are kept apart at most.
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
    /// The module in a guest, which records returns where the guest's kernel has fprobes.
    Module {
        /// It recorded some.
        returns: bool,
    },
}

impl CallTracer {
    /// The kernel's name for it, or the module's.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Graph => "function_graph",
            Self::Function => "function",
            Self::Module { .. } => "hyperscope_guest",
        }
    }

    /// Whether calls have ends, so that there are times.
    #[must_use]
    pub const fn records_returns(self) -> bool {
        match self {
            Self::Graph => true,
            Self::Function => false,
            Self::Module { returns } => returns,
        }
    }
}

/// What a recording says of the tracer's own cost: no call can be faster than that lets it be.
#[derive(Clone, Debug, Default)]
pub struct TracerCost {
    /// Calls that made no traced call: what the tracer does between its two clock readings, and the
    /// function.
    pub leaves: Distribution,
    /// From a return to the next call by the same caller: what the tracer does outside of them, and
    /// what the caller does in between.
    pub between: Distribution,
}

/// A call that returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Called {
    pub thread: u32,
    /// The CPU, of an idle thread: those share the id 0.
    pub idle_cpu: Option<u16>,
    /// Place among [`RecordedCalls::functions`].
    pub function: u32,
    /// Calls around it, as the kernel counts them.
    pub depth: i64,
    /// When the call was recorded.
    pub from_ns: u64,
    /// When the return was recorded, or a call at its depth before that: it had returned by then.
    pub to_ns: u64,
}

/// Takes calls one by one as they return: what is called comes before its caller.
pub trait CallSink: Send {
    /// A call of that function returned.
    fn call(&mut self, call: &Called, function: &Function);
}

/// Nothing is done with single calls.
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
    /// Which tracer recorded them; `None`: none did.
    pub tracer: Option<CallTracer>,
    /// Whether times are nanoseconds; else they are ticks.
    pub nanoseconds: bool,
    /// Whether switches between threads are in the recording: without them time off the CPU is not
    /// told apart.
    pub switches: bool,
    /// Functions, in the order in which they were first seen.
    pub functions: Vec<Function>,
    /// Threads, in the order in which they were first seen; some may have no call.
    pub threads: Vec<ThreadCalls>,
    /// Callers and callees.
    pub tree: CallTree,
    /// What the fastest calls took.
    pub cost: TracerCost,
    /// Calls that were under way at a loss; part of those without a return.
    pub interrupted: u64,
    /// What patterns would spare: those asked for, then those found.
    pub savings: Vec<Saving>,
    /// What was lost.
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

    /// Sum over all functions.
    #[must_use]
    pub fn sum(&self, value_of: impl Fn(&Function) -> u64) -> u64 {
        self.functions.iter().map(value_of).fold(0, u64::saturating_add)
    }
}

/// The calls in `recording`, each also given to `sink`; `tick` receives the number of bytes read.
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
