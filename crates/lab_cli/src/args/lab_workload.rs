//! Workloads of `ab --lab` that guests include: the components of macro benchmarks of hypervisors.

use experiment::{Metric, MetricError};
use lab::Tool;

/// A workload by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum LabWorkload {
    /// Compile 40 source files, two at a time: build_ns
    Build,
    /// Send a TCP stream to the machine below with iperf3, for two seconds: bits_per_second
    Stream,
    /// Benchmark the scheduler for two seconds, from wake-up to running: p50_ns, p99_ns
    Wakeups,
}

impl LabWorkload {
    /// The program and its arguments, in a guest at this level.
    pub(crate) fn command(self, level: u8) -> Vec<String> {
        let below = format!("10.77.{level}.1");
        let words: &[&str] = match self {
            Self::Build => &["hyperscope-labguest", "compile"],
            Self::Stream => &["iperf3", "--json", "--time", "2", "--client", &below],
            Self::Wakeups => &["hyperscope-labguest", "wakeups", "seconds=2"],
        };
        words.iter().map(|&word| word.to_owned()).collect()
    }

    /// Its name on the command line.
    pub(crate) fn name(self) -> String {
        let value = clap::ValueEnum::to_possible_value(&self);
        value.map_or_else(String::new, |value| value.get_name().to_owned())
    }

    /// The metrics that it prints; the first one decides a comparison.
    ///
    /// # Errors
    /// When a text is not a valid metric.
    pub(crate) fn metrics(self) -> Result<Vec<Metric>, MetricError> {
        let metrics: &[&str] = match self {
            Self::Build => &["build_ns=json:build_ns"],
            Self::Stream => &["bits_per_second=json:end.sum_received.bits_per_second"],
            Self::Wakeups => &["p99_ns=json:p99_ns", "p50_ns=json:p50_ns", "wakeups=json:wakeups"],
        };
        metrics.iter().map(|text| Metric::parse(text)).collect()
    }

    /// A program that guests need for it.
    pub(crate) fn tool(self) -> Option<Tool> {
        (self == Self::Build).then_some(Tool::Tcc)
    }
}
