//! Work in batches with pauses, for a time.

use std::io;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::options::PlantOptions;
use crate::measure::nanoseconds;

/// How often work is done.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    time: Duration,
    /// Between two batches.
    pause: Duration,
    /// Things done in one.
    pub(super) batch: u64,
}

impl Pace {
    /// As `ms`, `pause-us` and `batch` say; no other option is left then.
    pub(super) fn read(options: &mut PlantOptions) -> io::Result<Self> {
        let pace = Self {
            time: options.time()?,
            pause: options.microseconds("pause-us", 0),
            batch: options.number("batch", 1).max(1),
        };
        options.none_is_left()?;
        Ok(pace)
    }

    /// Does batches until the time is over; what to print.
    pub(super) fn run(self, mut batch: impl FnMut(u64) -> io::Result<()>) -> io::Result<Value> {
        let start = Instant::now();
        let (mut count, mut worked, mut longest) = (0, Duration::ZERO, Duration::ZERO);
        while start.elapsed() < self.time {
            let begin = Instant::now();
            batch(self.batch)?;
            let took = begin.elapsed();
            worked += took;
            longest = longest.max(took);
            count += self.batch;
            if !self.pause.is_zero() {
                thread::sleep(self.pause);
            }
        }
        Ok(json!({
            "count": count,
            "took_ns": nanoseconds(start.elapsed()),
            "worked_ns": nanoseconds(worked),
            "longest_batch_ns": nanoseconds(longest),
        }))
    }
}
