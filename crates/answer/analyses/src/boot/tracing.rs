//! Cost of recording the boot for the guest: number of events times the measured cost of one event.

use stats::binomial_two_sided;

use super::events::shown;

/// Max rounds; an agent makes a dozen.
const MAX_ROUNDS: usize = 256;
/// Max letters of the event's name, because the guest chooses it.
const MAX_NAME: usize = 100;
/// 1 - confidence of the interval.
const ALPHA: f64 = 0.05;

/// Cost of an event for the guest that records it, measured in rounds with the event disabled and enabled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventCost {
    /// The event, as `SYSTEM:NAME`.
    pub event: String,
    /// Number of events per measured half round.
    pub repeats: u32,
    pub rounds: usize,
    /// Median over all rounds, in picoseconds; can be negative if noise exceeds the cost.
    pub median_ps: i64,
    /// Lower end of the median's 95% interval.
    pub low_ps: i64,
    /// Upper end of the interval.
    pub high_ps: i64,
}

/// Cost of a number of events; never negative.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TracingCost {
    /// From the median.
    pub ns: u64,
    /// From the lower end of the interval.
    pub low_ns: u64,
    /// From the upper end of the interval.
    pub high_ns: u64,
}

impl EventCost {
    /// The cost from the times of both halves of each round; `None` for too few rounds.
    #[must_use]
    pub fn of_rounds(event: &str, repeats: u32, off_ns: &[u64], on_ns: &[u64]) -> Option<Self> {
        let repeats = Some(repeats).filter(|repeats| *repeats > 0)?;
        let ps = |(off_ns, on_ns): (&u64, &u64)| {
            let more_ns = i128::from(*on_ns) - i128::from(*off_ns);
            let ps = more_ns * 1000 / i128::from(repeats);
            i64::try_from(ps).unwrap_or(if ps < 0 { i64::MIN } else { i64::MAX })
        };
        let mut rounds: Vec<i64> = off_ns.iter().zip(on_ns).take(MAX_ROUNDS).map(ps).collect();
        rounds.sort_unstable();
        let outside = left_out(rounds.len())?;
        let middle = |at: usize| rounds.get(at).copied();
        Some(Self {
            event: shown(&event.chars().take(MAX_NAME).collect::<String>()),
            repeats,
            rounds: rounds.len(),
            median_ps: middle((rounds.len() - 1) / 2)?.midpoint(middle(rounds.len() / 2)?),
            low_ps: middle(outside)?,
            high_ps: middle(rounds.len() - 1 - outside)?,
        })
    }

    /// Cost of this many events.
    #[must_use]
    pub fn cost_of(&self, events: u64) -> TracingCost {
        let ns = |ps: i64| {
            let ps = i128::from(ps.max(0)) * i128::from(events);
            u64::try_from((ps + 500) / 1000).unwrap_or(u64::MAX)
        };
        TracingCost { ns: ns(self.median_ps), low_ns: ns(self.low_ps), high_ns: ns(self.high_ps) }
    }
}

/// Number of smallest rounds, and of largest rounds, outside the median's interval. The sign test only assumes
/// that rounds are equally likely above and below the median. `None` for too few rounds.
fn left_out(rounds: usize) -> Option<usize> {
    let is_rare = |below: &usize| binomial_two_sided(*below as u64, rounds as u64, 0.5) <= ALPHA;
    (0..rounds / 2).take_while(is_rare).last()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values from tables of the sign test, for 95%.
    #[test]
    fn intervals_are_those_of_the_sign_test() {
        let expected =
            [(0, None), (5, None), (6, Some(0)), (9, Some(1)), (12, Some(2)), (20, Some(5))];
        for (rounds, outside) in expected {
            assert_eq!(left_out(rounds), outside, "{rounds}");
        }
    }

    #[test]
    fn what_disturbs_a_round_is_no_cost() {
        let off_ns = [1000; 12];
        let mut on_ns = [3000, 3010, 2990, 3000, 3020, 2980, 3000, 3000, 3000, 3000, 900_000, 3000];
        let cost = EventCost::of_rounds("task:task_rename", 200, &off_ns, &on_ns).unwrap();
        assert_eq!((cost.median_ps, cost.low_ps, cost.high_ps), (10_000, 10_000, 10_050));
        assert_eq!(
            cost.cost_of(1_000_000),
            TracingCost { ns: 10_000_000, low_ns: 10_000_000, high_ns: 10_050_000 }
        );
        assert_eq!(cost.cost_of(u64::MAX).ns, u64::MAX);
        on_ns.fill(500);
        let noise = EventCost::of_rounds("task:task_rename", 200, &off_ns, &on_ns).unwrap();
        assert!(noise.median_ps < 0);
        assert_eq!(noise.cost_of(7), TracingCost { ns: 0, low_ns: 0, high_ns: 0 });
    }

    #[test]
    fn what_says_nothing_is_nothing() {
        assert_eq!(EventCost::of_rounds("x", 200, &[1; 5], &[2; 5]), None);
        assert_eq!(EventCost::of_rounds("x", 0, &[1; 12], &[2; 12]), None);
        assert_eq!(EventCost::of_rounds("x", 1, &[], &[2; 12]), None);
        let all = EventCost::of_rounds("x", 1, &[0; 1000], &[u64::MAX; 1000]).unwrap();
        assert_eq!((all.rounds, all.median_ps), (MAX_ROUNDS, i64::MAX));
    }
}
