//! Which recording was made in a guest of which.

use sources::Recording;

use crate::vms::find_vms;

/// A guest's recording and its host's, by their numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct GuestOf {
    /// Number of the host's recording.
    pub(super) host: usize,
    /// Number of the guest's recording.
    pub(super) guest: usize,
    /// What the host's recording calls the guest, and per guest CPU the thread that runs it, where
    /// it says so.
    pub(super) named: Option<(String, Vec<(u32, u32)>)>,
}

/// Guests and their hosts. Recordings that name one another settle it; of others, a recording
/// without exits runs on the only one that has some.
pub(super) fn guests(recordings: &[Recording], tick: &(dyn Fn(u64) + Sync)) -> Vec<GuestOf> {
    if recordings.len() < 2 {
        return Vec::new();
    }
    let mut pairs: Vec<GuestOf> = Vec::new();
    for (guest, recording) in recordings.iter().enumerate() {
        let hosts = recordings.iter().enumerate().filter(|(host, _)| *host != guest);
        let pair = hosts.clone().find_map(|(host, one)| named_pair(one, recording, host, guest));
        let by_peer = || {
            let aims =
                |one: &Recording| recording.peer().is_some() && recording.peer() == one.trace_id();
            let (host, _) = hosts.clone().find(|(_, one)| aims(one))?;
            Some(GuestOf { host, guest, named: None })
        };
        pairs.extend(pair.or_else(by_peer));
    }
    let unknown: Vec<usize> = (0..recordings.len())
        .filter(|at| pairs.iter().all(|pair| pair.guest != *at && pair.host != *at))
        .collect();
    if !unknown.is_empty() {
        let runs_guests = |at: &usize| {
            recordings.get(*at).is_some_and(|one| has_exits(one) && !find_vms(one, tick).is_empty())
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

fn named_pair(
    host: &Recording,
    guest: &Recording,
    host_at: usize,
    guest_at: usize,
) -> Option<GuestOf> {
    let id = guest.trace_id()?;
    let named = host.info().guests.iter().find(|guest| guest.trace_id == id)?;
    let vcpus = named.vcpus.iter().filter(|vcpu| vcpu.pid != 0);
    let vcpus = vcpus.map(|vcpu| (vcpu.cpu, vcpu.pid)).collect();
    Some(GuestOf { host: host_at, guest: guest_at, named: Some((named.name.clone(), vcpus)) })
}

/// Whether it can hold exits at all: spares reading one without.
fn has_exits(recording: &Recording) -> bool {
    timeline::arch::exit_event(recording.formats()).is_some()
}
