//! Checks the bundled recordings: checksums, sizes, truth and completeness.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::Deserialize;
use sha2::{Digest, Sha256};

use crate::repository;

#[derive(Deserialize)]
struct Provenance {
    recording: Vec<Recording>,
}

/// An entry of `PROVENANCE.toml`; fields for human readers are required, too.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Recording {
    path: String,
    sha256: String,
    bytes: u64,
    truth: String,
    truth_sha256: String,
    /// Other files of the recording with their checksums: what the guest's module stored in memory,
    /// the collector's file, the session.
    #[serde(default)]
    sidecars: BTreeMap<String, String>,
    machine: String,
    what: String,
    kernel: String,
    architecture: String,
    recorder: String,
    format: String,
    cpus: u32,
    clock: String,
    events: u64,
    exits: u64,
}

#[derive(Deserialize)]
struct Truth {
    events: BTreeMap<String, u64>,
}

/// Checks every entry, and that no recording is unlisted.
pub(crate) fn check() -> Result<()> {
    let folder = repository::root().join("fixtures");
    let text = fs::read_to_string(folder.join("PROVENANCE.toml")).context("PROVENANCE.toml")?;
    let provenance: Provenance = toml::from_str(&text).context("PROVENANCE.toml")?;
    let mut faults = Vec::new();
    for recording in &provenance.recording {
        if let Err(error) = check_recording(&folder, recording, &mut faults) {
            faults.push(format!("{}: {error:#}", recording.path));
        }
    }
    faults.extend(unlisted(&folder, &provenance)?);
    let checked = format!("fixtures ({} recordings)", provenance.recording.len());
    repository::conclude(&checked, &faults)
}

/// Prints the checksum of each file as `sha256sum` does.
pub(crate) fn print_sums(files: &[PathBuf]) -> Result<()> {
    for file in files {
        let bytes = fs::read(file).with_context(|| file.display().to_string())?;
        println!("{}  {}", sum(&bytes), file.display());
    }
    Ok(())
}

fn check_recording(folder: &Path, entry: &Recording, faults: &mut Vec<String>) -> Result<()> {
    let mut fault = |text: String| faults.push(format!("{}: {text}", entry.path));
    let bytes = fs::read(folder.join(&entry.path))?;
    if bytes.len() as u64 != entry.bytes {
        fault(format!("{} bytes, expected {}", bytes.len(), entry.bytes));
    }
    if sum(&bytes) != entry.sha256 {
        fault("the sha256 differs".to_owned());
    }
    let truth = fs::read(folder.join(&entry.truth)).with_context(|| entry.truth.clone())?;
    if sum(&truth) != entry.truth_sha256 {
        fault(format!("the sha256 of {} differs", entry.truth));
    }
    for (sidecar, its_sum) in &entry.sidecars {
        let bytes = fs::read(folder.join(sidecar)).with_context(|| sidecar.clone())?;
        if *its_sum != sum(&bytes) {
            fault(format!("the sha256 of {sidecar} differs"));
        }
    }
    let truth: Truth = serde_json::from_slice(&truth).with_context(|| entry.truth.clone())?;
    let (events, exits) =
        (truth.events.values().sum::<u64>(), truth.events.get("kvm_exit").copied());
    if (events, exits.unwrap_or(0)) != (entry.events, entry.exits) {
        fault(format!("the event counts of {} differ", entry.truth));
    }
    for (name, text) in entry.facts() {
        if text.trim().is_empty() {
            fault(format!("`{name}` is empty"));
        }
    }
    if entry.cpus == 0 {
        fault("`cpus` is 0".to_owned());
    }
    Ok(())
}

impl Recording {
    /// Fields for human readers.
    fn facts(&self) -> [(&'static str, &str); 7] {
        [
            ("machine", &self.machine),
            ("what", &self.what),
            ("kernel", &self.kernel),
            ("architecture", &self.architecture),
            ("recorder", &self.recorder),
            ("format", &self.format),
            ("clock", &self.clock),
        ]
    }
}

/// Recordings and sidecar files that no entry lists.
fn unlisted(folder: &Path, provenance: &Provenance) -> Result<Vec<String>> {
    let paths_of = |entry: &Recording| {
        let all = [&entry.path, &entry.truth].into_iter().chain(entry.sidecars.keys());
        all.map(|path| folder.join(path)).collect::<Vec<_>>()
    };
    let listed: BTreeSet<_> = provenance.recording.iter().flat_map(paths_of).collect();
    let is_kept = |path: &Path| {
        let kinds = ["dat", "data", "json", "frames", "collected"];
        path.extension().is_some_and(|kind| kinds.iter().any(|other| kind == *other))
    };
    let (mut faults, mut open) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(at) = open.pop() {
        for entry in fs::read_dir(at)? {
            let path = entry?.path();
            if path.is_dir() {
                open.push(path);
            } else if is_kept(&path) && !listed.contains(&path) {
                let shown = path.strip_prefix(folder).unwrap_or(&path).display();
                faults.push(format!("{shown}: not in PROVENANCE.toml"));
            }
        }
    }
    Ok(faults)
}

fn sum(bytes: &[u8]) -> String {
    repository::hex(Sha256::new_with_prefix(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sum_is_that_of_the_standard() {
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(sum(b""), empty);
    }
}
