//! `hyperscope critical`: the waits of tasks and requests, on the bundled recordings.

use serde_json::Value;

use crate::schemas::{check, closed};
use crate::tool::{assert_golden, hyperscope, output_of};

const HOST: &str = "fixtures/x86-svm/tsc.dat";
const GUEST: &str = "fixtures/x86-svm/tsc.guest.dat";

fn json(args: &[&str]) -> Value {
    serde_json::from_str(&output_of(&[&["critical", "--format", "json"], args].concat())).unwrap()
}

fn number(object: &Value, name: &str) -> u64 {
    object[name].as_u64().unwrap_or_else(|| panic!("{name} of {object}"))
}

fn sum(list: &Value, name: &str) -> u64 {
    list.as_array().unwrap().iter().map(|entry| number(entry, name)).sum()
}

/// Tasks of guests and threads of hosts, on each kind of recording that has both.
const CASES: [(&str, &[&str]); 8] = [
    ("vm-106/dd", &[HOST, GUEST]),
    ("vm-106/kworker/0:1H", &[HOST, GUEST]),
    ("vm-106 vCPU 1", &[HOST]),
    ("dd", &["fixtures/x86-svm/host-guest.dat", "fixtures/x86-svm/host-guest.guest.dat"]),
    (
        "vm-119/rcu_preempt",
        &["fixtures/x86-svm/host-guest.dat", "fixtures/x86-svm/host-guest.guest.dat"],
    ),
    ("vm-148/init", &["fixtures/arm64/A.dat", "fixtures/arm64/A.guest.dat"]),
    ("host/158", &["fixtures/arm64/A.dat"]),
    ("729", &["fixtures/arm64/B-vhost-on.dat"]),
];

/// For every task, parts add up to the waits, and waits and runs to the total, to the nanosecond.
#[test]
fn parts_add_up_on_real_recordings() {
    let validator = closed("critical");
    for (task, files) in CASES {
        let report = json(&[&["--task", task], files].concat());
        check(&validator, &report, task);
        let waited = number(&report, "waited_ns");
        assert!(waited > 0, "{task}");
        assert_eq!(sum(&report["parts"], "time_ns"), waited, "{task}");
        for thread in report["threads"].as_array().unwrap() {
            let parts = ["ran_ns", "waited_ns", "unknown_ns"].map(|name| number(thread, name));
            assert_eq!(number(thread, "wall_ns"), parts.iter().sum::<u64>(), "{task}: {thread}");
        }
        for wait in report["longest"].as_array().unwrap() {
            let mut now = number(wait, "from_ns");
            for step in wait["steps"].as_array().unwrap().iter().filter(|_| wait["cut"] == false) {
                assert_eq!(number(step, "from_ns"), now, "{task}: {step}");
                now = number(step, "to_ns");
            }
            assert!(wait["cut"] == true || now == number(wait, "to_ns"), "{task}: {wait}");
        }
    }
}

/// Parts cover a request's complete time, from its first step to its last.
#[test]
fn requests_are_those_of_path() {
    let files = ["fixtures/x86-svm/host-guest.dat", "fixtures/x86-svm/host-guest.guest.dat"];
    let paths: Value =
        serde_json::from_str(&output_of(&[&["path", "--format", "json"], &files[..]].concat()))
            .unwrap();
    let examples = paths["paths"][0]["examples"].as_array().unwrap();
    assert_eq!(examples.len(), 3);
    for example in examples {
        let id = example["id"].as_str().unwrap();
        let report = json(&[&["--request", id], &files[..]].concat());
        assert_eq!(number(&report, "waited_ns"), number(example, "total_ns"), "{id}");
        assert_eq!(sum(&report["parts"], "time_ns"), number(example, "total_ns"), "{id}");
    }
    let text = output_of(&[&["critical", "--request", "1:p50"], &files[..]].concat());
    assert_golden("critical-request.txt", &text);
}

#[test]
fn tables_and_csv_are_as_expected() {
    let files = [HOST, GUEST];
    let output = |args: &[&str]| output_of(&[&["critical"], args, &files[..]].concat());
    assert_golden("critical.txt", &output(&["--task", "vm-106/dd"]));
    assert_golden("critical.csv", &output(&["--task", "vm-106/dd", "--format", "csv"]));
    let host = output_of(&["critical", "--task", "vm-732 vCPU 0", "fixtures/arm64/B-vhost-on.dat"]);
    assert_golden("critical-host.txt", &host);
}

/// In a range of time, parts are those of its waits: never more than the range.
#[test]
fn ranges_cut_waits() {
    let files = [HOST, GUEST];
    let range = ["--task", "vm-106/dd", "--from", "33.1", "--to", "33.3"];
    let args = [&["critical", "--format", "json"], &range[..], &files[..]].concat();
    let run = hyperscope(&args);
    assert_eq!(run.code, 0, "{}", run.err);
    assert!(run.err.contains("left out"), "{}", run.err);
    let report: Value = serde_json::from_str(&run.out).unwrap();
    let waited = number(&report, "waited_ns");
    assert!(waited > 0 && waited <= 200_000_000, "{waited}");
    assert_eq!(sum(&report["parts"], "time_ns"), waited);
}

#[test]
fn what_is_not_there_is_said() {
    let run = hyperscope(&["critical", "--task", "nginx", HOST, GUEST]);
    assert_eq!((run.code, run.out.as_str()), (1, ""));
    assert!(run.err.contains("no thread has the name nginx"), "{}", run.err);
    assert!(run.err.contains("vm-106/dd"), "{}", run.err);
    let run = hyperscope(&["critical", "--request", "99:p50", HOST]);
    assert_eq!(run.code, 1);
    assert!(run.err.contains("unknown request 99:p50"), "{}", run.err);
    let run = hyperscope(&["critical", "--task", "", HOST]);
    assert_eq!(run.code, 2, "{}", run.err);
    // Without the scheduler's events, nothing is known about threads.
    let run = hyperscope(&["critical", "--task", "vm-171 vCPU 0", "fixtures/x86-vmx/vmm.dat"]);
    assert_eq!(run.code, 1);
    assert!(run.err.contains("record sched_switch and sched_waking"), "{}", run.err);
}

/// A renamed thread: earlier waits count under its first name, which finds it if no other thread has that name.
#[test]
fn names_are_those_of_the_time() {
    let file = "crates/cli/tests/inputs/renamed-thread-that-moved.dat";
    let report = json(&["--task", "gcc", file]);
    let waited = |name: &str| {
        let parts = report["parts"].as_array().unwrap().iter();
        parts.filter(|part| part["thread"] == name).map(|part| number(part, "time_ns")).sum::<u64>()
    };
    assert_eq!((waited("bash"), waited("gcc")), (9_000_000, 10_000_000), "{report}");
    let steps = |at: usize| report["longest"][at]["steps"][0]["thread"].as_str();
    assert_eq!((steps(0), steps(1)), (Some("gcc"), Some("bash")));
    let folder = tempfile::tempdir().unwrap();
    let text = folder.path().join("renamed.txt");
    let switch = |at: u32, from: &str, to: &str| {
        format!(
            "{} [000] {at}.000000: sched_switch: prev_comm={} prev_pid={} prev_prio=120 prev_state=S ==> next_comm={} next_pid={} next_prio=120\n",
            from.replace(' ', "-"),
            from.split(' ').next().unwrap(),
            from.split(' ').nth(1).unwrap(),
            to.split(' ').next().unwrap(),
            to.split(' ').nth(1).unwrap()
        )
    };
    let lines = [
        switch(1, "sh 7", "other 8"),
        switch(2, "other 8", "sh 7"),
        switch(3, "tool 7", "other 8"),
        switch(6, "other 8", "tool 7"),
    ];
    std::fs::write(&text, lines.concat()).unwrap();
    let text = text.to_str().unwrap();
    let reports = ["tool", "sh"].map(|name| output_of(&["critical", "--task", name, text]));
    assert_eq!(reports[0], reports[1]);
    assert!(reports[0].contains("tool of host was previously called sh"), "{}", reports[0]);
}

/// CPU time of trace-cmd is marked in parts and steps, and summed: without a recording, no thread waits for it.
#[test]
fn the_recording_itself_is_marked() {
    let file = "fixtures/x86-svm/host-guest.dat";
    let report = json(&["--task", "vm-119 vCPU 0", file]);
    let parts = report["parts"].as_array().unwrap();
    let is_marked = |part: &&Value| part["recorder"] == true;
    let names = |part: &Value| [&part["thread"], &part["reason"]].map(|name| name == "trace-cmd");
    assert!(parts.iter().all(|part| is_marked(&part) == names(part).contains(&true)), "{report}");
    let waited: u64 = parts.iter().filter(is_marked).map(|part| number(part, "time_ns")).sum();
    assert!(waited > 0);
    let text = output_of(&["critical", "--task", "vm-119 vCPU 0", file]);
    assert!(text.contains("trace-cmd (the recording)"), "{text}");
    assert!(text.contains("spent on the recording itself"), "{text}");
    let paths: Value =
        serde_json::from_str(&output_of(&["path", "--format", "json", file])).unwrap();
    let paths = paths["paths"].as_array().unwrap();
    let hops = || paths.iter().flat_map(|path| path["hops"].as_array().unwrap());
    let runs = || hops().filter(|hop| hop["to"] == "trace-cmd runs");
    assert!(runs().count() > 0 && runs().all(|hop| hop["on"] == "recorder"));
    assert!(output_of(&["path", file]).contains("are the recording itself"));
}

#[test]
fn without_a_task_the_busiest_threads_are_listed() {
    let report = json(&[HOST, GUEST]);
    assert!(closed("critical").is_valid(&report), "{report}");
    assert_eq!((&report["task"], &report["waited_ns"]), (&Value::Null, &Value::Null));
    let busiest = report["busiest"].as_array().unwrap();
    let switches: Vec<u64> =
        busiest.iter().map(|thread| thread["switches"].as_u64().unwrap()).collect();
    assert!(switches.len() > 10 && switches.is_sorted_by(|a, b| a >= b), "{switches:?}");
    let is_dd = |thread: &&Value| thread["machine"] == "vm-106" && thread["thread"] == "dd";
    assert!(busiest.iter().any(|thread| is_dd(&thread)), "{report}");
    let text = hyperscope(&["critical", "--top", "3", HOST]);
    assert_eq!(text.code, 0, "{}", text.err);
    let first = text.out.lines().find_map(|line| line.strip_prefix("--task '")?.split('\'').next());
    let first = first.unwrap_or_else(|| panic!("{}", text.out));
    assert_eq!(hyperscope(&["critical", "--task", first, HOST]).code, 0, "{first}");
}
