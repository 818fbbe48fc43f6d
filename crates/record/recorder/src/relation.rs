//! Converts a guest's TSC back to the host's, from KVM's offset and scaling.

use tracedat::ShiftSample;
use vms::Vcpu;

/// The conversion from a vCPU's TSC to the host's, at a guest time.
///
/// KVM computes `guest = (host * ratio >> bits) + offset`. The inverse, with the inverse ratio `back`, is `host =
/// (guest * back >> bits) - (offset * back >> bits)`.
pub(crate) fn to_host(vcpu: &Vcpu, time: u64) -> Option<ShiftSample> {
    let offset = vcpu.tsc_offset?;
    let bits = vcpu.tsc_scaling_bits.unwrap_or(0);
    let ratio = vcpu.tsc_scaling_ratio.unwrap_or(0);
    if ratio == 0 || bits == 0 || 1_u64.checked_shl(bits) == Some(ratio) {
        let offset = offset.checked_neg()?;
        return Some(ShiftSample { time, offset, scaling: 1, fraction: 0 });
    }
    // No processor has a fraction of 64 bits, but debugfs values are not trusted.
    let back = 1_u128.checked_shl(bits.checked_mul(2)?)?.checked_div(ratio.into())?;
    let scaling = u64::try_from(back).ok().filter(|&scaling| scaling > 0)?;
    let scaled = i128::from(offset).checked_mul(scaling.into())? >> bits;
    let offset = i64::try_from(scaled.checked_neg()?).ok()?;
    Some(ShiftSample { time, offset, scaling, fraction: bits.into() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vcpu(offset: i64, ratio: Option<u64>, bits: Option<u32>) -> Vcpu {
        let (tsc_offset, tsc_scaling_ratio) = (Some(offset), ratio);
        Vcpu { vcpu: 0, tid: 1, tsc_offset, tsc_scaling_ratio, tsc_scaling_bits: bits }
    }

    fn host(sample: &ShiftSample, guest: u64) -> i128 {
        let scaled = (u128::from(guest) * u128::from(sample.scaling)) >> sample.fraction;
        i128::try_from(scaled).unwrap() + i128::from(sample.offset)
    }

    #[test]
    fn without_scaling_an_offset_is_all() {
        for (ratio, bits) in [
            (None, None),
            (Some(1 << 48), Some(48)),
            (Some(1 << 32), Some(32)),
            (Some(1 << 48), None),
        ] {
            let sample = to_host(&vcpu(-5000, ratio, bits), 9).unwrap();
            let expected = ShiftSample { time: 9, offset: 5000, scaling: 1, fraction: 0 };
            assert_eq!(sample, expected);
        }
        let unknown = Vcpu { tsc_offset: None, ..vcpu(0, None, None) };
        assert_eq!(to_host(&unknown, 9), None);
    }

    #[test]
    fn a_fraction_that_no_processor_has_is_refused() {
        for bits in [64, 65, 127, 128, u32::MAX] {
            assert_eq!(to_host(&vcpu(-5000, Some(3 << 30), Some(bits)), 9), None, "{bits}");
        }
        // With 63 bits the number would be too large, but the shift is valid.
        assert_eq!(to_host(&vcpu(-5000, Some(1), Some(63)), 9), None);
    }

    #[test]
    fn what_kvm_scaled_is_scaled_back() {
        // A guest with 2.0 GHz on a host with 3.1, with the fraction sizes of VMX and SVM.
        for bits in [48, 32] {
            let ratio = (u128::from(2_000_000_u64) << bits) / 3_100_000;
            let ratio = u64::try_from(ratio).unwrap();
            let vcpu = vcpu(-1_234_567_890, Some(ratio), Some(bits));
            let sample = to_host(&vcpu, 1).unwrap();
            // An hour of the host's ticks, a day after boot.
            for ticks in [86_400_u64 * 3_100_000_000, 90_000 * 3_100_000_000] {
                let guest = (u128::from(ticks) * u128::from(ratio)) >> bits;
                let guest = u64::try_from(guest).unwrap() - 1_234_567_890;
                let error = host(&sample, guest) - i128::from(ticks);
                // A fraction of 32 bits has a resolution of one in four billion.
                let bound = if bits == 48 { 10 } else { i128::from(ticks >> 31) };
                assert!(error.abs() <= bound, "{bits}: {error}");
            }
        }
    }
}
