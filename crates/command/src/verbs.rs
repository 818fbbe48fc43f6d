//! A program's verbs: their list in the help, and how a command line becomes a verb with its arguments.

use std::error::Error;
use std::fmt::Debug;
use std::io::{self, Write};

use clap::error::ErrorKind;
use clap::{Command, Subcommand};
use session::ends_before_it_begins;

use crate::notice::say;
use crate::programs::{HYPERSCOPE, Installed};
use crate::verb::{Range, VerbArgs};

pub mod completions;
mod groups;
pub mod man;
mod misspelt;
mod short_help;

/// Titles of groups, each with its verbs under their names in the code.
pub type Groups = &'static [(&'static str, &'static [&'static str])];

/// The verbs of a program, as [`verbs!`](crate::verbs!) defines them.
pub trait Verbs: Subcommand + Debug {
    /// The groups in the help.
    const GROUPS: Groups;

    /// Its name on the command line.
    fn name(&self) -> String;

    /// Its arguments.
    fn args(&self) -> &dyn VerbArgs;
}

/// A program.
pub trait Program: Verbs {
    /// Its file, and the verbs for which `hyperscope` starts it.
    const INSTALLED: Installed;

    /// Programs that it becomes to run their verbs.
    const BECOMES: &'static [Installed] = &[];

    /// Adds its description and examples.
    fn described(command: Command) -> Command;

    /// Whether the message of an error has several lines, such as one with a machine's console.
    fn has_lines(_: &(dyn Error + 'static)) -> bool {
        false
    }

    /// Whether an error concerns the pipe of a channel to a guest, and not this program's output.
    fn is_of_channel(_: &(dyn Error + 'static)) -> bool {
        false
    }
}

/// Defines `Verb` and the groups of the help: each verb belongs to the group above it.
#[macro_export]
macro_rules! verbs {
    ($($title:literal { $($(#[$about:meta])* $name:ident($args:ty),)+ })+) => {
        /// What to do.
        #[derive(Debug, clap::Subcommand)]
        pub(crate) enum Verb {
            $($($(#[$about])* $name($args),)+)+
        }

        impl $crate::verbs::Verbs for Verb {
            const GROUPS: $crate::verbs::Groups = &[$(($title, &[$(stringify!($name)),+])),+];

            fn name(&self) -> String {
                match self {
                    $($(Self::$name(_) => stringify!($name).to_lowercase(),)+)+
                }
            }

            fn args(&self) -> &dyn $crate::verb::VerbArgs {
                match self {
                    $($(Self::$name(args) => args,)+)+
                }
            }
        }
    };
}

/// The definition of a program's command line. The usage of a verb names `hyperscope`, as users call it.
pub fn command<P: Program>() -> Command {
    let name = P::INSTALLED.name;
    let command = Command::new(name).version(env!("CARGO_PKG_VERSION")).bin_name(HYPERSCOPE.name);
    let command = command.override_usage(format!("{name} <COMMAND>"));
    let command = command.subcommand_required(true).arg_required_else_help(true);
    let others = P::BECOMES.iter().flat_map(|program| program.verbs);
    let others = others.map(|(name, about)| Command::new(*name).about(*about));
    // The description comes after `augment_subcommands`, which sets that of the enum of verbs.
    P::described(P::augment_subcommands(command).subcommands(others)).mut_subcommands(named::<P>)
}

/// A verb with the name of its manual page and its description.
fn named<P: Program>(verb: Command) -> Command {
    let about = P::INSTALLED.verbs.iter().find(|(name, _)| *name == verb.get_name());
    let page = format!("{}-{}", HYPERSCOPE.name, verb.get_name());
    let verb = verb.display_name(page);
    match about {
        Some((_, about)) => verb.about(*about),
        None => verb,
    }
}

/// Reads the command line; ends the process with code 2 if it is invalid.
pub(crate) fn read<P: Program>() -> P {
    let mut matches =
        with_negative_times(short_help::shortened(groups::grouped::<P>(command::<P>())))
            .try_get_matches()
            .unwrap_or_else(|error| end(&misspelt::explained::<P>(error)));
    let verb = P::from_arg_matches_mut(&mut matches).unwrap_or_else(|error| error.exit());
    if let Range::Within { from, to } = verb.args().range()
        && ends_before_it_begins((from, to))
    {
        refuse(&verb, "--from is later than --to");
    }
    verb
}

/// Prints help, or the error of the command line, and ends the process; with code 1 if help can't be written.
fn end(error: &clap::Error) -> ! {
    let printed = error.print().and_then(|()| io::stdout().flush());
    let code = match printed {
        _ if error.use_stderr() => error.exit_code(),
        Err(fault) if fault.kind() != io::ErrorKind::BrokenPipe => {
            say(&format!("cannot write the help: {fault}"));
            1
        }
        _ if sys::standard_output_was_closed() => {
            say("standard output is closed: redirect it to read the help");
            1
        }
        _ => error.exit_code(),
    };
    std::process::exit(code)
}

/// Ends the process with code 2, because the arguments of the verb conflict.
pub(crate) fn refuse<P: Program>(verb: &P, what: &str) -> ! {
    let mut command = command::<P>();
    command.build();
    let of_verb = command.find_subcommand_mut(verb.name());
    of_verb.unwrap_or(&mut self::command::<P>()).error(ErrorKind::ArgumentConflict, what).exit()
}

/// The command with a rule for times that begin with a minus: they are invalid times, not options.
fn with_negative_times(command: Command) -> Command {
    let is_time = |arg: &clap::Arg| {
        arg.get_value_names().is_some_and(|names| names.iter().any(|name| name == "TIME"))
    };
    command.mut_subcommands(|verb| {
        verb.mut_args(|arg| if is_time(&arg) { arg.allow_negative_numbers(true) } else { arg })
    })
}
