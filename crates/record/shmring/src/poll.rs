//! Pauses between a host's polls: none while there is work, increasing without.

use std::time::Duration;

/// Polls without a pause after the last page: a few microseconds.
const SPINS: u32 = 64;
/// The first pause, about the kernel's timer slack, which is added to any pause.
const SHORTEST_US: u64 = 50;
/// The max pause: the latency of a page after the guest was idle.
const LONGEST_US: u64 = 20_000;

/// What to do before the next poll.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pause {
    /// Poll again at once.
    Spin,
    Sleep(Duration),
}

/// Chooses pauses by the results of earlier polls, and counts both.
#[derive(Clone, Debug)]
pub struct Poller {
    spins_left: u32,
    pause_us: u64,
    polls: u64,
    sleeps: u64,
}

impl Default for Poller {
    fn default() -> Self {
        Self { spins_left: SPINS, pause_us: SHORTEST_US, polls: 0, sleeps: 0 }
    }
}

impl Poller {
    /// Counts a poll, and returns the pause before the next one.
    pub fn looked(&mut self, found: bool) -> Pause {
        self.polls += 1;
        if found {
            (self.spins_left, self.pause_us) = (SPINS, SHORTEST_US);
            return Pause::Spin;
        }
        if self.spins_left > 0 {
            self.spins_left -= 1;
            return Pause::Spin;
        }
        self.sleeps += 1;
        let pause = Duration::from_micros(self.pause_us);
        self.pause_us = (self.pause_us * 2).min(LONGEST_US);
        Pause::Sleep(pause)
    }

    /// [`Poller::looked`], and pauses.
    pub fn pause(&mut self, found: bool) {
        match self.looked(found) {
            Pause::Spin => std::hint::spin_loop(),
            Pause::Sleep(pause) => std::thread::sleep(pause),
        }
    }

    /// Number of polls.
    #[must_use]
    pub fn polls(&self) -> u64 {
        self.polls
    }

    /// Number of sleeps.
    #[must_use]
    pub fn sleeps(&self) -> u64 {
        self.sleeps
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sleep_us(pause: Pause) -> Option<u128> {
        match pause {
            Pause::Spin => None,
            Pause::Sleep(pause) => Some(pause.as_micros()),
        }
    }

    #[test]
    fn an_idle_host_backs_off_to_twenty_milliseconds() {
        let mut poller = Poller::default();
        let pauses: Vec<_> = (0..80).filter_map(|_| sleep_us(poller.looked(false))).collect();
        assert_eq!(pauses[..4], [50, 100, 200, 400]);
        assert_eq!(pauses.last(), Some(&20_000));
        assert!(pauses.is_sorted() && pauses.iter().sum::<u128>() < 200_000);
        assert_eq!((poller.polls(), poller.sleeps()), (80, pauses.len() as u64));
    }

    #[test]
    fn a_page_makes_it_quick_again() {
        let mut poller = Poller::default();
        for _ in 0..100 {
            poller.looked(false);
        }
        assert_eq!(poller.looked(true), Pause::Spin);
        let next = (0..100).find_map(|_| sleep_us(poller.looked(false)));
        assert_eq!(next, Some(50));
    }
}
