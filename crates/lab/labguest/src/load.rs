//! A load that causes scheduler events at a given rate: two threads on one CPU wake each other.
//!
//! They run in bursts, a hundred per second, so that timers are not part of what is measured, and the CPU need not halt
//! between two events.

use std::fs;
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::setpriority_process;
use rustix::thread::{CpuSet, sched_setaffinity};

/// Time between two bursts.
const BURST: Duration = Duration::from_millis(10);
/// Max rounds of a burst before the time is checked.
const MAX_ROUNDS: u64 = 64;

/// Result of the load.
pub(crate) struct Loaded {
    /// Number of switches away from its threads.
    pub(crate) switches: u64,
}

/// Causes context switches at a given rate on a CPU, for a time.
pub(crate) fn run(processor: usize, switches_a_second: u64, time: Duration) -> io::Result<Loaded> {
    let (from_here, to_there) = io::pipe()?;
    let (from_there, to_here) = io::pipe()?;
    let other = other_thread(processor, from_here, to_here)?;
    prepare(processor)?;
    let lead_result = lead(switches_a_second / 2, time, from_there, to_there);
    let answered = other.join().map_err(|_| io::Error::other("the other thread panicked"))?;
    lead_result?;
    Ok(Loaded { switches: own_switches()? + answered? })
}

/// The answering thread; returns the number of switches away from it.
pub(crate) fn other_thread(
    processor: usize,
    from: PipeReader,
    to: PipeWriter,
) -> io::Result<thread::JoinHandle<io::Result<u64>>> {
    let named = thread::Builder::new().name(format!("{}-b", labguest::wire::LOAD_THREAD));
    named.spawn(move || answer(processor, from, to))
}

/// Pins the thread to one CPU, with a higher priority than default threads.
pub(crate) fn prepare(processor: usize) -> io::Result<()> {
    let mut cpus = CpuSet::new();
    cpus.set(processor);
    sched_setaffinity(None, &cpus)?;
    Ok(setpriority_process(None, -20)?)
}

/// Leads the rounds: this thread, the other one, and back.
fn lead(
    rounds_a_second: u64,
    time: Duration,
    mut from: PipeReader,
    mut to: PipeWriter,
) -> io::Result<()> {
    let start = Instant::now();
    let mut done = 0;
    while start.elapsed() < time {
        let due = rounds_due(rounds_a_second, start.elapsed());
        if due <= done {
            thread::sleep(BURST);
            continue;
        }
        let burst = (due - done).min(MAX_ROUNDS);
        pass(burst, &mut from, &mut to)?;
        done += burst;
    }
    Ok(())
}

/// Runs rounds: a byte to the other thread, and one back.
pub(crate) fn pass(rounds: u64, from: &mut PipeReader, to: &mut PipeWriter) -> io::Result<()> {
    for _ in 0..rounds {
        to.write_all(&[0])?;
        from.read_exact(&mut [0])?;
    }
    Ok(())
}

fn rounds_due(rounds_a_second: u64, elapsed: Duration) -> u64 {
    let nanoseconds = u128::from(rounds_a_second) * elapsed.as_nanos();
    u64::try_from(nanoseconds / 1_000_000_000).unwrap_or(u64::MAX)
}

/// Answers until the other end is closed; returns the number of switches away from this thread.
fn answer(processor: usize, mut from: PipeReader, mut to: PipeWriter) -> io::Result<u64> {
    prepare(processor)?;
    while from.read(&mut [0])? == 1 {
        to.write_all(&[0])?;
    }
    own_switches()
}

/// Number of switches away from the calling thread.
fn own_switches() -> io::Result<u64> {
    Ok(switches_in(&fs::read_to_string("/proc/thread-self/status")?))
}

/// Number of switches away from a thread, from its `status`.
pub(crate) fn switches_in(status: &str) -> u64 {
    let is_count = |line: &&str| line.contains("voluntary_ctxt_switches:");
    let counts = status.lines().filter(is_count).filter_map(|line| line.split_whitespace().last());
    counts.filter_map(|count| count.parse::<u64>().ok()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_come_due_with_time() {
        assert_eq!(rounds_due(1000, Duration::from_millis(1500)), 1500);
        assert_eq!(rounds_due(0, Duration::from_secs(9)), 0);
    }

    #[test]
    fn switches_of_this_thread_are_counted() {
        let before = own_switches().unwrap();
        thread::sleep(Duration::from_millis(1));
        assert!(own_switches().unwrap() > before);
    }
}
