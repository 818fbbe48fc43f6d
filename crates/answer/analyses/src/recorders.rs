//! Threads of the recording itself: their CPU time is only used while recording.

/// Programs that record, as the kernel calls their threads: at most 15 characters of a name.
const NAMES: [&str; 4] = ["trace-cmd", "perf", "hyperscope", "hyperscope-agen"];
/// What names of their threads begin with.
const BEGINNINGS: [&str; 2] = ["lttng-", "hyperscope-"];

/// Whether a thread of this name is of a program that records: trace-cmd, perf, LTTng, hyperscope.
#[must_use]
pub fn is_recorder(name: &str) -> bool {
    NAMES.contains(&name) || BEGINNINGS.iter().any(|begin| name.starts_with(begin))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_that_record_are_known_by_their_names() {
        for name in ["trace-cmd", "perf", "lttng-consumerd", "lttng-sessiond", "hyperscope-p12"] {
            assert!(is_recorder(name), "{name}");
        }
        for name in ["trace-cmdr", "perfect", "qemu-system-x86", "lttn", ""] {
            assert!(!is_recorder(name), "{name}");
        }
    }
}
