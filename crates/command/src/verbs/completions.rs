//! `hyperscope completions`: scripts that complete the command line in a shell.

use std::io::{self, Write};
use std::marker::PhantomData;
use std::process::ExitCode;

use anyhow::Context;
use clap::Args;

use super::{Program, command};
use crate::output::refuse_closed_output;
use crate::verb::{Memory, Range, VerbArgs};

/// Arguments of `completions`.
#[derive(Debug, Args)]
#[command(after_help = examples::<P>())]
pub struct CompletionsArgs<P: Program> {
    /// The shell
    #[arg(value_name = "SHELL")]
    pub shell: clap_complete::Shell,
    #[arg(skip)]
    program: PhantomData<P>,
}

impl<P: Program> VerbArgs for CompletionsArgs<P> {
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

fn run<P: Program>(args: &CompletionsArgs<P>) -> anyhow::Result<()> {
    refuse_closed_output()?;
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command::<P>(), P::INSTALLED.name, &mut script);
    io::stdout().write_all(&script).context("cannot write the completions")
}

fn examples<P: Program>() -> String {
    let name = P::INSTALLED.name;
    format!(
        "Examples:\n  \
        mkdir -p ~/.local/share/bash-completion/completions ~/.config/fish/completions\n  \
        {name} completions bash > ~/.local/share/bash-completion/completions/{name}\n  \
        {name} completions fish > ~/.config/fish/completions/{name}.fish\n  \
        {name} completions zsh > \"${{fpath[1]}}/_{name}\"\n\n\
        Shells look in these folders when they start: open a new one. Bash needs the package bash-completion."
    )
}
