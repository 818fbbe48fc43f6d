//! The stacks of a run: what was on top of what, and when, as it takes to compare and to draw them.

use std::collections::HashMap;

use crate::profile::TimedSample;

/// Frames that are kept apart, of all stacks; what is above others is counted to its caller.
const MAX_NODES: usize = 1 << 17;

/// What a frame of a stack stands for.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum StackFrame {
    /// A VM, by its place in [`super::Run::vms`].
    Vm(usize),
    /// What a vCPU did, what a thread is, the exit that was handled, or the level of a guest inside the guest.
    Part(String),
    /// A function, else the file that it is in.
    Code(String),
}

/// A time at the end of a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StackTime {
    /// Place in [`Stacks::nodes`].
    pub(super) node: usize,
    pub(super) at_ns: u64,
    pub(super) time_ns: u64,
    /// Events say how long it was, and no sample.
    pub(super) is_known: bool,
}

/// The stacks of one run, as a tree: callers come before what they call.
#[derive(Clone, Debug, Default)]
pub struct Stacks {
    /// The caller's place, none at the root of a stack; and the frame.
    pub(super) nodes: Vec<(Option<usize>, StackFrame)>,
    places: HashMap<(Option<usize>, StackFrame), usize>,
    pub(super) times: Vec<StackTime>,
}

impl Stacks {
    /// Adds time at the end of a stack.
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

    /// Adds a sample whose functions are called `names`, from the root on.
    pub(super) fn add_sample(&mut self, sample: &TimedSample<'_>, names: &[String]) {
        let part = |name: &str| StackFrame::Part(name.to_owned());
        let level = (sample.level > 1).then(|| part("level 2"));
        // On the way into the guest, or out of it.
        let host = (sample.host_code && sample.part.starts_with("guest")).then(|| part("host"));
        let vm = sample.vm.map(StackFrame::Vm);
        let parts = [vm, level, Some(part(sample.part)), sample.reason.map(part), host];
        let code = names.iter().map(|name| StackFrame::Code(name.clone()));
        let stack = parts.into_iter().flatten().chain(code);
        self.add(stack, sample.at_ns, sample.time_ns, sample.is_known);
    }
}
