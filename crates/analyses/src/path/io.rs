//! Requests that a disk works on: from `block_rq_issue` to the interrupt that tells it is done.

use rustc_hash::FxHashMap;
use timeline::moments::Moment;

use super::Actor;
use super::chain::Chains;
use super::events::Event;
use super::follow::Follower;
use super::requests::RequestSink;

/// Requests kept at once; a disk has no deeper queues.
const MOST_REQUESTS: usize = 1 << 14;

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

fn key(moment: &Moment) -> Option<(u16, u64, u64)> {
    Some((moment.recording, moment.value(0)?, moment.value(1)?))
}

impl<S: RequestSink> Follower<'_, S> {
    /// `block_rq_issue`.
    pub(super) fn block_issue(&mut self, event: &Event, moment: &Moment) {
        self.work(event, moment);
        let who = (moment.recording, moment.thread);
        let chains = self.thread(who).current.clone();
        if let Some(key) = key(moment).filter(|_| !chains.is_empty())
            && self.disk.0.len() < MOST_REQUESTS
        {
            self.disk.0.insert(key, chains);
        }
    }

    /// `block_rq_complete`: whoever is woken in this interrupt is woken for the request.
    pub(super) fn block_complete(&mut self, event: &Event, moment: &Moment) {
        if self.machines.is_guest(moment.recording) {
            self.guest_work(event, moment);
        }
        let Some(chains) = key(moment).and_then(|key| self.disk.0.remove(&key)) else { return };
        let chains = chains.stepped((event.label, Actor::Interrupt, moment.stamp_ns));
        let flags = moment.value(2).unwrap_or(0);
        if Self::in_interrupt(flags) || moment.thread == 0 {
            self.cpus.entry((moment.recording, moment.cpu)).or_default().interrupt = chains;
        } else {
            self.thread((moment.recording, moment.thread)).current.add(chains);
        }
    }
}
