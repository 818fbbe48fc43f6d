//! Threads of the recording itself, whose CPU time is a cost of recording.

/// Thread names of programs that record; the kernel truncates names to 15 characters.
const NAMES: [&str; 4] = ["trace-cmd", "perf", "hyperscope", "hyperscope-agen"];
/// Prefixes of their threads' names.
const BEGINNINGS: [&str; 2] = ["lttng-", "hyperscope-"];

/// Whether a thread with this name belongs to a recorder: trace-cmd, perf, LTTng, hyperscope.
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
