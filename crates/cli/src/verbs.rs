//! All verbs: `hyperscope --help` lists them in this order, under the question that each answers, and names those of the
//! last group alone. A new one is a line here, a file in `cmd` with its arguments, and a page of expected help.

use std::io::{self, Write};

use clap::error::ErrorKind;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use session::ends_before_it_begins;

use crate::notice::say;
use crate::verb::{Range, VerbArgs};
use crate::{args, cmd};

mod completions;
mod groups;
mod man;
mod misspelt;

/// Defines [`Verb`] and the groups of the help: a verb is in the group that it stands below.
macro_rules! verbs {
    ($($title:literal { $($(#[$about:meta])+ $name:ident($args:ty),)+ })+) => {
        /// What to do.
        #[derive(Debug, Subcommand)]
        pub(crate) enum Verb {
            $($($(#[$about])+ $name($args),)+)+
        }

        impl Verb {
            /// Titles of groups, each with its verbs; on the command line these are in lower case.
            const GROUPS: &[(&str, &[&str])] = &[$(($title, &[$(stringify!($name)),+])),+];

            /// Its name on the command line.
            fn name(&self) -> String {
                match self {
                    $($(Self::$name(_) => stringify!($name).to_lowercase(),)+)+
                }
            }

            /// Its arguments.
            pub(crate) fn args(&self) -> &dyn VerbArgs {
                match self {
                    $($(Self::$name(args) => args,)+)+
                }
            }
        }
    };
}

verbs! {
    "What is wrong" {
        /// List the causes of exits and waits, what usually helps, and how much that could save
        Advice(cmd::advice::AdviceArgs),
    }
    "Which exits" {
        /// Count VM exits by reason, and show how long they took and who paid
        Exits(cmd::exits::ExitsArgs),
        /// Show what exits of nested guests cost their host
        Nested(cmd::nested::NestedArgs),
    }
    "Who used the CPUs" {
        /// Show what vCPUs, guest threads and threads that serve VMs did with their time
        Cpu(args::cpu::CpuArgs),
        /// Show interrupt handlers of hosts and guests: how often, how long, what the host adds
        Irqs(args::irqs::IrqsArgs),
    }
    "Why is this slow" {
        /// Follow requests from guest to host and back, and time each hop
        Path(args::path::PathArgs),
        /// Show what a task or a request waited for, through guest, host, VMM and vhost
        Critical(args::critical::CriticalArgs),
    }
    "Which code" {
        /// Show which code vCPUs ran, in rows that add up to their time
        Profile(args::profile::ProfileArgs),
        /// Show which kernel functions ran, for how long, and who called them
        Calls(args::calls::CallsArgs),
    }
    "Boot and devices" {
        /// Show the phases of boots and shutdowns: initcall levels, user space, exits in each
        Boot(args::boot::BootArgs),
        /// Show what a guest's virtio queues carry, and how long each buffer takes
        Virtio(args::virtio::VirtioArgs),
        /// Show how VMMs handle exits, and what their threads do: devices, locks, system calls
        Vmm(args::vmm::VmmArgs),
    }
    "Compare and look" {
        /// Compare two recordings, or several on each side, with statistics
        Diff(args::diff::DiffArgs),
        /// Write a recording as one page for a browser
        Report(args::page::PageArgs),
        /// Print events as text or JSON, merged by time
        Events(cmd::events::EventsArgs),
        /// Show what a recording holds and what it lost
        Info(cmd::info::InfoArgs),
        /// Write files for other tools: Perfetto, Firefox, trace-cmd, pandas
        Export(args::export::ExportArgs),
    }
    "Record" {
        /// Record this KVM host and its guests: VM exits, scheduling, interrupts
        Record(Box<args::record::RecordArgs>),
        /// Record guests as their agents connect, each into a session of its own
        Listen(args::listen::ListenArgs),
        /// Save what a running flight recorder holds as a session
        Flight(args::flight::FlightArgs),
    }
    "Live" {
        /// Show the exits of running VMs; in a guest, what its host does with its vCPUs
        Top(args::top::TopArgs),
        /// Serve VM exits as metrics for Prometheus
        Serve(args::serve::ServeArgs),
    }
    "More" {
        /// Run a workload under two configurations in turn, and report how they differ
        Ab(Box<args::ab::AbArgs>),
        /// Relate the clocks of guests to their host's, with error bounds
        Align(cmd::align::AlignArgs),
        /// Measure in the lab what exits, tracers and recording cost
        Bench(args::bench::BenchArgs),
        /// Print a script that completes commands and options in a shell
        Completions(completions::CompletionsArgs),
        /// Report whether the hosts of a fleet differ, and which
        Fleet(args::fleet::FleetArgs),
        /// Show events that guests sent by hypercall or through shared memory
        Hypertrace(args::hypertrace::HypertraceArgs),
        /// Create the keys by which hosts and agents authenticate each other over TLS
        Keys(args::keys::KeysArgs),
        /// Boot virtual hosts, guests and nested guests to experiment with
        Lab(args::lab::LabArgs),
        /// Collect the tables of many recordings in one place, for SQL
        Lake(args::lake::LakeArgs),
        /// Print the manual page, or write those of all commands to a folder
        Man(man::ManArgs),
        /// Write a text into the recordings of this machine and of its host
        Mark(args::mark::MarkArgs),
        /// Show guests live what their host does with their vCPUs
        Publish(args::publish::PublishArgs),
        /// Lengthen chosen exits of a running VM, and report what its workload pays for each nanosecond
        Sensitivity(args::sensitivity::SensitivityArgs),
        /// Query recordings and lakes in SQL
        Sql(Box<args::sql::SqlArgs>),
    }
}

/// Explains where time goes across hypervisor layers.
#[derive(Debug, Parser)]
#[command(
    name = "hyperscope",
    version,
    about = "Explains where time goes across hypervisor layers: which VM exits, who pays, which level",
    after_help = "Examples:\n  \
        hyperscope exits trace.dat\n  \
        hyperscope path host.dat guest.dat\n  \
        hyperscope diff before.dat after.dat\n  \
        hyperscope report host.dat guest.dat -o report.html\n\n\
        A FILE is a trace.dat of trace-cmd, a session (a folder NAME.hscope with host.dat and\n\
        guest-*.dat), a folder with a CTF trace (LTTng) or with ring-buffer pages and the events\n\
        folder of their tracefs, a perf.data, or the text of trace-cmd report or perf script; - is\n\
        standard input.\n\n\
        Exit codes: 0 done, even if the recording lost events; 1 failed; 2 wrong usage;\n\
        3 a condition of diff --fail-if holds."
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) verb: Verb,
}

impl Cli {
    /// Reads the command line; ends the process with code 2 if it is invalid.
    pub(crate) fn read() -> Self {
        let mut matches = with_negative_times(groups::grouped(Self::command()))
            .try_get_matches()
            .unwrap_or_else(|error| Self::end(&misspelt::explained(error)));
        let cli = Self::from_arg_matches_mut(&mut matches).unwrap_or_else(|error| error.exit());
        if let Range::Within { from, to } = cli.verb.args().range()
            && ends_before_it_begins((from, to))
        {
            cli.refuse("--from lies after --to");
        }
        cli
    }

    /// Prints help, or what is wrong with the command line, and ends the process; with code 1 where help can't
    /// be written.
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
    pub(crate) fn refuse(&self, what: &str) -> ! {
        let mut command = Self::command();
        command.build();
        let of_verb = command.find_subcommand_mut(self.verb.name());
        of_verb.unwrap_or(&mut Self::command()).error(ErrorKind::ArgumentConflict, what).exit()
    }
}

/// The command; a time that begins with a minus is an invalid time, not an option.
fn with_negative_times(command: clap::Command) -> clap::Command {
    let is_time = |arg: &clap::Arg| {
        arg.get_value_names().is_some_and(|names| names.iter().any(|name| name == "TIME"))
    };
    command.mut_subcommands(|verb| {
        verb.mut_args(|arg| if is_time(&arg) { arg.allow_negative_numbers(true) } else { arg })
    })
}
