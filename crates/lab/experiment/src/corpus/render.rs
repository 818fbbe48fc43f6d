//! A corpus as a table: one row for each file with a cause.

use std::collections::BTreeMap;
use std::fmt;

use super::kind::RecordingKind;
use super::label::{Corpus, Label};

impl Corpus {
    /// Size of all recordings.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.recordings.iter().map(|label| label.bytes).sum()
    }

    fn rows(&self) -> BTreeMap<&str, Vec<&Label>> {
        let mut rows: BTreeMap<&str, Vec<&Label>> = BTreeMap::new();
        for label in &self.recordings {
            rows.entry(&label.source).or_default().push(label);
        }
        rows
    }
}

impl fmt::Display for Corpus {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [host, guest, perf] = RecordingKind::ALL.map(RecordingKind::name);
        writeln!(to, "{:<26} {host:>6} {guest:>11} {perf:>10} {:>9}  variants", "cause", "KiB")?;
        for (source, labels) in self.rows() {
            let count = |kind| labels.iter().filter(|label| label.kind == kind).count();
            let [host, guest, perf] = RecordingKind::ALL.map(count);
            let kib = labels.iter().map(|label| label.bytes).sum::<u64>() / 1024;
            let mut variants: Vec<&str> = labels.iter().map(|label| &*label.variant).collect();
            variants.sort_unstable();
            variants.dedup();
            let variants = variants.join(", ");
            writeln!(to, "{source:<26} {host:>6} {guest:>11} {perf:>10} {kib:>9}  {variants}")?;
        }
        writeln!(to, "{} recordings, {} KiB", self.recordings.len(), self.bytes() / 1024)?;
        for failure in &self.failed {
            writeln!(to, "failed: {}: {}", failure.item, failure.why.lines().next().unwrap_or(""))?;
        }
        Ok(())
    }
}
