//! Subjects of tracers: consecutive system calls, or two threads that switch to each other.
//!
//! A fixed number of them is timed after some that are not: the first ones would find empty caches and empty tables of
//! tracers.

use std::fs;
use std::io;
use std::time::Instant;

use labguest::wire::Looped;

use crate::load::{other_thread, pass, prepare};
use crate::measure::nanoseconds;
use crate::number_argument;

/// The warm-up is this fraction of the timed operations.
const WARM_UP: u64 = 10;

/// Runs `syscalls=COUNT` or `switches=ROUNDS`, and prints the results as JSON.
pub(crate) fn run(mut arguments: impl Iterator<Item = String>) -> io::Result<()> {
    let argument = arguments.next().unwrap_or_default();
    let looped = match number_argument::number(&argument)? {
        ("syscalls", count) => syscalls(count)?,
        ("switches", rounds) => switches(rounds)?,
        _ => return Err(number_argument::refused(&argument)),
    };
    println!("{}", serde_json::to_string(&looped)?);
    Ok(())
}

/// `getpriority`: the kernel does almost nothing, and no other code here calls it.
fn syscalls(count: u64) -> io::Result<Looped> {
    prepare(0)?;
    let call = |count| {
        for _ in 0..count {
            let _ = rustix::process::getpriority_process(None);
        }
    };
    let warm_up = count / WARM_UP;
    call(warm_up);
    let start = Instant::now();
    call(count);
    let duration_ns = nanoseconds(start.elapsed());
    // Each has an entry and an exit event.
    Ok(Looped {
        duration_ns,
        iterations: count,
        events: 2 * count,
        all_events: 2 * (count + warm_up),
    })
}

/// A byte there and back, on one CPU: two switches.
fn switches(rounds: u64) -> io::Result<Looped> {
    let named = std::thread::Builder::new().name(format!("{}-a", labguest::wire::LOAD_THREAD));
    let lead = named.spawn(move || -> io::Result<Looped> {
        let (from_here, mut to_there) = io::pipe()?;
        let (mut from_there, to_here) = io::pipe()?;
        let other = other_thread(0, from_here, to_here)?;
        prepare(0)?;
        pass(rounds / WARM_UP, &mut from_there, &mut to_there)?;
        let before = all_switches()?;
        let start = Instant::now();
        pass(rounds, &mut from_there, &mut to_there)?;
        let duration_ns = nanoseconds(start.elapsed());
        let after = all_switches()?;
        drop(to_there);
        other.join().map_err(|_| io::Error::other("the other thread panicked"))??;
        let events = after.saturating_sub(before);
        Ok(Looped { duration_ns, iterations: rounds, events, all_events: after })
    })?;
    lead.join().map_err(|_| io::Error::other("a thread panicked"))?
}

/// Number of switches away from the two threads so far.
fn all_switches() -> io::Result<u64> {
    let mut sum = 0;
    for thread in fs::read_dir("/proc/self/task")? {
        let folder = thread?.path();
        let name = fs::read_to_string(folder.join("comm"))?;
        if name.starts_with(labguest::wire::LOAD_THREAD) {
            sum += crate::load::switches_in(&fs::read_to_string(folder.join("status"))?);
        }
    }
    Ok(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn system_calls_make_two_events_each() {
        let looped = syscalls(100).unwrap();
        assert_eq!((looped.iterations, looped.events, looped.all_events), (100, 200, 220));
        assert!(looped.duration_ns > 0);
    }

    #[test]
    fn rounds_make_two_switches_each_at_least() {
        // Only root may set a real-time priority.
        let Ok(looped) = switches(50) else { return };
        assert!(looped.events >= 100 && looped.all_events > looped.events, "{looped:?}");
    }
}
