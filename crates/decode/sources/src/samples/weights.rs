//! Weights of samples from their periods, for analyses without another measure of execution time.

use perfdata::{Attr, event_type};

use super::{SampleAt, Samples, sampled};

/// Software events that count nanoseconds: `PERF_COUNT_SW_CPU_CLOCK`, `PERF_COUNT_SW_TASK_CLOCK`
/// (include/uapi/linux/perf_event.h).
const CLOCKS: std::ops::RangeInclusive<u64> = 0..=1;

/// The unit of weights.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WeightUnit {
    /// The event of the samples.
    pub event: String,
    /// Whether weights are nanoseconds: for a clock, or for an event that was sampled at a rate.
    /// Otherwise they count the event.
    pub nanoseconds: bool,
    /// Sampling rate per second, if each sample weighs its fraction of a second.
    pub hz: Option<u64>,
    /// Samples of other events, which are ignored.
    pub others: u64,
}

/// A sample with its weight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WeighedSample {
    /// The sample.
    pub at: SampleAt,
    /// Id of the thread that ran, in its own kernel; 0 if the CPU was idle.
    pub thread: u32,
    /// The weight.
    pub weight: u64,
}

impl Samples {
    /// The samples of the first event that has samples, with their weights, sorted by thread or CPU
    /// and then by time; `None` if no event has samples with times.
    #[must_use]
    pub fn weighed(&self) -> Option<(WeightUnit, Vec<WeighedSample>)> {
        let mut keys: Vec<u32> = self.found.keys().copied().collect();
        keys.sort_unstable();
        let mut all: Vec<(usize, WeighedSample)> = Vec::new();
        for &at in keys.iter().filter_map(|key| self.found.get(key)).flatten() {
            let Some(record) = self.bytes.record(at.offset) else { continue };
            let Some((event, sample)) = sampled(&self.events, &record) else { continue };
            let Some(event_info) = self.events.list().get(event) else { continue };
            let weight = weight(&event_info.attr, sample.period);
            all.push((event, WeighedSample { at, thread: sample.tid.unwrap_or(0), weight }));
        }
        let first = all.iter().map(|(event, _)| *event).min()?;
        let event_info = self.events.list().get(first)?;
        let before = all.len();
        all.retain(|(event, _)| *event == first);
        let hz = rate(&event_info.attr);
        let unit = WeightUnit {
            event: event_info.name(),
            nanoseconds: is_clock(&event_info.attr) || hz.is_some(),
            hz: hz.filter(|_| !is_clock(&event_info.attr)),
            others: (before - all.len()) as u64,
        };
        Some((unit, all.into_iter().map(|(_, sample)| sample).collect()))
    }
}

fn is_clock(attr: &Attr) -> bool {
    attr.kind == event_type::SOFTWARE && CLOCKS.contains(&attr.config)
}

/// Samples per second, if the kernel sampled at a rate.
fn rate(attr: &Attr) -> Option<u64> {
    Some(attr.sample_period).filter(|&hz| attr.flags.freq() && hz > 0)
}

/// For a clock, nanoseconds. For other events at a rate, the fraction of a second per sample,
/// because the number of events per sample varies with the code. Otherwise the number of events.
fn weight(attr: &Attr, period: Option<u64>) -> u64 {
    match rate(attr) {
        Some(hz) if !is_clock(attr) => 1_000_000_000 / hz,
        Some(hz) => period.unwrap_or(1_000_000_000 / hz),
        None => period.unwrap_or(attr.sample_period),
    }
}

#[cfg(test)]
mod tests {
    use perfdata::Flags;

    use super::*;

    fn attr(kind: u32, config: u64, period: u64, is_rate: bool) -> Attr {
        Attr {
            kind,
            config,
            sample_period: period,
            sample_type: 0,
            read_format: 0,
            flags: Flags::with_bits(if is_rate { &[perfdata::flag::FREQ] } else { &[] }),
            wakeup: 0,
            branch_sample_type: 0,
            sample_regs_user: 0,
            sample_regs_intr: 0,
            clock_id: 0,
        }
    }

    #[test]
    fn clocks_count_nanoseconds_rates_are_parts_of_a_second_and_others_count_events() {
        let clock = attr(event_type::SOFTWARE, 0, 499, true);
        assert_eq!((weight(&clock, Some(2_004_008)), weight(&clock, None)), (2_004_008, 2_004_008));
        let by_period = attr(event_type::SOFTWARE, 1, 1_000_000, false);
        assert_eq!(weight(&by_period, None), 1_000_000);
        let cycles = attr(event_type::HARDWARE, 0, 1000, true);
        assert_eq!(weight(&cycles, Some(3_700_000)), 1_000_000);
        let counted = attr(event_type::HARDWARE, 0, 100_000, false);
        assert_eq!(weight(&counted, Some(100_007)), 100_007);
        assert!(is_clock(&clock) && !is_clock(&cycles) && rate(&counted).is_none());
        // Page faults are not time.
        assert!(!is_clock(&attr(event_type::SOFTWARE, 2, 1, false)));
    }
}
