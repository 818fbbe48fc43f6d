//! Whether a planted cause took effect, by counters that are read apart from the recording.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

/// Readings of counters, or their differences, by name.
pub(super) type Counters = BTreeMap<String, u64>;

/// What must have happened while the cause was planted.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Effect {
    /// The counter: `kvm.exits`, `vcpu0.run_delay_ns`, `guest.irq.TLB`, `work.count`.
    counter: String,
    /// It rises at least so much.
    at_least: Option<u64>,
    /// It rises at least so much a second.
    per_second: Option<u64>,
    /// It rises at most so much a second.
    max_per_second: Option<u64>,
}

/// An effect with what was measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MeasuredEffect {
    /// The counter.
    pub counter: String,
    /// How much it rose; null if there is no such counter.
    pub value: Option<u64>,
    /// The least that it has to rise.
    pub min: Option<u64>,
    /// The most that it may rise.
    pub max: Option<u64>,
    /// Whether it did so.
    pub holds: bool,
}

impl fmt::Display for MeasuredEffect {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.value {
            Some(value) => write!(to, "{} rose by {value}", self.counter),
            None => write!(to, "there is no counter {}", self.counter),
        }?;
        if let Some(min) = self.min {
            write!(to, ", at least {min} expected")?;
        }
        self.max.map_or(Ok(()), |max| write!(to, ", at most {max} expected"))
    }
}

impl Effect {
    /// Whether it asks for anything.
    pub(super) fn check(&self) -> Result<(), String> {
        match (self.at_least, self.per_second, self.max_per_second) {
            (None, None, None) => Err(format!("nothing is expected of {}", self.counter)),
            _ => Ok(()),
        }
    }

    /// Holds it against what counters rose by in a time.
    pub(super) fn measured(&self, rises: &Counters, window_ns: u64) -> MeasuredEffect {
        let in_window = |rate: u64| {
            u64::try_from(u128::from(rate) * u128::from(window_ns) / 1_000_000_000)
                .unwrap_or(u64::MAX)
        };
        let value = rises.get(&self.counter).copied();
        let min = self.at_least.max(self.per_second.map(in_window));
        let max = self.max_per_second.map(in_window);
        let holds = value.is_some_and(|value| {
            min.is_none_or(|min| value >= min) && max.is_none_or(|max| value <= max)
        });
        MeasuredEffect { counter: self.counter.clone(), value, min, max, holds }
    }
}

/// How much counters rose from one reading to another; what rose by nothing is there with 0.
pub(super) fn rises(before: &Counters, after: &Counters) -> Counters {
    let rise = |(name, &value): (&String, &u64)| {
        // A thread that began meanwhile counted from 0.
        let base = before.get(name).copied().unwrap_or(0);
        (name.clone(), value.saturating_sub(base))
    };
    after.iter().map(rise).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counters(all: &[(&str, u64)]) -> Counters {
        all.iter().map(|&(name, value)| (name.to_owned(), value)).collect()
    }

    fn effect(text: &str) -> Effect {
        toml::from_str(text).unwrap()
    }

    #[test]
    fn counters_rise_by_their_difference() {
        let rose = rises(
            &counters(&[("a", 5), ("gone", 3), ("back", 9)]),
            &counters(&[("a", 7), ("new", 4), ("back", 1)]),
        );
        assert_eq!(rose, counters(&[("a", 2), ("new", 4), ("back", 0)]));
    }

    #[test]
    fn an_effect_is_a_rate_over_the_window() {
        let effect = effect("counter = 'a'\nper_second = 100\nmax_per_second = 200");
        let holds = |value| effect.measured(&counters(&[("a", value)]), 500_000_000).holds;
        assert!(!holds(49) && holds(50) && holds(100) && !holds(101));
    }

    #[test]
    fn a_counter_that_is_not_there_is_no_effect() {
        let measured =
            effect("counter = 'b'\nmax_per_second = 5").measured(&counters(&[("a", 1)]), 1);
        assert!(!measured.holds && measured.value.is_none());
        assert_eq!(measured.to_string(), "there is no counter b, at most 0 expected");
        assert!(effect("counter = 'a'").check().is_err());
    }
}
