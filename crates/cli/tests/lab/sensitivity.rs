//! `hyperscope sensitivity` on a real KVM host: the price of an exit is known, because the guest only waits for it, or
//! does not wait for it at all.
//!
//! Time is a count of instructions, so other work on this machine does not affect it.

use serde_json::Value;

use crate::architecture::Architecture;
use crate::tool::{TestLab, can_run_all};

/// A guest that makes as many exits of two kinds as it can. A CPUID precedes each of three hypercalls, and there is
/// another one: three of four. It runs for about 30 s of its own time.
const LOOP: &str = "
    hyperscope-labguest exits $(yes cpuid=10 hypercall=30 | head -n 30000) >/dev/null 2>&1 &
    echo $! > /tmp/loop";
const HYPERCALLS_A_CPUID: f64 = 0.75;
/// One program of a guest sleeps, and makes a CPUID each time it wakes up. Another one writes to a port meanwhile,
/// which no thread waits for.
const APART: &str = "
    hyperscope-labguest exits $(yes cpuid=1 nap=1 | head -n 10000) >/dev/null 2>&1 &
    hyperscope-labguest exits $(yes port=20 nap=1 | head -n 10000) >/dev/null 2>&1 &";

/// Another VM of the same machine: a tiny one, with four port exits in each round.
const OTHER_VM: &str = "hyperscope-labguest vmm 100";
const OTHER_ROUNDS: u64 = 100;

/// CPU time of its vCPU's thread.
fn other_vm_cpu_ns(output: &str) -> u64 {
    let result: Value = serde_json::from_str(output.trim()).unwrap();
    result["cpu_ns"].as_u64().unwrap()
}

#[test]
fn what_a_guest_waits_for_is_paid_and_what_it_does_not_wait_for_is_not() {
    if !can_run_all() {
        return;
    }
    let lab = TestLab::new("sensitivity");
    lab.run(&["up", "--levels", "2", "--cpus", "1", "--instruction-ns", "1"]).done();
    lab.put_programs(1);
    let measure = |more: &str| {
        let ran =
            lab.shell(1, &format!("hyperscope sensitivity --vm l2 --progress cpuid {more}")).done();
        eprintln!("{}", ran.stdout);
        ran.stdout
    };

    lab.shell(2, LOOP).done();
    measure("--reason hypercall,cpuid --delays 4us,8us,16us --slice 20ms --for 1s");
    let found = measure(
        "--reason hypercall,cpuid,hlt --delays 4us,8us,16us --slice 20ms --for 3s --format json",
    );
    let found: Value = serde_json::from_str(&found).unwrap();
    let reasons = found["reasons"].as_array().unwrap();
    for (reason, exits) in [(0, HYPERCALLS_A_CPUID), (1, 1.0)] {
        let row = &reasons[reason];
        let number = |name: &str| row[name].as_f64().unwrap();
        // The excess over 1 comes from timers: they take their share of each added nanosecond.
        assert!(number("ci_low") < 1.03 && number("ci_high") > 1.0, "{row}");
        assert!(number("ci_high") - number("ci_low") < 0.25, "{row}");
        assert!((number("exits_a_unit") - exits).abs() < 0.02, "{row}");
    }
    // It never halts.
    assert_eq!(reasons[2]["slope"], Value::Null);

    lab.shell(2, &format!("kill $(cat /tmp/loop); {APART}")).done();
    let apart = "--reason io --delays 50us,100us --slice 150ms --format json";
    let found: Value = serde_json::from_str(&measure(&format!("{apart} --for 4s"))).unwrap();
    let row = &found["reasons"][0];
    let (low, high) = (row["ci_low"].as_f64().unwrap(), row["ci_high"].as_f64().unwrap());
    assert!(low < 0.05 && high < 0.3 && high - low < 0.4, "{row}");
    assert!(row["points"][2]["delayed"].as_u64().unwrap() > 1000, "{row}");

    // Another VM makes the same kind of exit meanwhile. Its exits are counted, and none is delayed: if two in three
    // were, by 75 us, it would be 10 ms for each 200.
    let alone_ns = other_vm_cpu_ns(&lab.shell(1, OTHER_VM).done().stdout);
    let found = measure(&format!("{apart} --for 4s & sleep 1; {OTHER_VM} >/tmp/other; wait"));
    let found: Value = serde_json::from_str(&found).unwrap();
    let meanwhile_ns = other_vm_cpu_ns(&lab.shell(1, "cat /tmp/other").done().stdout);
    eprintln!("another VM: {alone_ns} ns alone, {meanwhile_ns} ns meanwhile");
    assert!(meanwhile_ns < alone_ns + 4_000_000, "{meanwhile_ns} {alone_ns}");
    assert!(found["foreign_exits"].as_u64().unwrap() >= 2 * OTHER_ROUNDS, "{found}");
}

/// An Arm guest that only reads memory of a device.
const READS: &str = "hyperscope-labguest exits $(yes mmio=10 | head -n 30000) >/dev/null 2>&1 &";
#[test]
fn what_a_guest_waits_for_is_paid_on_aarch64() {
    if !Architecture::Arm.can_run_all() {
        return;
    }
    let lab = TestLab::for_architecture(Architecture::Arm, "aarch64-sensitivity");
    lab.up(&["--levels", "2", "--cpus", "1", "--instruction-ns", "1"]);
    lab.put_programs(1);
    lab.shell(2, READS).done();
    let command = "hyperscope sensitivity --vm l2 --reason DABT_LOW --progress DABT_LOW \
                 --delays 4us,8us,16us --slice 20ms --for 1s --format json";
    let found: Value = serde_json::from_str(&lab.shell(1, command).done().stdout).unwrap();
    let row = &found["reasons"][0];
    let number = |name: &str| row[name].as_f64().unwrap_or_else(|| panic!("{row}"));
    assert!(number("ci_low") < 1.03 && number("ci_high") > 1.0, "{row}");
    assert!(number("ci_high") - number("ci_low") < 0.25, "{row}");
    assert!((number("exits_a_unit") - 1.0).abs() < 0.02, "{row}");
    assert_eq!(found["foreign_exits"], 0, "{found}");
}

/// Each vCPU of a guest has a program: one sleeps, and makes a CPUID each time it wakes up; the other one writes to a
/// port.
const ON_TWO_VCPUS: &str = "
    taskset 1 hyperscope-labguest exits $(yes cpuid=1 nap=1 | head -n 10000) >/dev/null 2>&1 &
    echo $! > /tmp/cpuid
    taskset 2 hyperscope-labguest exits $(yes port=20 nap=1 | head -n 10000) >/dev/null 2>&1 &
    echo $! > /tmp/port";
/// CPUIDs before each byte of a ping-pong.
const CPUIDS: u64 = 2;
/// The delays of each of them.
const DELAYS_US: [u64; 3] = [20, 50, 90];

#[test]
fn a_ping_pong_pays_what_it_measures_itself_and_nothing_for_another_vcpu() {
    if !can_run_all() {
        return;
    }
    let lab = TestLab::new("sensitivity-net");
    let up = ["up", "--levels", "2", "--cpus", "1", "--guest-cpus", "2", "--instruction-ns", "1"];
    lab.run(&[&up[..], &["--guest-net", "virtio"]].concat()).done();
    lab.put_programs(1);
    let measure = |more: &str| -> Value {
        let script = format!("hyperscope sensitivity --vm l2 --format json {more}");
        serde_json::from_str(&lab.shell(1, &script).done().stdout).unwrap()
    };

    lab.shell(2, ON_TWO_VCPUS).done();
    let found =
        measure("--reason io --vcpu 1 --progress cpuid --delays 50us,100us --slice 150ms --for 4s");
    let row = &found["reasons"][0];
    let number =
        |object: &Value, name: &str| object[name].as_f64().unwrap_or_else(|| panic!("{object}"));
    assert!(number(row, "ci_low") < 0.05 && number(row, "ci_high") < 0.2, "{row}");
    assert!(row["points"][2]["delayed"].as_u64().unwrap() > 1000, "{row}");

    lab.shell(2, "kill $(cat /tmp/cpuid) $(cat /tmp/port)").done();
    lab.shell(2, "ip address add 10.77.2.2/24 dev eth0; ip link set eth0 up").done();
    lab.shell(1, "hyperscope-labguest ping-pong serve >/dev/null 2>&1 &").done();
    let ping_pong = "taskset 1 hyperscope-labguest ping-pong 10.77.2.1";
    // The price of being busy for the delay of its exits, by its own count and clock.
    let round_trip_us = |busy_us: u64| {
        let script = format!("{ping_pong} 1 cpuid={CPUIDS} busy-us={busy_us}");
        let result: Value = serde_json::from_str(&lab.shell(2, &script).done().stdout).unwrap();
        number(&result, "took_ns") / number(&result, "round_trips") / 1000.0
    };
    let points = [0].iter().chain(&DELAYS_US).map(|us| us * CPUIDS);
    let points: Vec<(f64, f64)> = points.map(|us| (us as f64, round_trip_us(us))).collect();
    let truth = slope(&points);

    lab.shell(2, &format!("{ping_pong} 60 cpuid={CPUIDS} >/dev/null 2>&1 &")).done();
    let delays = DELAYS_US.map(|us| format!("{us}us")).join(",");
    let found = measure(&format!(
        "--reason cpuid --progress /sys/class/net/tap0/statistics/rx_packets --delays {delays} --slice 20ms --for 2s"
    ));
    let row = &found["reasons"][0];
    eprintln!("{points:?} {truth} {row}");
    // Network stacks respond differently to later bytes, and never in the same way: both contain that.
    let (low, high) = (number(row, "ci_low"), number(row, "ci_high"));
    assert!(low - 0.1 < truth && truth < high + 0.1 && high - low < 0.3, "{truth} {row}");
    assert!((number(row, "exits_a_unit") - CPUIDS as f64).abs() < 0.1, "{row}");
}

/// The slope of the least-squares line through points.
fn slope(points: &[(f64, f64)]) -> f64 {
    let mean = |coordinate: fn(&(f64, f64)) -> f64| {
        points.iter().map(coordinate).sum::<f64>() / points.len() as f64
    };
    let (x, y) = (mean(|point| point.0), mean(|point| point.1));
    let both: f64 = points.iter().map(|point| (point.0 - x) * (point.1 - y)).sum();
    both / points.iter().map(|point| (point.0 - x).powi(2)).sum::<f64>()
}
