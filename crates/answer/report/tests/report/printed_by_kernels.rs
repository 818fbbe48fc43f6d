//! Forms of text that only specific kernels print: `trace` with each option, dumps, and pasted excerpts.
//! `texts/` has small files with their contents.

use std::path::{Path, PathBuf};

use analyses::contents::contents;
use analyses::exits::ExitRow;
use report::events::{Machine, Style, write_events};
use serde_json::{Value, json};
use sources::{Damage, Recording};
use timeline::event_filter::Filter;

use crate::printed_texts::exits_of;

fn path_of(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/report/texts").join(name)
}

fn open(name: &str) -> Recording {
    sources::open(&path_of(name)).unwrap()
}

fn damage(recording: &Recording) -> Vec<String> {
    recording.damage().iter().map(Damage::to_string).collect()
}

/// Exits by reason: their number and total time.
fn exits(recording: &Recording) -> Vec<(String, u64, u64)> {
    let row = |row: &ExitRow| {
        let code = || format!("{:?}", row.group.code);
        let name = row.group.reason.clone().unwrap_or_else(code);
        (name, row.tally.count, row.tally.durations.sum())
    };
    exits_of(recording).rows.iter().map(row).collect()
}

fn events(recording: Recording) -> Vec<Value> {
    let machine = Machine { name: "host".to_owned(), level: 0, threads: None };
    let (filter, mut text) = (Filter::default(), Vec::new());
    write_events(&[recording], &[machine], &filter, Style::Jsonl, &mut text, &|_| ()).unwrap();
    let text = String::from_utf8(text).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn exits_of_every_shape_are_those_of_its_lines() {
    for (name, reason, count, time, nanoseconds, cpus) in [
        ("ticks.txt", "HLT", 2, 100_000, false, 4),
        ("latency-format.txt", "HLT", 1, 100_000, true, 2),
        ("perf-period.txt", "HLT", 1, 400_000, true, 1),
        ("preamble.txt", "HLT", 1, 100_000, true, 2),
        ("overwritten.txt", "HLT", 1, 100_000, true, 8),
        ("dump.txt", "HLT", 1, 100_000, true, 2),
        ("latency-verbose.txt", "HLT", 1, 29_000, true, 4),
        ("latency-trace.txt", "HLT", 1, 7_102_000, true, 4),
        ("tgid-stacks.txt", "HLT", 1, 10_000, true, 2),
        ("buffers.txt", "HLT", 1, 100_000, true, 2),
        ("fields.txt", "0xc", 1, 100_000, true, 2),
    ] {
        let recording = open(name);
        assert_eq!(damage(&recording), [""; 0], "{name}");
        assert_eq!((recording.is_nanoseconds(), recording.cpus()), (nanoseconds, cpus), "{name}");
        let found = exits(&recording);
        let [(found_reason, found_count, found_time)] = found.as_slice() else {
            panic!("{name}: {found:?}")
        };
        assert!(found_reason.contains(reason), "{name}: {found:?}");
        assert_eq!((*found_count, *found_time), (count, time), "{name}");
    }
}

#[test]
fn a_reason_is_all_that_an_exit_needs() {
    let recording = open("exit-without-rip.txt");
    assert_eq!((damage(&recording), &recording.info().notes), (vec![], &vec![]));
    let expected = [("DR_ACCESS", 1, 3_000), ("EXTERNAL_INTERRUPT", 1, 9_000)]
        .map(|(reason, count, time)| (reason.to_owned(), count, time));
    let mut found = exits(&recording);
    found.sort();
    assert_eq!(found, expected);
}

#[test]
fn lines_of_an_event_that_say_nothing_are_counted() {
    let text = "a-1 [000] 1.000001: kvm_entry: vcpu 0\n\
        a-1 [000] 1.000002: kvm_exit: because of something\n\
        a-1 [000] 1.000003: kvm_entry: vcpu 0\n\
        a-1 [000] 1.000004: kvm_exit: because of something else\n";
    let recording = sources::open_bytes(Path::new("t"), text.into()).unwrap();
    let notes = &recording.info().notes;
    assert_eq!(notes.len(), 1, "{notes:?}");
    assert!(
        notes[0].starts_with("none of the 2 lines of kvm:kvm_exit could be read")
            && notes[0].ends_with("the first is line 2"),
        "{notes:?}"
    );
}

#[test]
fn system_calls_are_read_as_the_kernel_prints_them() {
    let recording = open("kernel-syscalls.txt");
    assert_eq!(damage(&recording), [""; 0]);
    let calls: Vec<Value> = events(recording)
        .into_iter()
        .filter(|event| event["event"].as_str().unwrap().starts_with("syscalls:"))
        .map(|event| {
            let mut fields = event["fields"].clone();
            let fields = fields.as_object_mut().unwrap();
            fields.retain(|name, _| !["text", "common_flags"].contains(&name.as_str()));
            json!([event["event"], fields])
        })
        .collect();
    let enter = json!(["syscalls:sys_enter_ioctl", {"fd": 13, "cmd": 0xae80, "arg": 0}]);
    let exit = json!(["syscalls:sys_exit_ioctl", {"ret": 0}]);
    assert_eq!(calls, [enter.clone(), exit, enter]);
}

#[test]
fn headings_say_what_was_overwritten() {
    for name in ["overwritten.txt", "latency-trace.txt"] {
        let recording = open(name);
        let found = contents(&recording, &|_| ());
        assert_eq!((found.events_lost(), found.uncounted_losses()), (900, 0), "{name}");
        assert!(found.losses_known && recording.ending().doubt.is_none(), "{name}");
        assert_eq!(exits_of(&recording).losses.events_lost, 900, "{name}");
    }
    // With several CPUs, it is unknown which one lost them.
    let text = "# entries-in-buffer/entries-written: 2/902   #P:4\n\
        a-1 [000] ..... 1.000001: x: a=1\n\
        ##### CPU 1 buffer started ####\n\
        a-1 [001] ..... 1.000002: x: a=1\n";
    let recording = sources::open_bytes(Path::new("t"), text.into()).unwrap();
    let found = contents(&recording, &|_| ());
    assert_eq!((found.events_lost(), recording.cpus()), (900, 4));
    assert!(found.cpus.iter().all(|cpu| cpu.events_lost == 0) && found.losses_known);
    assert_eq!(exits_of(&recording).losses.events_lost, 900);
    // An excerpt says that it is one.
    let excerpt = text.replace("2/902", "20/902");
    let recording = sources::open_bytes(Path::new("t"), excerpt.into()).unwrap();
    let doubt = recording.ending().doubt.as_ref().unwrap().to_string();
    assert_eq!(doubt, "the text has 2 of the 20 events that its header counts");
    assert!(!contents(&recording, &|_| ()).losses_known);
}

#[test]
fn two_machines_are_read_apart() {
    let found = sources::open_each(&path_of("two-machines.txt")).unwrap();
    let [host, guest] = found.as_slice() else { panic!("{} recordings", found.len()) };
    let alone = open("two-machines.host-alone.txt");
    let counts = |recording: &Recording| contents(recording, &|_| ()).events;
    assert_eq!(counts(host), counts(&alone));
    assert_eq!(exits(host), exits(&alone));
    assert_eq!((host.cpus(), guest.cpus()), (2, 1));
    assert_eq!(counts(guest), [("sched:sched_switch".to_owned(), 1)].into());
    assert!(host.path().to_string_lossy().ends_with("two-machines.txt:host.dat"));
}

#[test]
fn buffers_of_one_file_are_buffers_of_one_recording() {
    let recording = open("buffers.txt");
    let buffers: Vec<&str> =
        recording.streams().iter().map(|stream| recording.buffer_name(stream)).collect();
    assert_eq!(buffers, ["", "low"]);
}

#[test]
fn times_that_count_from_the_line_before_are_damage() {
    let line = |at: u64| format!("a 1 [000] {at}.000001: kvm:kvm_entry: vcpu 0\n");
    let text: String = (0..40).map(|number| line(number % 2)).collect();
    let recording = sources::open_bytes(Path::new("t"), text.into()).unwrap();
    let damage = damage(&recording);
    assert!(damage[0].contains("times go back in 19 of 40 lines"), "{damage:?}");
}

#[test]
fn stacks_and_calls_of_functions_are_events() {
    let counts = contents(&open("tgid-stacks.txt"), &|_| ()).events;
    for name in ["ftrace:kernel_stack", "ftrace:user_stack", "ftrace:function"] {
        assert_eq!(counts[name], 1, "{counts:?}");
    }
}

#[test]
fn what_is_no_trace_is_described() {
    let graph = " 0)   0.524 us    |  kvm_arch_vcpu_load();\n 0)               |  vcpu_run() {\n";
    for (text, reason) in [
        ("Dear all,\nmy guest is slow.\n", "no line has a thread, a CPU and a time"),
        ("# tracer: function_graph\n", "line 1 is \"# tracer: function_graph\""),
        (graph, "function_graph"),
        ("kvm_exit: vcpu 0 reason HLT\n", "context-info"),
        ("119 1 63737004188 type: 443\n", "option raw"),
        ("\n\n", "only blank lines"),
        ("{\"schema\": 1}\n", "line 1 is \"{\\\"schema\\\": 1}\""),
    ] {
        let error = sources::open_bytes(Path::new("t.txt"), text.into()).unwrap_err().to_string();
        assert!(
            error.starts_with("t.txt is not a recording: it is a text without trace events: "),
            "{error}"
        );
        assert!(error.contains(reason) && error.contains("Expected lines such as"), "{error}");
    }
}
