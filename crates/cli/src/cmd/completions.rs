//! `hyperscope completions`: scripts that complete the command line in a shell.

use std::io::{self, Write};

use anyhow::Context;
use clap::CommandFactory;

use crate::args::{Cli, CompletionsArgs};
use crate::output::refuse_closed_output;

pub(crate) fn run(args: &CompletionsArgs) -> anyhow::Result<()> {
    refuse_closed_output()?;
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "hyperscope", &mut script);
    io::stdout().write_all(&script).context("cannot write the completions")
}
