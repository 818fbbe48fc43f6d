//! Requests that are done, and how many are not.

use std::sync::Arc;

use timeline::Losses;

use super::chain::{At, Chain, Chains};
use super::labels::{Label, Labels};
use super::{Actor, Place};

/// A step of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) label: Label,
    pub(crate) on: Actor,
    pub(crate) stamp_ns: u64,
    pub(crate) place: Place,
}

/// A request that is done.
#[derive(Debug)]
pub(crate) struct Request<'s> {
    /// Its VM, by number among those that `Machines` has.
    pub(crate) vm: Option<u16>,
    /// Whether it is back in its guest.
    pub(crate) returns: bool,
    /// Two at least, in order.
    pub(crate) steps: &'s [Step],
    /// The names of steps, as far as they are known.
    pub(crate) labels: &'s Labels,
}

/// Takes requests, each when it is done.
pub(crate) trait RequestSink: Send {
    /// A request is done.
    fn request(&mut self, request: &Request<'_>);
}

/// What following requests leaves.
#[derive(Debug)]
pub(crate) struct RequestPass<S> {
    pub(crate) sink: S,
    /// Requests that were handed on, and whose end was not seen.
    pub(crate) unfinished: u64,
    /// Requests that were under way when events were lost.
    pub(crate) interrupted: u64,
    pub(crate) labels: Labels,
    pub(crate) nanoseconds: bool,
    /// By recording.
    pub(crate) losses: Vec<Losses>,
}

/// Counts requests, and gives those that are done to a sink.
#[derive(Debug)]
pub(super) struct Requests<S> {
    sink: S,
    began: u64,
    done: u64,
    interrupted: u64,
    /// Steps of the one that is given; kept for its memory.
    steps: Vec<Step>,
}

impl<S: RequestSink> Requests<S> {
    pub(super) fn new(sink: S) -> Self {
        Self { sink, began: 0, done: 0, interrupted: 0, steps: Vec::new() }
    }

    /// Requests have begun that are to come back.
    pub(super) fn began(&mut self, chains: &Chains) {
        for chain in chains.iter() {
            self.began += u64::from(chain.root.begin());
        }
    }

    /// Requests that were under way when events were lost.
    pub(super) fn interrupt(&mut self, requests: u64) {
        self.interrupted += requests;
    }

    /// A request is back in its guest.
    pub(super) fn add(&mut self, chain: &Chain, labels: &Labels) {
        if chain.root.finish() {
            self.give(chain, true, labels);
        }
    }

    /// The last one has done with a request; nothing happens if there is another.
    pub(super) fn add_last(&mut self, chain: &Chain, labels: &Labels) {
        // Each step holds its request once.
        if Arc::strong_count(chain) == 1
            && Arc::strong_count(&chain.root) == usize::from(chain.depth)
            && chain.depth > 1
            && chain.root.finish()
        {
            self.give(chain, false, labels);
        }
    }

    fn give(&mut self, chain: &Chain, returns: bool, labels: &Labels) {
        self.began += u64::from(chain.root.begin());
        self.done += 1;
        self.steps.clear();
        let mut at = Some(chain);
        while let Some(node) = at {
            let (label, on, At { stamp_ns, place }) = (node.label, node.on, node.at);
            self.steps.push(Step { label, on, stamp_ns, place });
            at = node.parent.as_ref();
        }
        self.steps.reverse();
        self.sink.request(&Request { vm: chain.root.vm, returns, steps: &self.steps, labels });
    }

    /// The sink, requests without an end, and those that were interrupted.
    pub(super) fn finish(self) -> (S, u64, u64) {
        let unfinished = self.began.saturating_sub(self.done + self.interrupted);
        (self.sink, unfinished, self.interrupted)
    }
}
