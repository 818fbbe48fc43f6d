//! `hyperscope ab` on a real KVM host: a workload that reports its number of exits.

use std::process::{Command, Stdio};

use serde_json::Value;

use crate::patience::run;
use crate::recorded::json;
use crate::tool::{TestLab, can_run_all, folder};

/// Makes CPUID exits, three times as many in B, and prints their number.
const WORK: &str = "hyperscope bench exits --vm --kind cpuid --run-ms 60 --format json \
                    --runs $(test $HYPERSCOPE_SIDE = a && echo 1 || echo 3)";

#[test]
fn exits_of_runs_are_those_that_the_workload_made() {
    if !can_run_all() {
        return;
    }
    let lab = TestLab::new("ab");
    lab.run(&["up", "--levels", "1"]).done();
    lab.shell(1, "hyperscope-labguest host").done();
    lab.put_programs(1);
    for counted in ["--record /tmp/runs", "--exits"] {
        let script = format!(
            "hyperscope ab --a true --b true --runs 3 --warmup 1 {counted} --format json \
             --metric made=json:places.0.rows.0.made -- '{WORK}'"
        );
        let report: Value = serde_json::from_str(&lab.shell(1, &script).done().stdout).unwrap();
        let metric = |name: &str| {
            let all = report["metrics"].as_array().unwrap();
            let found = all.iter().find(|metric| metric["name"] == name);
            let found = found.unwrap_or_else(|| panic!("{counted}: no {name} in {report:#}"));
            [&found["a_mean"], &found["b_mean"]].map(|mean| mean.as_f64().unwrap())
        };
        let (made, found) = (metric("made"), metric("exits_cpuid"));
        assert_eq!(found, made, "{counted}");
        assert!(found.iter().all(|&exits| exits > 100.0), "{counted}: {found:?}");
        assert!(metric("exit_cost_cpuid_ns").iter().all(|&ns| ns > 0.0), "{counted}");
        assert!(metric("guest_ns").iter().all(|&ns| ns > 0.0), "{counted}");
    }
    // Each counted run has a session, which other verbs can read.
    let sessions = lab.shell(
        1,
        "ls /tmp/runs; hyperscope diff --format json /tmp/runs/*-a.hscope -- /tmp/runs/*-b.hscope",
    );
    let text = sessions.done().stdout;
    let (names, diff) = text.split_once('{').unwrap();
    let expected =
        (1..=3).flat_map(|block| ["a", "b"].map(|side| format!("block-{block:02}-{side}.hscope")));
    assert_eq!(names.lines().collect::<Vec<_>>(), expected.collect::<Vec<_>>());
    assert!(diff.contains("\"cpuid\""), "{diff}");
    // No recorder remains, and an experiment refuses existing folders.
    assert_eq!(lab.shell(1, "ls /sys/kernel/tracing/instances").done().stdout, "");
    let again = lab.shell(1, "hyperscope ab --a true --b true --record /tmp/runs -- true");
    assert_eq!(again.code, Some(1));
    assert!(again.stderr.contains("--record: the folder /tmp/runs"), "{}", again.stderr);
}

#[test]
fn what_labs_differ_in_shows_in_their_guests() {
    if !can_run_all() {
        return;
    }
    let run_ab = |arguments: &[&str]| -> Value {
        let mut ab = Command::new(env!("CARGO_BIN_EXE_hyperscope"));
        ab.args(["ab", "--lab", "--runs", "3", "--warmup", "0", "--format", "json"]);
        ab.args(arguments).env("HYPERSCOPE_LAB_DIR", folder()).stdin(Stdio::null());
        serde_json::from_str(&run(ab).done().stdout).unwrap()
    };
    let metric = |report: &Value, name: &str| {
        let all = report["metrics"].as_array().unwrap();
        let found = all.iter().find(|metric| metric["name"] == name);
        let found = found.unwrap_or_else(|| panic!("no {name} in {report:#}"));
        [&found["a_mean"], &found["b_mean"]].map(|mean| mean.as_f64().unwrap())
    };
    let stream = run_ab(&["--exits", "--a", "", "--b", "vhost", "--lab-workload", "stream"]);
    assert!(metric(&stream, "bits_per_second").iter().all(|&bits| bits > 1e6), "{stream:#}");
    assert!(metric(&stream, "exits").iter().all(|&exits| exits > 100.0), "{stream:#}");
    // CPUIDs of the guest's program, one level deeper in B: level 1 then also has the nested hypervisor's exits for
    // each. This time from recordings of level 1.
    let runs = tempfile::tempdir().unwrap();
    let runs = runs.path().join("runs");
    let work = ["hyperscope-labguest", "exits", "cpuid=300"];
    let deeper = ["--record", runs.to_str().unwrap(), "--a", "", "--b", "levels=3", "--"];
    let deeper = run_ab(&[&deeper[..], &work].concat());
    assert!(metric(&deeper, "exits_cpuid")[0] >= 300.0, "{deeper:#}");
    assert!(metric(&deeper, "exits_vmrun")[1] >= 300.0, "{deeper:#}");
    assert!(metric(&deeper, "exits_vmrun")[0] < 1.0, "{deeper:#}");
    // The recordings of B, with nested guests.
    let session = runs.join("block-03-b.hscope");
    let nested = json(&["nested", "--format", "json", session.to_str().unwrap()]);
    assert!(nested.to_string().contains("cpuid"), "{nested:#}");
}
