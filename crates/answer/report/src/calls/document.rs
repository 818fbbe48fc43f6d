//! The JSON document of calls, as docs/calls.md defines it.

use schemars::JsonSchema;
use serde::Serialize;

use super::{functions, threads};
use crate::column::{Rows, RowsWith};
use crate::json::times;
use crate::losses::LossSums;

/// Output of `hyperscope calls --format json`: which kernel functions ran, how long, and their callers. See
/// docs/calls.md.
#[derive(Debug, JsonSchema, Serialize)]
pub(crate) struct Document<'r> {
    pub(super) schema: &'static str,
    /// Losses of all sources.
    pub(super) losses: LossSums,
    /// One for each recording.
    pub(super) sources: Vec<Source<'r>>,
}

#[derive(Debug, JsonSchema, Serialize)]
pub(super) struct Source<'r> {
    /// The recording, as it was named.
    pub(super) path: &'r str,
    /// `host`, or the guest's name.
    pub(super) machine: &'r str,
    /// Whether it was made in a guest.
    pub(super) is_guest: bool,
    /// The tracer that recorded the calls: null if none did; hyperscope_guest is the module in a guest.
    #[schemars(extend("enum" = ["function_graph", "function", "hyperscope_guest", null]))]
    pub(super) tracer: Option<&'static str>,
    /// Events of the tracer.
    pub(super) events: u64,
    /// Calls that returned; with the function tracer: calls.
    pub(super) count: u64,
    /// Returns whose call was not seen.
    pub(super) without_call: u64,
    /// Calls whose return was not seen.
    pub(super) without_return: u64,
    /// Part of these: calls in progress at a loss.
    pub(super) interrupted: u64,
    /// Calls that the kernel could not follow.
    pub(super) overrun: u64,
    /// Calls on stacks beyond the limit of stacks that are kept separate.
    pub(super) stacks_not_kept_apart: u64,
    #[serde(flatten)]
    pub(super) times: SourceTimes,
    /// Functions, in the requested order.
    pub(super) functions: RowsWith<functions::Row<'r>, Callers>,
    /// Threads with calls.
    pub(super) threads: Rows<threads::Row<'r>>,
    /// Call tree, callees below their callers; null unless --tree is given.
    pub(super) tree: Option<Vec<TreeRow>>,
    /// Events that patterns would save: requested patterns first, then found ones.
    pub(super) savings: Vec<SavingRow<'r>>,
    /// Times of the fastest calls: an upper bound of the tracer's cost where it is cheapest.
    pub(super) fastest: Fastest,
}

#[derive(Debug, JsonSchema, Serialize)]
pub(super) struct Callers {
    /// Callers, most frequent first. Only for the function tracer.
    pub(super) callers: Vec<Caller>,
}

#[derive(Debug, JsonSchema, Serialize)]
pub(super) struct Caller {
    /// The caller, with its module.
    pub(super) function: Option<String>,
    /// Calls.
    pub(super) count: u64,
}

#[derive(Debug, JsonSchema, Serialize)]
pub(super) struct TreeRow {
    /// Callers above it; 0 is a thread.
    pub(super) depth: usize,
    /// Function or thread; names in brackets are not known.
    pub(super) name: String,
    /// Calls.
    pub(super) count: u64,
    #[serde(flatten)]
    pub(super) times: TreeTimes,
}

#[derive(Debug, JsonSchema, Serialize)]
pub(super) struct SavingRow<'r> {
    /// Pattern of function names; `*` and `?` as in the kernel's filters.
    pub(super) pattern: &'r str,
    /// Whether --pattern gave it; otherwise it was found.
    pub(super) asked: bool,
    /// Called functions that it matches.
    pub(super) functions: u64,
    /// Their events, which would not be recorded without tracing these functions.
    pub(super) events: u64,
    /// Events of this pattern and of those before it, among requested ones or among found ones.
    pub(super) cumulative_events: u64,
}

/// Times of the fastest calls: an upper bound of the tracer's cost where it is cheapest.
#[derive(Debug, JsonSchema, Serialize)]
pub(super) struct Fastest {
    /// Number of calls that made no traced call and stayed on the CPU.
    pub(super) leaf_count: u64,
    #[serde(flatten)]
    pub(super) leaf: LeafTimes,
    /// Number of intervals from a return to the next call by the same caller, on the CPU.
    pub(super) between_count: u64,
    #[serde(flatten)]
    pub(super) between: BetweenTimes,
}

times! {
    /// Times of all calls of a recording.
    pub(super) struct SourceTimes {
        /// Sum over threads: `self_ns`, `tracer_ns`, `off_cpu_ns` and `unaccounted_ns` together. Null where the
        /// tracer records no times, or where they are cycles.
        traced = "traced",
        /// Sum over functions. Null where the tracer records no times, or where they are cycles.
        self_time = "self",
        /// Sum over functions. Null unless --correct is given.
        tracer = "tracer",
        /// Sum over threads. Null also without sched_switch in the recording.
        off_cpu = "off_cpu",
        /// Sum over threads. Null where the tracer records no times, or where they are cycles.
        unaccounted = "unaccounted",
    }
}

times! {
    /// Times of a stack.
    pub(super) struct TreeTimes {
        /// In it and its callees, including off the CPU. Null where the tracer records no times, or where they are
        /// cycles.
        total = "total",
        /// In the function itself, on a CPU. Null where the tracer records no times, or where they are cycles.
        self_time = "self",
        /// Off the CPU while it was innermost. Null also without sched_switch in the recording.
        off_cpu = "off_cpu",
    }
}

times! {
    /// Calls that made no traced call.
    pub(super) struct LeafTimes {
        /// Calls without a traced call that stayed on the CPU: the shortest. Null where there are none.
        min = "leaf_min",
        /// Calls without a traced call that stayed on the CPU: the fastest hundredth. Null where there are none.
        p1 = "leaf_p1",
        /// Calls without a traced call that stayed on the CPU: the median. Null where there are none.
        p50 = "leaf_p50",
    }
}

times! {
    /// Intervals between two calls.
    pub(super) struct BetweenTimes {
        /// Times from a return to the next call by the same caller, on the CPU: the shortest. Null where there are
        /// none.
        min = "between_min",
        /// Times from a return to the next call by the same caller, on the CPU: the fastest hundredth. Null where
        /// there are none.
        p1 = "between_p1",
        /// Times from a return to the next call by the same caller, on the CPU: the median. Null where there are
        /// none.
        p50 = "between_p50",
    }
}
