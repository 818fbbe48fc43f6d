//! Limits on recorded guests: in total, per identity, and how often each may start again.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use channel::Peer;

use crate::guest::Quota;

/// Max guests per IP address over TCP without certificates: several guests may share the address. Any other identity is
/// one machine.
const OF_ONE_ADDRESS: usize = 8;
/// Rate limit for sessions of an identity: each start makes files.
const SESSIONS: RateLimit = RateLimit { at_once: 10, every: Duration::from_secs(30) };
/// Rate limit for reported refusals of an identity.
const REFUSALS: RateLimit = RateLimit { at_once: 5, every: Duration::from_secs(10) };
/// Max identities to remember; those that were idle for long are forgotten.
const MAX_REMEMBERED: usize = 4096;

/// A rate limit.
#[derive(Clone, Copy, Debug)]
struct RateLimit {
    at_once: u32,
    every: Duration,
}

/// Remaining events at a time.
#[derive(Clone, Copy, Debug)]
struct Remaining {
    times: u32,
    since: Instant,
}

impl RateLimit {
    /// The remaining events at a later time.
    fn at(self, remaining: Remaining, now: Instant) -> Remaining {
        let passed = now.saturating_duration_since(remaining.since);
        let more = u32::try_from(passed.as_nanos() / self.every.as_nanos().max(1));
        let more = more.unwrap_or(u32::MAX);
        let times = remaining.times.saturating_add(more);
        if times >= self.at_once {
            return Remaining { times: self.at_once, since: now };
        }
        Remaining { times, since: remaining.since + self.every * more }
    }
}

/// Rate limits per identity.
#[derive(Debug)]
struct RateLimits {
    limit: RateLimit,
    remaining: HashMap<Peer, Remaining>,
}

impl RateLimits {
    fn new(limit: RateLimit) -> Self {
        Self { limit, remaining: HashMap::new() }
    }

    /// Takes one event; false if none is left.
    fn take(&mut self, party: &Peer, now: Instant) -> bool {
        let limit = self.limit;
        if self.remaining.len() >= MAX_REMEMBERED {
            self.remaining.retain(|_, remaining| limit.at(*remaining, now).times < limit.at_once);
        }
        let remaining = self.remaining.get(party).copied();
        let remaining = remaining.unwrap_or(Remaining { times: limit.at_once, since: now });
        // So many identities at once are one peer with many addresses.
        let is_known = self.remaining.contains_key(party) || self.remaining.len() < MAX_REMEMBERED;
        let remaining = limit.at(remaining, now);
        let Some(times) = remaining.times.checked_sub(1).filter(|_| is_known) else { return false };
        self.remaining.insert(party.clone(), Remaining { times, ..remaining });
        true
    }
}

/// Recorded guests, by identity.
#[derive(Debug)]
pub(super) struct GuestSlots {
    most: usize,
    parties: HashMap<Peer, PartySlots>,
    sessions: RateLimits,
    refusals: RateLimits,
}

#[derive(Debug, Default)]
struct PartySlots {
    guests: usize,
    /// Remaining quota of an identity with a running session.
    quota: Option<Quota>,
}

impl GuestSlots {
    pub(super) fn new(max: usize) -> Self {
        Self {
            most: max,
            parties: HashMap::new(),
            sessions: RateLimits::new(SESSIONS),
            refusals: RateLimits::new(REFUSALS),
        }
    }

    /// Number of guests that are being recorded.
    pub(super) fn count(&self) -> usize {
        self.parties.values().map(|slots| slots.guests).sum()
    }

    /// Takes a place for a guest.
    ///
    /// # Errors
    /// When no place is free, or its identity has reached its limit.
    pub(super) fn take(&mut self, party: &Peer) -> Result<(), String> {
        let of_one = if matches!(party, Peer::Tcp(_)) { OF_ONE_ADDRESS } else { 1 };
        if self.count() >= self.most {
            return Err(format!("{} guests are recorded already", self.most));
        }
        let slots = self.parties.entry(party.clone()).or_default();
        if slots.guests >= of_one {
            return Err(match of_one {
                1 => "this guest is recorded already".into(),
                max => format!("{max} guests of this address are already recorded"),
            });
        }
        slots.guests += 1;
        Ok(())
    }

    /// Releases a place.
    pub(super) fn give_back(&mut self, party: &Peer) {
        if let Some(slots) = self.parties.get_mut(party) {
            slots.guests = slots.guests.saturating_sub(1);
            if slots.guests == 0 {
                self.parties.remove(party);
            }
        }
    }

    /// Begins a session of an identity.
    ///
    /// # Errors
    /// When it has begun too many recently.
    pub(super) fn begin_session(&mut self, party: &Peer) -> Result<(), String> {
        if self.sessions.take(party, Instant::now()) {
            return Ok(());
        }
        let every = SESSIONS.every.as_secs();
        Err(format!("it starts sessions too often: the limit is one every {every} s"))
    }

    /// Remaining quota of an identity that is being recorded. `None` if it is used up: its sessions may have been
    /// removed since, so it is computed again.
    pub(super) fn quota(&self, party: &Peer) -> Option<Quota> {
        self.parties.get(party)?.quota.clone().filter(|quota| !quota.is_used_up())
    }

    /// Makes the guests of an identity share `bytes`, unless they share a quota already.
    pub(super) fn share(&mut self, party: &Peer, bytes: u64) -> Quota {
        let quota = self.quota(party).unwrap_or_else(|| Quota::new(bytes));
        self.parties.entry(party.clone()).or_default().quota.insert(quota).clone()
    }

    /// Whether to report a refusal: repeated refusals of an identity are reported only now and then.
    pub(super) fn reports_refusal(&mut self, party: &Peer) -> bool {
        self.refusals.take(party, Instant::now())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(number: u8) -> Peer {
        Peer::Tcp([10, 0, 0, number].into())
    }

    #[test]
    fn an_identity_takes_one_slot_and_an_address_a_share() {
        let mut slots = GuestSlots::new(12);
        assert!(slots.take(&Peer::Vsock(3)).is_ok());
        assert!(slots.take(&Peer::Vsock(3)).unwrap_err().contains("already"));
        assert!(slots.take(&Peer::Vsock(4)).is_ok());
        for _ in 0..OF_ONE_ADDRESS {
            assert!(slots.take(&address(1)).is_ok());
        }
        assert!(slots.take(&address(1)).unwrap_err().contains("of this address"));
        assert!(slots.take(&address(2)).is_ok());
        assert!(slots.take(&address(3)).is_ok());
        assert!(slots.take(&address(4)).unwrap_err().contains("12 guests are recorded already"));
        slots.give_back(&Peer::Vsock(3));
        assert!(slots.take(&Peer::Vsock(3)).is_ok());
        assert_eq!(slots.count(), 12);
    }

    #[test]
    fn a_guest_that_comes_again_and_again_is_recorded_now_and_then() {
        let mut rates = RateLimits::new(SESSIONS);
        let start = Instant::now();
        // Ten thousand times in an hour.
        let times = (0..10_000)
            .filter(|&at| rates.take(&address(1), start + Duration::from_millis(360 * at)));
        assert_eq!(times.count(), 10 + 3600 / 30 - 1);
        assert!(rates.take(&address(2), start));
        let later = start + Duration::from_secs(7200);
        assert!((0..10).all(|_| rates.take(&address(1), later)));
        assert!(!rates.take(&address(1), later));
    }

    #[test]
    fn no_more_identities_are_remembered_than_there_is_room_for() {
        let mut rates = RateLimits::new(SESSIONS);
        let now = Instant::now();
        let party = |number: usize| Peer::Vsock(u32::try_from(number).unwrap());
        for number in 0..2 * MAX_REMEMBERED {
            rates.take(&party(number), now);
        }
        assert_eq!(rates.remaining.len(), MAX_REMEMBERED);
        // An identity is forgotten once its limit has fully recovered.
        assert!(rates.take(&party(0), now + SESSIONS.every));
        assert!(rates.remaining.len() <= 2);
    }

    #[test]
    fn guests_of_one_identity_share_its_quota() {
        let mut slots = GuestSlots::new(4);
        let (peer, other) = (address(1), address(2));
        assert!(slots.take(&peer).is_ok() && slots.take(&peer).is_ok());
        assert!(slots.take(&other).is_ok() && slots.quota(&peer).is_none());
        let (first, second) = (slots.share(&peer, 600_000), slots.share(&peer, 600_000));
        assert!(first.take(500_000) && !second.take(200_000) && second.take(100_000));
        // Guests share the space that is freed meanwhile.
        assert!(slots.quota(&peer).is_none() && slots.share(&peer, 0).is_used_up());
        let third = slots.share(&peer, 100_000);
        assert!(third.take(60_000) && !first.take(1) && !slots.share(&peer, 9).take(50_000));
        assert!(!slots.share(&other, 600_000).is_used_up());
        // The quota is computed again once none of them is recorded.
        slots.give_back(&peer);
        slots.give_back(&peer);
        assert!(slots.quota(&peer).is_none());
    }
}
