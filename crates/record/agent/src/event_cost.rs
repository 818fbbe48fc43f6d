//! The cost of an event in this kernel, measured in the recording's environment: an event that this process can trigger
//! at will, alternately on and off.
//!
//! A thread that renames itself triggers `task:task_rename`, an ordinary event with two texts and two numbers. The
//! halves of a round differ only in the event's state, so their difference is the event's whole cost: the call of its
//! probe, its place in the buffer, its clock, its fields.

use std::ffi::CString;
use std::time::{Duration, Instant};

use channel::wire::{CostRound, EventCost};
use rustix::thread::{name, set_name};
use tracefs::{Clock, Instance, Tracefs};

use crate::error::Result;

const EVENT: &str = "task:task_rename";
/// Number of rounds: the third smallest and third largest of twelve form a 95% interval of the median.
const ROUNDS: usize = 12;
/// Stretches per half round; the median counts, because a guest is sometimes preempted or interrupted by timers.
const INTERVALS: usize = 21;
/// Events per stretch: few, so that most stretches are undisturbed.
const REPEATS: u32 = 10;
/// Size of the buffer: all rounds need two thirds of it, so no event overwrites another.
const BUFFER_KIB: &str = "256";
/// Max time of the measurement: the host waits for it at the end of its recording.
const MAX_TIME: Duration = Duration::from_secs(5);

/// Measures with the recording's clock. A slow machine completes fewer rounds.
pub(crate) fn measure(tracefs: &Tracefs, clock: &Clock) -> Result<EventCost> {
    let instance = Instance::make_another(tracefs)?;
    instance.set("trace_clock", &clock.name)?;
    instance.set("buffer_size_kb", BUFFER_KIB)?;
    instance.set("tracing_on", "1")?;
    let own_name = name().map_err(std::io::Error::from)?;
    let start = Instant::now();
    let mut rounds = Vec::new();
    // The first events fill the caches, which is not part of an event's cost.
    let warm = half(&instance, &own_name, "0").and_then(|_| half(&instance, &own_name, "1"));
    let mut failed = warm.err();
    while failed.is_none() && rounds.len() < ROUNDS && start.elapsed() < MAX_TIME {
        let round = half(&instance, &own_name, "0")
            .and_then(|off_ns| Ok(CostRound { off_ns, on_ns: half(&instance, &own_name, "1")? }));
        match round {
            Ok(round) => rounds.push(round),
            Err(error) => failed = Some(error),
        }
    }
    failed.map_or(Ok(EventCost { event: EVENT.into(), repeats: REPEATS, rounds }), Err)
}

/// Time of a stretch with the event on (`1`) or off (`0`).
fn half(instance: &Instance, own_name: &CString, on: &str) -> Result<u64> {
    instance.set(&format!("events/{}/enable", EVENT.replacen(':', "/", 1)), on)?;
    let mut intervals_ns = Vec::with_capacity(INTERVALS);
    for _ in 0..INTERVALS {
        let start = Instant::now();
        for _ in 0..REPEATS {
            set_name(own_name).map_err(std::io::Error::from)?;
        }
        intervals_ns.push(u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX));
    }
    intervals_ns.sort_unstable();
    Ok(intervals_ns.get(INTERVALS / 2).copied().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_that_is_recorded_takes_longer_than_one_that_is_not() {
        let measured = Tracefs::find().map_err(Into::into).and_then(|tracefs| {
            let clock = Clock::current(&Instance::top(&tracefs))?;
            measure(&tracefs, &clock)
        });
        let cost = match measured {
            Ok(cost) => cost,
            Err(error) => return testkit::skip!("{error}"),
        };
        assert_eq!((cost.repeats, &*cost.event), (REPEATS, EVENT));
        let longer = cost.rounds.iter().filter(|round| round.on_ns > round.off_ns).count();
        assert!(longer * 2 > cost.rounds.len(), "{cost:?}");
    }
}
