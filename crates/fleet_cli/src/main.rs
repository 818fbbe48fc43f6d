//! The program `hyperscope-fleet`: analyses recordings of many hosts, or of a long time.

#![forbid(unsafe_code)]

use std::process::ExitCode;

use crate::verbs::Verb;

mod args;
mod cmd;
mod lake_place;
mod verbs;

fn main() -> ExitCode {
    command::run::run::<Verb>()
}
