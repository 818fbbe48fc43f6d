//! Call stacks as a tree with a bounded number of nodes.

use rustc_hash::FxHashMap;

/// What a node of the tree stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CallNodeKind {
    /// A thread, by its number among [`super::RecordedCalls::threads`].
    Thread(u32),
    /// A function, by its number among [`super::RecordedCalls::functions`].
    Function(u32),
    /// Callers that are not in the recording: it began inside of them, or events were lost.
    Unseen,
    /// Calls on stacks that were too many to be kept apart.
    Rest,
}

/// Calls of a function with the same callers.
#[derive(Clone, Copy, Debug)]
pub struct CallNode {
    /// What it stands for.
    pub kind: CallNodeKind,
    /// Its caller's number; a thread has none.
    pub parent: Option<u32>,
    /// Calls that returned; of the function tracer: calls.
    pub count: u64,
    /// From call to return, all of them together, in nanoseconds.
    pub total_ns: u64,
    /// Of it in the function itself, on a CPU.
    pub self_ns: u64,
    /// Of it off the CPU while the function itself was the innermost.
    pub off_cpu_ns: u64,
}

/// Stacks, each a path from a thread to a function.
#[derive(Debug, Default)]
pub struct CallTree {
    nodes: Vec<CallNode>,
    by_kind: FxHashMap<(u32, CallNodeKind), u32>,
    most: usize,
    rest: Option<u32>,
}

/// In place of the caller's number, for nodes that have none.
const ROOT: u32 = u32::MAX;

impl CallTree {
    pub(super) fn new(max: usize) -> Self {
        Self { most: max, ..Self::default() }
    }

    /// All nodes; callers stand before those they call.
    #[must_use]
    pub fn nodes(&self) -> &[CallNode] {
        &self.nodes
    }

    /// Calls whose stacks were too many to be kept apart.
    #[must_use]
    pub fn rest(&self) -> u64 {
        self.rest.and_then(|at| self.nodes.get(at as usize)).map_or(0, |node| node.count)
    }

    pub(super) fn root(&mut self, kind: CallNodeKind) -> u32 {
        self.at(ROOT, kind)
    }

    /// The node of a call from `parent`.
    pub(super) fn child(&mut self, parent: u32, kind: CallNodeKind) -> u32 {
        // What comes after a stack that is not kept apart isn't either.
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
