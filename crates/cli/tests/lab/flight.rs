//! A flight recorder on a real KVM host: a condition on live figures makes a session, which contains the time
//! before it, and its cause.

use std::path::Path;

use serde_json::Value;

use crate::patience::Patient;
use crate::recorded::{Recorded, json};
use crate::tool::{TestLab, WORKING, can_run_all};

/// In level 1: keeps the newest events until the condition has held, and is then asked once more.
const KEEPS: &str = "
    hyperscope record --flight 60s --size 64M --when 'l2: rate(cpuid) > 50' -o /tmp/f >/tmp/said 2>&1 & recorder=$!
    until [ -e /run/hyperscope/$recorder.flight ]; do sleep 0.1; kill -0 $recorder || exit 1; done
    sleep 3
    touch /tmp/go
    until [ -e /tmp/done ]; do sleep 0.1; done
    until ls /tmp/f/*.hscope/why.txt >/dev/null 2>&1; do sleep 0.2; done
    kill -INT $recorder
    wait $recorder
    code=$?
    ls /sys/kernel/tracing/instances
    mv /tmp/f/*.hscope /tmp/session
    exit $code";

#[test]
fn a_condition_makes_a_session_of_what_was_before_it() {
    if !can_run_all() {
        return;
    }
    let lab = TestLab::new("flight");
    lab.run(&["up", "--levels", "2"]).done();
    lab.put_program(1);
    let both = Patient::start(lab.command(&["exec", "1", "--", "sh", "-c", KEEPS]));
    lab.shell(1, "until [ -e /tmp/go ]; do sleep 0.1; done").done();
    lab.shell(2, "hyperscope-labguest exits hypercall=70").done();
    // Enough exits for a second, however fast this machine is.
    lab.shell(2, "hyperscope-labguest exits cpuid=3000").done();
    lab.shell(1, "touch /tmp/done").done();
    assert_eq!(both.finish(WORKING).done().stdout, "", "an instance is left");
    let folder = tempfile::tempdir().unwrap();
    for file in ["host.dat", "session.json", "why.json"] {
        let (from, to) = (format!("/tmp/session/{file}"), folder.path().join(file));
        lab.run(&["get", "1", &from, to.to_str().unwrap()]).done();
    }
    says_why(&folder.path().join("why.json"));
    let report = |verb| json(&[verb, "--format", "json", folder.path().to_str().unwrap()]);
    let exits = report("exits");
    assert_eq!(exits["losses"]["events_lost"], 0);
    let hypercalls =
        exits["rows"].as_array().unwrap().iter().find(|row| row["reason"] == "hypercall");
    assert_eq!(hypercalls.unwrap()["count"], 70, "all of them were before the condition held");
    let info = report("info");
    assert_eq!(info["files"][0]["losses"]["known"], true, "{}", info["files"][0]["losses"]);
}

fn says_why(path: &Path) {
    let why: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let schema = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/formats/flight_why.schema.json");
    let schema: Value = serde_json::from_str(&std::fs::read_to_string(schema).unwrap()).unwrap();
    let valid = jsonschema::validate(&schema, &why);
    assert!(valid.is_ok(), "{valid:?}");
    let text = why["trigger"]["text"].as_str().unwrap();
    assert!(text.starts_with("l2: rate(cpuid) > 50 (l2: "), "{text}");
    let finding = why["finding"][0].as_str().unwrap();
    assert!(finding.starts_with("l2: ") && finding.contains("cpuid"), "{finding}");
    let rows = why["figures"]["exits"].as_array().unwrap();
    let cpuid = rows.iter().find(|row| row["reason"] == "cpuid").unwrap();
    assert!(cpuid["at"]["per_s"].as_f64() > Some(25.0), "{cpuid}");
}

/// In level 1: a flight recorder that starts before its guest's agent, and continues while that ends and returns.
const FLIES: &str = "
    hyperscope record --flight 120s --size 64M --guest l2=vsock:3 -o /tmp/f >/tmp/said 2>&1 & recorder=$!
    until grep -q 'not recorded yet' /tmp/said; do sleep 0.2; kill -0 $recorder || exit 1; done
    until [ -e /tmp/done ]; do sleep 0.2; kill -0 $recorder || exit 2; done
    hyperscope flight dump --pid $recorder || exit 3
    kill -INT $recorder
    wait $recorder
    code=$?
    mv /tmp/f/*.hscope /tmp/session
    ls /tmp/f /sys/kernel/tracing/instances
    exit $code";
/// In level 1: waits for a message of the recorder.
const HEARD: &str = "until grep -q 'TEXT' /tmp/said; do sleep 0.2; done";
/// In level 2: the recorded work.
const WORKS: &str = "for turn in $(seq 20); do hyperscope-labguest exits hypercall=5 nap=2; done";

#[test]
fn a_guest_that_comes_later_goes_and_comes_back_is_in_the_session() {
    if !can_run_all() {
        return;
    }
    let recorded = Recorded::up("flight-guests");
    let lab = &recorded.lab;
    let flies = Patient::start(lab.command(&["exec", "1", "--", "sh", "-c", FLIES]));
    let wait_for_text = |text: &str| drop(lab.shell(1, &HEARD.replace("TEXT", text)).done());
    wait_for_text("not recorded yet");
    for name in ["l2", "l2-2"] {
        recorded.start_agent("vsock");
        wait_for_text(&format!("guest {name} is recorded"));
        lab.shell(2, WORKS).done();
        // Its events are sent within a second.
        lab.shell(2, "sleep 2; killall hyperscope-agent").done();
        wait_for_text(&format!("guest {name} disconnected"));
    }
    lab.shell(1, "touch /tmp/done").done();
    let flown = flies.finish(WORKING).done();
    let leftovers: Vec<&str> =
        flown.stdout.lines().filter(|line| !line.ends_with(".hscope")).collect();
    assert_eq!(leftovers, ["/sys/kernel/tracing/instances:", "", "/tmp/f:"], "{}", flown.stdout);
    let folder = tempfile::tempdir().unwrap();
    for file in ["host.dat", "session.json", "guest-l2.dat", "guest-l2-2.dat"] {
        let (from, to) = (format!("/tmp/session/{file}"), folder.path().join(file));
        lab.run(&["get", "1", &from, to.to_str().unwrap()]).done();
    }
    let cpu = json(&["cpu", "--by", "vcpu", "--format", "json", folder.path().to_str().unwrap()]);
    assert!(cpu["sources"].as_array().unwrap().len() == 3, "{cpu}");
    for guest in ["guest-l2.dat", "guest-l2-2.dat"] {
        let (counts, _) = crate::recorded::events(&folder.path().join(guest));
        assert!(counts["sched:sched_switch"].as_u64() > Some(40), "{guest}: {counts}");
    }
}
