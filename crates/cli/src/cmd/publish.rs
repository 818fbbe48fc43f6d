//! `hyperscope publish`: publishes to guests how the host schedules their vCPUs, until a signal
//! ends it.

use std::process::ExitCode;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use anyhow::bail;
use report::plural;
use steal_publisher::{PublishOptions, Publisher, Summary};

use crate::args::publish::PublishArgs;
use crate::cmd::record::{Guard, stop_at_signals};
use command::notice::say;
use command::verb::{Memory, Range, VerbArgs};

/// Interval between checks for the end.
const LOOK: Duration = Duration::from_millis(200);

impl VerbArgs for PublishArgs {
    fn memory(&self) -> Memory {
        Memory::Unbounded
    }

    fn range(&self) -> Range {
        Range::Whole
    }

    fn run(&self) -> anyhow::Result<ExitCode> {
        run(self).map(|()| ExitCode::SUCCESS)
    }
}

fn run(args: &PublishArgs) -> anyhow::Result<()> {
    let (over, is_over) = mpsc::channel();
    stop_at_signals(over)?;
    let options = PublishOptions { guests: args.guests.clone(), interval: args.interval };
    let _guard = Guard::start();
    let publisher = Publisher::begin(&options)?;
    let names: Vec<&str> = publisher.names().collect();
    say(&format!("publishing vCPU data to {}", names.join(", ")));
    let start = Instant::now();
    let is_late = || args.time.is_some_and(|time| start.elapsed() >= time);
    while !is_late() && !publisher.is_over() {
        let remaining =
            args.time.map_or(LOOK, |time| time.saturating_sub(start.elapsed()).min(LOOK));
        if is_over.recv_timeout(remaining) != Err(RecvTimeoutError::Timeout) {
            break;
        }
    }
    let published = publisher.end()?;
    let took = start.elapsed();
    published.iter().for_each(|summary| conclude(summary, took));
    let early = published.iter().find_map(|summary| Some((&summary.vm, summary.over?)));
    match early {
        Some((vm, why)) => bail!("{vm}: publishing stopped early: {why}"),
        None => Ok(()),
    }
}

/// Prints what was published to a guest, and its cost.
#[allow(clippy::cast_precision_loss, reason = "shown with few decimals")]
fn conclude(summary: &Summary, took: Duration) {
    let Summary { vm, spans, pages, lost_events, looks, cpu_ns, .. } = summary;
    let cpu_ms = *cpu_ns as f64 / 1e6;
    let share = 100.0 * *cpu_ns as f64 / took.as_nanos().max(1) as f64;
    say(&format!(
        "{vm}: {} of {}, {} lost, {}, {cpu_ms:.1} ms of CPU time ({share:.2}% of a CPU)",
        plural(*spans, "span"),
        plural(*pages, "page"),
        plural(*lost_events, "event"),
        plural(*looks, "look"),
    ));
}
