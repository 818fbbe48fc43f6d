//! `hyperscope man`: the manual, made from the same definition as the help.

use std::fs;
use std::io::{self, Write};

use anyhow::Context;
use clap::CommandFactory;

use crate::args::{Cli, ManArgs};

pub(crate) fn run(args: &ManArgs) -> anyhow::Result<()> {
    // The pages of "help" would repeat the others.
    let command = Cli::command().disable_help_subcommand(true);
    let Some(folder) = &args.output else {
        let mut page = Vec::new();
        clap_mangen::Man::new(command).render(&mut page).context("cannot make the page")?;
        return io::stdout().write_all(&page).context("cannot write the page");
    };
    let cannot = || format!("cannot write manual pages to {}", folder.display());
    fs::create_dir_all(folder).with_context(cannot)?;
    clap_mangen::generate_to(command, folder).with_context(cannot)
}
