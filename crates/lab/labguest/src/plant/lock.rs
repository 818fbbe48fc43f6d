//! Threads that want the same lock.

use std::io;
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use serde_json::{Value, json};

use super::options::PlantOptions;
use super::processor::spin;
use crate::measure::nanoseconds;

/// Each thread holds a lock for `hold-us`, computing or with `sleeps=1` asleep, and wants it again after `gap-us`. What all of
/// them waited is printed.
pub(super) fn contended(options: &mut PlantOptions) -> io::Result<Value> {
    let (time, threads) = (options.time()?, options.threads(2)?);
    let hold = options.microseconds("hold-us", 1_000);
    let gap = options.microseconds("gap-us", 0);
    let sleeps = options.number("sleeps", 0) > 0;
    options.none_is_left()?;
    let (lock, start) = (Mutex::new(0_u64), Instant::now());
    let waited: Duration = thread::scope(|scope| {
        let turn = || {
            let mut waited = Duration::ZERO;
            while start.elapsed() < time {
                let begin = Instant::now();
                let mut count = lock.lock();
                waited += begin.elapsed();
                *count += 1;
                if sleeps {
                    thread::sleep(hold)
                } else {
                    spin(hold)
                }
                drop(count);
                if !gap.is_zero() {
                    spin(gap);
                }
            }
            waited
        };
        let all: Vec<_> = (0..threads).map(|_| scope.spawn(turn)).collect();
        all.into_iter().filter_map(|thread| thread.join().ok()).sum()
    });
    Ok(json!({
        "count": lock.into_inner(),
        "took_ns": nanoseconds(start.elapsed()),
        "waited_ns": nanoseconds(waited),
    }))
}
