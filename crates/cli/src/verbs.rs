//! All verbs: `hyperscope --help` lists them in this order, under these titles. A new one is a line here, a file in
//! `cmd` with its arguments, and a page of expected help.

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

            /// What it is called on the command line.
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
    "Look at a recording" {
        /// Show what a recording holds and what it lost
        Info(cmd::info::InfoArgs),
        /// Account for every VM exit: how often, how long, who pays
        Exits(cmd::exits::ExitsArgs),
        /// Show what exits of nested guests cost their host
        Nested(cmd::nested::NestedArgs),
        /// Show why exits and waits happen, what usually helps, and how much that could save at most
        Advice(cmd::advice::AdviceArgs),
        /// Show who used the CPUs: vCPUs, guest threads, threads that serve VMs
        Cpu(args::cpu::CpuArgs),
        /// Show which code vCPUs ran, in rows that add up to their time
        Profile(args::profile::ProfileArgs),
        /// Show handlers of interrupts, of hosts and guests: how often, how long, and what the host took of it
        Irqs(args::irqs::IrqsArgs),
        /// Show what virtio's queues of guests carry, and how long buffers are away
        Virtio(args::virtio::VirtioArgs),
        /// Show what VMMs do with the exits that they handle, and in their threads: locks, system calls, devices
        Vmm(args::vmm::VmmArgs),
        /// Follow requests from guest to host and back, and time each hop
        Path(args::path::PathArgs),
        /// Show what a task or a request waited for, through guest, host, VMM and vhost
        Critical(args::critical::CriticalArgs),
        /// Show how guests boot and shut down: initcall levels, user space, exits in each
        Boot(args::boot::BootArgs),
        /// Show which kernel functions ran, for how long, and who called them
        Calls(args::calls::CallsArgs),
        /// Show events that guests sent by hypercall or through shared memory
        Hypertrace(args::hypertrace::HypertraceArgs),
        /// Print events as text or JSON, merged by time
        Events(cmd::events::EventsArgs),
    }
    "Compare and pass on" {
        /// Compare two recordings, or several of each side, with statistics
        Diff(args::diff::DiffArgs),
        /// Write a recording as one page for a browser
        Report(args::page::PageArgs),
        /// Write recordings as files that other tools open: Perfetto, Firefox, trace-cmd, pandas
        Export(args::export::ExportArgs),
        /// Keep the tables of many recordings in one place, for SQL
        Lake(args::lake::LakeArgs),
        /// Ask recordings and lakes in SQL
        Sql(Box<args::sql::SqlArgs>),
        /// Say whether the hosts of a fleet differ, and which
        Fleet(args::fleet::FleetArgs),
        /// Relate guests' clocks to their host's, with bounds
        Align(cmd::align::AlignArgs),
    }
    "Record" {
        /// Record this host's kernel: VM exits, scheduling, interrupts
        Record(Box<args::record::RecordArgs>),
        /// Have a flight recorder that runs make a session of what it keeps
        Flight(args::flight::FlightArgs),
        /// Record guests as their agents connect, each into a session of its own
        Listen(args::listen::ListenArgs),
        /// Offer what VMs exit for as metrics for Prometheus
        Serve(args::serve::ServeArgs),
    }
    "For guests" {
        /// Show what VMs exit for right now; in a guest, what its host does with its vCPUs
        Top(args::top::TopArgs),
        /// Put a text into the recording that this guest's host makes
        Mark(args::mark::MarkArgs),
        /// Show guests what their host does with their vCPUs, live
        Publish(args::publish::PublishArgs),
        /// Make the keys by which hosts and agents identify each other over TLS
        Keys(args::keys::KeysArgs),
    }
    "Try and measure" {
        /// Run a workload under two configurations in turn, and say by what they differ
        Ab(Box<args::ab::AbArgs>),
        /// Make chosen exits of a running VM longer, and say what its workload pays for each nanosecond of them
        Sensitivity(args::sensitivity::SensitivityArgs),
        /// Boot virtual hosts, guests and nested guests to try things on
        Lab(args::lab::LabArgs),
        /// Measure what exits, tracers and recording cost, in the lab
        Bench(args::bench::BenchArgs),
    }
    "Shell" {
        /// Print a script that completes commands and options in a shell
        Completions(completions::CompletionsArgs),
        /// Print the manual page, or write those of all commands to a folder
        Man(man::ManArgs),
    }
}

/// Sees across hypervisor layers and says where the time goes.
#[derive(Debug, Parser)]
#[command(
    name = "hyperscope",
    version,
    about = "Sees across hypervisor layers: which VM exits, who pays, which level",
    after_help = "Examples:\n  \
        hyperscope info trace.dat\n  \
        hyperscope exits trace.dat\n  \
        hyperscope exits --by reason,msr trace.dat\n  \
        hyperscope nested trace.dat\n  \
        hyperscope path trace.dat\n  \
        hyperscope diff before.dat after.dat\n  \
        hyperscope cpu host.dat guest.dat\n  \
        hyperscope boot host.dat guest.dat\n  \
        hyperscope calls trace.dat\n  \
        hyperscope events -e kvm:kvm_exit --cpu 0 trace.dat | head\n  \
        hyperscope export --format perfetto -o out.pftrace host.dat guest.dat\n  \
        hyperscope align host.dat guest.dat\n  \
        hyperscope exits --format json trace.dat\n  \
        hyperscope report host.dat guest.dat -o report.html\n\n\
        A FILE is what trace-cmd record wrote, a session (NAME.hscope: a folder with host.dat and\n\
        guest-*.dat), a folder with ring-buffer pages (*cpu0*, …) and the events folder of the\n\
        tracefs they come from, one with a CTF trace (LTTng), a perf.data, or text of trace-cmd\n\
        report or perf script; - is standard input.\n\n\
        Exit codes: 0 done, also when the recording lost events; 1 failed; 2 wrong usage;\n\
        3 a condition of diff --fail-if holds."
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) verb: Verb,
}

impl Cli {
    /// Reads the command line; ends the process with code 2 when it makes no sense.
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

    /// Ends the process with code 2: the arguments of the verb make no sense together.
    pub(crate) fn refuse(&self, what: &str) -> ! {
        let mut command = Self::command();
        command.build();
        let of_verb = command.find_subcommand_mut(self.verb.name());
        of_verb.unwrap_or(&mut Self::command()).error(ErrorKind::ArgumentConflict, what).exit()
    }
}

/// The command, in which a time that begins with a minus is a wrong time and not an option.
fn with_negative_times(command: clap::Command) -> clap::Command {
    let is_time = |arg: &clap::Arg| {
        arg.get_value_names().is_some_and(|names| names.iter().any(|name| name == "TIME"))
    };
    command.mut_subcommands(|verb| {
        verb.mut_args(|arg| if is_time(&arg) { arg.allow_negative_numbers(true) } else { arg })
    })
}
