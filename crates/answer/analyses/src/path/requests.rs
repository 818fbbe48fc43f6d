//! Finished requests, and counts of unfinished ones.

use std::sync::Arc;

use timeline::Losses;

use super::chain::{At, Chain, Chains};
use super::labels::{Label, Labels};
use super::{Actor, Place};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) label: Label,
    pub(crate) on: Actor,
    pub(crate) stamp_ns: u64,
    pub(crate) place: Place,
}

/// A finished request.
#[derive(Debug)]
pub(crate) struct Request<'s> {
    /// Index of its VM in `Machines`.
    pub(crate) vm: Option<u16>,
    /// Whether it is back in its guest.
    pub(crate) returns: bool,
    /// At least two, in order.
    pub(crate) steps: &'s [Step],
    /// Names of steps.
    pub(crate) labels: &'s Labels,
}

/// Receives requests as they finish.
pub(crate) trait RequestSink: Send {
    fn request(&mut self, request: &Request<'_>);
}

/// Results of following requests.
#[derive(Debug)]
pub(crate) struct RequestPass<S> {
    pub(crate) sink: S,
    /// Requests that were handed on and whose end was not seen.
    pub(crate) unfinished: u64,
    /// Requests that a loss interrupted.
    pub(crate) interrupted: u64,
    pub(crate) labels: Labels,
    pub(crate) nanoseconds: bool,
    /// Losses by recording.
    pub(crate) losses: Vec<Losses>,
}

/// Counts requests, and passes finished ones to a sink.
#[derive(Debug)]
pub(super) struct Requests<S> {
    sink: S,
    began: u64,
    done: u64,
    interrupted: u64,
    /// Scratch buffer for the steps of one request.
    steps: Vec<Step>,
}

impl<S: RequestSink> Requests<S> {
    pub(super) fn new(sink: S) -> Self {
        Self { sink, began: 0, done: 0, interrupted: 0, steps: Vec::new() }
    }

    /// Counts requests that expect a response.
    pub(super) fn began(&mut self, chains: &Chains) {
        for chain in chains.iter() {
            self.began += u64::from(chain.root.begin());
        }
    }

    /// Counts requests that a loss interrupted.
    pub(super) fn interrupt(&mut self, requests: u64) {
        self.interrupted += requests;
    }

    /// Finishes a request that is back in its guest.
    pub(super) fn add(&mut self, chain: &Chain, labels: &Labels) {
        if chain.root.finish() {
            self.give(chain, true, labels);
        }
    }

    /// Finishes a request if no other thread has a reference to it.
    pub(super) fn add_last(&mut self, chain: &Chain, labels: &Labels) {
        // Each step holds one reference to its request.
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

    /// The sink, and the numbers of unfinished and interrupted requests.
    pub(super) fn finish(self) -> (S, u64, u64) {
        let unfinished = self.began.saturating_sub(self.done + self.interrupted);
        (self.sink, unfinished, self.interrupted)
    }
}
