//! Requests that wait for a disk, from `block_rq_issue` to the completion interrupt.

use rustc_hash::FxHashMap;
use timeline::trace_events::TraceEvent;

use super::Actor;
use super::chain::{Chains, Step};
use super::events::Event;
use super::follow::Follower;
use super::requests::RequestSink;

/// Max disk requests in flight; disks have no deeper queues.
const MAX_REQUESTS: usize = 1 << 14;

/// By recording, device and sector.
#[derive(Debug, Default)]
pub(super) struct DiskRequests(FxHashMap<(u16, u64, u64), Chains>);

impl DiskRequests {
    pub(super) fn iter(&self) -> impl Iterator<Item = &Chains> {
        self.0.values()
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}

fn key(trace_event: &TraceEvent) -> Option<(u16, u64, u64)> {
    Some((trace_event.recording, trace_event.value(0)?, trace_event.value(1)?))
}

impl<S: RequestSink> Follower<'_, S> {
    /// `block_rq_issue`.
    pub(super) fn block_issue(&mut self, event: &Event, trace_event: &TraceEvent) {
        self.work(event, trace_event);
        let who = (trace_event.recording, trace_event.thread);
        let chains = self.thread(who).current().clone();
        if let Some(key) = key(trace_event).filter(|_| !chains.is_empty())
            && self.disk.0.len() < MAX_REQUESTS
        {
            self.disk.0.insert(key, chains);
        }
    }

    /// `block_rq_complete`: threads that this interrupt wakes continue the request.
    pub(super) fn block_complete(&mut self, event: &Event, trace_event: &TraceEvent) {
        if self.machines.is_guest(trace_event.recording) {
            self.guest_work(event, trace_event);
        }
        let Some(chains) = key(trace_event).and_then(|key| self.disk.0.remove(&key)) else {
            return;
        };
        let chains = chains.stepped(Step::from_event(event.label, Actor::Interrupt, trace_event));
        let flags = trace_event.value(2).unwrap_or(0);
        if Self::in_interrupt(flags) || trace_event.thread == 0 {
            self.cpus.state_mut(trace_event).interrupt = chains;
        } else {
            self.thread((trace_event.recording, trace_event.thread)).current().add(chains);
        }
    }
}
