//! The `hyperscope` command: parses the line, runs a verb, turns its end into an exit code.
//!
//! | code | meaning |
//! |---|---|
//! | 0 | done; losses are in the result. A reader that leaves the pipe has seen enough, as after `head` |
//! | 1 | failed: nothing readable, a device full, a file cut while it was read |
//! | 2 | wrong arguments, or recordings that can't belong together |
//! | 3 | a condition of `--fail-if` held |
//!
//! `lab exec` and `record -- CMD` end with the code of the command that ran.

#![forbid(unsafe_code)]

use std::io::{self, Write};
use std::process::ExitCode;

use printable::{line, lines};

use crate::verb::{Conflict, Memory};
use crate::verbs::Cli;
use session::Misuse;

mod args;
mod channel_exits;
mod cmd;
mod debug_files;
mod exit_codes;
mod guest_symbols;
mod lab_steps;
mod lake_place;
mod notice;
mod output;
mod page_names;
mod progress;
mod running;
mod session_tables;
mod sql_program;
mod stored_frames;
mod verb;
mod verbs;

#[global_allocator]
static MEMORY: sys::CountedMemory = sys::CountedMemory;

fn main() -> ExitCode {
    // Wrong arguments end in clap with exit code 2.
    let cli = Cli::read();
    let verb = cli.verb.args();
    if let Memory::Limits(limits) = verb.memory() {
        limits.apply();
    }
    match fail_if_cut(verb.run()) {
        Ok(code) => code,
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            if let Some(conflict) = error.downcast_ref::<Conflict>() {
                cli.refuse(&conflict.0);
            }
            report(&error);
            if error.is::<Misuse>() {
                ExitCode::from(exit_codes::MISUSE)
            } else {
                ExitCode::FAILURE
            }
        }
    }
}

/// Fails if a file was truncated during reading, because the result is then invalid.
fn fail_if_cut(done: anyhow::Result<ExitCode>) -> anyhow::Result<ExitCode> {
    match (sys::check_mapped_files(), done) {
        (Err(cut), Ok(_)) => Err(cut.into()),
        // Said already.
        (Err(_), Err(error)) if error.is::<sys::CutShort>() => Err(error),
        (Err(cut), Err(error)) if !is_broken_pipe(&error) => Err(error.context(cut)),
        (_, done) => done,
    }
}

/// Prints the error on standard error; a failure to print can't be reported.
fn report(error: &anyhow::Error) {
    let text = format!("hyperscope: {error:#}");
    let text = printable::without_error_numbers(&text);
    // Only lab errors have several lines: consoles of its machines.
    let of_lab = |cause: &(dyn std::error::Error + 'static)| {
        cause.is::<lab::LabError>() || cause.is::<experiment::bench::BenchError>()
    };
    let text = if error.chain().any(of_lab) { lines(&text) } else { line(&text) };
    let _ = io::stderr().lock().write_all(format!("{text}\n").as_bytes());
}

/// Whether the reader closed the pipe, as `head` does when it has enough. A guest's channel that
/// breaks is an error: the result is incomplete.
fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let is_of_pipe = |cause: &io::Error| cause.kind() == io::ErrorKind::BrokenPipe;
    !error.chain().any(|cause| cause.is::<recorder::RecordError>())
        && error.chain().filter_map(|cause| cause.downcast_ref()).any(is_of_pipe)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_channel_that_breaks_is_no_reader_that_has_seen_enough() {
        let broken = || io::Error::from(io::ErrorKind::BrokenPipe);
        let error = anyhow::Error::from(broken()).context("cannot write the report");
        assert!(is_broken_pipe(&error));
        let guest = recorder::RecordError::Guest { name: "web".into(), source: broken() };
        assert!(!is_broken_pipe(&guest.into()));
    }
}
