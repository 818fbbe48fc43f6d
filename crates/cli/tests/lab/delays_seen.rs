//! A known delay is added to a guest's exits: `top`, `serve` and a flight recorder show that much more time in them.
//!
//! `sensitivity` adds the delay, and reports the number of delayed exits. Time is a count of instructions: work outside
//! of the lab does not affect it, but work in level 1 does.

use serde_json::Value;

use crate::recorded::hyperscope;
use crate::tool::{TestLab, can_run_all};

/// A guest that makes as many exits as it can, for some minutes.
const LOOP: &str = "hyperscope-labguest exits $(yes cpuid=40 | head -n 30000) >/dev/null 2>&1 & echo $! > /tmp/loop";
/// Sensitivity delays each CPUID in two of three slices. The guest runs only while its programs are loaded: loading
/// them takes the CPU of level 1 from the vCPU in the middle of exits.
const WORK: &str = "hyperscope sensitivity --vm l2 --progress cpuid --reason cpuid --delays DELAYS --slice 20ms \
                    --format json -- sh -c \"kill -CONT $qemu; sleep 2; kill -STOP $qemu\" > /tmp/found";
const DELAYS: &str = "50us,100us";
/// The first look at the clock is later than these: the programs cost the same, and delay nothing.
const NO_DELAYS: &str = "1ns,2ns";

/// In level 1: all three watch the guest during the work, which continues and stops its VMM. The VMM is stopped when
/// they begin and end, so that no exit spans either.
const SEEN: &str = "
    qemu=$(pidof qemu-system-x86_64)
    rm -rf /tmp/f /tmp/*.said /tmp/top.jsonl /tmp/metrics
    kill -STOP $qemu
    sleep 0.5
    hyperscope top --interval 500ms --format jsonl > /tmp/top.jsonl & top=$!
    hyperscope serve > /tmp/serve.said 2>&1 & serve=$!
    hyperscope record --flight 120s --size 64M -e kvm_exit -e kvm_entry -o /tmp/f > /tmp/flight.said 2>&1 & flight=$!
    until [ -s /tmp/top.jsonl ] && grep -q 'metrics are at' /tmp/serve.said && grep -q 'keeping the newest' /tmp/flight.said; do
        sleep 0.2
        kill -0 $top && kill -0 $serve && kill -0 $flight || exit 1
    done
    WORK || exit 2
    sleep 2
    printf 'GET /metrics HTTP/1.0\\r\\nHost: 127.0.0.1:9797\\r\\n\\r\\n' | timeout 5 nc 127.0.0.1 9797 > /tmp/metrics
    mv $(hyperscope flight dump --pid $flight) /tmp/f/session
    kill -INT $top $serve $flight
    wait $top $serve $flight
    kill -CONT $qemu";

/// CPUIDs, and the time between their exits and entries.
#[derive(Clone, Copy, Debug)]
struct Cpuids {
    count: u64,
    time_ns: u64,
}

/// The CPUIDs of the guest with these delays, as reported by each of the three.
fn seen(lab: &TestLab, delays: &str) -> [(&'static str, Cpuids); 3] {
    lab.shell(1, &SEEN.replace("WORK", WORK).replace("DELAYS", delays)).done();
    let top = lab.shell(1, "cat /tmp/top.jsonl").done().stdout;
    let metrics = lab.shell(1, "cat /tmp/metrics").done().stdout;
    let folder = tempfile::tempdir().unwrap();
    let dat = folder.path().join("host.dat");
    lab.run(&["get", "1", "/tmp/f/session/host.dat", dat.to_str().unwrap()]).done();
    let flight = hyperscope(&["exits", "--format", "json", dat.to_str().unwrap()]).stdout;
    [("top", by_top(&top)), ("serve", by_serve(&metrics)), ("flight", by_flight(&flight))]
}

/// The sum of rows of CPUIDs.
fn sum<'r>(rows: impl Iterator<Item = &'r Value>) -> Cpuids {
    let rows = rows.filter(|row| row["vm"] == "l2" && row["reason"] == "cpuid");
    let none = Cpuids { count: 0, time_ns: 0 };
    rows.fold(none, |Cpuids { count, time_ns }, row| Cpuids {
        count: count + row["paired"].as_u64().unwrap(),
        time_ns: time_ns + row["time_ns"].as_u64().unwrap(),
    })
}

fn by_top(text: &str) -> Cpuids {
    let intervals: Vec<Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    sum(intervals.iter().flat_map(|interval| interval["rows"].as_array().unwrap()))
}

fn by_flight(text: &str) -> Cpuids {
    let exits: Value = serde_json::from_str(text).unwrap();
    assert_eq!(exits["losses"]["events_lost"], 0, "{}", exits["losses"]);
    sum(exits["rows"].as_array().unwrap().iter())
}

fn by_serve(text: &str) -> Cpuids {
    let total = |name: &str| {
        let is_counted = move |line: &&str| {
            let has = |label: &str| line.contains(label);
            line.starts_with(name) && has("vm=\"l2\"") && has("reason=\"cpuid\"")
        };
        let parts = text.lines().filter(is_counted).filter(|line| !line.contains("before_exit"));
        parts.map(|line| line.rsplit(' ').next().unwrap().parse::<f64>().unwrap()).sum::<f64>()
    };
    let seconds = total("hyperscope_exit_seconds_total{");
    Cpuids {
        count: total("hyperscope_exits_total{") as u64,
        time_ns: (seconds * 1e9).round() as u64,
    }
}

#[test]
fn added_time_is_time_of_exits_for_top_serve_and_flight() {
    if !can_run_all() {
        return;
    }
    let lab = TestLab::new("delays");
    lab.run(&["up", "--levels", "2", "--cpus", "1", "--instruction-ns", "1"]).done();
    lab.put_programs(1);
    lab.shell(2, LOOP).done();
    let without = seen(&lab, NO_DELAYS);
    let with = seen(&lab, DELAYS);
    let found: Value = serde_json::from_str(&lab.shell(1, "cat /tmp/found").done().stdout).unwrap();
    let points = found["reasons"][0]["points"].as_array().unwrap();
    let added =
        |point: &Value| point["delayed"].as_u64().unwrap() * point["delay_ns"].as_u64().unwrap();
    let added_ns: u64 = points.iter().map(added).sum();
    assert!(added_ns > 20_000_000, "{found}");
    for ((who, undelayed), (_, delayed)) in without.into_iter().zip(with) {
        assert!(undelayed.count > 100 && delayed.count > 100, "{who}: {undelayed:?}");
        let usual_ns = undelayed.time_ns as f64 / undelayed.count as f64;
        let more_ns = delayed.time_ns as f64 - usual_ns * delayed.count as f64;
        eprintln!("{who}: {undelayed:?} {delayed:?}: {more_ns:.0} ns more, {added_ns} ns added");
        // A busy wait ends a little late. Interrupts that come in a wait take no further time, while without delays
        // they make exits longer.
        assert!((0.9..1.1).contains(&(more_ns / added_ns as f64)), "{who}: {more_ns} {added_ns}");
    }
}
