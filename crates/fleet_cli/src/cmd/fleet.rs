//! `hyperscope fleet`: compares hosts of a lake, finds the day of a change, and simulates a lake.

mod conditions;
mod diff;
mod simulate;
mod since;

use std::process::ExitCode;

use anyhow::{Context, bail};
use fleet::SelectionError;

use crate::args::fleet::{FleetArgs, FleetVerb};
use command::verb::{Memory, Range, VerbArgs};
use session::Misuse;

impl VerbArgs for FleetArgs {
    fn memory(&self) -> Memory {
        Memory::Limits(match &self.verb {
            FleetVerb::Diff(args) => args.memory,
            FleetVerb::Since(args) => args.memory,
            FleetVerb::Simulate(args) => args.memory,
        })
    }

    fn range(&self) -> Range {
        Range::Whole
    }

    fn run(&self) -> anyhow::Result<ExitCode> {
        run(self)
    }
}

fn run(args: &FleetArgs) -> anyhow::Result<ExitCode> {
    match &args.verb {
        FleetVerb::Diff(args) => diff::run(args),
        FleetVerb::Since(args) => since::run(args),
        FleetVerb::Simulate(args) => simulate::run(args).map(|()| ExitCode::SUCCESS),
    }
}

/// The result of reading a lake. A condition on a column that sessions lack is a usage error.
fn found<T>(done: std::io::Result<T>) -> anyhow::Result<T> {
    let is_misuse =
        |error: &std::io::Error| error.get_ref().is_some_and(|cause| cause.is::<SelectionError>());
    match done {
        Err(error) if is_misuse(&error) => bail!(Misuse(error.to_string())),
        done => done.context("cannot read the lake"),
    }
}
