//! `hyperscope man`: the manual, made from the same definition as the help.

use std::fs;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::{Args, CommandFactory};

use super::Cli;
use crate::output;
use crate::verb::{Memory, Range, VerbArgs};

/// Where pages are made.
const UNFINISHED: &str = ".hyperscope-man.tmp";

/// Arguments of `man`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    hyperscope man | man -l -\n  \
    hyperscope man -o /usr/local/share/man/man1")]
pub(crate) struct ManArgs {
    /// Write one page per command to this folder instead of printing the main page
    #[arg(short, long, value_name = "DIR")]
    pub(crate) output: Option<PathBuf>,
}

impl VerbArgs for ManArgs {
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

fn run(args: &ManArgs) -> anyhow::Result<()> {
    // The pages of "help" would repeat the others.
    let command = Cli::command().disable_help_subcommand(true);
    let Some(folder) = &args.output else {
        output::refuse_closed_output()?;
        let mut page = Vec::new();
        clap_mangen::Man::new(command).render(&mut page).context("cannot create the page")?;
        return io::stdout().write_all(&page).context("cannot write the page");
    };
    let cannot = || format!("cannot write manual pages to {}", folder.display());
    fs::create_dir_all(folder).with_context(cannot)?;
    // Made in a folder of their own first, then each put in its place.
    let made = folder.join(UNFINISHED);
    match fs::remove_dir_all(&made) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(error).with_context(cannot);
        }
        _ => fs::create_dir(&made).with_context(cannot)?,
    }
    clap_mangen::generate_to(command, &made).with_context(cannot)?;
    for page in fs::read_dir(&made).with_context(cannot)? {
        let page = page.with_context(cannot)?;
        let text = fs::read(page.path()).with_context(cannot)?;
        output::write_file(&folder.join(page.file_name()), &text)?;
    }
    fs::remove_dir_all(&made).with_context(cannot)
}
