//! The command line: verbs, their options and their help.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use analyses::align::Method;
use analyses::group::By;
use clap::builder::PossibleValue;
use clap::error::ErrorKind;
use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum, value_parser};
use report::events::Near;
use timeline::event_filter::{Condition, CpuSet};

use crate::notice::say;
use session::{When, ends_before_it_begins};

pub(crate) use lab::{LabArgs, LabVerb};
pub(crate) use memory::MemoryArgs;
pub(crate) use page::PageArgs;
pub(crate) use part::{NameArgs, PartArgs, RangeArgs};

pub(crate) mod ab;
pub(crate) mod bench;
pub(crate) mod boot;
pub(crate) mod calls;
pub(crate) mod cpu;
pub(crate) mod critical;
pub(crate) mod debug_files;
pub(crate) mod diff;
pub(crate) mod export;
pub(crate) mod fleet;
pub(crate) mod flight;
mod groups;
pub(crate) mod hypertrace;
pub(crate) mod irqs;
pub(crate) mod keys;
pub(crate) mod lab;
pub(crate) mod lake;
pub(crate) mod listen;
pub(crate) mod mark;
pub(crate) mod memory;
mod misspelt;
pub(crate) mod page;
pub(crate) mod part;
pub(crate) mod path;
pub(crate) mod profile;
pub(crate) mod publish;
pub(crate) mod record;
pub(crate) mod sensitivity;
pub(crate) mod serve;
pub(crate) mod size;
pub(crate) mod sql;
pub(crate) mod tables;
pub(crate) mod top;
pub(crate) mod tracer;
pub(crate) mod virtio;
pub(crate) mod vmm;

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

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Account for every VM exit: how often, how long, who pays
    Exits(ExitsArgs),
    /// Show what exits of nested guests cost their host
    Nested(ReportArgs),
    /// Show why exits and waits happen, what usually helps, and how much that could save at most
    Advice(ReportArgs),
    /// Compare two recordings, or several of each side, with statistics
    Diff(diff::DiffArgs),
    /// Run a workload under two configurations in turn, and say by what they differ
    Ab(Box<ab::AbArgs>),
    /// Make chosen exits of a running VM longer, and say what its workload pays for each nanosecond of them
    Sensitivity(sensitivity::SensitivityArgs),
    /// Show who used the CPUs: vCPUs, guest threads, threads that serve VMs
    Cpu(cpu::CpuArgs),
    /// Show which code vCPUs ran, in rows that add up to their time
    Profile(profile::ProfileArgs),
    /// Show handlers of interrupts, of hosts and guests: how often, how long, and what the host took of it
    Irqs(irqs::IrqsArgs),
    /// Show what virtio's queues of guests carry, and how long buffers are away
    Virtio(virtio::VirtioArgs),
    /// Show what VMMs do with the exits that they handle, and in their threads: locks, system calls, devices
    Vmm(vmm::VmmArgs),
    /// Show how guests boot and shut down: initcall levels, user space, exits in each
    Boot(boot::BootArgs),
    /// Show which kernel functions ran, for how long, and who called them
    Calls(calls::CallsArgs),
    /// Print events as text or JSON, merged by time
    Events(EventsArgs),
    /// Write recordings as files that other tools open: Perfetto, Firefox, trace-cmd, pandas
    Export(export::ExportArgs),
    /// Keep the tables of many recordings in one place, for SQL
    Lake(lake::LakeArgs),
    /// Say whether the hosts of a fleet differ, and which
    Fleet(fleet::FleetArgs),
    /// Ask recordings and lakes in SQL
    Sql(Box<sql::SqlArgs>),
    /// Follow requests from guest to host and back, and time each hop
    Path(path::PathArgs),
    /// Show what a task or a request waited for, through guest, host, VMM and vhost
    Critical(critical::CriticalArgs),
    /// Show events that guests sent by hypercall or through shared memory
    Hypertrace(hypertrace::HypertraceArgs),
    /// Relate guests' clocks to their host's, with bounds
    Align(AlignArgs),
    /// Write a recording as one page for a browser
    Report(PageArgs),
    /// Show what a recording holds and what it lost
    Info(ReportArgs),
    /// Record this host's kernel: VM exits, scheduling, interrupts
    Record(Box<record::RecordArgs>),
    /// Record guests as their agents connect, each into a session of its own
    Listen(listen::ListenArgs),
    /// Show guests what their host does with their vCPUs, live
    Publish(publish::PublishArgs),
    /// Show what VMs exit for right now; in a guest, what its host does with its vCPUs
    Top(top::TopArgs),
    /// Offer what VMs exit for as metrics for Prometheus
    Serve(serve::ServeArgs),
    /// Have a flight recorder that runs make a session of what it keeps
    Flight(flight::FlightArgs),
    /// Put a text into the recording that this guest's host makes
    Mark(mark::MarkArgs),
    /// Make the keys by which hosts and agents identify each other over TLS
    Keys(keys::KeysArgs),
    /// Boot virtual hosts, guests and nested guests to try things on
    Lab(LabArgs),
    /// Measure what exits, tracers and recording cost, in the lab
    Bench(bench::BenchArgs),
    /// Print a script that completes commands and options in a shell
    Completions(CompletionsArgs),
    /// Print the manual page, or write those of all commands to a folder
    Man(ManArgs),
}

impl Verb {
    /// What a verb that reads recordings may take.
    pub(crate) fn memory(&self) -> Option<MemoryArgs> {
        Some(match self {
            Self::Exits(args) => args.memory,
            Self::Nested(args) | Self::Advice(args) | Self::Info(args) => args.memory,
            Self::Diff(args) => args.memory,
            Self::Cpu(args) => args.memory,
            Self::Profile(args) => args.memory,
            Self::Irqs(args) => args.memory,
            Self::Virtio(args) => args.memory,
            Self::Vmm(args) => args.memory,
            Self::Boot(args) => args.memory,
            Self::Calls(args) => args.memory,
            Self::Events(args) => args.memory,
            Self::Export(args) => args.memory,
            Self::Lake(args) => match &args.verb {
                lake::LakeVerb::Add(args) => args.memory,
                lake::LakeVerb::Compact(args) => args.memory,
                lake::LakeVerb::Verify(args) => args.memory,
                lake::LakeVerb::Gc(_) | lake::LakeVerb::List(_) => return None,
            },
            Self::Fleet(args) => match &args.verb {
                fleet::FleetVerb::Diff(args) => args.memory,
                fleet::FleetVerb::Since(args) => args.memory,
                fleet::FleetVerb::Simulate(args) => args.memory,
            },
            Self::Path(args) => args.memory,
            Self::Critical(args) => args.memory,
            Self::Hypertrace(args) => args.memory,
            Self::Align(args) => args.memory,
            Self::Report(args) => args.memory,
            _ => return None,
        })
    }
}

impl Verb {
    /// The range of time that a verb reads of recordings.
    fn range(&self) -> (Option<When>, Option<When>) {
        let range = match self {
            Self::Boot(args) => return (args.from, args.to),
            Self::Export(args) => return (args.from, args.until()),
            Self::Events(args) => args.range,
            Self::Exits(args) => args.part.range,
            Self::Nested(args) | Self::Advice(args) | Self::Info(args) => args.part.range,
            Self::Diff(args) => args.part.range,
            Self::Cpu(args) => args.part.range,
            Self::Profile(args) => args.part.range,
            Self::Irqs(args) => args.part.range,
            Self::Virtio(args) => args.part.range,
            Self::Vmm(args) => args.part.range,
            Self::Calls(args) => args.part.range,
            Self::Path(args) => args.part.range,
            Self::Critical(args) => args.part.range,
            Self::Hypertrace(args) => args.part.range,
            Self::Align(args) => args.part.range,
            Self::Report(args) => args.part.range,
            Self::Sql(args) => args.part.range,
            _ => return (None, None),
        };
        (range.from, range.to)
    }
}

impl Cli {
    /// Reads the command line; ends the process with code 2 when it makes no sense.
    pub(crate) fn read() -> Self {
        let mut matches = with_negative_times(groups::grouped(Self::command()))
            .try_get_matches()
            .unwrap_or_else(|error| Self::end(&misspelt::explained(error)));
        let name = matches.subcommand_name().unwrap_or_default().to_owned();
        let cli = Self::from_arg_matches_mut(&mut matches).unwrap_or_else(|error| error.exit());
        if ends_before_it_begins(cli.verb.range()) {
            Self::refuse(&name, "--from lies after --to");
        }
        let conflict = match &cli.verb {
            Verb::Export(args) => args.conflict().map(|conflict| ("export", conflict)),
            _ => None,
        };
        if let Some((verb, conflict)) = conflict {
            Self::refuse(verb, conflict);
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

    /// Ends the process with code 2: the arguments of this verb make no sense together.
    pub(crate) fn refuse(verb: &str, what: &str) -> ! {
        let mut command = Self::command();
        command.build();
        let of_verb = command.find_subcommand_mut(verb);
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

/// Arguments of `completions`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    mkdir -p ~/.local/share/bash-completion/completions ~/.config/fish/completions\n  \
    hyperscope completions bash > ~/.local/share/bash-completion/completions/hyperscope\n  \
    hyperscope completions fish > ~/.config/fish/completions/hyperscope.fish\n  \
    hyperscope completions zsh > \"${fpath[1]}/_hyperscope\"\n\n\
    The shells look there by themselves: open a new one. With bash, the package bash-completion does that.")]
pub(crate) struct CompletionsArgs {
    /// The shell
    #[arg(value_name = "SHELL")]
    pub(crate) shell: clap_complete::Shell,
}

/// Arguments of `man`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    hyperscope man | man -l -\n  \
    hyperscope man -o /usr/local/share/man/man1")]
pub(crate) struct ManArgs {
    /// Write one page per command to this folder in place of printing the first
    #[arg(short, long, value_name = "DIR")]
    pub(crate) output: Option<PathBuf>,
}

/// How a report is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum FormatArg {
    /// Tables for people
    Table,
    /// One JSON document
    Json,
    /// Comma-separated values with a header line
    Csv,
}

/// Where results go.
#[derive(Debug, Args)]
pub(crate) struct OutputArgs {
    /// How the report is written
    #[arg(long, value_name = "FORMAT", default_value = "table")]
    pub(crate) format: FormatArg,
    /// Write to this file in place of standard output
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

impl OutputArgs {
    /// Whether a page is asked for: by the file's name, where no format is.
    pub(crate) fn is_page(&self) -> bool {
        let kind = self.output.as_deref().and_then(Path::extension);
        self.format == FormatArg::Table && kind.is_some_and(|kind| kind == "html")
    }
}

/// Arguments of reports without options of their own.
#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    /// Recordings: trace.dat files, sessions, or folders with ring-buffer pages
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) memory: MemoryArgs,
    #[command(flatten)]
    pub(crate) part: PartArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// A number of rows, of which 0 means all.
pub(crate) const fn unless_zero(top: usize) -> usize {
    if top == 0 { usize::MAX } else { top }
}

/// How guests' times are brought to their host's clock.
#[derive(Debug, Args)]
pub(crate) struct MethodArgs {
    /// Bring guests' times to their host's clock by this [default: the first without violations,
    /// else windows]
    #[arg(long, value_name = "METHOD")]
    method: Option<MethodArg>,
}

impl MethodArgs {
    /// The method that was asked for.
    pub(crate) fn method(&self) -> Option<Method> {
        self.method.map(|method| method.0)
    }
}

/// A method of alignment under its command-line name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MethodArg(pub(crate) Method);

impl ValueEnum for MethodArg {
    fn value_variants<'a>() -> &'a [Self] {
        const ALL: [MethodArg; 3] = [
            MethodArg(Method::TscOffset),
            MethodArg(Method::TimeShift),
            MethodArg(Method::Windows),
        ];
        &ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        let help = match self.0 {
            Method::TscOffset => "TSC offsets that KVM set; both sides recorded x86-tsc",
            Method::TimeShift => "What the recorder measured (TIME_SHIFT)",
            Method::Windows => "Guest events lie between entries and exits of their vCPU",
        };
        Some(PossibleValue::new(self.0.name()).help(help))
    }
}

/// Arguments of `align`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    hyperscope align host.dat guest.dat                    all methods, and the one chosen\n  \
    hyperscope align --format json host.dat guest.dat      offsets and bounds for scripts\n  \
    hyperscope align --method time_shift NAME.hscope       what the recorder measured")]
pub(crate) struct AlignArgs {
    /// Recordings of a host and its guests, or sessions
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) memory: MemoryArgs,
    #[command(flatten)]
    pub(crate) part: PartArgs,
    #[command(flatten)]
    pub(crate) method: MethodArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// Arguments of `exits`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    hyperscope exits trace.dat                       by VM, level and reason\n  \
    hyperscope exits --by reason,msr trace.dat       which MSRs\n  \
    hyperscope exits --by vcpu,reason trace.dat      per vCPU\n  \
    hyperscope exits --by symbol host.dat guest.dat  by guest function")]
pub(crate) struct ExitsArgs {
    /// Recordings; a guest's own recording names guest functions for --by symbol
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) memory: MemoryArgs,
    #[command(flatten)]
    pub(crate) part: PartArgs,
    /// Group exits by these, separated by commas [default: vm,level,reason]
    #[arg(long, value_name = "KEY,…", value_delimiter = ',', hide_default_value = true)]
    pub(crate) by: Vec<ByArg>,
    /// Sort by a column of the CSV: cost, time, count, p99 … [default: cost; time where it is not known]
    #[arg(long, value_name = "COLUMN", hide_default_value = true)]
    pub(crate) sort: Option<String>,
    /// Show only the first N rows of each table, and the sum of the others
    #[arg(long, value_name = "N")]
    pub(crate) top: Option<usize>,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// A grouping property under its command-line name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ByArg(pub(crate) By);

impl ValueEnum for ByArg {
    fn value_variants<'a>() -> &'a [Self] {
        const ALL: [ByArg; By::NAMES.len()] = {
            let mut all = [ByArg(By::Vm); By::NAMES.len()];
            let mut at = 0;
            while at < all.len() {
                all[at] = ByArg(By::NAMES[at].1);
                at += 1;
            }
            all
        };
        &ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        let (name, _) = By::NAMES.iter().find(|(_, by)| *by == self.0)?;
        Some(PossibleValue::new(*name).help(self.help()))
    }
}

impl ByArg {
    const fn help(self) -> &'static str {
        match self.0 {
            By::Vm => "Virtual machine",
            By::Vcpu => "vCPU, with its VM",
            By::Level => "1: guests of the recorded machine, 2: guests inside those",
            By::Reason => "Exit reason, by the kernel's name",
            By::Code => "Exit reason, by its raw code",
            By::Msr => "Model-specific register (kvm_msr)",
            By::Port => "I/O port (kvm_pio)",
            By::Gpa => "Guest physical address (kvm_page_fault, kvm_mmio, kvm_guest_fault)",
            By::Hypercall => "Hypercall number (kvm_hypercall, kvm_hvc_arm64)",
            By::CpuidLeaf => "Leaf asked of cpuid (kvm_cpuid)",
            By::Symbol => "Guest function at the exit; needs the guest's own recording",
            By::Task => "vCPU thread",
        }
    }
}

/// How events are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum EventsFormatArg {
    /// Lines as trace-cmd report prints them
    Text,
    /// One JSON object a line
    Jsonl,
}

/// Events near one that is asked for, at most.
const MAX_NEAR: i64 = 100_000;

impl EventsArgs {
    /// What is printed near events that are asked for; none: nothing.
    pub(crate) fn near(&self) -> Option<Near> {
        let Self { before, after, context, .. } = self;
        let lines = |own: &Option<u32>| own.or(*context).map(|lines| lines as usize);
        let (before, after) = (lines(before), lines(after));
        let is_asked = before.is_some() || after.is_some();
        is_asked.then(|| Near { before: before.unwrap_or(0), after: after.unwrap_or(0) })
    }
}

/// Arguments of `events`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    hyperscope events trace.dat | less\n  \
    hyperscope events -e 'kvm:*' -e sched:sched_switch --cpu 0-1 trace.dat\n  \
    hyperscope events -e kvm:kvm_exit --where 'exit_reason == 12' trace.dat\n  \
    hyperscope events --where 'reason == EXIT_MSR' -B 2 -A 5 trace.dat   with events before and after\n  \
    hyperscope events --format jsonl host.dat guest.dat")]
pub(crate) struct EventsArgs {
    /// Recordings, merged by time
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) memory: MemoryArgs,
    #[command(flatten)]
    pub(crate) range: RangeArgs,
    /// Only these events: SYSTEM:NAME, NAME or SYSTEM, with * and ?
    #[arg(short, long = "event", value_name = "EVENT")]
    pub(crate) events: Vec<String>,
    /// Only these CPUs, such as 0,2-3
    #[arg(long, value_name = "LIST", value_parser = CpuSet::parse)]
    pub(crate) cpu: Option<CpuSet>,
    /// Only events of these threads, separated by commas
    #[arg(long, value_name = "TID", value_delimiter = ',')]
    pub(crate) pid: Vec<u32>,
    /// Only events of this VM's vCPU threads, and of its own recording; named as in exits
    #[arg(long, value_name = "VM")]
    pub(crate) vm: Option<String>,
    #[command(flatten)]
    pub(crate) names: NameArgs,
    /// Only events of the threads of these vCPUs, such as 0,2-3, and of guests' own recordings
    #[arg(long, value_name = "LIST", value_parser = CpuSet::parse)]
    pub(crate) vcpu: Option<CpuSet>,
    /// Only events whose field compares so: FIELD OP VALUE, with == != < <= > >= & ~; a name as events are
    /// printed with it stands for its number, as in 'reason == EXIT_MSR'
    #[arg(long = "where", value_name = "CONDITION", value_parser = Condition::parse)]
    pub(crate) conditions: Vec<Condition>,
    /// Also N events before each of those, of whatever kind, with -- between groups; --cpu, --pid, --vm, --vcpu,
    /// --from and --to say among which
    #[arg(short = 'B', long = "before", value_name = "N", value_parser = value_parser!(u32).range(..=MAX_NEAR))]
    pub(crate) before: Option<u32>,
    /// The same after each
    #[arg(short = 'A', long = "after", value_name = "N", value_parser = value_parser!(u32).range(..=MAX_NEAR))]
    pub(crate) after: Option<u32>,
    /// The same before and after
    #[arg(short = 'C', long = "context", value_name = "N", value_parser = value_parser!(u32).range(..=MAX_NEAR))]
    pub(crate) context: Option<u32>,
    /// Fields as they are recorded in place of the kernel's text
    #[arg(long)]
    pub(crate) raw: bool,
    /// All events as their kernel prints them, as trace-cmd report -N does
    #[arg(long, conflicts_with = "raw")]
    pub(crate) numeric: bool,
    #[command(flatten)]
    pub(crate) method: MethodArgs,
    /// How events are printed
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub(crate) format: EventsFormatArg,
    /// Write to this file in place of standard output
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}
