//! A run of a program: its time and peak memory.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use nix::sys::resource::{UsageWho, getrusage};
use serde::{Deserialize, Serialize};

/// Measurements of a run.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Sample {
    /// Wall time.
    pub(crate) wall_ns: u64,
    /// Peak resident memory.
    pub(crate) peak_kib: u64,
}

/// Arguments of the hidden chore that measures another program; `compare` runs itself with them.
#[derive(Debug, clap::Args)]
pub(crate) struct MeasureArguments {
    /// File the measured program's output goes to.
    #[arg(long)]
    output: PathBuf,
    /// The program and its arguments.
    #[arg(trailing_var_arg = true, required = true)]
    words: Vec<String>,
}

/// Runs a program on a recording through a separate process: the kernel reports the peak memory of
/// the largest child so far, so each measured program needs a parent of its own.
pub(crate) fn measure(words: &[String], recording: &Path) -> Result<Sample> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["measure", "--output", "/dev/null", "--"]).args(words).arg(recording);
    let output = command.stderr(Stdio::inherit()).output()?;
    ensure!(output.status.success(), "{} failed", words.join(" "));
    serde_json::from_slice(&output.stdout).context("the measurement printed no result")
}

/// Runs the given program and prints its measurements as JSON.
pub(crate) fn measure_self(arguments: &MeasureArguments) -> Result<()> {
    let [program, rest @ ..] = arguments.words.as_slice() else { return Ok(()) };
    let output = std::fs::File::create(&arguments.output)?;
    let mut command = Command::new(program);
    command.args(rest).stdin(Stdio::null()).stdout(output).stderr(Stdio::null());
    let start = Instant::now();
    let status = command.status().with_context(|| format!("cannot start {program}"))?;
    let wall_ns = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
    ensure!(status.success(), "{program} failed: {status}");
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    let peak_kib = u64::try_from(usage.max_rss()).unwrap_or(0);
    println!("{}", serde_json::to_string(&Sample { wall_ns, peak_kib })?);
    Ok(())
}
