//! Arguments of `flight`, and those of `record` that make it a flight recorder.

use std::net::SocketAddr;
use std::sync::mpsc::Sender;
use std::time::Duration;

use clap::{Args, Subcommand};
use live::Condition;
use recorder::flight::{FlightEvent, FlightPlan};

use super::OutputArgs;
use super::record::duration;
use super::serve::loopback;
use super::size::size;

/// Arguments of `flight`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    hyperscope record --flight 60s -o flight         keeps the newest minute until it is stopped\n  \
    hyperscope flight dump                           saves what it keeps as a session\n  \
    hyperscope flight dump --why 'web was slow' --format json\n\n\
    The signal USR1 does the same: kill -USR1 PID. See docs/flight.md.")]
pub(crate) struct FlightArgs {
    #[command(subcommand)]
    pub(crate) verb: FlightVerb,
}

/// What to do with a flight recorder.
#[derive(Debug, Subcommand)]
pub(crate) enum FlightVerb {
    /// Save what it keeps as a session, and wait until the session is complete
    Dump(DumpArgs),
}

/// Arguments of `flight dump`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    hyperscope flight dump\n  \
    hyperscope flight dump --pid 4711 --why 'web was slow'\n  \
    hyperscope report $(hyperscope flight dump)\n\n\
    Recording continues. The command prints the session's folder.")]
pub(crate) struct DumpArgs {
    /// Process id of the flight recorder [default: the only one that runs]
    #[arg(long, value_name = "PID")]
    pub(crate) pid: Option<u32>,
    /// Note this reason in the session
    #[arg(long, value_name = "TEXT")]
    pub(crate) why: Option<String>,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// Arguments of `record` for a flight recorder.
#[derive(Debug, Args)]
pub(crate) struct FlightRecorderArgs {
    /// Keep the newest events of TIME, and save them as a session on SIGUSR1 or hyperscope flight
    /// dump; -o is then the folder of these sessions [default: flight]
    #[arg(long, value_name = "TIME", value_parser = window,
        conflicts_with_all = ["modules", "hypercalls", "sample_hz", "guest_sample_hz", "guest_boot", "quota", "flush"])]
    pub(crate) flight: Option<Duration>,
    /// Also save a session when this condition starts to hold for one second of live figures: 'web:
    /// p99(EPT_MISCONFIG) > 500us', 'rate(npf) > 20000', 'run_queue > 10%'
    ///
    /// Without the prefix VM:, any VM can meet it. p50, p90, p99 and p999 are percentiles of the
    /// times from exit to entry (of at least 20 exits), and rate is exits per second. Without
    /// (REASON), both cover all exits except waiting ones. run_queue is the share of time in which
    /// vCPUs waited for a CPU.
    #[arg(long, value_name = "CONDITION", requires = "flight")]
    pub(crate) when: Vec<Condition>,
    /// Also save a session when a firing alert is posted to http://ADDRESS/alert, as the webhook of
    /// Prometheus' Alertmanager does; ADDRESS must belong to this machine
    #[arg(long, value_name = "ADDRESS", requires = "flight", value_parser = loopback)]
    pub(crate) alerts: Option<SocketAddr>,
    /// Keep at most SIZE of pages, and so less than TIME under a high event rate [default: 512M]
    #[arg(long, value_name = "SIZE", value_parser = buffer_size, requires = "flight")]
    pub(crate) size: Option<u64>,
    /// Keep at most N sessions; a new one replaces the oldest [default: 10]
    #[arg(long, value_name = "N", requires = "flight", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) sessions: Option<u32>,
    /// Keep sessions of at most SIZE in total [default: 4G]
    #[arg(long, value_name = "SIZE", value_parser = size, requires = "flight")]
    pub(crate) sessions_size: Option<u64>,
}

/// The smallest useful time and size.
const MIN_TIME: Duration = Duration::from_millis(100);
const MIN_BYTES: u64 = 1 << 20;

impl FlightRecorderArgs {
    /// The settings of a flight recorder, if it is one.
    pub(crate) fn plan(&self, request_sender: Sender<FlightEvent>) -> Option<FlightPlan> {
        Some(FlightPlan {
            asks: request_sender,
            window: self.flight?,
            most_bytes: self.size.unwrap_or(512 << 20),
            most_sessions: self.sessions.unwrap_or(10),
            most_session_bytes: self.sessions_size.unwrap_or(4 << 30),
        })
    }
}

fn window(text: &str) -> Result<Duration, String> {
    let time = duration(text)?;
    if time < MIN_TIME { Err("the minimum is 100ms".to_owned()) } else { Ok(time) }
}

fn buffer_size(text: &str) -> Result<u64, String> {
    let bytes = size(text)?;
    if bytes < MIN_BYTES { Err("the minimum is 1M".to_owned()) } else { Ok(bytes) }
}
