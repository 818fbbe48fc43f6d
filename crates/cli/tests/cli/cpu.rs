//! The users of the CPUs, on real recordings: complete tables, and their sums.

use serde_json::Value;

use crate::schemas::{check, closed};
use crate::tool::{assert_golden, hyperscope, output_of, recordings};

const PAIRS: [(&str, [&str; 2]); 3] = [
    ("arm64-A", ["fixtures/arm64/A.dat", "fixtures/arm64/A.guest.dat"]),
    (
        "x86-svm-host-guest",
        ["fixtures/x86-svm/host-guest.dat", "fixtures/x86-svm/host-guest.guest.dat"],
    ),
    ("x86-svm-tsc", ["fixtures/x86-svm/tsc.dat", "fixtures/x86-svm/tsc.guest.dat"]),
];

/// Standard output; the alignment of guests goes to standard error.
fn shown(args: &[&str], files: &[&str]) -> String {
    let run = hyperscope(&[&["cpu"], args, files].concat());
    assert_eq!(run.code, 0, "{}", run.err);
    run.out
}

fn report(files: &[&str]) -> Value {
    serde_json::from_str(&shown(&["--format", "json"], files)).unwrap()
}

fn rows<'r>(report: &'r Value, by: &str) -> &'r Vec<Value> {
    report[by].as_array().unwrap()
}

fn ns(value: &Value) -> u64 {
    value.as_u64().unwrap_or(0)
}

/// The sum of a row's states.
fn states_ns(row: &Value) -> u64 {
    row["states"].as_object().unwrap().values().map(ns).sum()
}

#[test]
fn tables_of_hosts_and_guests_are_as_expected() {
    let by = ["--by", "vm,vcpu,thread,task,cpu", "--top", "12"];
    for (name, files) in &PAIRS {
        assert_golden(&format!("{name}.cpu.txt"), &shown(&by, files));
    }
    assert_golden("x86-vmx-smp.cpu.txt", &shown(&[], &["fixtures/x86-vmx/smp.dat"]));
    assert_golden("x86-svm-nested.cpu.txt", &shown(&[], &["fixtures/x86-svm/nested.dat"]));
    let vhost = ["fixtures/arm64/B-vhost-on.dat"];
    assert_golden("arm64-B-vhost-on.cpu.txt", &shown(&["--by", "thread,cpu", "--idle"], &vhost));
    let alone = ["fixtures/arm64/A.guest.dat"];
    assert_golden("arm64-A.guest.cpu.txt", &shown(&["--by", "task", "--idle"], &alone));
}

/// No thread has a CPU for longer than vCPUs waited for it. In a recording without losses, threads account
/// for nearly all of the wait: switches of two CPUs are microseconds apart.
#[test]
fn threads_that_had_the_cpu_add_up_to_the_wait() {
    for path in
        ["fixtures/x86-vmx/smp.dat", "fixtures/x86-svm/host-guest.dat", "fixtures/arm64/D.dat"]
    {
        let report = report(&[path]);
        let vms = rows(&report, "vms");
        assert!(!vms.is_empty(), "{path}");
        for vm in vms {
            let waited = ns(&vm["states"]["waiting_ns"]) + ns(&vm["states"]["preempted_ns"]);
            let of_vm = || rows(&report, "taken").iter().filter(|row| row["vm"] == vm["vm"]);
            let taken_ns: u64 = of_vm().map(|row| ns(&row["time_ns"])).sum();
            assert!(
                taken_ns <= waited && taken_ns * 100 >= waited * 98,
                "{path}: {taken_ns} of {waited}"
            );
            let shares: f64 = of_vm().map(|row| row["share"].as_f64().unwrap()).sum();
            assert!((shares - taken_ns as f64 / waited as f64).abs() < 1e-9, "{path}: {shares}");
        }
    }
    // Three VMs on two CPUs: the others' vCPUs keep the second and the third waiting.
    let report = report(&["fixtures/x86-vmx/smp.dat"]);
    let most = rows(&report, "taken").iter().take(2);
    assert!(most.clone().all(|row| row["name"] == "vmm" && row["share"].as_f64() > Some(0.8)));
    assert_eq!(most.count(), 2);
}

#[test]
fn states_add_up_to_the_time_they_are_of() {
    let mut files: Vec<Vec<String>> = recordings().into_iter().map(|path| vec![path]).collect();
    files.extend(PAIRS.map(|(_, pair)| pair.map(str::to_owned).to_vec()));
    let (mut vcpus, mut tasks) = (0, 0);
    for paths in files {
        let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
        let report = report(&paths);
        check(&closed("cpu"), &report, &paths.join(" "));
        for row in rows(&report, "vcpus").iter().chain(rows(&report, "vms")) {
            assert_eq!(states_ns(row), ns(&row["time_ns"]), "{paths:?}: {row:#}");
            let recorded = ns(&row["guest_recorded_ns"]);
            assert!(
                recorded <= ns(&row["time_ns"]) && ns(&row["busy_ns"]) <= ns(&row["on_cpu_ns"])
            );
            vcpus += 1;
        }
        for row in rows(&report, "tasks") {
            assert_eq!(states_ns(row), ns(&row["time_ns"]), "{paths:?}: {row:#}");
            tasks += 1;
        }
        let with_guest = paths.len() > 1;
        let recorded = rows(&report, "vcpus").iter().map(|row| ns(&row["guest_recorded_ns"]));
        let of_tasks = rows(&report, "tasks").iter().map(|row| ns(&row["time_ns"]));
        assert!(!with_guest || recorded.sum::<u64>() == of_tasks.sum::<u64>(), "{paths:?}");
    }
    assert!(vcpus > 20 && tasks > 200, "{vcpus} {tasks}");
}

#[test]
fn what_was_not_recorded_is_null() {
    let alone = report(&["fixtures/x86-svm/nested.dat"]);
    let states = &rows(&alone, "vcpus")[0]["states"];
    for state in ["guest_user", "guest_idle", "exit_kernel", "preempted", "halt_poll"] {
        assert!(states[format!("{state}_ns")].is_null(), "{state}: {states:#}");
    }
    assert!(states["not_split_ns"].as_u64() > Some(0), "kernel or waiting: {states:#}");
    assert!(rows(&alone, "threads").is_empty(), "no switches, no threads");
    assert!(rows(&alone, "vcpus")[0]["level2_ns"].as_u64() > Some(0));
    let pair = report(&PAIRS[2].1);
    let states = &rows(&pair, "vcpus")[0]["states"];
    assert!(states["guest_user_ns"].is_null(), "system calls were not recorded");
    assert!(
        states["guest_idle_ns"].as_u64() > Some(0) && states["guest_irq_ns"].as_u64() > Some(0)
    );
}

#[test]
fn idle_threads_are_left_out_unless_asked_for() {
    let (_, files) = &PAIRS[0];
    let idle = |args: &[&str]| shown(args, files).contains("\nvm-148  idle ");
    assert!(!idle(&["--by", "task"]) && idle(&["--by", "task", "--idle"]));
    let other = |args: &[&str]| shown(args, files).contains("rcu_sched-14 ");
    assert!(!other(&["--by", "thread"]) && other(&["--by", "thread", "--idle"]));
}

#[test]
fn csv_has_the_rows_of_the_first_key() {
    let (_, files) = &PAIRS[2];
    let report = report(files);
    for (by, key) in [("vcpu", "vcpus"), ("task", "tasks"), ("thread", "threads"), ("cpu", "cpus")]
    {
        let text = shown(&["--by", by, "--format", "csv"], files);
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        assert_eq!(reader.records().map(Result::unwrap).count(), rows(&report, key).len(), "{by}");
    }
}

#[test]
fn a_method_of_alignment_can_be_asked_for() {
    let (_, files) = &PAIRS[0];
    let outside = |method: &str| {
        let text = shown(&["--method", method, "--format", "json"], files);
        let report: Value = serde_json::from_str(&text).unwrap();
        ns(&report["guests"][0]["outside"])
    };
    assert_eq!(outside("windows"), 0);
    assert!(outside("time_shift") > 500, "it is more than a millisecond off");
    assert!(output_of(&["cpu", files[0]]).contains("vm-148"));
}

/// A single item is named in the singular.
#[test]
fn one_other_thread_is_no_threads() {
    let folder = tempfile::tempdir().unwrap();
    let text = folder.path().join("one.txt");
    let (bash, idle) = ("comm=bash prev_pid=77", "comm=swapper/1 prev_pid=0");
    let lines = format!(
        "CPU 0/KVM-10 [000] 100.000001: kvm_exit: vcpu 0 reason HLT rip 0x1000\n\
         <idle>-0 [001] 100.000003: sched_switch: prev_{idle} prev_prio=120 prev_state=R ==> \
         next_comm=bash next_pid=77 next_prio=120\n\
         CPU 0/KVM-10 [000] 100.000004: kvm_entry: vcpu 0, rip 0x1000\n\
         bash-77 [001] 100.000006: sched_switch: prev_{bash} prev_prio=120 prev_state=S ==> \
         next_comm=swapper/1 next_pid=0 next_prio=120\n"
    );
    std::fs::write(&text, lines).unwrap();
    let shown = shown(&["--by", "thread"], &[text.to_str().unwrap()]);
    assert!(shown.contains("1 other thread of the hosts used 3.00 us"), "{shown}");
}
