//! `hyperscope completions`: scripts that complete the command line in a shell.

use std::io::{self, Write};
use std::process::ExitCode;

use anyhow::Context;
use clap::{Args, CommandFactory};

use super::Cli;
use crate::output::refuse_closed_output;
use crate::verb::{Memory, Range, VerbArgs};

/// Arguments of `completions`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    mkdir -p ~/.local/share/bash-completion/completions ~/.config/fish/completions\n  \
    hyperscope completions bash > ~/.local/share/bash-completion/completions/hyperscope\n  \
    hyperscope completions fish > ~/.config/fish/completions/hyperscope.fish\n  \
    hyperscope completions zsh > \"${fpath[1]}/_hyperscope\"\n\n\
    Shells look in these folders when they start: open a new one. Bash needs the package bash-completion.")]
pub(crate) struct CompletionsArgs {
    /// The shell
    #[arg(value_name = "SHELL")]
    pub(crate) shell: clap_complete::Shell,
}

impl VerbArgs for CompletionsArgs {
    fn memory(&self) -> Memory {
        Memory::Unbounded
    }

    fn range(&self) -> Range {
        Range::Whole
    }

    fn run(&self) -> anyhow::Result<ExitCode> {
        run(self).map(|()| ExitCode::SUCCESS)
    }
}

fn run(args: &CompletionsArgs) -> anyhow::Result<()> {
    refuse_closed_output()?;
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "hyperscope", &mut script);
    io::stdout().write_all(&script).context("cannot write the completions")
}
