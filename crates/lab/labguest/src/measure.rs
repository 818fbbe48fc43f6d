//! A measured workload: the score on every CPU, the load on the last one, and the machine's usage meanwhile.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use labguest::wire::Measured;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::number_argument::{number, refused};
use crate::{load, score, usage};

#[derive(Default)]
struct LoadOptions {
    time: Duration,
    switches_a_second: u64,
    with_score: bool,
}

/// Runs with `ms=TIME`, `switches=A_SECOND` and `score=1`, and prints the results as JSON.
pub(crate) fn run(arguments: impl Iterator<Item = String>) -> io::Result<()> {
    let mut options = LoadOptions::default();
    for argument in arguments {
        match number(&argument)? {
            ("ms", time) => options.time = Duration::from_millis(time),
            ("switches", count) => options.switches_a_second = count,
            ("score", yes) => options.with_score = yes == 1,
            _ => return Err(refused(&argument)),
        }
    }
    println!("{}", serde_json::to_string(&measure(&options)?)?);
    Ok(())
}

fn measure(options: &LoadOptions) -> io::Result<Measured> {
    let processors = processors()?;
    let last = processors.last().copied().unwrap_or(0);
    let before = usage::now()?;
    let over = AtomicBool::new(false);
    println!("{}", labguest::wire::MEASURE_BEGIN);
    let start = Instant::now();
    let (iterations, switches) = thread::scope(|scope| -> io::Result<(u64, u64)> {
        let load = thread::Builder::new().name(format!("{}-a", labguest::wire::LOAD_THREAD));
        let load = load.spawn_scoped(scope, || {
            let some = options.switches_a_second > 0;
            some.then(|| load::run(last, options.switches_a_second, options.time)).transpose()
        })?;
        let (over, scored) = (&over, processors.iter().filter(|_| options.with_score));
        let scores: Vec<_> = scored.map(|&at| scope.spawn(move || score_on(at, over))).collect();
        thread::sleep(options.time.saturating_sub(start.elapsed()));
        over.store(true, Ordering::Relaxed);
        let iterations = scores.into_iter().map(|handle| joined(handle.join()));
        let iterations: u64 = iterations.sum::<io::Result<u64>>()?;
        Ok((iterations, joined(load.join())?.map_or(0, |loaded| loaded.switches)))
    })?;
    let duration_ns = nanoseconds(start.elapsed());
    println!("{}", labguest::wire::MEASURE_END);
    let millis = u64::try_from(options.time.as_millis()).unwrap_or(u64::MAX);
    let switches_asked = options.switches_a_second.saturating_mul(millis) / 1000;
    Ok(Measured { duration_ns, iterations, switches, switches_asked, before, after: usage::now()? })
}

fn score_on(processor: usize, over: &AtomicBool) -> io::Result<u64> {
    let mut cpus = CpuSet::new();
    cpus.set(processor);
    sched_setaffinity(None, &cpus)?;
    Ok(score::run(over))
}

fn processors() -> io::Result<Vec<usize>> {
    let all = sched_getaffinity(None)?;
    Ok((0..CpuSet::MAX_CPU).filter(|&at| all.is_set(at)).collect())
}

fn joined<T>(result: thread::Result<io::Result<T>>) -> io::Result<T> {
    result.map_err(|_| io::Error::other("a thread panicked"))?
}

/// As whole nanoseconds.
pub(crate) fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
