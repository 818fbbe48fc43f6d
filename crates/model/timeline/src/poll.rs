//! The intervals of an exit in which the thread ran in the kernel; halt polling is subtracted from
//! them.

/// An interval in the kernel.
#[derive(Clone, Copy, Debug)]
struct Interval {
    from_ns: u64,
    to_ns: u64,
    /// It ended because the thread went to sleep.
    slept: bool,
}

/// The intervals of one exit, in time order. Cleared per exit, so that its memory is reused after
/// the first long exit.
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

    /// The time at which the thread first went to sleep after `from_ns`, otherwise the last time
    /// before.
    ///
    /// `ns` of `kvm_vcpu_wakeup` comes from a different clock than the time stamps: if the clocks
    /// disagree, `from_ns` can be after the switch that ended the polling. Preemption does not end
    /// polling.
    pub(crate) fn fell_asleep(&self, from_ns: u64) -> Option<u64> {
        let mut ends =
            self.intervals.iter().filter(|interval| interval.slept).map(|interval| interval.to_ns);
        ends.clone().find(|&to_ns| to_ns >= from_ns).or_else(|| ends.next_back())
    }

    /// Time that the thread ran in the kernel between two moments.
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
