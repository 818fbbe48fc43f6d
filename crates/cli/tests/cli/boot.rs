//! `hyperscope boot`: tables, documents and pictures of a boot and a shutdown.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::schemas::{check, closed};
use crate::tool::{assert_golden, hyperscope, output_of, repository};

const HOST: &str = "fixtures/x86-svm/boot.dat";
const GUEST: &str = "fixtures/x86-svm/boot.guest.dat";

fn document(args: &[&str]) -> Value {
    serde_json::from_str(&output_of(&[&["boot", "--format", "json"], args].concat())).unwrap()
}

#[test]
fn tables_are_as_expected() {
    assert_golden("x86-svm-boot.boot.txt", &output_of(&["boot", HOST, GUEST]));
    assert_golden("x86-svm-boot.guest.boot.txt", &output_of(&["boot", "--top", "3", GUEST]));
    assert_golden("x86-svm-boot.host.boot.txt", &output_of(&["boot", HOST]));
    let csv = output_of(&["boot", "--format", "csv", HOST, GUEST]);
    let first: String = csv.split_inclusive('\n').take(30).collect();
    assert_golden("x86-svm-boot.boot.csv", &first);
    assert_eq!(csv.lines().count(), 1 + 21 + 585);
}

#[test]
fn documents_keep_their_schema_and_what_was_not_recorded_is_null() {
    let validator = closed("boot");
    let both = document(&[HOST, GUEST]);
    let (guest, host) = (document(&[GUEST]), document(&[HOST]));
    let none = document(&["fixtures/x86-vmx/vmm.dat"]);
    for (what, report) in [("both", &both), ("guest", &guest), ("host", &host), ("none", &none)] {
        check(&validator, report, what);
    }
    let phases = |report: &Value| report["machines"][0]["phases"].as_array().unwrap().clone();
    assert!(phases(&guest).iter().all(|phase| phase["host"].is_null()));
    assert!(phases(&host).iter().all(|phase| phase["guest"].is_null()));
    assert_eq!(both["machines"][0]["vm"], "l2");
    assert!(guest["machines"][0]["vm"].is_null() && host["machines"][0]["init"].is_null());
    let ns = |value: &Value| value.as_u64().unwrap();
    let machine = &both["machines"][0];
    let sum: u64 = phases(&both).iter().map(|phase| ns(&phase["duration_ns"])).sum();
    assert_eq!(sum, ns(&machine["end_ns"]) - ns(&machine["begin_ns"]));
}

#[test]
fn marks_may_be_named() {
    let named = document(&["--until", "u", HOST, GUEST]);
    assert_eq!(named["machines"][0]["mark"]["text"], "up");
    let other = document(&["--until", "login", "--down", "up", HOST, GUEST]);
    assert!(other["machines"][0]["mark"].is_null());
    let phases = other["machines"][0]["phases"].as_array().unwrap();
    assert!(phases.iter().any(|phase| phase["kind"] == "shutdown" && phase["name"] == "up"));
}

#[test]
fn recordings_without_a_boot_say_so() {
    let run = hyperscope(&["boot", "fixtures/x86-svm/tsc.guest.dat"]);
    assert_eq!(run.code, 0, "{}", run.err);
    assert!(run.out.contains("trace_event=initcall:*"), "{}", run.out);
}

/// The recordings as a session with this name in a folder.
fn session(folder: &Path, name: &str) -> String {
    let session = folder.join(name);
    fs::create_dir(&session).unwrap();
    for (from, name) in [(HOST, "host.dat"), (GUEST, "guest-l2.dat")] {
        fs::copy(repository().join(from), session.join(name)).unwrap();
    }
    session.to_str().unwrap().to_owned()
}

#[test]
fn what_tracing_cost_is_shown_where_the_guest_has_measured_it() {
    let unknown = document(&[HOST, GUEST]);
    let folder = tempfile::tempdir().unwrap();
    let session = session(folder.path(), "s");
    let off_ns: Vec<u64> = (0..12).map(|at| 100_000 + at).collect();
    let on_ns: Vec<u64> = (0..12).map(|at| 300_000 + 101 * at).collect();
    let cost =
        json!({"event": "task:task_rename", "repeats": 200, "off_ns": off_ns, "on_ns": on_ns});
    let guests = [json!({"name": "l1"}), json!({"name": "l2", "event_cost": cost})];
    let stored = json!({"recorded": {"guests": guests}});
    fs::write(folder.path().join("s/session.json"), stored.to_string()).unwrap();
    let known = document(&[&session]);
    check(&closed("boot"), &known, "with what an event costs");
    let (known, unknown) = (&known["machines"][0], &unknown["machines"][0]);
    assert!(unknown["event_cost"].is_null());
    // Differences of 200,000 plus 100 per round: the sixth and seventh, the third, the tenth.
    let cost = &known["event_cost"];
    assert_eq!((&cost["median_ps"], &cost["low_ps"]), (&json!(1_002_750), &json!(1_001_000)));
    assert_eq!((&cost["high_ps"], &cost["rounds"]), (&json!(1_004_500), &json!(12)));
    let phases = |machine: &Value| machine["phases"].as_array().unwrap().clone();
    for (known, unknown) in phases(known).iter().zip(phases(unknown)) {
        let (guest, without) = (&known["guest"], &unknown["guest"]);
        assert!(without.is_null() || without["tracing"].is_null());
        let Some(events) = guest["recorded"]["events"].as_u64() else { continue };
        assert_eq!(guest["tracing"]["time_ns"], (events * 1_002_750 + 500) / 1000);
        assert_eq!(guest["tracing"]["high_ns"], (events * 1_004_500 + 500) / 1000);
    }
    let text = output_of(&["boot", &session]);
    assert!(text.contains("tracing: number of events times 1.00 us"), "{text}");
    assert!(!output_of(&["boot", HOST, GUEST]).contains("tracing: number of events"));
}

#[test]
fn boots_are_compared_phase_by_phase() {
    let folder = tempfile::tempdir().unwrap();
    let runs = ["a1", "a2", "b1", "b2"].map(|name| session(folder.path(), name));
    let sides = [&runs[0], &runs[1], "--", &runs[2], &runs[3]];
    let args = [&["diff", "--all", "--format", "json", "boot"][..], &sides].concat();
    let run = hyperscope(&args);
    assert_eq!(run.code, 0, "{}", run.err);
    let report: Value = serde_json::from_str(&run.out).unwrap();
    check(&closed("diff"), &report, "diff boot");
    let rows = report["rows"].as_array().unwrap();
    let find = |phase: &str, metric: &str| {
        rows.iter().find(|row| row["phase"] == phase && row["metric"] == metric)
    };
    let row_of = |phase: &str, metric: &str| find(phase, metric).unwrap();
    assert_eq!(row_of("fs", "exits")["a"], 1119.0);
    assert_eq!(row_of("fs", "duration_ns")["ratio"], 1.0);
    assert_eq!(find("before tracing", "events"), None);
    // The part that both sides have: from the first entry to the mark.
    let report = document(&[HOST, GUEST]);
    let until_mark = &report["machines"][0]["mark"]["since_begin_ns"];
    assert_eq!(&row_of("boot", "duration_ns")["b"], until_mark);
    assert!(rows.iter().all(|row| row["significant"] != true));
}
