//! When a cause was at work, on the clock of the recording.

use serde::{Deserialize, Serialize};

use super::effect::Counters;
use super::kind::RecordingKind;
use crate::bench::{BenchError, Result};

/// A time between two readings of counters, which lie in the recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Window {
    /// Its begin, on the recording's clock as verbs print it.
    pub from_ns: u64,
    /// Its end.
    pub to_ns: u64,
    /// Its begin in Unix time of the recorded host.
    pub from_unix_ns: u64,
    /// Its end in Unix time of the recorded host.
    pub to_unix_ns: u64,
}

impl Window {
    /// Between two readings.
    pub(super) fn between(
        before: &Counters,
        after: &Counters,
        kind: RecordingKind,
    ) -> Result<Self> {
        // perf records on the monotonic clock, as it is asked to, and hyperscope on the processor's counter.
        let clock = if kind == RecordingKind::Perf { "monotonic_ns" } else { "tsc_ns" };
        Ok(Self {
            from_ns: time(before, clock)?,
            to_ns: time(after, clock)?,
            from_unix_ns: time(before, "unix_ns")?,
            to_unix_ns: time(after, "unix_ns")?,
        })
    }

    /// How long it is.
    #[must_use]
    pub fn length_ns(&self) -> u64 {
        self.to_ns.saturating_sub(self.from_ns)
    }
}

fn time(counters: &Counters, clock: &str) -> Result<u64> {
    let missing = || BenchError::Malformed {
        what: "hyperscope-labguest counters",
        text: format!("there is no {clock}"),
    };
    counters.get(clock).copied().ok_or_else(missing)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_recording_has_its_clock() {
        let reading = |at: u64| -> Counters {
            let clocks = [("tsc_ns", at), ("monotonic_ns", at + 100), ("unix_ns", at + 1_000)];
            clocks.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
        };
        let window = |kind| Window::between(&reading(5), &reading(9), kind).unwrap();
        assert_eq!(
            (window(RecordingKind::Host).from_ns, window(RecordingKind::Perf).to_ns),
            (5, 109)
        );
        assert_eq!(window(RecordingKind::HostGuest).length_ns(), 4);
        assert!(Window::between(&Counters::new(), &reading(1), RecordingKind::Host).is_err());
    }
}
