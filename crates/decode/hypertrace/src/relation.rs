//! Converts a guest's TSC to its host's.

/// The relation of a vCPU's TSC to the host's: `host = (guest * scaling >> fraction) + offset`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ToHost {
    /// Host cycles per guest cycle, in fixed point.
    pub scaling: u64,
    /// Number of fraction bits, at most 63.
    pub fraction: u8,
    /// Offset that is added; sums wrap.
    pub offset: i64,
}

impl ToHost {
    /// From three words; `None` if they are invalid.
    pub(crate) fn new(scaling: u64, fraction: u64, offset: u64) -> Option<Self> {
        let fraction = u8::try_from(fraction).ok().filter(|&fraction| fraction < 64)?;
        (scaling > 0).then_some(Self { scaling, fraction, offset: offset.cast_signed() })
    }

    /// The host's TSC at a time of the guest's TSC.
    #[must_use]
    pub fn host_tsc(self, guest_tsc: u64) -> u64 {
        let scaled = u128::from(guest_tsc).wrapping_mul(self.scaling.into());
        let scaled = scaled.checked_shr(self.fraction.into()).unwrap_or(0);
        // Wraps as the counter itself does.
        let low = u64::try_from(scaled & u128::from(u64::MAX)).unwrap_or(u64::MAX);
        low.wrapping_add_signed(self.offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_offset_and_a_scale() {
        let same = ToHost { scaling: 1, fraction: 0, offset: 5000 };
        assert_eq!(same.host_tsc(7), 5007);
        let half = ToHost { scaling: 1 << 31, fraction: 32, offset: -1 };
        assert_eq!(half.host_tsc(1000), 499);
        assert_eq!(ToHost::new(0, 0, 0), None);
        assert_eq!(ToHost::new(1, 64, 0), None);
    }
}
