//! Exits of all machines of this system's KVM, by reason, from the kernel's histogram of its tracepoint.
//!
//! The kernel only counts, so no exit is lost however many there are; but exits take longer meanwhile.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::exitcost::toggle;

/// The tracing instance of the histogram.
const INSTANCE: &str = "instances/hyperscope-exit-counts";
const EVENT: &str = "events/kvm/kvm_exit";
/// A histogram by both keys: a code has another meaning on another instruction set.
const BY_REASON: &str = "hist:keys=isa,exit_reason:size=2048";

/// Exits since counting began.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExitCounts {
    /// The kernel's format of the event, which includes the names of reasons.
    pub format: String,
    pub reasons: Vec<ReasonCount>,
}

/// Exits of a reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReasonCount {
    /// The event's `isa`: 1 is VMX, 2 is SVM.
    pub isa: u8,
    /// The event's `exit_reason`.
    pub code: u64,
    /// Number of exits since counting began.
    pub count: u64,
}

/// The number of exits so far. The first call starts counting; [`end_exit_counts`] ends it.
///
/// # Errors
/// When tracefs is missing or not permitted, KVM is not loaded, or the kernel has no histograms.
pub fn exit_counts() -> io::Result<ExitCounts> {
    let event = begin(&toggle::tracing()?.join(INSTANCE))?;
    let format = fs::read_to_string(event.join("format"))?;
    let reasons = parse(&fs::read_to_string(event.join("hist"))?)?;
    Ok(ExitCounts { format, reasons })
}

/// Ends counting, and removes the instance.
///
/// # Errors
/// When the kernel refuses.
pub fn end_exit_counts() -> io::Result<()> {
    let instance = toggle::tracing()?.join(INSTANCE);
    if instance.is_dir() {
        fs::write(instance.join(EVENT).join("trigger"), format!("!{BY_REASON}\n"))?;
        fs::remove_dir(instance)?;
    }
    Ok(())
}

fn begin(instance: &Path) -> io::Result<PathBuf> {
    let event = instance.join(EVENT);
    if !instance.is_dir() {
        fs::create_dir(instance)?;
        if let Err(error) = fs::write(event.join("trigger"), format!("{BY_REASON}\n")) {
            let _ = fs::remove_dir(instance);
            let text = format!("no histogram of exits: {}: {error}", event.display());
            return Err(io::Error::new(error.kind(), text));
        }
    }
    Ok(event)
}

/// Parses rows such as `{ isa:          2, exit_reason:        114 } hitcount:         12`.
fn parse(hist: &str) -> io::Result<Vec<ReasonCount>> {
    let invalid = |line: &str| io::Error::new(io::ErrorKind::InvalidData, format!("hist: {line}"));
    let rows = hist.lines().filter(|line| line.starts_with('{'));
    let reasons = rows.map(|line| row(line).ok_or_else(|| invalid(line))).collect();
    let dropped = hist.lines().filter_map(|line| line.trim().strip_prefix("Dropped:"));
    if let Some(dropped) = dropped.map(str::trim).find(|&count| count != "0") {
        return Err(invalid(&format!("exits beyond the capacity: {dropped}")));
    }
    reasons
}

fn row(line: &str) -> Option<ReasonCount> {
    let (keys, count) = line.strip_prefix('{')?.split_once('}')?;
    let key = |name: &str| {
        let mut pairs = keys.split(',').filter_map(|pair| pair.split_once(':'));
        pairs.find_map(|(key, value)| (key.trim() == name).then(|| value.trim()))
    };
    Some(ReasonCount {
        isa: key("isa")?.parse().ok()?,
        code: key("exit_reason")?.parse().ok()?,
        count: count.trim().strip_prefix("hitcount:")?.trim().parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const HIST: &str = "# event histogram\n#\n# trigger info: hist:keys=isa,exit_reason [active]\n#\n\n\
        { isa:          2, exit_reason:         96 } hitcount:          7\n\
        { isa:          2, exit_reason:        129 } hitcount:    1000064\n\n\
        Totals:\n    Hits: 1000071\n    Entries: 2\n    Dropped: 0\n";

    #[test]
    fn rows_of_the_kernels_histogram_are_counts_of_reasons() {
        let counts = parse(HIST).unwrap();
        let expected = |code, count| ReasonCount { isa: 2, code, count };
        assert_eq!(counts, [expected(96, 7), expected(129, 1_000_064)]);
        assert_eq!(parse("").unwrap(), []);
    }

    #[test]
    fn what_found_no_room_or_can_not_be_read_is_an_error() {
        assert!(parse(&HIST.replace("Dropped: 0", "Dropped: 3")).is_err());
        assert!(parse(&HIST.replace("exit_reason:         96", "exit_reason: x")).is_err());
        assert!(parse(&HIST.replace("hitcount:          7", "hits: 7")).is_err());
    }
}
