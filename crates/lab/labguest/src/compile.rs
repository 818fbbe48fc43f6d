//! A build workload: many short compiler runs, one per source file, which read, compute and write.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use serde_json::json;

use crate::measure::nanoseconds;
use crate::number_argument;

const COMPILER: &str = "tcc";
/// Folder of sources and objects.
const FOLDER: &str = "/tmp/build";
/// Default number of files and of parallel compilers.
const FILES: u64 = 40;
const JOBS: u64 = 2;
/// Max of both.
const MAX_COUNT: u64 = 10_000;
/// Functions in each file.
const FUNCTIONS: u64 = 60;

/// Compiles with `files=N jobs=N`, and prints the time as JSON.
pub(crate) fn run(arguments: impl Iterator<Item = String>) -> io::Result<()> {
    let (mut files, mut jobs) = (FILES, JOBS);
    for argument in arguments {
        match Some(number_argument::number(&argument)?)
            .filter(|&(_, n)| (1..=MAX_COUNT).contains(&n))
        {
            Some(("files", n)) => files = n,
            Some(("jobs", n)) => jobs = n,
            _ => return Err(number_argument::refused(&argument)),
        }
    }
    let folder = Path::new(FOLDER);
    fs::create_dir_all(folder)?;
    for file in 0..files {
        fs::write(folder.join(format!("{file}.c")), source(file))?;
    }
    let start = Instant::now();
    compile(folder, files, jobs as usize)?;
    let built = json!({ "files": files, "build_ns": nanoseconds(start.elapsed()) });
    fs::remove_dir_all(folder)?;
    println!("{built}");
    Ok(())
}

/// Runs compilers, some in parallel.
fn compile(folder: &Path, files: u64, jobs: usize) -> io::Result<()> {
    let mut running: Vec<Child> = Vec::new();
    for file in 0..files {
        if running.len() >= jobs {
            end(running.remove(0))?;
        }
        let mut command = Command::new(COMPILER);
        command.args(["-c", "-nostdinc", "-o"]).arg(folder.join(format!("{file}.o")));
        command.arg(folder.join(format!("{file}.c"))).stdin(Stdio::null()).stdout(Stdio::null());
        running.push(command.spawn()?);
    }
    running.into_iter().try_for_each(end)
}

fn end(mut child: Child) -> io::Result<()> {
    let status = child.wait()?;
    if status.success() { Ok(()) } else { Err(io::Error::other(format!("{COMPILER}: {status}"))) }
}

/// A source file of functions that call each other; needs no headers.
fn source(file: u64) -> String {
    let mut text = String::from("static long f0(long x) { return x; }\n");
    for at in 1..FUNCTIONS {
        let below = at - 1;
        let _ = writeln!(
            text,
            "static long f{at}(long x) {{ long y = {file}; for (long i = 0; i < x; i++) y ^= f{below}(i) * {at}; return y; }}"
        );
    }
    let _ = writeln!(text, "long of_{file}(long x) {{ return f{}(x); }}", FUNCTIONS - 1);
    text
}
