//! Arguments of `record`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};

use recorder::Modes;

use super::flight::FlightRecorderArgs;
use super::size::size;
use super::tracer::{GuestTracerArgs, TracerArgs};
pub(crate) use command::args::time::{duration, some_time};

/// Arguments of `record`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    hyperscope record                            until Ctrl-C, what accounts for every exit\n  \
    hyperscope record --for 10s -o slow.hscope\n  \
    hyperscope record --flight 60s               keeps the newest minute until it is wanted\n  \
    hyperscope record --vm web -- sleep 5        one VM alone, while a command runs\n  \
    hyperscope record --profile net --kprobe tun_get_user\n  \
    hyperscope record --profile vmm --vm web     for hyperscope vmm: what a VMM does in its exits\n  \
    hyperscope record --guest web -- sleep 5     host and guest, with hyperscope-agent in the guest\n  \
    hyperscope record --guest trace-cmd:web      the same, with trace-cmd agent in the guest\n  \
    hyperscope record --sample 499 --for 10s     with samples of all CPUs, for hyperscope profile\n  \
    hyperscope record --hypercalls               guests' events sent by hypercall, and nothing else\n  \
    hyperscope record --tracer function_graph --graph-function svm_handle_exit --vm web\n\n\
    The recording is a session: hyperscope exits SESSION reads it, and so does trace-cmd report\n\
    SESSION/host.dat. Recording needs root. Nothing but an instance of tracefs, and probes in a\n\
    group of their own, is touched, and both are gone afterwards.")]
pub(crate) struct RecordArgs {
    /// Record these events: SYSTEM:NAME, NAME, SYSTEM, or patterns with * and ?
    #[arg(short, long = "event", value_name = "EVENT")]
    pub(crate) events: Vec<String>,
    /// Record what a question needs [default: exits, where no event and no hypercalls are asked for]
    #[arg(long, value_name = "PROFILE")]
    pub(crate) profile: Option<ProfileArg>,
    /// Record each call of a kernel function, with arguments as the kernel's kprobes take them
    #[arg(long = "kprobe", value_name = "FUNCTION [ARGS]")]
    pub(crate) kprobes: Vec<String>,
    /// Record which parts of their guests' control blocks hypervisors in guests changed before each
    /// VMRUN (AMD's SVM): hyperscope nested shows them
    #[arg(long)]
    pub(crate) nested_writes: bool,
    #[command(flatten)]
    pub(crate) tracer: TracerArgs,
    #[command(flatten)]
    pub(crate) flight: FlightRecorderArgs,
    /// Record only this VM's threads, by its name or its process id
    #[arg(long, value_name = "VM")]
    pub(crate) vm: Option<String>,
    /// Record this guest, too, by hyperscope-agent in it: a VM's name, or [NAME=]CHANNEL
    ///
    /// Channels: shm:FILE (memory behind an ivshmem device), virtio-serial:FOLDER (of the ports'
    /// sockets), vsock:CID[:PORT], tls-vsock:CID[:PORT][,identity=FILE][,peers=FILE] (see hyperscope
    /// keys), tls:HOST:PORT[,...], tcp-plain:HOST:PORT, unix:PATH. A VM's name stands for the best
    /// channel that it has.
    ///
    /// Guests in which `trace-cmd agent` runs: [NAME=]trace-cmd:VM, trace-cmd:vsock:CID[:PORT] or
    /// trace-cmd:tcp:HOST:PORT.
    #[arg(long = "guest", value_name = "GUEST")]
    pub(crate) guests: Vec<String>,
    /// Record the events of the module hyperscope_guest (channel=shm) in this guest: a VM's name, or
    /// [NAME=]shm:FILE, the memory behind its ivshmem device
    #[arg(long = "hypertrace", value_name = "GUEST")]
    pub(crate) modules: Vec<String>,
    /// Collect the hypercalls in which guests send events, with all their registers; where no event
    /// is named, nothing else is recorded
    ///
    /// This is done by BPF programs, which need a kernel with type information (BTF).
    #[arg(long)]
    pub(crate) hypercalls: bool,
    /// The number of those hypercalls, as given to the guests' module; marks have the next one
    #[arg(long, value_name = "N", default_value = super::hypertrace::NUMBER, requires = "hypercalls",
        value_parser = super::hypertrace::number)]
    pub(crate) hypercall_number: u64,
    /// Registers to keep of each: the number given to the guests' module is enough
    #[arg(long, value_name = "N", default_value_t = 13, requires = "hypercalls",
        value_parser = clap::value_parser!(u8).range(4..=13))]
    pub(crate) hypercall_words: u8,
    /// Sample what all CPUs run, guests included, HZ times a second: hyperscope profile shows it,
    /// and so does perf report -i SESSION/host.data
    ///
    /// An odd number (499) doesn't go in step with what kernels do at even ones.
    #[arg(long = "sample", value_name = "HZ", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) sample_hz: Option<u32>,
    /// What makes samples [default: cycles where the processor counts them, else cpu-clock]
    #[arg(long, value_name = "EVENT", requires = "sample_hz")]
    pub(crate) sample_event: Option<SampledEventArg>,
    /// Sample what guests' CPUs run, HZ times a second, from inside: with the stacks of their own kernel and
    /// programs, which no host sees
    ///
    /// At another rate than the host is sampled at (397 and 499): else each samples the other's sampling.
    #[arg(long = "guest-sample", value_name = "HZ", requires = "guests", conflicts_with = "guest_boot",
        value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) guest_sample_hz: Option<u32>,
    /// Record these events in guests [default: those of --profile, as far as guests have them]
    #[arg(long = "guest-event", value_name = "EVENT", requires = "guests")]
    pub(crate) guest_events: Vec<String>,
    /// Record each call of functions of guests' kernels: a set that is built into the agent (@virtio,
    /// @kvm-guest), or a function, where the agent was started with --allow-kprobes
    #[arg(long = "guest-kprobe", value_name = "@SET|FUNCTION [ARGS]", requires = "guests")]
    pub(crate) guest_kprobes: Vec<String>,
    #[command(flatten)]
    pub(crate) guest_tracer: GuestTracerArgs,
    /// Record only what a filter of the kernel's lets through: 'sched_switch prev_pid != 0'
    #[arg(long = "guest-filter", value_name = "EVENT FILTER", requires = "guests")]
    pub(crate) guest_filters: Vec<String>,
    /// Take what guests' kernels have recorded since they booted (trace_event=... on their command
    /// lines), and end that; guests that are not up yet are waited for while the host is recorded
    #[arg(long, requires = "guests", conflicts_with_all = ["guest_events", "guest_kprobes", "guest_tracer"])]
    pub(crate) guest_boot: bool,
    /// Take events out of guests' kernels after so long at most, also from pages that are not full:
    /// so little is missing when a guest goes down [default: 1s]
    #[arg(long, value_name = "TIME", value_parser = duration, requires = "guests")]
    pub(crate) guest_flush: Option<Duration>,
    /// Size of each CPU's buffer in guests' kernels, in KiB
    #[arg(long, value_name = "KIB", requires = "guests")]
    pub(crate) guest_buffer: Option<u32>,
    /// Sync events, those of guests too, to the disk this often: no more is missing after a power cut
    /// [default: 1s]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) flush: Option<Duration>,
    /// End when the host's pages have reached this size; what is in the kernel's buffers then is left out
    /// [default: no limit but the disk]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) quota: Option<u64>,
    /// Keep so much of each guest's pages at most [default: 16G]
    #[arg(long, value_name = "SIZE", value_parser = size, requires = "guests")]
    pub(crate) guest_quota: Option<u64>,
    /// Wait so long for guests to send the rest after the end; what is missing then is counted
    /// [default: 5s]
    #[arg(long, value_name = "TIME", value_parser = duration, requires = "guests")]
    pub(crate) guest_wait: Option<Duration>,
    /// The session's folder, or with --flight that of sessions [default: hyperscope.hscope, or
    /// hyperscope-1.hscope and so on where that is taken; flight]
    #[arg(short, long, value_name = "DIR")]
    pub(crate) output: Option<PathBuf>,
    /// Permissions of the session's files, in octal: 640 lets their group read them, and enter the
    /// folder [default: 600]
    #[arg(long, value_name = "MODE", value_parser = mode)]
    pub(crate) mode: Option<Modes>,
    /// End after so long: 500ms, 10s, 2m
    #[arg(long = "for", value_name = "TIME", value_parser = some_time)]
    pub(crate) time: Option<Duration>,
    /// The trace clock [default: x86-tsc where the kernel trusts it, else mono]
    #[arg(long, value_name = "CLOCK")]
    pub(crate) clock: Option<String>,
    /// Size of each CPU's buffer in the kernel, in KiB [default: 1024 to 16384, by their number]
    #[arg(long, value_name = "KIB")]
    pub(crate) buffer: Option<u64>,
    /// End when this command does, with its exit code
    #[arg(last = true, value_name = "CMD")]
    pub(crate) command: Vec<String>,
    /// Clean up after the recorder with this process id once standard input ends
    #[arg(long, hide = true, value_name = "PID")]
    pub(crate) guard: Option<u32>,
}

/// An event that samples, on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SampledEventArg {
    /// The processor's counter of cycles
    Cycles,
    /// The kernel's timer, which needs no counter
    CpuClock,
}

impl From<SampledEventArg> for recorder::SampledEvent {
    fn from(event: SampledEventArg) -> Self {
        match event {
            SampledEventArg::Cycles => Self::Cycles,
            SampledEventArg::CpuClock => Self::CpuClock,
        }
    }
}

/// A choice of events on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ProfileArg {
    /// KVM, scheduling and interrupts: what accounts for every exit
    Exits,
    /// The same, and the network
    Net,
    /// The same, and disks
    Disk,
    /// The same, and system calls and signals: see hyperscope vmm
    Vmm,
    /// Scheduling alone
    Sched,
    /// All of these, but system calls and signals
    Full,
}

impl From<ProfileArg> for recorder::Profile {
    fn from(profile: ProfileArg) -> Self {
        match profile {
            ProfileArg::Exits => Self::Exits,
            ProfileArg::Net => Self::Net,
            ProfileArg::Disk => Self::Disk,
            ProfileArg::Vmm => Self::Vmm,
            ProfileArg::Sched => Self::Sched,
            ProfileArg::Full => Self::Full,
        }
    }
}

/// Reads permissions of files.
pub(super) fn mode(text: &str) -> Result<Modes, String> {
    let bits = u32::from_str_radix(text, 8).ok().and_then(Modes::of_files);
    bits.ok_or_else(|| {
        format!("{text:?} can't be: write 600, 640, 644 or 604; nobody else may write a recording")
    })
}
