//! `hyperscope man`: the manual, made from the same definition as the help.

use std::fs;
use std::io::{self, Write};
use std::marker::PhantomData;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::Context;
use clap::Args;

use super::{Program, command};
use crate::notice::say;
use crate::output;
use crate::programs::{HYPERSCOPE, Installed};
use crate::verb::{Memory, Range, VerbArgs};

/// The folder in which pages are made.
const UNFINISHED: &str = ".hyperscope-man.tmp";

/// Arguments of `man`.
#[derive(Debug, Args)]
#[command(after_help = examples::<P>())]
pub struct ManArgs<P: Program> {
    /// Write one page per command to this folder instead of printing the main page
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    #[arg(skip)]
    program: PhantomData<P>,
}

impl<P: Program> VerbArgs for ManArgs<P> {
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

fn run<P: Program>(args: &ManArgs<P>) -> anyhow::Result<()> {
    // The pages of "help" would repeat the others.
    let command = command::<P>().disable_help_subcommand(true);
    let Some(folder) = &args.output else {
        output::refuse_closed_output()?;
        let mut page = Vec::new();
        clap_mangen::Man::new(command.bin_name(P::INSTALLED.name))
            .render(&mut page)
            .context("cannot create the page")?;
        return io::stdout().write_all(&page).context("cannot write the page");
    };
    let cannot = || format!("cannot write manual pages to {}", folder.display());
    fs::create_dir_all(folder).with_context(cannot)?;
    // Pages are made in a separate folder first, then moved to their places.
    let made = folder.join(UNFINISHED);
    match fs::remove_dir_all(&made) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(error).with_context(cannot);
        }
        _ => fs::create_dir(&made).with_context(cannot)?,
    }
    generate::<P>(command, &made).with_context(cannot)?;
    for page in fs::read_dir(&made).with_context(cannot)? {
        let page = page.with_context(cannot)?;
        let text = fs::read(page.path()).with_context(cannot)?;
        output::write_file(&folder.join(page.file_name()), &text)?;
    }
    fs::remove_dir_all(&made).with_context(cannot)?;
    P::BECOMES.iter().try_for_each(|program| write_pages_of(program, folder))
}

/// Makes pages of the program's verbs, and the main page if users call the program by name.
fn generate<P: Program>(mut command: clap::Command, folder: &Path) -> io::Result<()> {
    command.build();
    let is_called = P::INSTALLED.name == HYPERSCOPE.name;
    for verb in command.get_subcommands() {
        let is_of_other = P::BECOMES.iter().any(|program| program.has(verb.get_name()));
        let is_own = if is_called { !is_of_other } else { P::INSTALLED.has(verb.get_name()) };
        if is_own {
            clap_mangen::generate_to(verb.clone(), folder)?;
        }
    }
    if is_called {
        clap_mangen::Man::new(command).generate_to(folder)?;
    }
    Ok(())
}

/// Makes another program write the pages of its verbs; a program that is not installed is skipped.
fn write_pages_of(program: &Installed, folder: &Path) -> anyhow::Result<()> {
    let path = match program.path() {
        Ok(path) => path,
        Err(missing) => {
            say(&format!("no pages of {}: {missing}", program.verb_names()));
            return Ok(());
        }
    };
    let written = Command::new(&path).args(["man", "-o"]).arg(folder).status();
    let written = written.with_context(|| format!("cannot run {}", path.display()))?;
    anyhow::ensure!(written.success(), "{} man: {written}", program.name);
    Ok(())
}

fn examples<P: Program>() -> String {
    let name = P::INSTALLED.name;
    format!("Examples:\n  {name} man | man -l -\n  {name} man -o /usr/local/share/man/man1")
}
