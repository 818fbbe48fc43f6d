//! Arguments of `sensitivity`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use live::delayer::MAX_DELAY;
use timeline::event_filter::CpuSet;

use super::OutputArgs;
use command::args::time::some_time;

/// Arguments of `sensitivity`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    hyperscope sensitivity --vm web --reason EPT_MISCONFIG --for 30s\n  \
    hyperscope sensitivity --vm web --reason msr,cpuid --delays 1us,2us,5us -- ssh guest ./ping-pong\n  \
    hyperscope sensitivity --vm web --reason hlt --progress /sys/class/net/tap0/statistics/rx_packets --for 1m\n  \
    hyperscope sensitivity --vm web --reason msr --for 1m -o msr.html                      a page with figures\n\n\
    Time is divided into slices in random order. In each slice, exits of one reason are delayed by one of \
    the delays, or not at all. The slope is what the workload pays for each nanosecond: 1 if it waits for \
    all of them, 0 if it waits for something else. BPF programs (Linux 5.17 or later) add the delays, only \
    in the chosen VM. The delays stop when this program ends, however it ends.")]
pub(crate) struct SensitivityArgs {
    /// Name of the VM, or process id of its VMM
    #[arg(long, value_name = "VM")]
    pub(crate) vm: String,
    /// Reasons of exits to delay, named as in exits; each reason has its own slices
    #[arg(long, value_name = "REASON,…", value_delimiter = ',', required = true)]
    pub(crate) reason: Vec<String>,
    /// Delay only exits of these vCPUs, such as 0,2-3
    #[arg(long, value_name = "LIST", value_parser = CpuSet::parse)]
    pub(crate) vcpu: Option<CpuSet>,
    /// Delays to add, up to 100us
    #[arg(long, value_name = "TIME,…", value_delimiter = ',', default_value = "1us,2us,5us", value_parser = delay)]
    pub(crate) delays: Vec<Duration>,
    /// Measure of the workload's progress: exits of a reason, or a file with a growing number
    /// [default: the delayed exits]
    #[arg(long, value_name = "REASON|FILE")]
    pub(crate) progress: Option<String>,
    /// Length of a slice
    #[arg(long, value_name = "TIME", default_value = "100ms", value_parser = some_time)]
    pub(crate) slice: Duration,
    /// Stop after this time, even if the workload still runs [default: 30s without a workload]
    #[arg(long = "for", value_name = "TIME", value_parser = some_time)]
    pub(crate) time: Option<Duration>,
    /// Seed of the random order
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub(crate) seed: u64,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
    /// Workload that drives the VM: a program with its arguments, or one shell command. Its output
    /// goes to standard error
    #[arg(last = true, value_name = "WORKLOAD")]
    pub(crate) workload: Vec<String>,
}

impl SensitivityArgs {
    /// The time limit.
    pub(crate) fn time(&self) -> Option<Duration> {
        const ALONE: Duration = Duration::from_secs(30);
        self.time.or_else(|| self.workload.is_empty().then_some(ALONE))
    }

    /// The progress file, if progress is read from a file.
    pub(crate) fn counter(&self) -> Option<PathBuf> {
        self.progress.as_deref().filter(|progress| progress.contains('/')).map(PathBuf::from)
    }
}

/// A delay, which must not be longer than the programs allow.
fn delay(text: &str) -> Result<Duration, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit_ns = match text.get(digits.len()..).unwrap_or_default() {
        "ns" => 1.0,
        "us" => 1000.0,
        "" if digits.trim_matches('0').is_empty() => 0.0,
        _ => return Err(format!("{text:?} is not a delay: write 500ns or 2us")),
    };
    let ns = digits.parse::<f64>().ok().map(|number| number * unit_ns);
    match ns.filter(|ns| *ns >= 0.0) {
        Some(ns) if ns <= MAX_DELAY.as_nanos() as f64 => {
            Ok(Duration::from_nanos(ns.round() as u64))
        }
        Some(_) => Err(format!("the longest delay is {MAX_DELAY:?}")),
        None => Err(format!("{text:?} is not a delay: write 500ns or 2us")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_have_units_and_a_limit() {
        assert_eq!(delay("500ns"), Ok(Duration::from_nanos(500)));
        assert_eq!(delay("2.5us"), Ok(Duration::from_nanos(2500)));
        assert_eq!(delay("0"), Ok(Duration::ZERO));
        assert_eq!(delay("100us"), Ok(MAX_DELAY));
        for wrong in ["", "5", "101us", "1ms", "-1us", "us", "NaNus"] {
            assert!(delay(wrong).is_err(), "{wrong}");
        }
    }
}
