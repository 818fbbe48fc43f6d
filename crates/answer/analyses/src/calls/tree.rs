//! Call stacks as a tree with a bounded number of nodes.

use rustc_hash::FxHashMap;

/// Kind of a tree node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CallNodeKind {
    /// A thread, as index in [`super::RecordedCalls::threads`].
    Thread(u32),
    /// A function, as index in [`super::RecordedCalls::functions`].
    Function(u32),
    /// Unrecorded callers: the recording began inside them, or events were lost.
    Unseen,
    /// All calls beyond the limit of distinct stacks.
    Rest,
}

/// Calls of a function with the same call stack.
#[derive(Clone, Copy, Debug)]
pub struct CallNode {
    pub kind: CallNodeKind,
    /// Index of its caller; `None` for threads.
    pub parent: Option<u32>,
    /// Calls that returned; for the function tracer, all calls.
    pub count: u64,
    /// Total time from call to return.
    pub total_ns: u64,
    /// CPU time in the function itself.
    pub self_ns: u64,
    /// Off-CPU time while the function was the innermost.
    pub off_cpu_ns: u64,
}

/// Call stacks, as paths from a thread to a function.
#[derive(Debug, Default)]
pub struct CallTree {
    nodes: Vec<CallNode>,
    by_kind: FxHashMap<(u32, CallNodeKind), u32>,
    most: usize,
    rest: Option<u32>,
}

/// Parent index of nodes without a parent.
const ROOT: u32 = u32::MAX;

impl CallTree {
    pub(super) fn new(max: usize) -> Self {
        Self { most: max, ..Self::default() }
    }

    /// All nodes; callers come before callees.
    #[must_use]
    pub fn nodes(&self) -> &[CallNode] {
        &self.nodes
    }

    /// Number of calls beyond the limit of distinct stacks.
    #[must_use]
    pub fn rest(&self) -> u64 {
        self.rest.and_then(|at| self.nodes.get(at as usize)).map_or(0, |node| node.count)
    }

    pub(super) fn root(&mut self, kind: CallNodeKind) -> u32 {
        self.at(ROOT, kind)
    }

    /// The node of a call from `parent`.
    pub(super) fn child(&mut self, parent: u32, kind: CallNodeKind) -> u32 {
        // Callees of the rest node are in the rest node too.
        if self.rest == Some(parent) { parent } else { self.at(parent, kind) }
    }

    fn at(&mut self, parent: u32, kind: CallNodeKind) -> u32 {
        if let Some(&known) = self.by_kind.get(&(parent, kind)) {
            return known;
        }
        if self.nodes.len() >= self.most {
            return self.rest_node();
        }
        let at = self.add((parent != ROOT).then_some(parent), kind);
        self.by_kind.insert((parent, kind), at);
        at
    }

    fn rest_node(&mut self) -> u32 {
        if let Some(rest) = self.rest {
            return rest;
        }
        let rest = self.add(None, CallNodeKind::Rest);
        self.rest = Some(rest);
        rest
    }

    fn add(&mut self, parent: Option<u32>, kind: CallNodeKind) -> u32 {
        let at = u32::try_from(self.nodes.len()).unwrap_or(ROOT);
        let node = CallNode { kind, parent, count: 0, total_ns: 0, self_ns: 0, off_cpu_ns: 0 };
        self.nodes.push(node);
        at
    }

    pub(super) fn node_mut(&mut self, at: u32) -> Option<&mut CallNode> {
        self.nodes.get_mut(at as usize)
    }
}
