//! A scheduler benchmark: how long woken threads wait until they run.
//!
//! One thread wakes a number of workers, which each do a little work, and waits for all of them: each round has one
//! wake-up per worker, and more threads are runnable than there are CPUs.

use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::measure::nanoseconds;
use crate::number_argument;

/// Default number of workers.
const WORKERS: usize = 4;
/// Default time.
const SECONDS: u64 = 2;
/// Max of both.
const MAX_COUNT: u64 = 600;
/// A worker's work per wake-up: iterations of an empty loop.
const WORK: u64 = 2_000;
/// Max wake-ups to keep, to bound the memory; later ones are dropped.
const MAX_KEPT: usize = 1 << 20;

/// Runs with `workers=N seconds=N`, and prints percentiles of the time from a wake-up to the first instruction as JSON.
pub(crate) fn run(arguments: impl Iterator<Item = String>) -> io::Result<()> {
    let (mut workers, mut seconds) = (WORKERS, SECONDS);
    for argument in arguments {
        match Some(number_argument::number(&argument)?)
            .filter(|&(_, n)| (1..=MAX_COUNT).contains(&n))
        {
            Some(("workers", n)) => workers = n as usize,
            Some(("seconds", n)) => seconds = n,
            _ => return Err(number_argument::refused(&argument)),
        }
    }
    let mut waits_ns = wakeups(workers, Duration::from_secs(seconds))?;
    waits_ns.sort_unstable();
    let at = |per_mille: usize| {
        let last = waits_ns.len().saturating_sub(1);
        waits_ns.get(last * per_mille / 1000).copied()
    };
    let report = json!({
        "wakeups": waits_ns.len(),
        "p50_ns": at(500),
        "p99_ns": at(990),
        "max_ns": waits_ns.last(),
    });
    println!("{report}");
    Ok(())
}

/// Wait times of all wake-ups.
fn wakeups(workers: usize, time: Duration) -> io::Result<Vec<u64>> {
    let start = Instant::now();
    let (answers, mut answered) = {
        let (from, to) = io::pipe()?;
        (to, from)
    };
    let mut asks = Vec::new();
    let mut threads = Vec::new();
    for _ in 0..workers {
        let (from, to) = io::pipe()?;
        let answers = answers.try_clone()?;
        asks.push(to);
        threads.push(
            thread::Builder::new()
                .name("wakeups-w".into())
                .spawn(move || worker(start, from, answers))?,
        );
    }
    drop(answers);
    while start.elapsed() < time {
        for ask in &mut asks {
            ask.write_all(&nanoseconds(start.elapsed()).to_ne_bytes())?;
        }
        answered.read_exact(&mut vec![0; workers])?;
    }
    drop(asks);
    let mut waits_ns = Vec::new();
    for thread in threads {
        let thread_waits = thread.join().map_err(|_| io::Error::other("a worker panicked"))?;
        waits_ns.extend(thread_waits?);
    }
    Ok(waits_ns)
}

/// Waits for this worker's wake-ups, until the sender ends.
fn worker(
    start: Instant,
    mut ask_reader: PipeReader,
    mut answer: PipeWriter,
) -> io::Result<Vec<u64>> {
    let mut waits_ns = Vec::new();
    let mut sent_ns = [0; 8];
    loop {
        match ask_reader.read_exact(&mut sent_ns) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(waits_ns),
            read => read?,
        }
        let waited_ns = nanoseconds(start.elapsed()).saturating_sub(u64::from_ne_bytes(sent_ns));
        if waits_ns.len() < MAX_KEPT {
            waits_ns.push(waited_ns);
        }
        (0..WORK).for_each(|round| {
            std::hint::black_box(round);
        });
        answer.write_all(&[0])?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_round_wakes_all_workers() {
        let waits_ns = wakeups(3, Duration::from_millis(30)).unwrap();
        assert!(waits_ns.len() >= 3 && waits_ns.len().is_multiple_of(3), "{}", waits_ns.len());
        assert!(waits_ns.iter().all(|&ns| ns < 30_000_000_000));
    }
}
