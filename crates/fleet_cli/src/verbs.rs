//! The verbs. `command::programs` has their descriptions, because `hyperscope` lists them, too.

use clap::Command;
use command::programs::{FLEET, Installed};
use command::verbs;
use command::verbs::Program;
use command::verbs::completions::CompletionsArgs;
use command::verbs::man::ManArgs;

use crate::args;

verbs! {
    "Many recordings" {
        Fleet(args::fleet::FleetArgs),
        Lake(args::lake::LakeArgs),
        Sql(Box<args::sql::SqlArgs>),
    }
    "More" {
        /// Print a script that completes commands and options in a shell
        Completions(CompletionsArgs<Verb>),
        /// Print the manual page, or write those of all commands to a folder
        Man(ManArgs<Verb>),
    }
}

impl Program for Verb {
    const INSTALLED: Installed = FLEET;

    fn described(command: Command) -> Command {
        command
            .about("Answers questions of many recordings: of several hosts, or of a long time")
            .after_help(
                "Examples:\n  \
                hyperscope lake add /srv/lake *.hscope\n  \
                hyperscope sql @slow-exits /srv/lake\n  \
                hyperscope fleet diff --a \"pool = 'stable'\" --b \"pool = 'canary'\" /srv/lake\n\n\
                hyperscope COMMAND and hyperscope-fleet COMMAND do the same.\n\n\
                Exit codes: 0 done; 1 failed; 2 wrong usage; 3 a condition of fleet diff --fail-if holds.",
            )
    }
}
