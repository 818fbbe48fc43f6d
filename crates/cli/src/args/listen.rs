//! Arguments of `listen`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use recorder::Modes;

use super::record::{ProfileArg, SampledEventArg, duration, mode, some_time};
use super::size::size;
use super::tracer::TracerArgs;

/// Arguments of `listen`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    hyperscope listen                            guests of this host, by vsock\n  \
    hyperscope listen vsock:99 tls:0.0.0.0:8823 --profile sched -o guests\n\n\
Start hyperscope-agent connect:vsock in each guest. Every guest gets its own session in the folder,\n\
NAME.hscope, which is complete once the guest disconnects or this command ends.")]
pub(crate) struct ListenArgs {
    /// Addresses to listen on for agents: vsock[:PORT], tls-vsock[:PORT], tls:ADDRESS:PORT,
    /// tcp-plain:ADDRESS:PORT, unix:PATH
    #[arg(value_name = "ADDRESS", default_value = "vsock")]
    pub(crate) at: Vec<channel::AgentAddress>,
    /// Record these events in guests: SYSTEM:NAME, NAME, SYSTEM, or patterns with * and ?
    #[arg(short, long = "event", value_name = "EVENT")]
    pub(crate) events: Vec<String>,
    /// Record the events that a question needs [default: exits, unless -e is given]
    #[arg(long, value_name = "PROFILE")]
    pub(crate) profile: Option<ProfileArg>,
    #[command(flatten)]
    pub(crate) tracer: TracerArgs,
    /// Sample inside the guests what their CPUs run, HZ times per second; hyperscope profile shows
    /// it
    #[arg(long = "sample", value_name = "HZ", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) sample_hz: Option<u32>,
    /// Event that triggers samples [default: cycles if the processor counts them, otherwise
    /// cpu-clock]
    #[arg(long, value_name = "EVENT", requires = "sample_hz")]
    pub(crate) sample_event: Option<SampledEventArg>,
    /// The folder with the sessions
    #[arg(short, long, value_name = "DIR", default_value = "guests")]
    pub(crate) output: PathBuf,
    /// Stop after this time: 500ms, 10s, 2m
    #[arg(long = "for", value_name = "TIME", value_parser = some_time)]
    pub(crate) time: Option<Duration>,
    /// Buffer size per CPU in guests' kernels, in KiB
    #[arg(long, value_name = "KIB")]
    pub(crate) buffer: Option<u32>,
    /// Keep at most this much data of each guest, in all of its sessions in the folder
    #[arg(long, value_name = "SIZE", value_parser = size, default_value = "16G")]
    pub(crate) quota: u64,
    /// After the end, wait this long for guests to send the rest; missing data is counted [default:
    /// 5s]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) guest_wait: Option<Duration>,
    /// Permissions of the sessions' files, in octal: 640 lets their group read the files and enter
    /// the folders [default: 600]
    #[arg(long, value_name = "MODE", value_parser = mode)]
    pub(crate) mode: Option<Modes>,
    /// Record at most this many guests at once
    #[arg(long, value_name = "N", default_value_t = 64)]
    pub(crate) guests: usize,
}
