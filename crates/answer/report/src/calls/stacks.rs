//! Prepares the call tree for display: names, weights, and callees by weight.

use analyses::calls::{CallNode, CallNodeKind};

use super::CallsSource;

/// One stack of a recording.
#[derive(Clone, Debug, Default)]
pub(super) struct Stack {
    /// The innermost function or thread.
    pub name: String,
    /// Whether it is a kernel function; otherwise a thread, or unknown.
    pub is_function: bool,
    /// Calls.
    pub count: u64,
    /// Time in it and all its callees, including off the CPU; number of calls if there are no times.
    pub total: u64,
    /// Part of it in the function itself.
    pub self_amount: u64,
    pub off_cpu: u64,
    /// Stacks one deeper, the heaviest first.
    pub callees: Vec<usize>,
}

/// All stacks of a recording.
#[derive(Debug, Default)]
pub(super) struct Stacks {
    pub all: Vec<Stack>,
    /// Stacks without callers: threads, the heaviest first.
    pub roots: Vec<usize>,
    /// Sum over all roots.
    pub total: u64,
}

impl Stacks {
    pub(super) fn from_source(source: &CallsSource) -> Self {
        let nodes = source.calls.tree.nodes();
        let mut all: Vec<Stack> = nodes.iter().map(|node| stack(source, node)).collect();
        let mut stacks = Self::default();
        // Callers precede their callees.
        for (at, node) in nodes.iter().enumerate().rev() {
            let total = all.get(at).map_or(0, |stack| stack.total);
            if total == 0 {
                continue;
            }
            match node.parent.and_then(|parent| all.get_mut(parent as usize)) {
                Some(caller) => {
                    caller.total = caller.total.saturating_add(total);
                    caller.callees.push(at);
                }
                None => {
                    stacks.total = stacks.total.saturating_add(total);
                    stacks.roots.push(at);
                }
            }
        }
        let order: Vec<(u64, String)> =
            all.iter().map(|stack| (stack.total, stack.name.clone())).collect();
        let heaviest = |a: &usize, b: &usize| match (order.get(*a), order.get(*b)) {
            (Some(a), Some(b)) => b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)),
            _ => a.cmp(b),
        };
        all.iter_mut().for_each(|stack| stack.callees.sort_by(heaviest));
        stacks.roots.sort_by(heaviest);
        stacks.all = all;
        stacks
    }

    pub(super) fn get(&self, at: usize) -> Option<&Stack> {
        self.all.get(at)
    }

    /// Calls `each` with every stack and its depth, callers before callees; if it returns false, the
    /// callees are skipped.
    pub(super) fn walk(&self, mut each: impl FnMut(usize, &Stack) -> bool) {
        let mut next: Vec<(usize, usize)> =
            self.roots.iter().rev().map(|&root| (0, root)).collect();
        while let Some((depth, at)) = next.pop() {
            let Some(stack) = self.get(at) else { continue };
            if each(depth, stack) {
                next.extend(stack.callees.iter().rev().map(|&callee| (depth + 1, callee)));
            }
        }
    }
}

/// A stack with its own weight only.
fn stack(source: &CallsSource, node: &CallNode) -> Stack {
    let is_function = matches!(node.kind, CallNodeKind::Function(_));
    // In a recording without times, callers form one level of the tree and are counted with their callees.
    let self_amount = if source.has_times() { node.self_ns } else { node.count };
    let self_amount = if is_function || node.kind == CallNodeKind::Rest { self_amount } else { 0 };
    let name = name(source, node.kind);
    let off_cpu = node.off_cpu_ns;
    let total = self_amount.saturating_add(off_cpu);
    Stack { name, is_function, count: node.count, total, self_amount, off_cpu, callees: Vec::new() }
}

fn name(source: &CallsSource, kind: CallNodeKind) -> String {
    match kind {
        CallNodeKind::Thread(number) => {
            let thread = source.calls.threads.get(number as usize);
            thread.map_or_else(String::new, analyses::calls::ThreadCalls::title)
        }
        CallNodeKind::Function(number) => {
            let function = source.calls.functions.get(number as usize);
            function.map_or_else(String::new, analyses::calls::Function::title)
        }
        CallNodeKind::Unseen => "[callers not recorded]".to_owned(),
        CallNodeKind::Rest => "[further stacks]".to_owned(),
    }
}
