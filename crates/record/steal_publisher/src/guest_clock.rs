//! The TSC of a vCPU: KVM scales the host's TSC and adds an offset.

use vms::Vcpu;

/// `guest = (host * ratio >> bits) + offset`, from KVM's debugfs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct GuestClock {
    offset: i64,
    /// Ratio and number of its fraction bits, if the guest's TSC has another frequency.
    scaling: Option<(u64, u32)>,
}

impl GuestClock {
    /// The clock of a vCPU; `None` if the kernel does not give its offset.
    pub(crate) fn for_vcpu(vcpu: &Vcpu) -> Option<Self> {
        let scaling = vcpu.tsc_scaling_ratio.zip(vcpu.tsc_scaling_bits);
        let scaling = scaling.filter(|(ratio, bits)| {
            *bits < 64 && *ratio != 0 && 1_u64.checked_shl(*bits) != Some(*ratio)
        });
        Some(Self { offset: vcpu.tsc_offset?, scaling })
    }

    /// The guest's TSC at the host's `host_tsc`.
    pub(crate) fn guest_tsc(&self, host_tsc: u64) -> u64 {
        self.scaled(host_tsc).wrapping_add_signed(self.offset)
    }

    /// Converts a number of host ticks to guest ticks.
    pub(crate) fn scaled(&self, ticks: u64) -> u64 {
        match self.scaling {
            Some((ratio, bits)) => ((u128::from(ticks) * u128::from(ratio)) >> bits) as u64,
            None => ticks,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clock(offset: i64, ratio: Option<u64>, bits: Option<u32>) -> Option<GuestClock> {
        GuestClock::for_vcpu(&Vcpu {
            vcpu: 0,
            tid: 1,
            tsc_offset: Some(offset),
            tsc_scaling_ratio: ratio,
            tsc_scaling_bits: bits,
        })
    }

    #[test]
    fn kvms_arithmetic() {
        let plain = clock(-1000, Some(1 << 48), Some(48)).unwrap();
        assert_eq!((plain.guest_tsc(5000), plain.scaled(7)), (4000, 7));
        assert_eq!(clock(-1000, None, None), Some(plain));
        assert_eq!(plain.guest_tsc(10), 10_u64.wrapping_sub(1000));
        let half = clock(100, Some(1 << 31), Some(32)).unwrap();
        assert_eq!((half.guest_tsc(5000), half.scaled(4)), (2600, 2));
        let unknown = Vcpu {
            vcpu: 0,
            tid: 1,
            tsc_offset: None,
            tsc_scaling_ratio: None,
            tsc_scaling_bits: None,
        };
        assert_eq!(GuestClock::for_vcpu(&unknown), None);
    }
}
