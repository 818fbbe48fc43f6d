//! What is said of losses: that nothing was lost only where it is known.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::tool::{hyperscope, output_of, repository};

/// A host's recording with the kernel's counts of all its CPUs.
const COUNTED: &str = "fixtures/x86-vmx/vmm.dat";
/// A guest's recording without any.
const NOT_COUNTED: &str = "fixtures/arm64/A.guest.dat";
/// A recording that lacks events that the kernel has counted.
const CUT_SHORT: &str = "fixtures/arm64/D.dat";

fn losses(path: &str) -> Value {
    let info = output_of(&["info", "--format", "json", path]);
    serde_json::from_str::<Value>(&info).unwrap()["files"][0]["losses"].take()
}

fn said(path: &str) -> String {
    let info = output_of(&["info", path]);
    let lost = info.lines().find_map(|line| line.strip_prefix("  lost "));
    lost.unwrap().trim().to_owned()
}

/// A session of the recording with counts, whose recorder wrote this.
fn session(folder: &Path, recorded: &Value) -> String {
    fs::copy(repository().join(COUNTED), folder.join("host.dat")).unwrap();
    let text = json!({"schema": "hyperscope.session/1", "recorded": recorded});
    fs::write(folder.join("session.json"), text.to_string()).unwrap();
    folder.to_str().unwrap().to_owned()
}

#[test]
fn nothing_was_lost_where_the_kernels_counts_say_so() {
    assert_eq!(said(COUNTED), "nothing");
    assert_eq!(losses(COUNTED)["known"], true);
    assert_eq!(losses(COUNTED)["unknown_because"], Value::Null);
}

#[test]
fn without_counts_losses_are_unknown() {
    assert!(said(NOT_COUNTED).starts_with("unknown: "), "{}", said(NOT_COUNTED));
    assert_eq!(losses(NOT_COUNTED)["known"], false);
    let exits = output_of(&["exits", "--format", "json", NOT_COUNTED]);
    let exits: Value = serde_json::from_str(&exits).unwrap();
    assert_eq!(exits["losses"]["known"], false);
}

#[test]
fn events_that_the_kernel_counted_and_the_file_lacks_are_losses() {
    assert_eq!(losses(CUT_SHORT)["events_missing"], 59_450 - 59_372);
    assert!(said(CUT_SHORT).starts_with("78 "), "{}", said(CUT_SHORT));
}

#[test]
fn with_faults_it_never_says_that_nothing_was_lost() {
    let folder = tempfile::tempdir().unwrap();
    let whole = json!({"cpus": [], "faults": []});
    assert_eq!(said(&session(folder.path(), &whole)), "nothing");
    let fault = "CPU 0: its pages were not written to the end: No space left on device";
    let path = session(folder.path(), &json!({"cpus": [], "faults": [fault]}));
    assert!(said(&path).starts_with("unknown: the recorder reports a fault"), "{}", said(&path));
    assert_eq!(losses(&path)["known"], false);
    let exits = output_of(&["exits", &path]);
    assert!(exits.contains("it is not known how many events are missing"), "{exits}");
}

#[test]
fn a_guest_that_has_sent_no_page_yet_keeps_nobody_from_reading_its_host() {
    let folder = tempfile::tempdir().unwrap();
    fs::copy(repository().join(COUNTED), folder.path().join("host.dat")).unwrap();
    fs::create_dir_all(folder.path().join("guest-web.pages/events")).unwrap();
    let path = folder.path().to_str().unwrap();
    let info = output_of(&["info", path]);
    let lost = info.lines().filter_map(|line| line.strip_prefix("  lost "));
    let lost: Vec<&str> = lost.map(str::trim).collect();
    assert!(lost.len() == 2 && lost[1].starts_with("unknown: the recorder was killed"), "{info}");
    let events = hyperscope(&["events", path]);
    assert!(events.code == 0 && events.out.contains("kvm_exit"), "{}", events.err);
}
