//! A thread that always waits for another one, whose activities have known times. Tests compare these times with what a
//! recording reports about the wait.

use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::exits;
use crate::measure::nanoseconds;
use crate::number_argument;

/// Max value of an argument.
const MAX_ARGUMENT: u64 = 1_000_000;

/// A tick of /proc/stat (`USER_HZ`, 100 on x86 and Arm).
const TICK: Duration = Duration::from_millis(10);

/// The answering thread's activity per question.
#[derive(Debug, Default)]
struct Answer {
    busy: Duration,
    nap: Duration,
    /// Exits, as in `exits`.
    exits: Vec<String>,
}

/// Runs with `rounds=N [busy-us=N] [nap-us=N] [KIND=COUNT]…`. Prints as JSON how long the first thread waited and what
/// the other one did, by their own clocks, and the steal time of the first CPU meanwhile.
pub(crate) fn run(arguments: impl Iterator<Item = String>) -> io::Result<()> {
    let (mut rounds, mut answer) = (1, Answer::default());
    for argument in arguments {
        match Some(number_argument::number(&argument)?).filter(|&(_, n)| n <= MAX_ARGUMENT) {
            Some(("rounds", n)) => rounds = n,
            Some(("busy-us", us)) => answer.busy = Duration::from_micros(us),
            Some(("nap-us", us)) => answer.nap = Duration::from_micros(us),
            Some(_) => answer.exits.push(argument),
            None => return Err(number_argument::refused(&argument)),
        }
    }
    println!("{}", handoff(rounds, answer)?);
    Ok(())
}

fn handoff(rounds: u64, answer: Answer) -> io::Result<serde_json::Value> {
    let (ask_reader, ask) = io::pipe()?;
    let (answered, answers) = io::pipe()?;
    let named = |name: &str| thread::Builder::new().name(name.to_owned());
    let answerer = named("answerer").spawn(move || respond(&answer, ask_reader, answers))?;
    let asker = named("asker").spawn(move || wait(rounds, ask, answered))?;
    let ended = |_| io::Error::other("a thread panicked");
    let (waited, stolen) = asker.join().map_err(ended)??;
    let [busy, napped, in_exits] = answerer.join().map_err(ended)??.map(nanoseconds);
    Ok(json!({
        "rounds": rounds,
        "waited_ns": nanoseconds(waited),
        "stolen_ns": nanoseconds(stolen),
        "busy_ns": busy,
        "napped_ns": napped,
        "exits_ns": in_exits,
    }))
}

/// Asks, and only waits for the answers; returns the time, and the first CPU's steal time.
fn wait(
    rounds: u64,
    mut ask: PipeWriter,
    mut answered: PipeReader,
) -> io::Result<(Duration, Duration)> {
    let (start, before) = (Instant::now(), steal()?);
    for _ in 0..rounds {
        ask.write_all(&[0])?;
        answered.read_exact(&mut [0])?;
    }
    Ok((start.elapsed(), steal()?.saturating_sub(before)))
}

/// The first CPU's steal time since boot, with a resolution of a tick.
fn steal() -> io::Result<Duration> {
    let text = std::fs::read_to_string("/proc/stat")?;
    let line = text.lines().find_map(|line| line.strip_prefix("cpu0 ")).unwrap_or_default();
    let ticks: u32 = line.split_whitespace().nth(7).and_then(|word| word.parse().ok()).unwrap_or(0);
    Ok(TICK.saturating_mul(ticks))
}

/// Answers until the sender ends; returns how long it was busy, slept, and caused exits.
fn respond(
    answer: &Answer,
    mut ask_reader: PipeReader,
    mut answers: PipeWriter,
) -> io::Result<[Duration; 3]> {
    let mut took = [Duration::ZERO; 3];
    let [busy, napped, in_exits] = &mut took;
    while ask_reader.read(&mut [0])? > 0 {
        let start = Instant::now();
        while start.elapsed() < answer.busy {}
        *busy += start.elapsed();
        let start = Instant::now();
        if !answer.nap.is_zero() {
            thread::sleep(answer.nap);
        }
        *napped += start.elapsed();
        let start = Instant::now();
        for exits in &answer.exits {
            exits::make_asked(exits)?;
        }
        *in_exits += start.elapsed();
        answers.write_all(&[0])?;
    }
    Ok(took)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wait_is_as_long_as_what_was_done_meanwhile() {
        let [busy, nap] = [2, 3].map(Duration::from_millis);
        let report = handoff(4, Answer { busy, nap, exits: Vec::new() }).unwrap();
        let ns = |name: &str| report[name].as_u64().unwrap();
        assert!(ns("busy_ns") >= 8_000_000 && ns("napped_ns") >= 12_000_000, "{report}");
        assert!(ns("waited_ns") >= ns("busy_ns") + ns("napped_ns") + ns("exits_ns"), "{report}");
    }
}
