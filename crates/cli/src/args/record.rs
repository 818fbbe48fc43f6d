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
    hyperscope record                            until Ctrl-C: all events that exits needs\n  \
    hyperscope record --for 10s -o slow.hscope\n  \
    hyperscope record --flight 60s               keeps the newest minute until you save it\n  \
    hyperscope record --vm web -- sleep 5        only one VM, while a command runs\n  \
    hyperscope record --profile net --kprobe tun_get_user\n  \
    hyperscope record --profile vmm --vm web     for hyperscope vmm: how a VMM handles exits\n  \
    hyperscope record --guest web -- sleep 5     host and guest, with hyperscope-agent in the guest\n  \
    hyperscope record --guest trace-cmd:web      the same, with trace-cmd agent in the guest\n  \
    hyperscope record --sample 499 --for 10s     with samples of all CPUs, for hyperscope profile\n  \
    hyperscope record --hypercalls               only events that guests send by hypercall\n  \
    hyperscope record --tracer function_graph --graph-function svm_handle_exit --vm web\n\n\
    The recording is a session: hyperscope exits SESSION reads it, and so does trace-cmd report\n\
    SESSION/host.dat. Recording needs root. It uses its own tracefs instance and its own probe group,\n\
    and removes both afterwards.")]
pub(crate) struct RecordArgs {
    /// Record these events: SYSTEM:NAME, NAME, SYSTEM, or patterns with * and ?
    #[arg(short, long = "event", value_name = "EVENT")]
    pub(crate) events: Vec<String>,
    /// Record the events that a question needs [default: exits, unless -e or --hypercalls is given]
    #[arg(long, value_name = "PROFILE")]
    pub(crate) profile: Option<ProfileArg>,
    /// Record each call of a kernel function, with arguments in the kernel's kprobe syntax
    #[arg(long = "kprobe", value_name = "FUNCTION [ARGS]")]
    pub(crate) kprobes: Vec<String>,
    /// Record which parts of control blocks nested hypervisors changed before each VMRUN (AMD's
    /// SVM); hyperscope nested shows them
    #[arg(long)]
    pub(crate) nested_writes: bool,
    #[command(flatten)]
    pub(crate) tracer: TracerArgs,
    #[command(flatten)]
    pub(crate) flight: FlightRecorderArgs,
    /// Record only the threads of this VM, given by name or process id
    #[arg(long, value_name = "VM")]
    pub(crate) vm: Option<String>,
    /// Also record this guest, with hyperscope-agent in it: a VM's name, or [NAME=]CHANNEL
    ///
    /// Channels: shm:FILE (memory behind an ivshmem device), virtio-serial:FOLDER (of the ports'
    /// sockets), vsock:CID[:PORT], tls-vsock:CID[:PORT][,identity=FILE][,peers=FILE] (see
    /// hyperscope keys), tls:HOST:PORT[,...], tcp-plain:HOST:PORT, unix:PATH. For a VM's name, the
    /// best available channel is used.
    ///
    /// Guests in which `trace-cmd agent` runs: [NAME=]trace-cmd:VM, trace-cmd:vsock:CID[:PORT] or
    /// trace-cmd:tcp:HOST:PORT.
    #[arg(long = "guest", value_name = "GUEST")]
    pub(crate) guests: Vec<String>,
    /// Record the events of the module hyperscope_guest (channel=shm) in this guest: a VM's name, or
    /// [NAME=]shm:FILE, the memory behind its ivshmem device
    #[arg(long = "hypertrace", value_name = "GUEST")]
    pub(crate) modules: Vec<String>,
    /// Collect the hypercalls with which guests send events, with all registers; without -e,
    /// nothing else is recorded
    ///
    /// This uses BPF programs, which need a kernel with type information (BTF).
    #[arg(long)]
    pub(crate) hypercalls: bool,
    /// Number of these hypercalls, as passed to the guests' module; marks use the next number
    #[arg(long, value_name = "N", default_value = super::hypertrace::NUMBER, requires = "hypercalls",
        value_parser = super::hypertrace::number)]
    pub(crate) hypercall_number: u64,
    /// Number of registers to keep per hypercall, as passed to the guests' module
    #[arg(long, value_name = "N", default_value_t = 13, requires = "hypercalls",
        value_parser = clap::value_parser!(u8).range(4..=13))]
    pub(crate) hypercall_words: u8,
    /// Sample what all CPUs run, including guests, HZ times per second; hyperscope profile and perf
    /// report -i SESSION/host.data show it
    ///
    /// Use an odd rate such as 499, which does not stay in step with periodic work of kernels.
    #[arg(long = "sample", value_name = "HZ", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) sample_hz: Option<u32>,
    /// Event that triggers samples [default: cycles if the processor counts them, otherwise
    /// cpu-clock]
    #[arg(long, value_name = "EVENT", requires = "sample_hz")]
    pub(crate) sample_event: Option<SampledEventArg>,
    /// Sample inside the guests what their CPUs run, HZ times per second, with stacks of their
    /// kernels and programs, which the host can't see
    ///
    /// Use another rate than on the host (397 and 499); otherwise each samples the other's
    /// sampling.
    #[arg(long = "guest-sample", value_name = "HZ", requires = "guests", conflicts_with = "guest_boot",
        value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) guest_sample_hz: Option<u32>,
    /// Record these events in guests [default: those events of --profile that guests have]
    #[arg(long = "guest-event", value_name = "EVENT", requires = "guests")]
    pub(crate) guest_events: Vec<String>,
    /// Record each call of functions in guests' kernels: a set built into the agent (@virtio,
    /// @kvm-guest), or a function if the agent was started with --allow-kprobes
    #[arg(long = "guest-kprobe", value_name = "@SET|FUNCTION [ARGS]", requires = "guests")]
    pub(crate) guest_kprobes: Vec<String>,
    #[command(flatten)]
    pub(crate) guest_tracer: GuestTracerArgs,
    /// Record only events that pass a kernel filter: 'sched_switch prev_pid != 0'
    #[arg(long = "guest-filter", value_name = "EVENT FILTER", requires = "guests")]
    pub(crate) guest_filters: Vec<String>,
    /// Collect what guests' kernels recorded since they booted (trace_event=... on their command
    /// lines), and stop that recording. While the host is recorded, wait for guests that are not up
    /// yet
    #[arg(long, requires = "guests", conflicts_with_all = ["guest_events", "guest_kprobes", "guest_tracer"])]
    pub(crate) guest_boot: bool,
    /// Read events from guests' kernels at least this often, even from partly filled pages; a guest
    /// that goes down loses no more than this [default: 1s]
    #[arg(long, value_name = "TIME", value_parser = duration, requires = "guests")]
    pub(crate) guest_flush: Option<Duration>,
    /// Buffer size per CPU in guests' kernels, in KiB
    #[arg(long, value_name = "KIB", requires = "guests")]
    pub(crate) guest_buffer: Option<u32>,
    /// Sync all events to the disk this often; a power failure loses no more than this [default:
    /// 1s]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) flush: Option<Duration>,
    /// Stop when the host's pages reach this size; events still in kernel buffers are dropped
    /// [default: no limit except the disk]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) quota: Option<u64>,
    /// Keep at most this much of each guest's pages [default: 16G]
    #[arg(long, value_name = "SIZE", value_parser = size, requires = "guests")]
    pub(crate) guest_quota: Option<u64>,
    /// After the end, wait this long for guests to send the rest; missing data is counted [default:
    /// 5s]
    #[arg(long, value_name = "TIME", value_parser = duration, requires = "guests")]
    pub(crate) guest_wait: Option<Duration>,
    /// Folder of the session, or with --flight of all sessions [default: hyperscope.hscope, or
    /// hyperscope-1.hscope and so on if it exists; flight]
    #[arg(short, long, value_name = "DIR")]
    pub(crate) output: Option<PathBuf>,
    /// Permissions of the session's files, in octal: 640 lets their group read the files and enter
    /// the folder [default: 600]
    #[arg(long, value_name = "MODE", value_parser = mode)]
    pub(crate) mode: Option<Modes>,
    /// Stop after this time: 500ms, 10s, 2m
    #[arg(long = "for", value_name = "TIME", value_parser = some_time)]
    pub(crate) time: Option<Duration>,
    /// Trace clock [default: x86-tsc if the kernel trusts it, otherwise mono]
    #[arg(long, value_name = "CLOCK")]
    pub(crate) clock: Option<String>,
    /// Kernel buffer size per CPU, in KiB [default: 1024 to 16384, by number of CPUs]
    #[arg(long, value_name = "KIB")]
    pub(crate) buffer: Option<u64>,
    /// Record until this command ends, and return its exit code
    #[arg(last = true, value_name = "CMD")]
    pub(crate) command: Vec<String>,
    /// When standard input ends, clean up after the recorder with this process id
    #[arg(long, hide = true, value_name = "PID")]
    pub(crate) guard: Option<u32>,
}

/// An event that samples, on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SampledEventArg {
    /// The processor's cycle counter
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
    /// KVM, scheduling and interrupts: all events that exits needs
    Exits,
    /// The same, and the network
    Net,
    /// The same, and disks
    Disk,
    /// The same, and system calls and signals: see hyperscope vmm
    Vmm,
    /// Only scheduling
    Sched,
    /// All of these, except system calls and signals
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
        format!("{text:?} is not allowed: write 600, 640, 644 or 604; only the owner may write a recording")
    })
}
