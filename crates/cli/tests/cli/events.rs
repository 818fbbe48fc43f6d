//! Filters of `events`, and several recordings as one.

use serde_json::Value;

use crate::tool::{hyperscope, output_of, output_of_part};

const SMP: &str = "fixtures/x86-vmx/smp.dat";
const HOST: &str = "fixtures/x86-svm/host-guest.dat";
const GUEST: &str = "fixtures/x86-svm/host-guest.guest.dat";

fn events(args: &[&str]) -> Vec<Value> {
    let run = hyperscope(&[&["events", "--format", "jsonl"], args].concat());
    // How a guest's clock was aligned is reported with its events.
    let quiet = run.err.lines().all(|line| line.contains(": aligned by "));
    assert!(run.code == 0 && quiet, "{args:?}: {}", run.err);
    run.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Runs with a filter and without, and compares the result with all events for which `keep` holds.
#[track_caller]
fn filters(args: &[&str], keep: impl Fn(&Value) -> bool) {
    let actual = events(&[args, &[SMP]].concat());
    let expected: Vec<Value> = events(&[SMP]).into_iter().filter(keep).collect();
    assert!(!expected.is_empty(), "{args:?}: nothing to be seen");
    assert_eq!(actual.len(), expected.len(), "{args:?}");
    assert!(actual == expected, "{args:?}");
}

fn name(event: &Value) -> &str {
    event["event"].as_str().unwrap()
}

#[test]
fn events_are_chosen_by_name() {
    filters(&["-e", "kvm:kvm_exit"], |event| name(event) == "kvm:kvm_exit");
    filters(&["-e", "kvm_exit"], |event| name(event) == "kvm:kvm_exit");
    filters(&["-e", "sched"], |event| name(event).starts_with("sched:"));
    filters(&["-e", "sched:sched_sw*", "-e", "kvm_?xit"], |event| {
        ["sched:sched_switch", "kvm:kvm_exit"].contains(&name(event))
    });
    filters(&["-e", "*"], |_| true);
}

#[test]
fn events_are_chosen_by_cpu_and_thread() {
    filters(&["--cpu", "1"], |event| event["cpu"] == 1);
    filters(&["--cpu", "0-3,7"], |_| true);
    filters(&["--pid", "118"], |event| event["pid"] == 118);
    filters(&["--pid", "118,119"], |event| event["pid"] == 118 || event["pid"] == 119);
    filters(&["--vm", "vm-123"], |event| event["pid"] == 123);
    filters(&["--vm", "vm-123", "--cpu", "0"], |event| event["pid"] == 123 && event["cpu"] == 0);
}

#[test]
fn events_are_chosen_by_time() {
    let all = events(&[SMP]);
    let (begin, end) = (all[1000]["ts_ns"].as_u64().unwrap(), all[2000]["ts_ns"].as_u64().unwrap());
    let seconds = |ns: u64| format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000);
    let range = ["--from", &seconds(begin), "--to", &seconds(end)];
    let found = output_of_part(&[&["events", "--format", "jsonl", SMP][..], &range].concat());
    let is_in = |event: &&Value| (begin..end).contains(&event["ts_ns"].as_u64().unwrap());
    let found: Vec<Value> = found.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(found, all.iter().filter(is_in).cloned().collect::<Vec<_>>());
}

#[test]
fn events_are_chosen_by_fields() {
    let reason = |event: &Value| event["fields"]["exit_reason"].as_u64();
    filters(&["--where", "exit_reason == 12"], |event| reason(event) == Some(12));
    filters(&["--where", "exit_reason != 0xc"], |event| {
        reason(event).is_some_and(|code| code != 12)
    });
    filters(
        &["-e", "kvm_exit", "--where", "exit_reason >= 30", "--where", "exit_reason<32"],
        |event| reason(event).is_some_and(|code| (30..32).contains(&code)),
    );
    filters(&["--where", "next_comm ~ vmm*"], |event| {
        event["fields"]["next_comm"].as_str().is_some_and(|comm| comm.starts_with("vmm"))
    });
}

#[test]
fn names_stand_for_numbers_as_events_are_printed_with_them() {
    let reason = |event: &Value| event["fields"]["exit_reason"].as_u64();
    for hlt in ["exit_reason == HLT", "reason == hlt", "reason==EXIT_HLT"] {
        filters(&["-e", "kvm_exit", "--where", hlt], |event| {
            name(event) == "kvm:kvm_exit" && reason(event) == Some(12)
        });
    }
    filters(&["-e", "kvm_exit", "--where", "reason ~ *_instruction"], |event| {
        name(event) == "kvm:kvm_exit" && reason(event) == Some(30)
    });
    let count = |condition: &str| events(&["-e", "kvm_exit", "--where", condition, HOST]).len();
    // Counts by reason: fixtures/x86-svm/host-guest.truth.json.
    for msr in ["exit_reason == 124", "exit_reason == EXIT_MSR", "reason == msr", "reason == MSR"] {
        assert_eq!(count(msr), 2668, "{msr}");
    }
    assert_eq!(count("reason == EXIT_INTR") + count("reason != interrupt"), 9034);
    let slept = events(&["--where", "prev_state == S", SMP]);
    assert!(!slept.is_empty() && slept.iter().all(|event| event["fields"]["prev_state"] == 1));
}

#[test]
fn comparisons_that_never_hold_are_refused_with_what_to_write() {
    for (condition, words) in [
        ("exit_reason = 3", &["write =="][..]),
        ("exit_reason == msrs", &["never printed as msrs", "did you mean"]),
        ("reason == nothing_like_it", &["its printed values are", "HLT"]),
        ("exit_reason == -1", &["ranges from 0 to 4294967295"]),
        ("guest_rip == web", &["guest_rip is a number"]),
        ("next_comm > 3", &["only == != and ~"]),
        ("exit_reason == 1 && isa == 1", &["one condition per --where"]),
    ] {
        let run = hyperscope(&["events", "--where", condition, SMP]);
        assert_eq!((run.code, run.out.as_str()), (2, ""), "{condition}: {}", run.err);
        for word in words {
            assert!(run.err.contains(word), "{condition}: no {word:?} in {}", run.err);
        }
    }
}

#[test]
fn neighbours_are_those_of_grep() {
    let all = output_of(&["events", SMP]);
    let lines: Vec<&str> = all.lines().skip(1).collect();
    let is_wanted = |line: &str| line.contains("kvm_exit:") && line.contains("reason HLT");
    let choice = ["-e", "kvm_exit", "--where", "reason == HLT"];
    for (options, before, after) in [
        (&["-B", "1"][..], 1, 0),
        (&["-A", "2"], 0, 2),
        (&["-C", "3"], 3, 3),
        (&["-C", "3", "-A", "0"], 3, 0),
        (&["-B", "5000"], 5000, 0),
        (&["-B", "0"], 0, 0),
    ] {
        let printed = output_of(&[&["events"], &choice[..], options, &[SMP]].concat());
        let mut expected = vec!["cpus=2"];
        let mut last = None;
        for at in 0..lines.len() {
            let near = at.saturating_sub(after)..(at + before + 1).min(lines.len());
            if lines[near].iter().any(|line| is_wanted(line)) {
                if last.is_some_and(|last: usize| last + 1 < at) {
                    expected.push("--");
                }
                expected.push(lines[at]);
                last = Some(at);
            }
        }
        assert!(expected.len() > 10, "{options:?}");
        assert!(printed.lines().eq(expected.iter().copied()), "{options:?}: {}", expected.len());
    }
    let json =
        output_of(&[&["events", "--format", "jsonl", "-C", "1"], &choice[..], &[SMP]].concat());
    assert!(json.lines().all(|line| serde_json::from_str::<Value>(line).is_ok()));
}

#[test]
fn lines_are_those_of_trace_cmd_or_of_the_kernel() {
    let line = |options: &[&str]| {
        let args = [&["events", "-e", "kvm_exit", "-e", "sched_switch"], options, &[HOST]].concat();
        output_of(&args)
    };
    let (ours, numeric) = (line(&[]), line(&["--numeric"]));
    assert!(ours.contains(": reason EXIT_MSR rip 0x") || ours.contains(" reason EXIT_MSR rip 0x"));
    assert!(ours.contains("[120] R ==> ") && !ours.contains("prev_comm="));
    assert!(numeric.contains("vcpu 0 reason msr rip 0x") && numeric.contains("prev_comm="));
    assert_eq!(ours.lines().count(), numeric.lines().count());
}

#[test]
fn a_vm_is_its_threads_on_the_host_and_all_of_its_own_recording() {
    let of_vm = events(&["--vm", "vm-119", HOST, GUEST]);
    let expected = events(&[HOST, GUEST]).into_iter();
    let expected: Vec<Value> =
        expected.filter(|event| event["level"] == 1 || event["pid"] == 119).collect();
    assert!(of_vm == expected, "{} {}", of_vm.len(), expected.len());
}

#[test]
fn a_filter_that_leaves_nothing_says_so() {
    let run = hyperscope(&["events", "--cpu", "77", SMP]);
    assert_eq!((run.code, run.out.as_str()), (0, "cpus=2\n"));
    assert!(run.err.contains("no event to print"), "{}", run.err);
}

#[test]
fn raw_lines_have_fields_in_place_of_text() {
    let args = ["events", "-e", "kvm_exit", "--where", "exit_reason == 12"];
    let text = output_of(&[&args[..], &[SMP]].concat());
    let raw = output_of(&[&args[..], &["--raw", SMP]].concat());
    assert_eq!(text.lines().count(), raw.lines().count());
    let lines = |text: &str| text.lines().skip(1).map(str::to_owned).collect::<Vec<_>>();
    assert!(
        lines(&text).iter().all(|line| line.contains("reason HLT") && !line.contains("exit_reas"))
    );
    assert!(lines(&raw).iter().all(|line| line.contains("exit_reason=12")));
}

#[test]
fn host_and_guest_are_merged_by_time() {
    let both = events(&[HOST, GUEST]);
    let count = |files: &[&str]| events(files).len();
    assert_eq!(both.len(), count(&[HOST]) + count(&[GUEST]));
    let times: Vec<u64> = both.iter().map(|event| event["ts_ns"].as_u64().unwrap()).collect();
    assert!(times.is_sorted());
    let machines =
        |event: &Value| (event["machine"].as_str().unwrap().to_owned(), event["level"].clone());
    let mut seen: Vec<_> = both.iter().map(machines).collect();
    seen.sort_by(|a, b| a.0.cmp(&b.0));
    seen.dedup();
    // The guest has the same name as its VM in the exits report.
    assert_eq!(seen, [("host".to_owned(), 0.into()), ("vm-119".to_owned(), 1.into())]);
    let text = hyperscope(&["events", HOST, GUEST]).out;
    assert!(text.starts_with("      host: cpus=2\n    vm-119: cpus=1\n"));
    assert_eq!(text.lines().count(), both.len() + 2);
    assert!(
        text.lines()
            .all(|line| line.starts_with("      host: ") || line.starts_with("    vm-119: "))
    );
}
