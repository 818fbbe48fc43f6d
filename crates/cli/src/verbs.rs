//! All verbs. `hyperscope --help` lists them in this order, grouped by the question that each answers, and lists the
//! last group only by name. A new verb needs a line here, a file in `cmd` with its arguments, and a file of expected
//! help.

use std::error::Error;

use clap::Command;
use command::programs::{FLEET, HYPERSCOPE, Installed, LAB};
use command::verbs;
use command::verbs::Program;
use command::verbs::completions::CompletionsArgs;
use command::verbs::man::ManArgs;

use crate::{args, cmd};

verbs! {
    "What is wrong" {
        /// Say what VMs did with their time, and what made them slow, the costliest cause first
        Why(cmd::why::WhyArgs),
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
        /// Relate the clocks of guests to their host's, with error bounds
        Align(cmd::align::AlignArgs),
        /// Print a script that completes commands and options in a shell
        Completions(CompletionsArgs<Verb>),
        /// Show events that guests sent by hypercall or through shared memory
        Hypertrace(args::hypertrace::HypertraceArgs),
        /// Create the keys by which hosts and agents authenticate each other over TLS
        Keys(args::keys::KeysArgs),
        /// Print the manual page, or write those of all commands to a folder
        Man(ManArgs<Verb>),
        /// Write a text into the recordings of this machine and of its host
        Mark(args::mark::MarkArgs),
        /// Show guests live what their host does with their vCPUs
        Publish(args::publish::PublishArgs),
    }
}

impl Program for Verb {
    const INSTALLED: Installed = HYPERSCOPE;

    const BECOMES: &'static [Installed] = &[LAB, FLEET];

    fn described(command: Command) -> Command {
        command
            .about("Explains where time goes across hypervisor layers: which VM exits, who pays, which level")
            .after_help("Examples:\n  \
            hyperscope exits trace.dat\n  \
            hyperscope path host.dat guest.dat\n  \
            hyperscope diff before.dat after.dat\n  \
            hyperscope report host.dat guest.dat -o report.html\n\n\
            A FILE is a trace.dat of trace-cmd, a session (a folder NAME.hscope with host.dat and\n\
            guest-*.dat), a folder with a CTF trace (LTTng) or with ring-buffer pages and the events\n\
            folder of their tracefs, a perf.data, or the text of trace-cmd report or perf script; - is\n\
            standard input.\n\n\
            Exit codes: 0 done, even if the recording lost events; 1 failed; 2 wrong usage;\n\
            3 a condition of diff --fail-if holds.")
    }

    fn is_of_channel(cause: &(dyn Error + 'static)) -> bool {
        cause.is::<recorder::RecordError>()
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use command::run::is_broken_pipe;

    use super::*;

    #[test]
    fn a_channel_that_breaks_is_no_reader_that_has_seen_enough() {
        let broken = || io::Error::from(io::ErrorKind::BrokenPipe);
        let error = anyhow::Error::from(broken()).context("cannot write the report");
        assert!(is_broken_pipe::<Verb>(&error));
        let guest = recorder::RecordError::Guest { name: "web".into(), source: broken() };
        assert!(!is_broken_pipe::<Verb>(&guest.into()));
    }
}
