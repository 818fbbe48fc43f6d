//! Measures Hyperscope and its peers on the same files in the same run: time ratios, and memory.
//!
//! A ratio of two programs measured in turn is valid on any machine; a time is not. So every round
//! runs every program once, and the result is the ratio of medians.

mod measure;
mod table;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

pub(crate) use measure::{MeasureArguments, measure_self};
use measure::{Sample, measure};
use table::{Row, render};

use crate::{amplify, repository};

/// Arguments of `cargo xtask compare`.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Size of the amplified recordings.
    #[arg(long, default_value = "200M")]
    size: String,
    /// Number of rounds; programs that take longer than a second run in only two of them.
    #[arg(long, default_value_t = 11)]
    rounds: usize,
    /// Measure only these programs, by the first word of their name.
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Write the result into docs/performance.md.
    #[arg(long)]
    record: bool,
}

/// Recordings to amplify: a CPU with KVM events only, and two CPUs with scheduler events as well.
const SEEDS: [&str; 2] = ["x86-svm/nested.dat", "x86-svm/host-guest.dat"];

/// Rounds of a slow program.
const SLOW_ROUNDS: usize = 2;
/// Programs that take longer are slow.
const SLOW_NS: u64 = 1_000_000_000;

/// A program to measure, and its arguments without the recording.
struct Program {
    name: &'static str,
    words: Vec<String>,
}

/// Builds, amplifies, measures and prints; records the result if requested.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let hyperscope = build()?;
    let folder = repository::root().join("target/bench");
    std::fs::create_dir_all(&folder)?;
    let mut text = String::new();
    for seed in SEEDS {
        let path = blown_up(&folder, seed, &arguments.size)?;
        let programs = programs(&hyperscope, &arguments.only);
        let samples = in_rounds(&programs, &path, arguments.rounds)?;
        text += &section(seed, &path, &programs, &samples)?;
    }
    print!("{text}");
    if arguments.record {
        table::record(&repository::root().join("docs/performance.md"), &text)?;
    }
    Ok(())
}

fn build() -> Result<PathBuf> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut build = Command::new(cargo);
    build.args(["build", "--profile", "dist", "--locked", "--quiet", "--package", "hyperscope"]);
    ensure!(build.current_dir(repository::root()).status()?.success(), "the build failed");
    let target = std::env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| repository::root().join("target"), PathBuf::from);
    Ok(target.join("dist/hyperscope"))
}

/// The amplified recording, reused if it exists.
fn blown_up(folder: &Path, seed: &str, size: &str) -> Result<PathBuf> {
    let name = seed.replace('/', "-").replace(".dat", &format!("-{size}.dat"));
    let path = folder.join(name);
    if !path.exists() {
        let from = repository::root().join("fixtures").join(seed);
        let partial = path.with_extension("partial");
        amplify::run(&amplify::Arguments::new(from, partial.clone(), size)?)?;
        std::fs::rename(partial, &path)?;
    }
    Ok(path)
}

fn programs(hyperscope: &Path, only: &[String]) -> Vec<Program> {
    let ours = |verb: &[&str]| {
        let words = std::iter::once(hyperscope.display().to_string());
        words.chain(verb.iter().map(ToString::to_string)).collect()
    };
    let peer = |words: &[&str]| words.iter().map(ToString::to_string).collect();
    let mut programs = vec![
        Program { name: "cat", words: peer(&["cat"]) },
        Program { name: "exits", words: ours(&["exits"]) },
        Program { name: "nested", words: ours(&["nested"]) },
        Program { name: "path", words: ours(&["path"]) },
        Program { name: "cpu", words: ours(&["cpu"]) },
        Program { name: "report", words: ours(&["report"]) },
        Program { name: "export perfetto", words: ours(&["export", "--to", "perfetto"]) },
        Program { name: "info", words: ours(&["info"]) },
        Program { name: "events", words: ours(&["events"]) },
        Program { name: "events jsonl", words: ours(&["events", "--format", "jsonl"]) },
    ];
    if Command::new("trace-cmd").arg("--version").output().is_ok() {
        let report = Program { name: "trace-cmd report", words: peer(&["trace-cmd", "report"]) };
        programs.push(report);
        let words = peer(&["trace-cmd", "report", "-N"]);
        programs.push(Program { name: "trace-cmd report -N", words });
    } else {
        eprintln!("trace-cmd is not installed (make tools): measured without it");
    }
    let wanted = |program: &Program| {
        let first = program.name.split(' ').next().unwrap_or_default();
        only.is_empty() || only.iter().any(|name| name == first)
    };
    programs.retain(wanted);
    programs
}

/// Runs all programs in turn, round by round.
fn in_rounds(programs: &[Program], path: &Path, rounds: usize) -> Result<Vec<Vec<Sample>>> {
    if programs.is_empty() {
        bail!("there is no program of that name");
    }
    // Warms the page cache.
    measure(&["cat".to_owned()], path)?;
    let mut samples: Vec<Vec<Sample>> = programs.iter().map(|_| Vec::new()).collect();
    for round in 0..rounds {
        for (program, samples) in programs.iter().zip(&mut samples) {
            let slow = samples.iter().any(|sample| sample.wall_ns > SLOW_NS);
            if !(slow && round >= SLOW_ROUNDS) {
                let sample = measure(&program.words, path);
                samples.push(sample.with_context(|| format!("cannot run {}", program.name))?);
            }
        }
    }
    Ok(samples)
}

fn section(
    seed: &str,
    path: &Path,
    programs: &[Program],
    samples: &[Vec<Sample>],
) -> Result<String> {
    let rows: Vec<Row> = programs
        .iter()
        .zip(samples)
        .map(|(program, samples)| Row::new(program.name, samples))
        .collect();
    let megabytes = std::fs::metadata(path)?.len() / 1_000_000;
    Ok(format!("### {seed} repeated to {megabytes} MB\n\n{}\n", render(&rows)))
}
