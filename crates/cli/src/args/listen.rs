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
In each guest: hyperscope-agent connect:vsock. Every guest gets a session of its own in the\n\
folder, NAME.hscope, which is complete once the guest leaves or this command ends.")]
pub(crate) struct ListenArgs {
    /// Where agents connect to: vsock[:PORT], tls-vsock[:PORT], tls:ADDRESS:PORT,
    /// tcp-plain:ADDRESS:PORT, unix:PATH
    #[arg(value_name = "ADDRESS", default_value = "vsock")]
    pub(crate) at: Vec<channel::AgentAddress>,
    /// Record these events in guests: SYSTEM:NAME, NAME, SYSTEM, or patterns with * and ?
    #[arg(short, long = "event", value_name = "EVENT")]
    pub(crate) events: Vec<String>,
    /// Record what a question needs [default: exits, where -e names none]
    #[arg(long, value_name = "PROFILE")]
    pub(crate) profile: Option<ProfileArg>,
    #[command(flatten)]
    pub(crate) tracer: TracerArgs,
    /// Sample what guests' CPUs run, HZ times a second, from inside: hyperscope profile shows it
    #[arg(long = "sample", value_name = "HZ", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) sample_hz: Option<u32>,
    /// What makes samples [default: cycles where the processor counts them, else cpu-clock]
    #[arg(long, value_name = "EVENT", requires = "sample_hz")]
    pub(crate) sample_event: Option<SampledEventArg>,
    /// The folder with the sessions
    #[arg(short, long, value_name = "DIR", default_value = "guests")]
    pub(crate) output: PathBuf,
    /// End after so long: 500ms, 10s, 2m
    #[arg(long = "for", value_name = "TIME", value_parser = some_time)]
    pub(crate) time: Option<Duration>,
    /// Size of each CPU's buffer in guests' kernels, in KiB
    #[arg(long, value_name = "KIB")]
    pub(crate) buffer: Option<u32>,
    /// Keep so much of each guest at most, in all of its sessions in the folder
    #[arg(long, value_name = "SIZE", value_parser = size, default_value = "16G")]
    pub(crate) quota: u64,
    /// Wait so long for guests to send the rest after the end; what is missing then is counted
    /// [default: 5s]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) guest_wait: Option<Duration>,
    /// Permissions of the sessions' files, in octal: 640 lets their group read them, and enter their
    /// folders [default: 600]
    #[arg(long, value_name = "MODE", value_parser = mode)]
    pub(crate) mode: Option<Modes>,
    /// Record at most this many guests at a time
    #[arg(long, value_name = "N", default_value_t = 64)]
    pub(crate) guests: usize,
}
