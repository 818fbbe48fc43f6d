//! Who may be recorded now: how many guests at a time, of each identity, and how often each may start again.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use channel::Peer;

use crate::guest::Quota;

/// Guests of one address at a time, over TCP without certificates: several guests may share
/// the address. Everybody else is one machine.
const OF_ONE_ADDRESS: usize = 8;
/// Sessions that an identity may begin at once, and how long until it may begin another: one that is
/// begun again and again makes files each time.
const SESSIONS: RateLimit = RateLimit { at_once: 10, every: Duration::from_secs(30) };
/// Refusals of an identity that are reported at once, and how long until another is.
const REFUSALS: RateLimit = RateLimit { at_once: 5, every: Duration::from_secs(10) };
/// Identities that are remembered; those that have done nothing for long are not.
const MAX_REMEMBERED: usize = 4096;

/// How often something may happen.
#[derive(Clone, Copy, Debug)]
struct RateLimit {
    at_once: u32,
    every: Duration,
}

/// How often it may happen now.
#[derive(Clone, Copy, Debug)]
struct Remaining {
    times: u32,
    since: Instant,
}

impl RateLimit {
    /// What is left at a time.
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

/// How often each identity may do something.
#[derive(Debug)]
struct RateLimits {
    limit: RateLimit,
    remaining: HashMap<Peer, Remaining>,
}

impl RateLimits {
    fn new(limit: RateLimit) -> Self {
        Self { limit, remaining: HashMap::new() }
    }

    /// Takes one of the times that are left; false when none is.
    fn take(&mut self, party: &Peer, now: Instant) -> bool {
        let limit = self.limit;
        if self.remaining.len() >= MAX_REMEMBERED {
            self.remaining.retain(|_, remaining| limit.at(*remaining, now).times < limit.at_once);
        }
        let remaining = self.remaining.get(party).copied();
        let remaining = remaining.unwrap_or(Remaining { times: limit.at_once, since: now });
        // This many at once are one party that has many names.
        let is_known = self.remaining.contains_key(party) || self.remaining.len() < MAX_REMEMBERED;
        let remaining = limit.at(remaining, now);
        let Some(times) = remaining.times.checked_sub(1).filter(|_| is_known) else { return false };
        self.remaining.insert(party.clone(), Remaining { times, ..remaining });
        true
    }
}

/// Guests that are recorded, by identity.
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
    /// What is left of its quota, once a session of it has begun.
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

    /// Guests that are recorded now.
    pub(super) fn count(&self) -> usize {
        self.parties.values().map(|slots| slots.guests).sum()
    }

    /// Takes a place for a guest.
    ///
    /// # Errors
    /// When there is none, or its identity has as many as it may have.
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

    /// Gives a place back.
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
    /// When it has begun too many of late.
    pub(super) fn begin_session(&mut self, party: &Peer) -> Result<(), String> {
        if self.sessions.take(party, Instant::now()) {
            return Ok(());
        }
        let every = SESSIONS.every.as_secs();
        Err(format!("it starts sessions too often: the limit is one every {every} s"))
    }

    /// What is left of the quota of an identity with guests that are recorded. Where nothing is, sessions of it may have been
    /// removed since.
    pub(super) fn quota(&self, party: &Peer) -> Option<Quota> {
        self.parties.get(party)?.quota.clone().filter(|quota| !quota.is_used_up())
    }

    /// Has guests of an identity share `bytes`, unless they share some already.
    pub(super) fn share(&mut self, party: &Peer, bytes: u64) -> Quota {
        let quota = self.quota(party).unwrap_or_else(|| Quota::new(bytes));
        self.parties.entry(party.clone()).or_default().quota.insert(quota).clone()
    }

    /// Whether a refusal is reported: an identity that is refused again and again is reported now and then.
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
        // They are forgotten when they may begin as many as if they were new.
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
        // Room that is made meanwhile is shared.
        assert!(slots.quota(&peer).is_none() && slots.share(&peer, 0).is_used_up());
        let third = slots.share(&peer, 100_000);
        assert!(third.take(60_000) && !first.take(1) && !slots.share(&peer, 9).take(50_000));
        assert!(!slots.share(&other, 600_000).is_used_up());
        // It is computed again once none of them is recorded.
        slots.give_back(&peer);
        slots.give_back(&peer);
        assert!(slots.quota(&peer).is_none());
    }
}
