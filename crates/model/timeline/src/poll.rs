//! The intervals of an exit in which the thread ran in the kernel; halt polling is subtracted from them.

/// An interval of running in the kernel.
#[derive(Clone, Copy, Debug)]
struct Interval {
    from_ns: u64,
    to_ns: u64,
    /// It ended because the thread went to sleep.
    slept: bool,
}

/// The intervals of one exit, in time order. Cleared per exit, so that nothing is allocated once
/// the first long exit has been seen.
#[derive(Debug, Default)]
pub(crate) struct KernelIntervals {
    intervals: Vec<Interval>,
}

impl KernelIntervals {
    #[inline]
    pub(crate) fn clear(&mut self) {
        self.intervals.clear();
    }

    #[inline]
    pub(crate) fn push(&mut self, from_ns: u64, to_ns: u64, slept: bool) {
        self.intervals.push(Interval { from_ns, to_ns, slept });
    }

    /// When the thread first went to sleep after `from_ns`; else when it did last before.
    ///
    /// `ns` of `kvm_vcpu_wakeup` is measured by another clock than the stamps: where the two
    /// disagree, `from_ns` can lie after the switch that ended the polling. Being preempted ends
    /// no polling.
    pub(crate) fn fell_asleep(&self, from_ns: u64) -> Option<u64> {
        let mut ends =
            self.intervals.iter().filter(|interval| interval.slept).map(|interval| interval.to_ns);
        ends.clone().find(|&to_ns| to_ns >= from_ns).or_else(|| ends.next_back())
    }

    /// How long the thread ran in the kernel between two moments.
    pub(crate) fn within(&self, from_ns: u64, to_ns: u64) -> u64 {
        self.intervals
            .iter()
            .map(|interval| interval.to_ns.min(to_ns).saturating_sub(interval.from_ns.max(from_ns)))
            .sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn polling_is_cut_out_of_kernel_time_only() {
        let mut intervals = KernelIntervals::default();
        intervals.push(100, 200, true);
        intervals.push(300, 400, false);
        assert_eq!(intervals.fell_asleep(150), Some(200));
        assert_eq!(intervals.fell_asleep(250), Some(200));
        assert_eq!(KernelIntervals::default().fell_asleep(150), None);
        assert_eq!(intervals.within(150, 350), 50 + 50);
        assert_eq!(intervals.within(0, 1000), 200);
    }
}
