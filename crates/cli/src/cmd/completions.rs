//! `hyperscope completions`: scripts that complete the command line in a shell.

use std::io::{self, Write};

use anyhow::Context;
use clap::CommandFactory;

use crate::args::{Cli, CompletionsArgs};

pub(crate) fn run(args: &CompletionsArgs) -> anyhow::Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "hyperscope", &mut script);
    io::stdout().write_all(&script).context("cannot write the completions")
}
