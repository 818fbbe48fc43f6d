//! `hyperscope path` on real recordings: tables, JSON, CSV, user-defined ends, and errors.

use crate::schemas::{check, closed};
use crate::tool::{assert_golden, command, hyperscope, output_of, recordings};
use serde_json::Value;

const GUEST: [&str; 2] =
    ["fixtures/x86-svm/host-guest.dat", "fixtures/x86-svm/host-guest.guest.dat"];
const WITH_VHOST: &str = "fixtures/arm64/B-vhost-on.dat";
const WITHOUT_VHOST: &str = "fixtures/arm64/B-vhost-off.dat";

fn json(args: &[&str]) -> Value {
    serde_json::from_str(&output_of(&[&["path", "--format", "json"], args].concat())).unwrap()
}

#[test]
fn every_recording_keeps_the_schema() {
    let schema = closed("path");
    for path in recordings() {
        let run = hyperscope(&["path", "--format", "json", &path]);
        assert_eq!(run.code, 0, "{path}: {}", run.err);
        check(&schema, &serde_json::from_str(&run.out).unwrap(), &path);
    }
    let merged = json(&GUEST);
    check(&schema, &merged, "host and guest");
    assert!(merged["alignment"][0].as_str().unwrap().contains("aligned by windows"));
}

#[test]
fn tables_are_as_expected() {
    for (name, files) in [
        ("arm64-vhost-on.path.txt", &[WITH_VHOST][..]),
        ("arm64-vhost-off.path.txt", &[WITHOUT_VHOST]),
        ("x86-svm-host-guest.path.txt", &GUEST),
    ] {
        assert_golden(name, &output_of(&[&["path"], files].concat()));
        let csv = output_of(&[&["path", "--format", "csv"], files].concat());
        assert_golden(&name.replace(".txt", ".csv"), &csv);
    }
}

/// The list states its share of all requests, and the last row sums the rare paths.
#[test]
fn every_request_is_in_one_row() {
    let report = json(&GUEST);
    let paths = report["paths"].as_array().unwrap();
    let sum = |name: &str, rare: &[bool]| -> u64 {
        let some = paths.iter().filter(|path| rare.contains(&path["rare"].as_bool().unwrap()));
        some.map(|path| path[name].as_u64().unwrap()).sum()
    };
    let all = report["requests"].as_u64().unwrap();
    assert_eq!(sum("count", &[true, false]) + report["others"].as_u64().unwrap(), all);
    let rare = paths.iter().filter(|path| path["rare"] == true).count();
    assert!(rare > 0 && sum("count", &[true]) * 10 < all, "{rare}");
    let text = output_of(&[&["path", "--top", "0"], &GUEST[..]].concat());
    assert!(text.contains(&format!("shown: {} with ", paths.len() - rare)), "{text}");
    let last = format!("{rare} rare paths of {} requests (", sum("count", &[true]));
    assert!(text.contains(&last) && text.contains("kvm_exit (in 43%)"), "{text}");
}

/// The path of a packet out of its guest depends on its sender; it is found without options.
#[test]
fn who_sends_packets_is_shown() {
    let actors = |file| {
        let report = json(&[file]);
        let sends = |hop: &&Value| hop["to"] == "kp_tun_get_user";
        let hops = report["paths"].as_array().unwrap().iter();
        let hops = hops.flat_map(|path| path["hops"].as_array().unwrap()).filter(sends);
        let mut actors: Vec<String> =
            hops.map(|hop| hop["on"].as_str().unwrap().to_owned()).collect();
        actors.sort();
        actors.dedup();
        actors
    };
    assert_eq!(actors(WITH_VHOST), ["vhost"]);
    assert_eq!(actors(WITHOUT_VHOST), ["iothread"]);
}

#[test]
fn ends_may_be_given() {
    let ends = ["--start", "kvm_mmio", "--end", "kprobes:kp_*"];
    let report = json(&[&ends[..], &[WITH_VHOST]].concat());
    let paths = report["paths"].as_array().unwrap();
    assert!(paths.iter().all(|path| path["start"] == "kvm_mmio"));
    let last = |path: &Value| path["hops"].as_array().unwrap().last().unwrap()["to"].clone();
    assert!(!paths.is_empty());
    assert!(
        paths
            .iter()
            .filter(|path| path["returns"] == true)
            .all(|path| last(path) == "kp_tun_get_user")
    );
    let run = hyperscope(&["path", "--start", "kvm_no_such", WITH_VHOST]);
    assert_eq!(run.code, 1);
    assert!(run.err.contains("no event matches kvm_no_such"), "{}", run.err);
}

/// A guest's recording alone does not show requests that leave it.
#[test]
fn without_exits_there_is_nothing_to_follow() {
    let text = output_of(&["path", "fixtures/x86-svm/functions.dat"]);
    assert!(text.contains("0 requests in 1.05 s on 0 paths"), "{text}");
    assert!(text.contains("record at least"), "{text}");
    let run = hyperscope(&["path", GUEST[1]]);
    assert!(run.code == 0 && run.err.contains("add the recording of its host"), "{}", run.err);
}

#[test]
fn narrow_terminals_lose_the_drawing_first() {
    let output = command().env("COLUMNS", "60").args(["path", WITH_VHOST]).output().unwrap();
    let narrow = String::from_utf8(output.stdout).unwrap();
    assert!(!narrow.contains("one of them") && narrow.contains("p50"), "{narrow}");
}
