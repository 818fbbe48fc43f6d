//! Amplified recordings repeat the original as often as requested, for our reader and for
//! trace-cmd.

use std::path::Path;
use std::process::Command;

use testkit::{ExpectedRecord, naive};
use tracedat::ChunkReader;

use super::*;

/// Events in `fixtures/x86-vmx/vmm.dat`.
const EVENTS: usize = 9_056;

fn original() -> PathBuf {
    crate::repository::root().join("fixtures/x86-vmx/vmm.dat")
}

fn amplified(folder: &Path, v6: bool, mark_seams: bool) -> PathBuf {
    let output = folder.join("amplified.dat");
    let size = "1M".parse().unwrap();
    let (input, output) = (original(), output);
    run(&Arguments { input, output: output.clone(), size, v6, mark_seams }).unwrap();
    output
}

/// Every record, and the number of pages that report losses.
fn records(file: &Path) -> (Vec<ExpectedRecord>, usize) {
    let bytes = fs::read(file).unwrap();
    let recording = TraceDat::parse(&bytes).unwrap();
    assert_eq!(recording.damage, []);
    let mut reader = ChunkReader::new();
    let (mut records, mut losses) = (Vec::new(), 0);
    for chunk in &recording.buffers[0].cpus[0].chunks(&bytes).list {
        for page in reader.read(&bytes, chunk).unwrap().chunks(4096) {
            let page = naive::decode(recording.abi(), page).unwrap();
            records.extend(page.records);
            losses += usize::from(page.missed.is_some());
        }
    }
    (records, losses)
}

#[test]
fn both_versions_repeat_the_original() {
    let folder = tempfile::tempdir().unwrap();
    let (once, _) = records(&original());
    assert_eq!(once.len(), EVENTS);
    for v6 in [false, true] {
        let (all, losses) = records(&amplified(folder.path(), v6, false));
        assert_eq!((all.len(), losses), (3 * EVENTS, 0));
        let payloads = |records: &[ExpectedRecord]| -> Vec<Vec<u8>> {
            records.iter().map(|record| record.payload.clone()).collect()
        };
        for part in all.chunks(EVENTS) {
            assert_eq!(payloads(part), payloads(&once));
        }
        assert!(all.is_sorted_by_key(|record| record.stamp));
    }
}

#[test]
fn seams_are_losses_when_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let (_, losses) = records(&amplified(folder.path(), false, true));
    assert_eq!(losses, 2);
}

#[test]
fn trace_cmd_reads_both_versions() {
    if Command::new("trace-cmd").arg("--version").output().is_err() {
        eprintln!("skipped: trace-cmd is not installed");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for v6 in [false, true] {
        let file = amplified(folder.path(), v6, false);
        let report = Command::new("trace-cmd")
            .args(["report", "-N", "-R", "-t", "-i"])
            .arg(file)
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&report.stdout);
        assert!(report.status.success());
        // The first line has the number of CPUs.
        assert_eq!(text.lines().count(), 3 * EVENTS + 1);
    }
}
