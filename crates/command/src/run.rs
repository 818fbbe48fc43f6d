//! Runs a program: reads the command line, runs a verb, returns an exit code.
//!
//! | code | meaning |
//! |---|---|
//! | 0 | done; losses are in the result. Also if the reader closes the pipe, as `head` does |
//! | 1 | failed: nothing readable, a full device, a file truncated during reading |
//! | 2 | wrong arguments, or recordings that can't belong together |
//! | 3 | a condition of `--fail-if` held |
//!
//! `lab exec` and `record -- CMD` return the code of the command that ran.

use std::io::{self, Write};
use std::process::ExitCode;

use printable::{line, lines};
use session::Misuse;

use crate::exit_codes;
use crate::programs::become_program;
use crate::verb::{Conflict, Memory};
use crate::verbs::{self, Program};

/// Runs the program.
#[must_use]
pub fn run<P: Program>() -> ExitCode {
    if let Err(error) = become_program(P::BECOMES) {
        report::<P>(&error);
        return ExitCode::FAILURE;
    }
    // clap ends the process with code 2 at wrong arguments.
    let verb = verbs::read::<P>();
    if let Memory::Limits(limits) = verb.args().memory() {
        limits.apply();
    }
    match fail_if_cut::<P>(verb.args().run()) {
        Ok(code) => code,
        Err(error) if is_broken_pipe::<P>(&error) => ExitCode::SUCCESS,
        Err(error) => {
            if let Some(conflict) = error.downcast_ref::<Conflict>() {
                verbs::refuse(&verb, &conflict.0);
            }
            report::<P>(&error);
            if error.is::<Misuse>() {
                ExitCode::from(exit_codes::MISUSE)
            } else {
                ExitCode::FAILURE
            }
        }
    }
}

/// Fails if a file was truncated during reading, because the result is then invalid.
fn fail_if_cut<P: Program>(done: anyhow::Result<ExitCode>) -> anyhow::Result<ExitCode> {
    match (sys::check_mapped_files(), done) {
        (Err(cut), Ok(_)) => Err(cut.into()),
        // The error is already the truncation.
        (Err(_), Err(error)) if error.is::<sys::CutShort>() => Err(error),
        (Err(cut), Err(error)) if !is_broken_pipe::<P>(&error) => Err(error.context(cut)),
        (_, done) => done,
    }
}

/// Prints the error on standard error; a failure to print can't be reported.
fn report<P: Program>(error: &anyhow::Error) {
    let text = format!("hyperscope: {error:#}");
    let text = printable::without_error_numbers(&text);
    let text = if error.chain().any(P::has_lines) { lines(&text) } else { line(&text) };
    let _ = io::stderr().lock().write_all(format!("{text}\n").as_bytes());
}

/// Whether the reader closed the pipe, as `head` does. A broken channel to a guest is an error: the
/// result is incomplete.
#[must_use]
pub fn is_broken_pipe<P: Program>(error: &anyhow::Error) -> bool {
    let is_of_pipe = |cause: &io::Error| cause.kind() == io::ErrorKind::BrokenPipe;
    !error.chain().any(P::is_of_channel)
        && error.chain().filter_map(|cause| cause.downcast_ref()).any(is_of_pipe)
}
