//! Runs slices of time with one delay each, in random order, and collects their counts.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use stats::Chance;
use timeline::delays::{DelayCounts, DelaySlice};

use crate::delayer::error::{DelayError, Result};
use crate::delayer::programs::{Delayer, SliceNumber};

/// Max bytes to read of a counter's file.
const MAX_COUNTER: usize = 64;

/// The measure of the workload's progress.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Exits that the plan counts.
    Exits,
    /// An increasing number in a file: packets of a network device, requests of a disk.
    Counter(PathBuf),
}

/// How to cut time into slices.
#[derive(Clone, Debug)]
pub struct SlicePlan {
    /// Number of reasons, which are delayed in turn.
    pub reasons: usize,
    /// The delays; a slice without delay is always added.
    pub delays: Vec<Duration>,
    /// Length of a slice.
    pub slice: Duration,
    /// See [`Progress`].
    pub progress: Progress,
    /// Seed of the random order.
    pub seed: u64,
}

impl SlicePlan {
    /// The slices of a block: every reason with every delay, and one without delay.
    fn block(&self) -> Vec<Option<(usize, Duration)>> {
        let delayed = (0..self.reasons)
            .flat_map(|reason| self.delays.iter().map(move |delay| Some((reason, *delay))));
        delayed.chain([None]).collect()
    }

    /// Number of slices in a block.
    #[must_use]
    pub fn slices_a_block(&self) -> usize {
        self.reasons * self.delays.len() + 1
    }
}

/// Interval at which the waiting program is attached again: a program attached meanwhile counts delays as guest time
/// until then.
const COME_LAST: Duration = Duration::from_secs(1);

/// Time to wait for exits of the last slice to end: longer than any delay.
const LAST_ENDS: Duration = Duration::from_millis(5);

/// Runs blocks of slices until `wait`, which waits for at most the given time, returns true; omits an incomplete block.
///
/// # Errors
/// When the kernel refuses, or the progress can't be read.
pub fn run(
    delayer: &mut Delayer,
    plan: &SlicePlan,
    wait: &mut dyn FnMut(Duration) -> bool,
) -> Result<Vec<DelaySlice>> {
    let mut slices = Slices::default();
    let (mut chance, mut came_last) = (Chance::new(plan.seed), Instant::now());
    loop {
        let mut order = plan.block();
        chance.shuffle(&mut order);
        for delay in order {
            slices.begin(delayer, plan, delay)?;
            if wait(plan.slice) {
                slices.running = None;
                slices.pause(delayer, plan)?;
                return Ok(slices.complete);
            }
        }
        if came_last.elapsed() >= COME_LAST {
            slices.pause(delayer, plan)?;
            delayer.come_last()?;
            came_last = Instant::now();
        }
    }
}

/// The current slice.
struct Running {
    number: SliceNumber,
    /// Earlier counts of its slot.
    before: DelayCounts,
    start: Instant,
    /// Progress in the file at its begin, if there is one.
    progress: Option<u64>,
    delay: Option<(usize, Duration)>,
}

/// An ended slice, whose last exits may still be running.
struct Ended {
    number: SliceNumber,
    before: DelayCounts,
    /// Progress in the file.
    progress: Option<u64>,
    slice: DelaySlice,
}

/// The slices that were run.
#[derive(Default)]
struct Slices {
    complete: Vec<DelaySlice>,
    running: Option<Running>,
    ended: Option<Ended>,
}

impl Slices {
    /// Begins a slice, which ends the current one.
    fn begin(
        &mut self,
        delayer: &mut Delayer,
        plan: &SlicePlan,
        delay: Option<(usize, Duration)>,
    ) -> Result<()> {
        let number = delayer.next_slice();
        let (before, progress) = (delayer.counts(number)?, progress(plan)?);
        let start = Instant::now();
        delayer.begin(delay)?;
        // All exits of the slice before have ended by now, or are omitted.
        self.take_ended(delayer)?;
        let running = Running { number, before, start, progress, delay };
        self.ended = self.running.replace(running).map(|over| over.end(start, progress));
        Ok(())
    }

    /// Ends the current slice: nothing is delayed until the next one begins.
    fn pause(&mut self, delayer: &mut Delayer, plan: &SlicePlan) -> Result<()> {
        self.begin(delayer, plan, None)?;
        self.running = None;
        thread::sleep(LAST_ENDS);
        self.take_ended(delayer)
    }

    /// Collects the counts of the ended slice.
    fn take_ended(&mut self, delayer: &Delayer) -> Result<()> {
        let Some(Ended { number, before, progress, mut slice }) = self.ended.take() else {
            return Ok(());
        };
        slice.counts = delayer.counts(number)?.since(&before);
        if let Some(progress) = progress {
            slice.counts.progress = progress;
        }
        self.complete.push(slice);
        Ok(())
    }
}

impl Running {
    fn end(self, end: Instant, progress: Option<u64>) -> Ended {
        let Self { number, before, start, progress: began_with, delay } = self;
        let duration = end.duration_since(start);
        Ended {
            number,
            before,
            progress: progress.zip(began_with).map(|(now, then)| now.saturating_sub(then)),
            slice: DelaySlice {
                delay_ns: delay.map(|(reason, delay)| (reason, delay.as_nanos() as u64)),
                duration_ns: duration.as_nanos() as u64,
                counts: DelayCounts::default(),
            },
        }
    }
}

/// The progress in the file, if there is one.
fn progress(plan: &SlicePlan) -> Result<Option<u64>> {
    match &plan.progress {
        Progress::Exits => Ok(None),
        Progress::Counter(path) => {
            let found = counter(path);
            found.map(Some).map_err(|error| DelayError::Counter(path.clone(), error))
        }
    }
}

/// The number in a file.
fn counter(path: &PathBuf) -> io::Result<u64> {
    let bytes = fs::read(path)?;
    let text = bytes.get(..bytes.len().min(MAX_COUNTER)).unwrap_or_default();
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
        assert_eq!(block.iter().filter(|delay| delay.is_none()).count(), 1);
        assert!(block.contains(&Some((1, delays[1]))));
    }

    #[test]
    fn counters_are_read_from_files() {
        let path = PathBuf::from("/proc/sys/kernel/pid_max");
        assert!(counter(&path).is_ok_and(|number| number > 0));
        assert!(counter(&PathBuf::from("/proc/version")).is_err());
    }
}
