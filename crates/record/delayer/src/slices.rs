//! Slices of time with a delay each, in an order by chance, and what was done in them.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use analyses::sensitivity::{DelayCounts, DelaySlice};
use stats::Chance;

use crate::error::{DelayError, Result};
use crate::programs::Delayer;

/// Bytes of a file with a counter that are read.
const MOST_COUNTER: usize = 64;

/// What shows how far the workload is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Exits that the plan counts.
    Exits,
    /// A number in a file that grows: packets of a network device, requests of a disk.
    Counter(PathBuf),
}

/// How time is cut.
#[derive(Clone, Debug)]
pub struct SlicePlan {
    /// Reasons that are delayed in turn.
    pub reasons: usize,
    /// The delays; that there are slices without any goes without saying.
    pub delays: Vec<Duration>,
    /// How long a slice is.
    pub slice: Duration,
    /// See [`Progress`].
    pub progress: Progress,
    /// What the order is drawn from.
    pub seed: u64,
}

impl SlicePlan {
    /// The slices of a block: every reason with every delay, and one without.
    fn block(&self) -> Vec<Option<(usize, Duration)>> {
        let delayed = (0..self.reasons)
            .flat_map(|reason| self.delays.iter().map(move |delay| Some((reason, *delay))));
        delayed.chain([None]).collect()
    }

    /// How many slices a block has.
    #[must_use]
    pub fn slices_a_block(&self) -> usize {
        self.reasons * self.delays.len() + 1
    }
}

/// Runs blocks of slices until `wait`, which waits for so long at most, says that it is over; what was not
/// whole then is left out.
///
/// # Errors
/// When the kernel refuses, or the progress can't be read.
pub fn run(
    delayer: &mut Delayer,
    plan: &SlicePlan,
    wait: &mut dyn FnMut(Duration) -> bool,
) -> Result<Vec<DelaySlice>> {
    let mut slices = Vec::new();
    let mut chance = Chance::new(plan.seed);
    loop {
        let mut order = plan.block();
        chance.shuffle(&mut order);
        for delay in order {
            let Some(slice) = slice(delayer, plan, delay, wait)? else {
                delayer.set(None)?;
                return Ok(slices);
            };
            slices.push(slice);
        }
    }
}

/// One slice; `None` when it is over.
fn slice(
    delayer: &mut Delayer,
    plan: &SlicePlan,
    delay: Option<(usize, Duration)>,
    wait: &mut dyn FnMut(Duration) -> bool,
) -> Result<Option<DelaySlice>> {
    delayer.set(delay)?;
    let (begin, before) = (Instant::now(), counts(delayer, &plan.progress)?);
    if wait(plan.slice) {
        return Ok(None);
    }
    let (after, duration) = (counts(delayer, &plan.progress)?, begin.elapsed());
    Ok(Some(DelaySlice {
        delay_ns: delay.map(|(reason, delay)| (reason, delay.as_nanos() as u64)),
        duration_ns: duration.as_nanos() as u64,
        counts: after.since(&before),
    }))
}

fn counts(delayer: &Delayer, progress: &Progress) -> Result<DelayCounts> {
    let mut counts = delayer.counts()?;
    if let Progress::Counter(path) = progress {
        counts.progress =
            counter(path).map_err(|error| DelayError::Counter(path.clone(), error))?;
    }
    Ok(counts)
}

/// The number in a file.
fn counter(path: &PathBuf) -> io::Result<u64> {
    let bytes = fs::read(path)?;
    let text = bytes.get(..bytes.len().min(MOST_COUNTER)).unwrap_or_default();
    let number = std::str::from_utf8(text).ok().and_then(|text| text.trim().parse().ok());
    number.ok_or_else(|| io::ErrorKind::InvalidData.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_has_every_reason_with_every_delay_and_one_without() {
        let delays = [2, 5].map(Duration::from_micros).to_vec();
        let plan = SlicePlan {
            reasons: 2,
            delays: delays.clone(),
            slice: Duration::from_millis(100),
            progress: Progress::Exits,
            seed: 1,
        };
        let block = plan.block();
        assert_eq!(block.len(), 5);
        assert_eq!(plan.slices_a_block(), 5);
        assert_eq!(block.iter().filter(|one| one.is_none()).count(), 1);
        assert!(block.contains(&Some((1, delays[1]))));
    }

    #[test]
    fn counters_are_read_from_files() {
        let path = PathBuf::from("/proc/sys/kernel/pid_max");
        assert!(counter(&path).is_ok_and(|number| number > 0));
        assert!(counter(&PathBuf::from("/proc/version")).is_err());
    }
}
