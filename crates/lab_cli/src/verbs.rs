//! The verbs. `command::programs` has their descriptions, because `hyperscope` lists them, too.

use std::error::Error;

use clap::Command;
use command::programs::{Installed, LAB};
use command::verbs;
use command::verbs::Program;
use command::verbs::completions::CompletionsArgs;
use command::verbs::man::ManArgs;

use crate::args;

verbs! {
    "Experiments" {
        Ab(Box<args::ab::AbArgs>),
        Bench(args::bench::BenchArgs),
        Lab(args::lab::LabArgs),
        Sensitivity(args::sensitivity::SensitivityArgs),
    }
    "More" {
        /// Print a script that completes commands and options in a shell
        Completions(CompletionsArgs<Verb>),
        /// Print the manual page, or write those of all commands to a folder
        Man(ManArgs<Verb>),
    }
}

impl Program for Verb {
    const INSTALLED: Installed = LAB;

    fn described(command: Command) -> Command {
        command
            .about("Experiments with hypervisors: virtual hosts and guests, costs of exits, A/B runs of workloads")
            .after_help(
                "Examples:\n  \
                hyperscope lab run exits -o out         a KVM host and its guest, recorded live\n  \
                hyperscope bench exits\n  \
                hyperscope ab --a A --b B -- ./workload\n\n\
                hyperscope COMMAND and hyperscope-lab COMMAND do the same.\n\n\
                Exit codes: 0 done; 1 failed; 2 wrong usage; 3 a condition of ab --fail-if holds; lab exec ends\n\
                with the code of the command that ran.",
            )
    }

    fn has_lines(cause: &(dyn Error + 'static)) -> bool {
        cause.is::<lab::LabError>() || cause.is::<experiment::bench::BenchError>()
    }
}
