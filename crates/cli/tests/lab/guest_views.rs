//! A guest's own view in `hyperscope top` on its host: its busy program, and steal time that equals the host's
//! run-queue wait; also while another `hyperscope` records it.

use serde_json::Value;

use crate::recorded::Recorded;
use crate::tool::can_run_all;
use crate::top::{check_schema, number};

/// In level 1: watches and records the guest, whose vCPUs share CPUs with other threads.
const WATCH: &str = "
    for cpu in $(seq $(nproc)); do yes >/dev/null & done
    hyperscope top --guest l2=vsock:3 --interval 2s --for 16s --format jsonl >/tmp/top.jsonl & top=$!
    sleep 4
    hyperscope record --guest l2=vsock:3 --guest-wait 180s --for 2s -o /tmp/r; code=$?
    wait $top || code=$?
    killall yes
    exit $code";
/// A busy program with a name of its own.
const BURN: &str = "printf '#!/bin/sh\\nwhile :; do :; done\\n' >/tmp/burner; chmod +x /tmp/burner; (/tmp/burner &)";
/// `/proc/stat` is in ticks: each of five parts of two CPUs has an error of one tick at both ends.
const TICKS_NS: u64 = 2 * 5 * 2 * 10_000_000;

#[test]
fn a_guest_shows_its_tasks_and_steal_while_it_is_recorded() {
    if !can_run_all() {
        return;
    }
    let recorded = Recorded::up("guest-views");
    recorded.start_agent("vsock");
    recorded.lab.shell(2, BURN).done();
    recorded.lab.shell(1, WATCH).done();
    let text = recorded.lab.shell(1, "cat /tmp/top.jsonl").done().stdout;
    let intervals: Vec<Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    check_schema(&intervals);
    // Not the first interval: programs start in it.
    let rest = &intervals[1..];
    assert!(rest.len() > 5, "{text}");
    let (mut steal_ns, mut queue_ns, mut seen_ns, mut taken_ns) = (0, 0, 0, 0);
    for interval in rest {
        let guest = &interval["guests"][0];
        assert_eq!(guest["name"], "l2");
        taken_ns += number(interval, "interval_ns");
        // A busy guest may reply late: its view is then in the next interval.
        if guest["view"].is_null() {
            assert_eq!(guest["fault"], "its agent has not answered yet");
            continue;
        }
        let vcpus = interval["vcpus"].as_array().unwrap();
        assert!(vcpus.iter().all(|vcpu| vcpu["pid"] == guest["pid"]), "{interval}");
        let view = &guest["view"];
        seen_ns += number(view, "interval_ns");
        check_cpus(view);
        check_burner(view);
        steal_ns += number(&view["all_cpus"], "steal_ns");
    }
    for vcpu in rest.iter().flat_map(|interval| interval["vcpus"].as_array().unwrap()) {
        queue_ns += number(&vcpu["states"], "preempted") + number(&vcpu["states"], "waiting");
    }
    eprintln!(
        "steal {steal_ns} of {seen_ns} ns by the guest, run queue {queue_ns} of {taken_ns} ns by its host"
    );
    assert!(queue_ns > 1_000_000_000 && seen_ns > taken_ns / 2, "{queue_ns} {seen_ns} {taken_ns}");
    let [steal, queue] =
        [(steal_ns, seen_ns), (queue_ns, taken_ns)].map(|(a, b)| a as f64 / b as f64);
    assert!((steal - queue).abs() < queue / 5.0, "{steal} {queue}");
    // It was recorded at the same time.
    let (counts, _) = crate::recorded::events(&recorded.session().join("guest-l2.dat"));
    assert!(counts["sched:sched_switch"].as_u64() > Some(0), "{counts}");
}

/// Parts of its CPUs add up, to at most the elapsed time of its own view: late ticks count once.
fn check_cpus(view: &Value) {
    let cpus = view["cpus"].as_array().unwrap();
    assert_eq!((cpus.len() as u64, number(view, "cpu_count")), (2, 2));
    let parts = ["user_ns", "system_ns", "irq_ns", "steal_ns", "idle_ns"];
    let sum = |row: &Value| parts.iter().map(|part| number(row, part)).sum::<u64>();
    assert_eq!(cpus.iter().map(sum).sum::<u64>(), sum(&view["all_cpus"]));
    let wall_ns = 2 * number(view, "interval_ns");
    let counted = sum(&view["all_cpus"]);
    assert!(counted > wall_ns / 2 && counted < wall_ns + TICKS_NS, "{view}");
}

/// The busy program ran, and is the first, or waited for others.
fn check_burner(view: &Value) {
    let tasks = view["tasks"].as_array().unwrap();
    let burner = tasks.iter().find(|task| task["name"] == "burner");
    let burner = burner.unwrap_or_else(|| panic!("{view}"));
    let busy = number(burner, "run_ns") + number(burner, "waited_ns");
    let max = tasks.iter().map(|task| number(task, "run_ns")).max().unwrap();
    assert!(busy > number(view, "interval_ns") / 4, "{view}");
    assert!(max <= number(view, "tasks_run_ns"), "{view}");
}
