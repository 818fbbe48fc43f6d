//! The JSON document of calls: docs/calls.md says what it is.

use schemars::JsonSchema;
use serde::Serialize;

use super::{functions, threads};
use crate::column::{Rows, RowsWith};
use crate::json::times;
use crate::losses::LossSums;

/// What `hyperscope calls --format json` prints: which kernel functions ran, how long, and who called them. See
/// docs/calls.md.
#[derive(Debug, JsonSchema, Serialize)]
pub(crate) struct Document<'r> {
    pub(super) schema: &'static str,
    /// What the recordings lost.
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
    /// Which tracer recorded the calls: null if none did; hyperscope_guest is the module in a guest.
    #[schemars(extend("enum" = ["function_graph", "function", "hyperscope_guest", null]))]
    pub(super) tracer: Option<&'static str>,
    /// Events of the tracer.
    pub(super) events: u64,
    /// Calls that returned; of the function tracer: calls.
    pub(super) count: u64,
    /// Returns whose call was not seen.
    pub(super) without_call: u64,
    /// Calls whose return was not seen.
    pub(super) without_return: u64,
    /// Of these, calls under way at a loss.
    pub(super) interrupted: u64,
    /// Calls that the kernel could not follow.
    pub(super) overrun: u64,
    /// Calls on stacks beyond the bound on how many are kept.
    pub(super) stacks_not_kept_apart: u64,
    #[serde(flatten)]
    pub(super) times: SourceTimes,
    /// Functions, in the order asked for.
    pub(super) functions: RowsWith<functions::Row<'r>, Callers>,
    /// Threads with calls.
    pub(super) threads: Rows<threads::Row<'r>>,
    /// Call tree, callees below their callers; null unless --tree is given.
    pub(super) tree: Option<Vec<TreeRow>>,
    /// What patterns would spare: those asked for, then those found.
    pub(super) savings: Vec<SavingRow<'r>>,
    /// How fast the fastest calls were: the tracer's own cost, where it is cheapest, is no more.
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
    /// Function, thread, or in brackets what is not known.
    pub(super) name: String,
    /// Calls.
    pub(super) count: u64,
    #[serde(flatten)]
    pub(super) times: TreeTimes,
}

#[derive(Debug, JsonSchema, Serialize)]
pub(super) struct SavingRow<'r> {
    /// Functions of these names; `*` and `?` as in the kernel's filters.
    pub(super) pattern: &'r str,
    /// Whether it was given by --pattern; else it was found.
    pub(super) asked: bool,
    /// Functions that it matches, of those called.
    pub(super) functions: u64,
    /// Their events: what not tracing them would spare.
    pub(super) events: u64,
    /// Events of it and of the patterns before it, of those asked for or of those found.
    pub(super) cumulative_events: u64,
}

/// How fast the fastest calls were: the tracer's own cost, where it is cheapest, is no more.
#[derive(Debug, JsonSchema, Serialize)]
pub(super) struct Fastest {
    /// Calls that called nothing traced and stayed on the CPU: how many.
    pub(super) leaf_count: u64,
    #[serde(flatten)]
    pub(super) leaf: LeafTimes,
    /// Times from a return to the next call by the same caller, on the CPU: how many.
    pub(super) between_count: u64,
    #[serde(flatten)]
    pub(super) between: BetweenTimes,
}

times! {
    /// What all calls of a recording took.
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
    /// What a stack took.
    pub(super) struct TreeTimes {
        /// In it and in what it called, off the CPU included. Null where the tracer records no times, or where they
        /// are cycles.
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
        /// Calls that called nothing traced and stayed on the CPU: the shortest. Null where there are none.
        min = "leaf_min",
        /// Calls that called nothing traced and stayed on the CPU: the fastest hundredth. Null where there are
        /// none.
        p1 = "leaf_p1",
        /// Calls that called nothing traced and stayed on the CPU: the median. Null where there are none.
        p50 = "leaf_p50",
    }
}

times! {
    /// What lies between two calls.
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
