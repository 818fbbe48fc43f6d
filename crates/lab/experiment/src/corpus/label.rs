//! What is known of the recordings: kept in a file apart from them.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::effect::{Counters, MeasuredEffect};
use super::kind::RecordingKind;
use super::window::Window;
use crate::bench::{BenchError, Result};

/// The schema of the file.
const SCHEMA: &str = "hyperscope.lab.corpus/1";

/// A corpus: `labels.json`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Corpus {
    /// `hyperscope.lab.corpus/1`.
    pub schema: String,
    /// What parameters were drawn from.
    pub seed: u64,
    /// The release of the kernel of host and guests.
    pub kernel_release: Option<String>,
    /// The recordings, by name.
    pub recordings: Vec<Label>,
    /// Those that could not be made.
    pub failed: Vec<Failure>,
}

/// What is known of a recording.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Label {
    /// Its name, which tells nothing.
    pub name: String,
    /// Where it is, below the corpus' folder: a session, or a perf.data.
    pub path: String,
    /// What is in it.
    pub kind: RecordingKind,
    /// The file of the cause.
    pub source: String,
    /// The variant in it.
    pub variant: String,
    /// The number of this recording among those of the same variant and kind: each has its own parameters.
    pub draw: u32,
    /// What was planted, the costliest first; one with the cause `none` in healthy recordings.
    pub causes: Vec<Planted>,
    /// The recording of the same workload with the cause, if this one is without; then nothing was planted here.
    pub without_cause_of: Option<String>,
    /// Drawn parameters.
    pub parameters: BTreeMap<String, String>,
    /// Shell scripts with these parameters.
    pub scripts: BTreeMap<String, String>,
    /// When the cause was at work.
    pub window: Window,
    /// What shows that it was.
    pub effects: Vec<MeasuredEffect>,
    /// What all counters rose by meanwhile, without those that did not.
    pub measured: Counters,
    /// Time for which the threads that execute the lab waited for a processor of this system: this disturbs a recording.
    pub disturbed_ns: u64,
    /// Size of its files.
    pub bytes: u64,
}

/// A planted cause.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Planted {
    /// Its id.
    pub cause: String,
    /// The VM that suffers, as the recording names it; null: none, or the recording names no VM.
    pub vm: Option<String>,
    /// The vCPU that suffers; null: all.
    pub vcpu: Option<u32>,
    /// Whether the same workload can run without it: without the scripts of the host.
    pub removable: bool,
}

/// A recording that could not be made.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Failure {
    /// What it would have shown.
    pub item: String,
    /// Why there is none.
    pub why: String,
}

impl Corpus {
    /// One without recordings.
    pub(super) fn new(seed: u64) -> Self {
        Self {
            schema: SCHEMA.to_owned(),
            seed,
            kernel_release: None,
            recordings: Vec::new(),
            failed: Vec::new(),
        }
    }

    /// Writes it into the corpus' folder; after each recording, so that an interrupted run is of use.
    pub(super) fn write(&self, folder: &Path) -> Result<()> {
        let path = folder.join("labels.json");
        let text = serde_json::to_string_pretty(self).map_err(BenchError::malformed("labels"))?;
        fs::write(&path, text + "\n").map_err(BenchError::io("cannot write", &path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_read_as_they_were_written() {
        let folder = tempfile::tempdir().unwrap();
        let mut corpus = Corpus::new(7);
        corpus.failed.push(Failure { item: "a".into(), why: "b".into() });
        corpus.write(folder.path()).unwrap();
        let text = fs::read_to_string(folder.path().join("labels.json")).unwrap();
        let again: Corpus = serde_json::from_str(&text).unwrap();
        assert_eq!((again.schema.as_str(), again.seed, again.failed.len()), (SCHEMA, 7, 1));
    }
}
