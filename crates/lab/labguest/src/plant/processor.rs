//! Workloads that compute, sleep, or read the clock.

use std::io;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::setpriority_process;
use serde_json::{Value, json};

use super::options::PlantOptions;
use super::pace::Pace;
use crate::measure::nanoseconds;

/// Turns of an empty loop between two looks at the clock.
const TURNS: u64 = 5_000;
/// The number that stands for nice 0.
const NICE_ZERO: u64 = 20;

/// Computes for a time, for `duty` percent of each period, on some threads. With `nice=0` it goes before all others, 39 is the last.
pub(super) fn busy(options: &mut PlantOptions) -> io::Result<Value> {
    let (time, threads) = (options.time()?, options.threads(1)?);
    let period = options.microseconds("period-us", 10_000);
    let duty = options.number("duty", 100).min(100);
    let nice = options.number("nice", NICE_ZERO).min(39);
    options.none_is_left()?;
    if nice != NICE_ZERO {
        setpriority_process(None, i32::try_from(nice).unwrap_or(0) - 20)?;
    }
    let work = period * u32::try_from(duty).unwrap_or(100) / 100;
    let start = Instant::now();
    let pause = (duty < 100).then(|| period.saturating_sub(work));
    let count = thread::scope(|scope| {
        let others: Vec<_> =
            (1..threads).map(|_| scope.spawn(move || compute(time, work, pause))).collect();
        let first = compute(time, work, pause);
        others.into_iter().map(|thread| thread.join().unwrap_or(0)).sum::<u64>() + first
    });
    Ok(json!({ "count": count, "took_ns": nanoseconds(start.elapsed()) }))
}

/// Computes, with a pause after each `work`; how many thousand turns that were.
pub(super) fn compute(time: Duration, work: Duration, pause: Option<Duration>) -> u64 {
    let (start, mut count) = (Instant::now(), 0);
    while start.elapsed() < time {
        let begin = Instant::now();
        while begin.elapsed() < work {
            turns(TURNS);
            count += TURNS / 1_000;
        }
        if let Some(pause) = pause {
            thread::sleep(pause);
        }
    }
    count
}

fn turns(count: u64) {
    (0..count).for_each(|turn| {
        std::hint::black_box(turn);
    });
}

/// Keeps the processor for a time.
pub(super) fn spin(time: Duration) {
    let start = Instant::now();
    while start.elapsed() < time {
        turns(50);
    }
}

/// Sleeps again and again; with `busy=1` another thread computes meanwhile, so that timers interrupt it.
pub(super) fn sleeps(options: &mut PlantOptions) -> io::Result<Value> {
    let (time, threads) = (options.time()?, options.threads(1)?);
    let nap = options.microseconds("us", 500);
    let work = options.microseconds("work-us", 0);
    let is_busy = options.number("busy", 0) > 0;
    options.none_is_left()?;
    let start = Instant::now();
    let (count, late) = thread::scope(|scope| {
        let computing = is_busy.then(|| scope.spawn(move || compute(time, time, None)));
        let sleepers: Vec<_> =
            (0..threads).map(|_| scope.spawn(move || sleep_often(time, nap, work))).collect();
        let sums = sleepers.into_iter().filter_map(|thread| thread.join().ok());
        let sum =
            sums.fold((0, Duration::ZERO), |sum, (count, late)| (sum.0 + count, sum.1 + late));
        drop(computing.map(thread::ScopedJoinHandle::join));
        sum
    });
    Ok(json!({
        "count": count,
        "took_ns": nanoseconds(start.elapsed()),
        "late_ns": nanoseconds(late),
    }))
}

/// How often, and how much longer than asked for.
fn sleep_often(time: Duration, nap: Duration, work: Duration) -> (u64, Duration) {
    let (start, mut count, mut late) = (Instant::now(), 0, Duration::ZERO);
    while start.elapsed() < time {
        let begin = Instant::now();
        thread::sleep(nap);
        late += begin.elapsed().saturating_sub(nap);
        count += 1;
        if !work.is_zero() {
            spin(work);
        }
    }
    (count, late)
}

/// Reads the clock.
pub(super) fn clock(options: &mut PlantOptions) -> io::Result<Value> {
    Pace::read(options)?.run(|batch| {
        (0..batch).for_each(|_| {
            std::hint::black_box(Instant::now());
        });
        Ok(())
    })
}
