//! Converts a stream's time units to nanoseconds.

/// The length of a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Clock {
    counter_khz: u32,
    shift: u8,
}

impl Clock {
    /// `None` if no processor has this rate.
    pub(crate) fn new(counter_khz: u32, shift: u8) -> Option<Self> {
        (1_000..=100_000_000).contains(&counter_khz).then_some(Self { counter_khz, shift })
    }

    /// Converts units to cycles.
    pub(crate) fn cycles(self, units: u64) -> u64 {
        units.checked_shl(self.shift.into()).unwrap_or(u64::MAX)
    }

    /// Converts cycles to nanoseconds, at the guest's rate.
    pub(crate) fn ns_of_cycles(self, cycles: u64) -> u64 {
        Self { shift: 0, ..self }.ns(cycles)
    }

    /// Converts units to nanoseconds, rounded to the nearest.
    pub(crate) fn ns(self, units: u64) -> u64 {
        let khz = u128::from(self.counter_khz);
        // At most 2^64 * 2^31 * 10^6 < 2^116.
        let cycles = u128::from(units).checked_shl(u32::from(self.shift)).unwrap_or(u128::MAX);
        let ns = cycles.saturating_mul(1_000_000).saturating_add(khz / 2).checked_div(khz);
        ns.and_then(|ns| u64::try_from(ns).ok()).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_cycles_shifted() {
        let clock = Clock::new(2_000_000, 5).unwrap();
        assert_eq!(clock.ns(1), 16);
        assert_eq!(clock.ns(62_500_000), 1_000_000_000);
        assert_eq!(Clock::new(1_000, 31).unwrap().ns(u64::MAX), u64::MAX);
        assert_eq!(Clock::new(0, 5), None);
    }
}
