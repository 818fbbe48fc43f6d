//! The program `hyperscope-lab`: experiments in virtual machines, and with the exits of running ones.

#![forbid(unsafe_code)]

use std::process::ExitCode;

use crate::verbs::Verb;

mod args;
mod cmd;
mod lab_steps;
mod verbs;

fn main() -> ExitCode {
    command::run::run::<Verb>()
}
