//! What samples stand for by their own periods, for analyses with no other measure of how long code ran.

use perfdata::{Attr, event_type};

use super::{SampleAt, Samples, sampled};

/// Software events that count nanoseconds: `PERF_COUNT_SW_CPU_CLOCK`, `PERF_COUNT_SW_TASK_CLOCK`
/// (include/uapi/linux/perf_event.h).
const CLOCKS: std::ops::RangeInclusive<u64> = 0..=1;

/// What weights are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WeightUnit {
    /// The event that made the samples.
    pub event: String,
    /// Whether they are nanoseconds: of a clock, or of an event that was sampled at a rate. Else they count the event.
    pub nanoseconds: bool,
    /// Samples a second of that rate, where each sample stands for one part of a second.
    pub hz: Option<u64>,
    /// Samples of other events, which are left out.
    pub others: u64,
}

/// A sample, and what it stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WeighedSample {
    /// The sample.
    pub at: SampleAt,
    /// The thread that ran, as its own kernel numbers it; 0: none did.
    pub thread: u32,
    /// What it stands for.
    pub weight: u64,
}

impl Samples {
    /// The samples of the first event that has any, by thread or CPU and then time, with their weights; `None`: none
    /// has a time.
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

/// Samples a second, where the kernel was to keep to a rate.
fn rate(attr: &Attr) -> Option<u64> {
    Some(attr.sample_period).filter(|&hz| attr.flags.freq() && hz > 0)
}

/// Nanoseconds of clocks; of events at a rate what each sample is of a second: how many events that was depends on what
/// ran. Else events.
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
        // Page faults are no time.
        assert!(!is_clock(&attr(event_type::SOFTWARE, 2, 1, false)));
    }
}
