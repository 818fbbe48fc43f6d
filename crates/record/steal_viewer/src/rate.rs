//! Converts TSC ticks to nanoseconds.

/// Frequency of the guest's TSC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rate {
    per_second: u64,
}

impl Rate {
    /// The host's value, otherwise this kernel's.
    pub(crate) fn new(published_by_host: Option<u64>) -> Option<Self> {
        let per_second = published_by_host.or_else(|| {
            let (mult, shift, _) = sys::tsc_conversion()?;
            let ticks = 1_000_000_000_u128.checked_shl(shift.into())?;
            u64::try_from(ticks.checked_div(mult.into())?).ok()
        })?;
        (per_second > 0).then_some(Self { per_second })
    }

    pub(crate) fn ns(self, ticks: u64) -> u64 {
        let ns = u128::from(ticks) * 1_000_000_000 / u128::from(self.per_second.max(1));
        u64::try_from(ns).unwrap_or(u64::MAX)
    }

    /// Multiplier for a right shift of 32 bits; limited to 32 bits.
    pub(crate) fn mult_of_shift_32(self) -> u32 {
        let mult = (1_000_000_000_u128 << 32) / u128::from(self.per_second.max(1));
        u32::try_from(mult).unwrap_or(u32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_nanoseconds() {
        let rate = Rate::new(Some(2_000_000_000)).unwrap();
        assert_eq!((rate.ns(3000), rate.mult_of_shift_32()), (1500, 1 << 31));
        assert_eq!(Rate::new(Some(1)).unwrap().ns(u64::MAX), u64::MAX);
        assert_eq!(Rate::new(Some(0)), None);
    }
}
