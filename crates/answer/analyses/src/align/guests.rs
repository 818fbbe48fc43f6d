//! Finds pairs of recordings of a host and its guest.

use std::collections::{HashMap, HashSet};

use sources::{Guest, Recording};

use crate::vms::find_vms;

/// Indexes of a guest's recording and its host's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct GuestOf {
    /// Index of the host's recording.
    pub(super) host: usize,
    /// Index of the guest's recording.
    pub(super) guest: usize,
    /// The guest's name in the host's recording, and pairs of guest CPU and vCPU thread, if the host's recording
    /// has them.
    pub(super) named: Option<(String, Vec<(u32, u32)>)>,
}

/// Pairs of host and guest. Recordings that refer to each other form pairs. Of the others, recordings without
/// exits belong to the only one with exits.
pub(super) fn guests(recordings: &[Recording], progress: &(dyn Fn(u64) + Sync)) -> Vec<GuestOf> {
    if recordings.len() < 2 {
        return Vec::new();
    }
    let identities = Identities::new(recordings);
    let pair_of = |(guest, recording): (usize, &Recording)| identities.pair(recording, guest);
    let mut pairs: Vec<GuestOf> = recordings.iter().enumerate().filter_map(pair_of).collect();
    let known: HashSet<usize> = pairs.iter().flat_map(|pair| [pair.host, pair.guest]).collect();
    let unknown: Vec<usize> = (0..recordings.len()).filter(|at| !known.contains(at)).collect();
    if !unknown.is_empty() {
        let runs_guests = |at: &usize| {
            recordings.get(*at).is_some_and(|recording| {
                has_exits(recording) && !find_vms(recording, progress).is_empty()
            })
        };
        let known_hosts = pairs.iter().map(|pair| pair.host);
        let mut hosts: Vec<usize> =
            known_hosts.chain(unknown.iter().copied().filter(runs_guests)).collect();
        hosts.sort_unstable();
        hosts.dedup();
        if let [host] = hosts.as_slice() {
            let guests = unknown.iter().filter(|guest| *guest != host);
            pairs.extend(guests.map(|&guest| GuestOf { host: *host, guest, named: None }));
        }
    }
    pairs
}

/// Identities of recordings and of their guests.
struct Identities<'r> {
    /// Recordings by their identity, in their given order.
    hosts: HashMap<u64, Vec<usize>>,
    /// For each guest identity: the recording that lists it, and its entry there.
    named: HashMap<u64, Vec<(usize, &'r Guest)>>,
}

impl<'r> Identities<'r> {
    fn new(recordings: &'r [Recording]) -> Self {
        let (mut hosts, mut named) = (HashMap::new(), HashMap::new());
        for (at, recording) in recordings.iter().enumerate() {
            if let Some(id) = recording.trace_id() {
                hosts.entry(id).or_insert_with(Vec::new).push(at);
            }
            for guest in &recording.info().guests {
                named.entry(guest.trace_id).or_insert_with(Vec::new).push((at, guest));
            }
        }
        Self { hosts, named }
    }

    fn pair(&self, recording: &Recording, guest: usize) -> Option<GuestOf> {
        let named = || {
            let all = self.named.get(&recording.trace_id()?)?;
            let (host, named) = *all.iter().find(|(host, _)| *host != guest)?;
            let vcpus = named.vcpus.iter().filter(|vcpu| vcpu.pid != 0);
            let vcpus = vcpus.map(|vcpu| (vcpu.cpu, vcpu.pid)).collect();
            Some(GuestOf { host, guest, named: Some((named.name.clone(), vcpus)) })
        };
        let by_peer = || {
            let all = self.hosts.get(&recording.peer()?)?;
            let host = *all.iter().find(|host| **host != guest)?;
            Some(GuestOf { host, guest, named: None })
        };
        named().or_else(by_peer)
    }
}

/// Whether it can have exits, according to its formats: avoids a useless pass.
fn has_exits(recording: &Recording) -> bool {
    timeline::arch::exit_event(recording.formats()).is_some()
}
