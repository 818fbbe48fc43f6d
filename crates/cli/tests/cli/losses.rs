//! Statements about losses: "nothing lost" only if that is certain.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::tool::{hyperscope, output_of, repository};

/// A host's recording with the kernel's counts of all its CPUs.
const COUNTED: &str = "fixtures/x86-vmx/vmm.dat";
/// A guest's recording without any.
const NOT_COUNTED: &str = "fixtures/arm64/A.guest.dat";
/// A recording that lacks events which the kernel counted.
const CUT_SHORT: &str = "fixtures/arm64/D.dat";

fn losses(path: &str) -> Value {
    let info = output_of(&["info", "--format", "json", path]);
    serde_json::from_str::<Value>(&info).unwrap()["files"][0]["losses"].take()
}

fn lost_text(path: &str) -> String {
    let info = output_of(&["info", path]);
    let lost = info.lines().find_map(|line| line.strip_prefix("  lost "));
    lost.unwrap().trim().to_owned()
}

/// A session of the recording with counts, with this recorder's report.
fn session(folder: &Path, recorded: &Value) -> String {
    fs::copy(repository().join(COUNTED), folder.join("host.dat")).unwrap();
    let text = json!({"schema": "hyperscope.session/1", "recorded": recorded});
    fs::write(folder.join("session.json"), text.to_string()).unwrap();
    folder.to_str().unwrap().to_owned()
}

#[test]
fn nothing_was_lost_where_the_kernels_counts_say_so() {
    assert_eq!(lost_text(COUNTED), "nothing");
    assert_eq!(losses(COUNTED)["known"], true);
    assert_eq!(losses(COUNTED)["unknown_because"], Value::Null);
}

#[test]
fn without_counts_losses_are_unknown() {
    assert!(lost_text(NOT_COUNTED).starts_with("unknown: "), "{}", lost_text(NOT_COUNTED));
    assert_eq!(losses(NOT_COUNTED)["known"], false);
    let exits = output_of(&["exits", "--format", "json", NOT_COUNTED]);
    let exits: Value = serde_json::from_str(&exits).unwrap();
    assert_eq!(exits["losses"]["known"], false);
}

#[test]
fn events_that_the_kernel_counted_and_the_file_lacks_are_losses() {
    assert_eq!(losses(CUT_SHORT)["events_missing"], 59_450 - 59_372);
    assert!(lost_text(CUT_SHORT).starts_with("78 "), "{}", lost_text(CUT_SHORT));
}

#[test]
fn with_faults_it_never_says_that_nothing_was_lost() {
    let folder = tempfile::tempdir().unwrap();
    let no_faults = json!({"cpus": [], "faults": []});
    assert_eq!(lost_text(&session(folder.path(), &no_faults)), "nothing");
    let fault = "CPU 0: its pages were not written to the end: No space left on device";
    let path = session(folder.path(), &json!({"cpus": [], "faults": [fault]}));
    assert!(
        lost_text(&path).starts_with("unknown: the recorder reports a fault"),
        "{}",
        lost_text(&path)
    );
    assert_eq!(losses(&path)["known"], false);
    let exits = output_of(&["exits", &path]);
    assert!(exits.contains("the number of missing events is unknown"), "{exits}");
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

/// A host's recording with an overwritten part of its compressed pages.
const DAMAGED: &str = "fixtures/x86-svm/host-guest.dat";
const DAMAGE_AT: usize = 1_000_000;
/// Events on those pages, by the kernel's count.
const MISSING: u64 = 942;

fn damaged(folder: &Path, at: usize) -> String {
    let mut bytes = fs::read(repository().join(DAMAGED)).unwrap();
    bytes[at..at + 2000].fill(0xa5);
    let path = folder.join(format!("damaged-{at}.dat"));
    fs::write(&path, bytes).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn every_verb_says_what_a_damaged_recording_lacks() {
    let folder = tempfile::tempdir().unwrap();
    let path = damaged(folder.path(), DAMAGE_AT);
    assert_eq!(losses(&path)["events_missing"], MISSING);
    let out = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (page, lake, tables) = (out("page.html"), out("lake"), out("tables"));
    let mut verbs: Vec<Vec<&str>> = vec![
        vec!["report", "-o", &page],
        vec!["lake", "add", &lake],
        vec!["export", "--to", "parquet", "-o", &tables],
    ];
    for verb in [
        "exits", "nested", "advice", "cpu", "profile", "irqs", "virtio", "vmm", "why", "calls",
        "boot", "path", "align", "events",
    ] {
        verbs.push(vec![verb]);
    }
    let trace = out("trace");
    for to in ["csv", "jsonl", "chrome", "firefox", "perfetto", "tracedat"] {
        verbs.push(vec!["export", "--to", to, "-o", &trace]);
    }
    for verb in &verbs {
        let run = hyperscope(&[&verb[..], &[&path]].concat());
        let output = format!("{}{}", run.out, run.err);
        assert_eq!(run.code, 0, "{verb:?}: {output}");
        assert!(output.contains("942 events that the kernel counted"), "{verb:?}: {output}");
        assert!(output.contains("1 place could not be read"), "{verb:?}: {output}");
    }
}

/// Every place for losses in a document has the number.
#[test]
fn documents_have_what_a_damaged_recording_lacks() {
    let folder = tempfile::tempdir().unwrap();
    let path = damaged(folder.path(), DAMAGE_AT);
    for verb in [
        "exits", "nested", "advice", "cpu", "profile", "irqs", "virtio", "vmm", "why", "calls",
        "boot", "path", "align",
    ] {
        let run = hyperscope(&[verb, "--format", "json", &path]);
        let report: Value = serde_json::from_str(&run.out).unwrap();
        assert_eq!(report["losses"]["events_missing"], MISSING, "{verb}");
        assert_eq!(report["losses"]["pages_damaged"], 1, "{verb}");
        assert_eq!(report["losses"]["known"], false, "{verb}");
    }
    for question in ["exits", "nested", "path", "cpu", "profile", "boot"] {
        let run = hyperscope(&["diff", question, "--format", "json", &path, COUNTED]);
        let report: Value = serde_json::from_str(&run.out).unwrap();
        let field = |key: &str| report[key].clone();
        assert_eq!((field("a_lost"), field("b_lost")), (json!(MISSING), json!(0)), "{question}");
        assert_eq!((field("a_damaged"), field("b_damaged")), (json!(1), json!(0)), "{question}");
        let text = hyperscope(&["diff", question, &path, COUNTED]).out;
        assert!(text.contains("A lost 942 events and 1 place that could not be read"), "{text}");
    }
}

/// A selected part lacks nothing because of deliberate omissions.
#[test]
fn what_is_left_out_on_purpose_is_not_missing() {
    for part in [&["--to", "+2"][..], &["--vcpu", "0"]] {
        for verb in ["exits", "info", "cpu"] {
            let run = hyperscope(&[&[verb, "--format", "json"], part, &[DAMAGED]].concat());
            let report: Value = serde_json::from_str(&run.out).unwrap();
            let losses =
                if verb == "info" { &report["files"][0]["losses"] } else { &report["losses"] };
            assert_eq!(losses["events_missing"], 0, "{verb} {part:?}");
        }
    }
}

/// Counts of the complete recording don't apply to a part that is a file of its own.
#[test]
fn a_part_that_was_exported_lacks_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let part = folder.path().join("part.dat");
    let part = part.to_str().unwrap();
    for filter in [&["-e", "kvm_exit"][..], &["--cpu", "1"], &["--from", "+1"], &["--vcpu", "0"]] {
        let run =
            hyperscope(&[&["export", "--to", "tracedat", "-o", part], filter, &[DAMAGED]].concat());
        assert_eq!(run.code, 0, "{filter:?}: {}", run.err);
        assert_eq!(losses(part)["events_missing"], 0, "{filter:?}");
    }
}

/// Damage must let a build neither pass nor fail.
#[test]
fn conditions_are_not_judged_by_damaged_recordings() {
    let folder = tempfile::tempdir().unwrap();
    let path = damaged(folder.path(), DAMAGE_AT);
    let condition = ["diff", "--fail-if", "count > +0.5%", "--fail-on-estimate"];
    for sides in [[path.as_str(), DAMAGED], [DAMAGED, &path]] {
        let refused = hyperscope(&[&condition[..], &sides].concat());
        assert_eq!(refused.code, 1, "{}", refused.err);
        assert!(refused.err.contains("942 events"), "{}", refused.err);
        assert!(refused.err.contains("--allow-losses"), "{}", refused.err);
        let judged = hyperscope(&[&condition[..], &["--allow-losses"], &sides].concat());
        assert!([0, 3].contains(&judged.code), "{}", judged.err);
    }
    let sound = hyperscope(&[&condition[..], &[DAMAGED, "fixtures/x86-vmx/smp.dat"]].concat());
    assert!([0, 3].contains(&sound.code), "{}", sound.err);
}

/// Then names of the kernel's functions are missing wherever they are used.
#[test]
fn damage_to_the_table_of_symbols_is_said() {
    let folder = tempfile::tempdir().unwrap();
    for at in [150_000, 400_000, 700_000] {
        let path = damaged(folder.path(), at);
        for verb in ["info", "exits", "events", "cpu"] {
            let run = hyperscope(&[verb, &path]);
            let output = format!("{}{}", run.out, run.err);
            assert!(
                run.code == 0 && output.contains("kernel's symbol table"),
                "{verb} {at}: {}",
                run.err
            );
        }
    }
}
