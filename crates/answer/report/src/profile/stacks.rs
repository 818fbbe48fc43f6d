//! A profile as stacks: VM, vCPU, its state, and the code from the root.

use std::collections::BTreeMap;

use analyses::states::{Part, VcpuState};

use super::ProfileReport;
use super::lines::{self, Line};
use crate::folded::frame;

/// A node of the tree.
#[derive(Clone, Debug, Default)]
pub(super) struct Node {
    pub(super) name: String,
    /// The state, below its vCPU; `None` for VMs and vCPUs.
    pub(super) state: Option<VcpuState>,
    /// Its time, including callees.
    pub(super) total_ns: u64,
    /// Part of it outside callees.
    pub(super) own_ns: u64,
    pub(super) samples: u64,
    callees: BTreeMap<(Option<VcpuState>, String), usize>,
}

/// All stacks.
#[derive(Debug)]
pub(super) struct Tree {
    nodes: Vec<Node>,
}

impl Tree {
    pub(super) fn new(report: &ProfileReport) -> Self {
        let mut tree = Self { nodes: vec![Node::default()] };
        lines::all(report).iter().for_each(|line| tree.add(line));
        tree
    }

    fn add(&mut self, line: &Line<'_>) {
        let mut at = 0;
        self.pass(at, line);
        for (state, name) in stack(line) {
            at = self.callee(at, state, name);
            self.pass(at, line);
        }
        if let Some(node) = self.nodes.get_mut(at) {
            node.own_ns = node.own_ns.saturating_add(line.time.ns);
        }
    }

    /// Adds a line whose stack goes through a node.
    fn pass(&mut self, at: usize, line: &Line<'_>) {
        if let Some(node) = self.nodes.get_mut(at) {
            node.total_ns = node.total_ns.saturating_add(line.time.ns);
            node.samples = node.samples.saturating_add(line.time.samples);
        }
    }

    fn callee(&mut self, caller: usize, state: Option<VcpuState>, name: String) -> usize {
        let next = self.nodes.len();
        let Some(node) = self.nodes.get_mut(caller) else { return caller };
        let at = *node.callees.entry((state, name.clone())).or_insert(next);
        if at == next {
            self.nodes.push(Node { name, state, ..Node::default() });
        }
        at
    }

    /// The sum of all stacks.
    pub(super) fn total_ns(&self) -> u64 {
        self.nodes.first().map_or(0, |root| root.total_ns)
    }

    /// Calls `each` with every node but the root and its depth, callers before callees, the heaviest first;
    /// if it returns false, the callees are skipped.
    pub(super) fn walk(&self, mut each: impl FnMut(usize, &Node) -> bool) {
        let callees = |at: usize| {
            let node = self.nodes.get(at);
            let mut all: Vec<usize> =
                node.into_iter().flat_map(|node| node.callees.values().copied()).collect();
            all.sort_by_key(|&at| self.nodes.get(at).map(|node| node.total_ns));
            all
        };
        let mut next: Vec<(usize, usize)> = callees(0).into_iter().map(|at| (0, at)).collect();
        while let Some((depth, at)) = next.pop() {
            let Some(node) = self.nodes.get(at) else { continue };
            if each(depth, node) {
                next.extend(callees(at).into_iter().map(|callee| (depth + 1, callee)));
            }
        }
    }

    /// One line for each stack with self time, in nanoseconds or ticks.
    pub(super) fn folded(&self) -> String {
        let mut out = String::new();
        let mut stack: Vec<String> = Vec::new();
        self.walk(|depth, node| {
            stack.truncate(depth);
            stack.push(frame(&node.name));
            if node.own_ns > 0 {
                out += &format!("{} {}\n", stack.join(";"), node.own_ns);
            }
            true
        });
        out
    }
}

/// The frames of a line, from the root.
pub(super) fn stack(line: &Line<'_>) -> Vec<(Option<VcpuState>, String)> {
    let key = &line.key;
    let root = if key.vm.is_empty() { "host".to_owned() } else { format!("VM {}", key.vm) };
    let mut stack = vec![(None, root)];
    stack.extend(key.vcpu.map(|vcpu| (None, format!("vCPU {vcpu}"))));
    if key.level.is_some_and(|level| level > 1) {
        stack.push((None, "level 2".to_owned()));
    }
    if let Some(part) = key.part {
        let comm = key.comm.unwrap_or("?");
        let name = format!("{} {comm}", part.name());
        stack.push((None, if part == Part::Other { comm.to_owned() } else { name }));
        // Uses the colours of the host's kernel.
        let host = Some(VcpuState::ExitKernel);
        stack.extend(line.stack.iter().map(|frame| (host, frame.name())));
    }
    let Some(state) = key.state else { return stack };
    let inner = Some(state);
    stack.push((inner, state.name().to_owned()));
    stack.extend(key.reason.map(|reason| (inner, reason.to_owned())));
    let comm = key.comm.filter(|_| state.is_guest());
    stack.extend(comm.map(|comm| (inner, comm.to_owned())));
    if line.host_code && state.is_guest() {
        // On the way into the guest, or out of it.
        stack.push((inner, "host".to_owned()));
    }
    stack.extend(line.stack.iter().map(|frame| (inner, frame.name())));
    stack
}
