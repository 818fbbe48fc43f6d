//! Makes a recording of any size out of a real one: its pages are repeated, each time with later
//! time stamps.
//!
//! Deltas between records are relative, so only the stamps in page headers and absolute stamps
//! among the records change. The result is uncompressed and is written as a stream: a recording of
//! 10 GB takes no more memory than the original's pages.
//!
//! Every count in the result is that of the original times the repetitions. The same holds for
//! pairs of events, except across a seam, where the original ends with an exit and begins with an
//! entry of the same vCPU. `--mark-seams` marks events as lost before the first page of each
//! repetition, so that no reader pairs across.

mod contents;
mod pages;
mod repeat;
mod size;
#[cfg(test)]
mod tests;

use std::fs::{self, File};
use std::io::BufWriter;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use tracedat::{TraceDat, TraceDatWriter, Version};

use self::pages::{Lane, read_lanes};
use self::repeat::Repeat;
use self::size::Size;

/// Time between the last event of one repetition and the first page of the next.
const GAP: u64 = 1_000;

/// The recording to repeat, its target size, and the output format.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Recording to repeat.
    input: PathBuf,
    /// Recording to write.
    output: PathBuf,
    /// Minimum size of the pages to write, such as 100M or 10G.
    #[arg(long)]
    size: Size,
    /// Write version 6 of the format instead of 7.
    #[arg(long)]
    v6: bool,
    /// Mark events as lost before each repetition.
    #[arg(long)]
    mark_seams: bool,
}

impl Arguments {
    /// Arguments that repeat `input` up to `size`, such as 200M, into `output`.
    pub(crate) fn new(input: PathBuf, output: PathBuf, size: &str) -> Result<Self> {
        let size = size.parse().map_err(|error| anyhow::anyhow!("{size}: {error}"))?;
        Ok(Self { input, output, size, v6: false, mark_seams: false })
    }
}

/// Number of repetitions, and the time shift per repetition.
#[derive(Clone, Copy, Debug)]
struct Plan {
    repetitions: u64,
    period: u64,
    mark_seams: bool,
}

/// Writes the amplified recording and prints the number of repetitions.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let unreadable = || format!("{} can't be read", arguments.input.display());
    let input = fs::read(&arguments.input).with_context(unreadable)?;
    let recording = TraceDat::parse(&input).with_context(unreadable)?;
    let lanes = read_lanes(&input, &recording)?;
    let plan = Plan::new(&lanes, arguments.size, arguments.mark_seams)?;
    let version = if arguments.v6 { Version::V6 } else { Version::V7 };
    let contents = contents::build(&input, &recording, version)?;
    let output = File::create(&arguments.output)
        .with_context(|| format!("{} can't be written", arguments.output.display()))?;
    let mut writer = TraceDatWriter::new(BufWriter::with_capacity(1 << 20, output), &contents)?;
    for lane in &lanes {
        writer.write_cpu(&lane.buffer, lane.cpu, Repeat::new(&lane.pages, plan))?;
    }
    writer.finish()?;
    println!("{} repetitions, {} ns apart", plan.repetitions, plan.period);
    Ok(())
}

impl Plan {
    fn new(lanes: &[Lane], size: Size, mark_seams: bool) -> Result<Self> {
        let pages = || lanes.iter().flat_map(|lane| &lane.pages);
        let once: u64 = pages().map(|page| page.bytes.len() as u64).sum();
        let first = pages().map(|page| page.start).min().context("there are no pages")?;
        let last = pages().map(|page| page.end).max().context("there are no pages")?;
        let repetitions = size.bytes.div_ceil(once).max(1);
        let period = last - first + GAP;
        let end = period.checked_mul(repetitions).and_then(|span| span.checked_add(last));
        // An absolute stamp has 59 bits.
        ensure!(
            end.is_some_and(|end| end < 1 << 59),
            "{repetitions} repetitions of {period} ns exceed 59 bits of time"
        );
        Ok(Self { repetitions, period, mark_seams })
    }
}
