//! `hyperscope sensitivity` on a real KVM host: what is paid for an exit is known, because the guest does nothing
//! but wait for it, or does not wait for it at all.
//!
//! Time is a count of instructions there, so that what others do on this machine is not in it.

use serde_json::Value;

use crate::tool::{TestLab, can_run_all};

/// A guest that makes as many exits of two kinds as it can. Before each of three hypercalls a CPUID says by which
/// instruction, and there is another one: three of four. It goes on for some 30 s of its own time.
const LOOP: &str = "
    hyperscope-labguest exits $(yes cpuid=10 hypercall=30 | head -n 30000) >/dev/null 2>&1 &
    echo $! > /tmp/loop";
const HYPERCALLS_A_CPUID: f64 = 0.75;
/// One program of a guest sleeps, and makes a CPUID each time it wakes up. Another one writes to a port meanwhile,
/// as long as it does: nobody waits for that.
const APART: &str = "
    hyperscope-labguest exits $(yes cpuid=1 nap=1 | head -n 10000) >/dev/null 2>&1 &
    hyperscope-labguest exits $(yes port=20 nap=1 | head -n 10000) >/dev/null 2>&1 &";

#[test]
fn what_a_guest_waits_for_is_paid_and_what_it_does_not_wait_for_is_not() {
    if !can_run_all() {
        return;
    }
    let lab = TestLab::new("sensitivity");
    lab.run(&["up", "--levels", "2", "--cpus", "1", "--instruction-ns", "1"]).done();
    lab.put_program(1);
    let asked = |more: &str| {
        let said =
            lab.shell(1, &format!("hyperscope sensitivity --vm l2 --progress cpuid {more}")).done();
        eprintln!("{}", said.stdout);
        said.stdout
    };

    lab.shell(2, LOOP).done();
    asked("--reason hypercall,cpuid --delays 4us,8us,16us --slice 20ms --for 1s");
    let found = asked(
        "--reason hypercall,cpuid,hlt --delays 4us,8us,16us --slice 20ms --for 3s --format json",
    );
    let found: Value = serde_json::from_str(&found).unwrap();
    let reasons = found["reasons"].as_array().unwrap();
    for (reason, exits) in [(0, HYPERCALLS_A_CPUID), (1, 1.0)] {
        let one = &reasons[reason];
        let number = |name: &str| one[name].as_f64().unwrap();
        // What is more than 1 are timers: of each nanosecond that is added they take their share, too.
        assert!(number("ci_low") < 1.03 && number("ci_high") > 1.0, "{one}");
        assert!(number("ci_high") - number("ci_low") < 0.25, "{one}");
        assert!((number("exits_a_unit") - exits).abs() < 0.02, "{one}");
    }
    // It never halts.
    assert_eq!(reasons[2]["slope"], Value::Null);

    lab.shell(2, &format!("kill $(cat /tmp/loop); {APART}")).done();
    let found = asked("--reason io --delays 50us,100us --slice 150ms --for 4s --format json");
    let found: Value = serde_json::from_str(&found).unwrap();
    let one = &found["reasons"][0];
    let (low, high) = (one["ci_low"].as_f64().unwrap(), one["ci_high"].as_f64().unwrap());
    assert!(low < 0.05 && high < 0.3 && high - low < 0.4, "{one}");
    assert!(one["points"][2]["delayed"].as_u64().unwrap() > 1000, "{one}");
}
