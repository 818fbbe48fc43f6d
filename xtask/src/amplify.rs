//! Makes a recording of any size out of a real one: its pages, again and again, each time later.
//!
//! Deltas between records are relative, so only the stamps in page heads change, and the absolute
//! stamps among the records. The result is uncompressed and is written as a stream: a recording of
//! 10 GB takes no more memory than the original.
//!
//! Every count of the result is that of the original times the repetitions. Pairs of events are
//! too, but for those that span a seam: where the original ends with an exit and begins with an
//! entry of the same vCPU. With `--mark-seams` the first page of each repetition says that events
//! were lost before it, and no reader may pair across.

mod container;
mod pages;
mod size;
mod v6;
mod v7;

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use tracedat::{ChunkReader, TraceDat};

use self::container::{Container, Placed};
use self::pages::Page;
use self::size::Size;

/// Time between the last event of one repetition and the first page of the next.
const GAP: u64 = 1_000;

/// What to repeat, how often, and how to write it.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Recording to repeat.
    input: PathBuf,
    /// Recording to write.
    output: PathBuf,
    /// Least size of the pages to write, such as 100M or 10G.
    #[arg(long)]
    size: Size,
    /// Write version 6 of the format instead of 7.
    #[arg(long)]
    v6: bool,
    /// Say at the start of each repetition that events were lost before it.
    #[arg(long)]
    mark_seams: bool,
}

/// One CPU's pages.
struct Cpu {
    number: u32,
    pages: Vec<Page>,
}

/// What is written: how often, and how much later each time.
struct Plan {
    cpus: Vec<Cpu>,
    repetitions: u64,
    period: u64,
    mark_seams: bool,
}

/// Writes the amplified recording and says how often the original is in it.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let input = fs::read(&arguments.input)
        .with_context(|| format!("{} can't be read", arguments.input.display()))?;
    let recording = TraceDat::parse(&input)
        .with_context(|| format!("{} can't be read", arguments.input.display()))?;
    let plan = Plan::new(arguments, &input, &recording)?;
    let container = Container::new(&input, &recording)?;
    let layout: Vec<_> = plan.cpus.iter().map(|cpu| (cpu.number, plan.bytes_of(cpu))).collect();
    let (head, placed) =
        if arguments.v6 { v6::head(&container, &layout) } else { v7::head(&container, &layout) }?;
    let output = File::create(&arguments.output)
        .with_context(|| format!("{} can't be written", arguments.output.display()))?;
    let mut output = BufWriter::with_capacity(1 << 20, output);
    output.write_all(&head)?;
    plan.write(&mut output, head.len() as u64, &placed)?;
    output.flush()?;
    println!("{} repetitions, {} ns apart", plan.repetitions, plan.period);
    Ok(())
}

impl Plan {
    fn new(arguments: &Arguments, input: &[u8], recording: &TraceDat) -> Result<Self> {
        let cpus = read_cpus(input, recording)?;
        let pages = || cpus.iter().flat_map(|cpu| &cpu.pages);
        let once: u64 = pages().map(|page| page.bytes.len() as u64).sum();
        let first = pages().map(|page| page.start).min().context("there are no pages")?;
        let last = pages().map(|page| page.end).max().context("there are no pages")?;
        let repetitions = arguments.size.bytes.div_ceil(once).max(1);
        let period = last - first + GAP;
        let end = period.checked_mul(repetitions).and_then(|span| span.checked_add(last));
        ensure!(
            end.is_some_and(|end| end < 1 << 59),
            "{repetitions} repetitions of {period} ns do not fit 59 bits of time"
        );
        Ok(Self { cpus, repetitions, period, mark_seams: arguments.mark_seams })
    }

    fn bytes_of(&self, cpu: &Cpu) -> u64 {
        cpu.pages.iter().map(|page| page.bytes.len() as u64).sum::<u64>() * self.repetitions
    }

    /// Writes every CPU's pages where the container says they are; `at` is where `output` is.
    fn write(&self, output: &mut impl Write, mut at: u64, placed: &[Placed]) -> Result<()> {
        for (cpu, place) in self.cpus.iter().zip(placed) {
            let fill = place.offset.checked_sub(at).context("CPUs overlap")?;
            output.write_all(&vec![0; usize::try_from(fill)?])?;
            self.write_cpu(output, cpu)?;
            at = place.offset + place.size;
        }
        Ok(())
    }

    fn write_cpu(&self, output: &mut impl Write, cpu: &Cpu) -> Result<()> {
        let mut bytes = Vec::new();
        for repetition in 0..self.repetitions {
            for (index, page) in cpu.pages.iter().enumerate() {
                let seam = self.mark_seams && repetition > 0 && index == 0;
                page.copy_later(repetition * self.period, seam, &mut bytes);
                output.write_all(&bytes)?;
            }
        }
        Ok(())
    }
}

/// Reads every page of the recording's only buffer.
fn read_cpus(input: &[u8], recording: &TraceDat) -> Result<Vec<Cpu>> {
    let [buffer] = recording.buffers.as_slice() else {
        anyhow::bail!("{} buffers; one can be amplified", recording.buffers.len());
    };
    let mut reader = ChunkReader::new();
    let mut cpus = Vec::new();
    for data in &buffer.cpus {
        let mut pages = Vec::new();
        for chunk in &data.chunks(input).list {
            let bytes = reader.read(input, chunk).context("a chunk of pages is damaged")?;
            for page in bytes.chunks_exact(buffer.page_size as usize) {
                pages.push(Page::scan(recording.abi(), page)?);
            }
        }
        cpus.push(Cpu { number: data.cpu, pages });
    }
    Ok(cpus)
}

#[cfg(test)]
mod tests;
