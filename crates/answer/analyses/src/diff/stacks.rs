//! Stacks of a run with their times, for comparing and drawing.

use std::collections::HashMap;

use crate::profile::TimedSample;

/// Max frames of all stacks; the time of further frames counts for their callers.
const MAX_NODES: usize = 1 << 17;

/// A frame of a stack.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum StackFrame {
    /// A VM, as index in [`super::Run::vms`].
    Vm(usize),
    /// State of a vCPU, role of a thread, exit reason, or nested level.
    Part(String),
    /// A function, or the file if the function is unknown.
    Code(String),
}

/// Time at the end of a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StackTime {
    /// Index in [`Stacks::nodes`].
    pub(super) node: usize,
    pub(super) at_ns: u64,
    pub(super) time_ns: u64,
    /// The time is known from events, not from samples.
    pub(super) is_known: bool,
}

/// Stacks of one run as a tree: callers come before callees.
#[derive(Clone, Debug, Default)]
pub struct Stacks {
    /// Index of the caller, `None` at the root; and the frame.
    pub(super) nodes: Vec<(Option<usize>, StackFrame)>,
    places: HashMap<(Option<usize>, StackFrame), usize>,
    pub(super) times: Vec<StackTime>,
}

impl Stacks {
    pub fn add(
        &mut self,
        stack: impl IntoIterator<Item = StackFrame>,
        at_ns: u64,
        time_ns: u64,
        is_known: bool,
    ) {
        let mut at = None;
        for frame in stack {
            let key = (at, frame);
            let place = match self.places.get(&key) {
                Some(&place) => place,
                None if self.nodes.len() >= MAX_NODES => break,
                None => {
                    self.nodes.push(key.clone());
                    self.places.insert(key, self.nodes.len() - 1);
                    self.nodes.len() - 1
                }
            };
            at = Some(place);
        }
        if let Some(node) = at {
            self.times.push(StackTime { node, at_ns, time_ns, is_known });
        }
    }

    /// Adds a sample with the function names of its stack, from the root.
    pub(super) fn add_sample(&mut self, sample: &TimedSample<'_>, names: &[String]) {
        let part = |name: &str| StackFrame::Part(name.to_owned());
        let level = (sample.level > 1).then(|| part("level 2"));
        // Host code on the way into the guest or out of it.
        let host = (sample.host_code && sample.part.starts_with("guest")).then(|| part("host"));
        let vm = sample.vm.map(StackFrame::Vm);
        let parts = [vm, level, Some(part(sample.part)), sample.reason.map(part), host];
        let code = names.iter().map(|name| StackFrame::Code(name.clone()));
        let stack = parts.into_iter().flatten().chain(code);
        self.add(stack, sample.at_ns, sample.time_ns, sample.is_known);
    }
}
