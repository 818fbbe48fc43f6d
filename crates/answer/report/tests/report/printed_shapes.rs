//! Reads every form of text in which trace-cmd, perf and `hyperscope events` print recordings; the oracle is the
//! recording.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::Path;
use std::process::Command;

use analyses::calls::{CallQuestion, Function, calls};
use analyses::contents::contents;
use analyses::exits::Exits;
use report::events::{Machine, Style, write_events};
use serde_json::Value;
use sources::Recording;
use timeline::event_filter::Filter;

use crate::printed_texts::{compare, exits_of, path_of, printed, read};

/// Recordings of both kinds of x86 and of a guest.
const RECORDINGS: [&str; 3] =
    ["x86-vmx/vmm.dat", "x86-svm/qemu.dat", "x86-svm/host-guest.guest.dat"];
/// Longer recordings, which are printed with some of the options; a plugin of trace-cmd prints two calls in one line.
const LONGER: [&str; 3] = ["x86-vmx/nested.dat", "arm64/D.dat", "x86-svm/calls.dat"];

/// The rounding of times in a form of text.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Times {
    /// Rounded to this many nanoseconds.
    Rounded(u64),
    /// To microseconds, from the first event on.
    FromFirst,
    /// The raw stamps, which count nanoseconds or ticks.
    Raw,
}

/// Options of `trace-cmd report`, and their effect on times.
const OPTIONS: &[(&[&str], Times)] = &[
    (&[], Times::Rounded(1000)),
    (&["-N"], Times::Rounded(1000)),
    (&["-t"], Times::Rounded(1)),
    (&["-l"], Times::Rounded(1000)),
    (&["-l", "-t", "-N"], Times::Rounded(1)),
    (&["--ts-diff"], Times::Rounded(1000)),
    (&["--ts-diff", "-t", "-l"], Times::Rounded(1)),
    (&["-w", "-N", "-t"], Times::Rounded(1)),
    (&["-R", "-t"], Times::Rounded(1)),
    (&["-R", "-l", "--ts-diff"], Times::Rounded(1000)),
    (&["-r", "kvm_exit", "-t"], Times::Rounded(1)),
    (&["-n", "kvm_exit", "-t"], Times::Rounded(1)),
    (&["--debug", "-t"], Times::Rounded(1)),
    (&["-V"], Times::Rounded(1000)),
    (&["--align-ts"], Times::FromFirst),
    (&["--raw-ts"], Times::Raw),
    (&["--raw-ts", "-l", "--ts-diff", "-N"], Times::Raw),
];

/// The output of trace-cmd; `None`: it is not installed.
fn report(files: &[&str], options: &[&str]) -> Option<Vec<u8>> {
    let mut command = Command::new("trace-cmd");
    command.arg("report");
    files.iter().for_each(|file| _ = command.arg("-i").arg(path_of(file)));
    match command.args(options).output() {
        Ok(output) => Some(output.stdout),
        Err(_) => {
            testkit::skip!("trace-cmd is not installed");
            None
        }
    }
}

/// Events by name, without systems: most texts lack them.
fn by_name(recording: &Recording) -> BTreeMap<String, u64> {
    let mut names = BTreeMap::new();
    for (name, count) in contents(recording, &|_| ()).events {
        let name = name.split_once(':').map_or(name.as_str(), |(_, name)| name).to_owned();
        *names.entry(name).or_default() += count;
    }
    names
}

/// The events of a recording in the form of `hyperscope events --format jsonl`.
fn events_of(recording: Recording) -> Vec<Value> {
    let machine = Machine { name: "host".to_owned(), level: 0, threads: None };
    let (filter, mut text) = (Filter::default(), Vec::new());
    write_events(&[recording], &[machine], &filter, Style::Jsonl, &mut text, &|_| ()).unwrap();
    let text = String::from_utf8(text).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn lines_of(events: &[Value], cpu: u64) -> impl Iterator<Item = &Value> {
    events.iter().filter(move |event| event["cpu"] == cpu)
}

/// Threads, events and times of a text equal those of the recording, CPU by CPU: events of several CPUs at the same
/// time have no order.
fn same_events(text: &[Value], recording: &[Value], times: Times, what: &str) {
    let mut others = BTreeMap::new();
    assert_eq!(text.len(), recording.len(), "{what}");
    let first = recording.first().map_or(0, |event| event["ts_ns"].as_u64().unwrap());
    for cpu in 0..4 {
        for (found, expected) in lines_of(text, cpu).zip(lines_of(recording, cpu)) {
            let name = |event: &Value| event["event"].as_str().unwrap().to_owned();
            let (name, full) = (name(found), name(expected));
            let event_name = full.split_once(':').unwrap().1.to_owned();
            assert!(name.ends_with(&format!(":{event_name}")), "{what}: {found} is not {expected}");
            assert_eq!(found["pid"], expected["pid"], "{what}: {found} {expected}");
            let stamp = |event: &Value| event["ts_ns"].as_u64();
            let expected_ns = stamp(expected).unwrap();
            match times {
                Times::Rounded(to) => {
                    let off = stamp(found).unwrap().abs_diff(expected_ns);
                    assert!(off < to, "{what}: {found} {expected}");
                }
                Times::FromFirst => {
                    let off = stamp(found).unwrap().abs_diff(expected_ns - first);
                    assert!(off <= 1000, "{what}: {found} {expected}");
                }
                Times::Raw => assert!(stamp(found).is_none(), "{what}: {found}"),
            }
            other_fields(found, expected, &mut others);
        }
    }
    assert_eq!(others, BTreeMap::new(), "{what}");
}

/// Fields that raw forms print differently: for a call in the print fmt, they show its argument.
const PRINTED_OTHERWISE: &[&str] = &["kvm:kvm_apic_ipi.icr_low"];

/// Fields in both the text and the recording whose numbers differ, with an example of each.
fn other_fields(found: &Value, expected: &Value, others: &mut BTreeMap<String, String>) {
    let (Some(found_fields), Some(fields)) =
        (found["fields"].as_object(), expected["fields"].as_object())
    else {
        return;
    };
    for (name, value) in found_fields {
        let Some(number) = fields.get(name).filter(|_| name != "common_flags") else { continue };
        // States are letters in a text, and bits of various kernels in recordings.
        if !value.is_number() || !number.is_number() || name == "prev_state" {
            continue;
        }
        let bits = |value: &Value| value.as_u64().or(value.as_i64().map(|signed| signed as u64));
        let (a, b) = (bits(value).unwrap(), bits(number).unwrap());
        let field = format!("{}.{name}", expected["event"].as_str().unwrap());
        // Narrow fields are printed with their own width.
        if a != b && a != b & 0xffff_ffff && !PRINTED_OTHERWISE.contains(&field.as_str()) {
            others.entry(field).or_insert_with(|| format!("{found} {expected}"));
        }
    }
}

#[test]
fn every_option_of_trace_cmd_prints_a_text_that_is_read() {
    for name in RECORDINGS {
        read_with_options(name, OPTIONS);
    }
    let some: &[(&[&str], Times)] =
        &[(&["-l", "-t", "-N"], Times::Rounded(1)), (&["-R", "-t"], Times::Rounded(1))];
    for name in LONGER {
        read_with_options(name, some);
    }
}

/// Prints a recording with each of the options, and compares it with the events read from the text.
fn read_with_options(name: &str, all: &[(&[&str], Times)]) {
    let recording = sources::open(&path_of(name)).unwrap();
    let (counts, exits) = (by_name(&recording), exits_of(&recording));
    let events = events_of(sources::open(&path_of(name)).unwrap());
    for (options, times) in all {
        let what = format!("{name} {options:?}");
        let Some(printed) = report(&[name], options) else { return };
        let text = read(printed);
        let damage: Vec<String> = text.damage().iter().map(ToString::to_string).collect();
        assert_eq!(damage, [""; 0], "{what}");
        assert_eq!((text.cpus(), text.recorded_abi()), (recording.cpus(), None), "{what}");
        assert_eq!(text.is_nanoseconds(), *times != Times::Raw, "{what}");
        assert_eq!(by_name(&text), counts, "{what}");
        let is_coded = options.iter().any(|option| ["-R", "-r"].contains(option));
        match times {
            Times::Rounded(to) if !is_coded => {
                let rounding_ns = if *to > 1 { 1000 } else { 0 };
                compare_times(&what, &exits_of(&text), &exits, rounding_ns, options);
            }
            _ => assert_eq!(exit_counts(&exits_of(&text)), exit_counts(&exits), "{what}"),
        }
        same_events(&events_of(text), &events, *times, &what);
    }
}

fn exit_counts(exits: &Exits) -> Vec<u64> {
    let mut counts: Vec<u64> = exits.rows.iter().map(|row| row.tally.count).collect();
    counts.sort_unstable();
    counts
}

/// trace-cmd's plugins use other names for reasons: then sums are compared without names.
fn compare_times(what: &str, text: &Exits, recording: &Exits, rounding_ns: u64, options: &[&str]) {
    if options.contains(&"-N") {
        return compare(what, text, recording, rounding_ns);
    }
    let sums = |exits: &Exits| {
        let mut sums: Vec<(u64, u64)> = Vec::new();
        for row in &exits.rows {
            sums.push((row.tally.count, row.tally.durations.sum()));
        }
        sums.sort_unstable();
        sums
    };
    let (text, recording) = (sums(text), sums(recording));
    let counts = |sums: &[(u64, u64)]| sums.iter().map(|(count, _)| *count).collect::<Vec<_>>();
    assert_eq!(counts(&text), counts(&recording), "{what}");
    let total = |sums: &[(u64, u64)]| sums.iter().map(|(_, time)| time).sum::<u64>();
    let count: u64 = recording.iter().map(|(count, _)| count).sum();
    assert!(total(&text).abs_diff(total(&recording)) <= count * rounding_ns, "{what}");
}

/// For each function: number of calls, self time, and the time of its longest call.
fn functions_of(recording: &Recording) -> BTreeMap<String, (u64, u64, u64)> {
    let calls = calls(recording, &CallQuestion::default(), &mut (), &|_| ());
    assert_eq!(calls.sum(|function| function.without_call + function.without_return), 0);
    let times = |function: &Function| {
        (function.name.clone().unwrap(), (function.count, function.self_ns, function.max_ns))
    };
    let functions: BTreeMap<_, _> = calls.functions.iter().map(times).collect();
    assert_eq!(functions.len(), calls.functions.len());
    functions
}

/// Duration of a call, if the event is one.
fn took_ns(event: &Value) -> Option<u64> {
    let time = |name: &str| event["fields"][name].as_u64();
    Some(time("rettime")? - time("calltime")?)
}

/// Threads, functions, depths and durations of a text equal those of the recording, and times of a CPU don't decrease.
fn same_calls(text: &[Value], recording: &Recording, options: &[&str]) {
    let events = events_of(sources::open(recording.path()).unwrap());
    assert_eq!(text.len(), events.len(), "{options:?}");
    let mut calls = 0;
    for cpu in 0..2 {
        let mut last_ns = None;
        for (found, expected) in lines_of(text, cpu).zip(lines_of(&events, cpu)) {
            for field in ["event", "pid"] {
                assert_eq!(found[field], expected[field], "{options:?}: {found} {expected}");
            }
            let stamp_ns = found["ts_ns"].as_u64();
            assert!(stamp_ns >= last_ns, "{options:?}: {found} comes after {last_ns:?}");
            last_ns = stamp_ns;
            let (fields, others) = (&found["fields"], &expected["fields"]);
            let Some(address) = others["func"].as_u64() else { continue };
            calls += 1;
            let symbol = recording.kallsyms().lookup(address).unwrap();
            assert_eq!(
                fields["func"].as_str().unwrap().as_bytes(),
                symbol.name,
                "{options:?}: {found}"
            );
            assert_eq!(fields["depth"], others["depth"], "{options:?}: {found} {expected}");
            // Long times have fewer digits, and raw times are not nanoseconds.
            let is_raw = options.contains(&"--raw-ts");
            let off = took_ns(found).zip(took_ns(expected)).filter(|_| !is_raw);
            assert!(off.is_none_or(|(a, b)| a.abs_diff(b) < 10), "{options:?}: {found} {expected}");
        }
    }
    assert!(calls > 10_000, "{calls}");
}

/// trace-cmd's plugin prints a call and its return as one line, and most returns without their function.
#[test]
fn calls_that_trace_cmd_prints_are_those_of_the_recording() {
    let name = "x86-svm/calls.dat";
    let recording = sources::open(&path_of(name)).unwrap();
    let (functions, counts) = (functions_of(&recording), by_name(&recording));
    for options in [
        &[][..],
        &["-t"],
        &["-l", "--ts-diff", "-t"],
        &["-O", "tailprint", "-O", "depth", "-t"],
        &["--raw-ts"],
        &["-N"],
        &["-N", "-t"],
        &["-R", "-t"],
    ] {
        let Some(printed) = report(&[name], options) else { return };
        let text = read(printed);
        assert_eq!((text.damage(), by_name(&text)), (&[][..], counts.clone()), "{options:?}");
        if text.is_nanoseconds() {
            let is_exact = options.contains(&"-N") || options.contains(&"-R");
            // For a thread that was off its CPU, or was interrupted as a function returned, the plugin omits the time.
            let is_whole = is_exact && options.contains(&"-t");
            let rounded_ns = if is_whole { 0 } else { 2 * 1000 };
            let found = functions_of(&text);
            assert!(found.keys().eq(functions.keys()), "{options:?}");
            for (function, (count, self_ns, max_ns)) in &functions {
                let times = found[function];
                let cut_ns = if is_exact { 0 } else { 10 * count };
                let most_off = cut_ns + rounded_ns;
                let is_same = times.0 == *count
                    && times.1.abs_diff(*self_ns) <= most_off
                    && times.2.abs_diff(*max_ns) <= most_off;
                assert!(
                    is_same,
                    "{options:?}: {function}: {times:?}, not {count} {self_ns} {max_ns}"
                );
            }
        }
        same_calls(&events_of(text), &recording, options);
    }
}

/// The kernel's output with the options `funcgraph-abstime` and `funcgraph-proc`, and with others besides; the first
/// lines are combined from `Documentation/trace/ftrace.rst`.
#[test]
fn calls_that_a_kernel_prints_with_times_and_threads_are_read() {
    let text = "# tracer: function_graph\n#\n\
        #     TIME       CPU  TASK/PID         DURATION                  FUNCTION CALLS\n\
        #      |         |     |    |           |   |                     |   |   |   |\n\
        \x20 360.774522 |   1)    sh-4802     |               |  vcpu_run [kvm]() {\n\
        \x20 360.774523 |   1)    sh-4802     |   0.541 us    |    kvm_load [kvm]();\n\
        \x20 360.774524 |   1)    sh-4802     |               |    /* kvm_entry: vcpu 0, rip 0x10 */\n\
        \x20 360.774525 |   1)    sh-4802     |   ==========> |\n\
        \x20 360.774530 |   1)    sh-4802     |  d.h1.  |   1.000 us    |    irq_enter();\n\
        \x20 360.774540 |   1)    sh-4802     | + 18.250 us   |  } /* vcpu_run [kvm] */\n\
        \x20------------------------------------------\n\
        \x201)    sh-4802     =>    cat-4803   \n\
        \x20------------------------------------------\n\n\
        \x20 360.774550 |   1)   cat-4803     |   2.000 us    |  schedule();\n";
    let recording = read(text.as_bytes().to_vec());
    assert_eq!((recording.damage(), recording.comm(4803)), (&[][..], Some("cat")));
    let counts = [("funcgraph_entry", 4), ("funcgraph_exit", 4), ("kvm_entry", 1)];
    assert_eq!(by_name(&recording), counts.map(|(name, count)| (name.to_owned(), count)).into());
    let functions = [
        ("irq_enter", (1, 1000, 1000)),
        ("kvm_load", (1, 541, 541)),
        ("schedule", (1, 2000, 2000)),
        ("vcpu_run", (1, 16_709, 18_250)),
    ];
    assert_eq!(
        functions_of(&recording),
        functions.map(|(name, sums)| (name.to_owned(), sums)).into()
    );
}

#[test]
fn parts_that_trace_cmd_prints_are_read_as_these_parts() {
    let name = "x86-svm/host-guest.dat";
    let recording = sources::open(&path_of(name)).unwrap();
    let counts = contents(&recording, &|_| ());
    let Some(of_cpu) = report(&[name], &["--cpu", "1"]) else { return };
    let found = contents(&read(of_cpu), &|_| ());
    let events: Vec<(u32, u64)> = found.cpus.iter().map(|cpu| (cpu.cpu, cpu.events)).collect();
    assert_eq!(events, [(1, counts.cpus[1].events)]);
    let exits = report(&[name], &["-F", "kvm_exit"]).unwrap();
    let found = by_name(&read(exits));
    assert_eq!(found["kvm_exit"], counts.events["kvm:kvm_exit"]);
}

#[test]
fn recordings_printed_together_are_read_apart() {
    let names = ["x86-svm/host-guest.dat", "x86-svm/host-guest.guest.dat"];
    for options in [&["-t", "-N"][..], &["--ts-diff", "-t", "-l"]] {
        let Some(printed) = report(&names, options) else { return };
        let found = read_each(&printed);
        assert_eq!(found.len(), 2, "{options:?}");
        for (text, name) in found.iter().zip(names) {
            let recording = sources::open(&path_of(name)).unwrap();
            assert_eq!(by_name(text), by_name(&recording), "{options:?}");
            assert_eq!((text.damage(), text.cpus()), (&[][..], recording.cpus()));
        }
        let guests: Vec<&str> =
            found[0].info().guests.iter().map(|guest| guest.name.as_str()).collect();
        assert_eq!(guests, ["host-guest.guest"]);
        let error = sources::open_bytes(Path::new("t.txt"), printed).unwrap_err().to_string();
        assert!(error.contains("2 recordings (host-guest.dat, host-guest.guest.dat)"), "{error}");
    }
}

fn read_each(text: &[u8]) -> Vec<Recording> {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(text).unwrap();
    sources::open_each(file.path()).unwrap()
}

#[test]
fn what_events_prints_is_read_in_both_forms() {
    for name in RECORDINGS {
        let recording = sources::open(&path_of(name)).unwrap();
        let raw = read(styled(&[&recording], Style::Raw));
        let text = read(printed(&recording));
        for text in [&raw, &text] {
            assert_eq!(by_name(text), by_name(&recording), "{name}");
            assert_eq!((text.damage(), text.cpus()), (&[][..], recording.cpus()), "{name}");
        }
        let events = events_of(recording);
        same_events(&events_of(raw), &events, Times::Rounded(1000), name);
        same_events(&events_of(text), &events, Times::Rounded(1000), name);
    }
}

fn styled(recordings: &[&Recording], style: Style<'_>) -> Vec<u8> {
    let paths: Vec<Recording> =
        recordings.iter().map(|recording| sources::open(recording.path()).unwrap()).collect();
    let names = ["host", "web"];
    let machine =
        |(level, name): (u32, &&str)| Machine { name: (*name).to_owned(), level, threads: None };
    let machines: Vec<Machine> = (0..).zip(&names).map(machine).take(paths.len()).collect();
    let mut text = Vec::new();
    write_events(&paths, &machines, &Filter::default(), style, &mut text, &|_| ()).unwrap();
    text
}

#[test]
fn machines_that_events_prints_together_are_read_apart() {
    let names = ["x86-svm/host-guest.dat", "x86-svm/host-guest.guest.dat"];
    let recordings = names.map(|name| sources::open(&path_of(name)).unwrap());
    for style in [Style::Text, Style::Raw] {
        let found = read_each(&styled(&recordings.each_ref(), style));
        let counts: Vec<_> = found.iter().map(by_name).collect();
        assert_eq!(counts, recordings.each_ref().map(by_name));
        assert_eq!(found[0].info().guests[0].name, "web");
    }
}

/// Fields of `perf script` that include everything a trace needs.
const FIELDS: &[&str] = &[
    "",
    "-F comm,tid,cpu,time,event,trace",
    "-F tid,cpu,time,event,trace",
    "-F comm,pid,tid,cpu,time,period,event,trace",
    "-F comm,tid,cpu,time,event,ip,sym,dso,symoff,trace",
    "-F +misc",
    "-F +flags",
    "-F +period,+pid,+ip,+sym",
    "-L",
    "-I",
    "--header",
    "--show-task-events",
    "--show-mmap-events",
    "--show-lost-events --show-switch-events --show-round-events --show-namespace-events",
];

#[test]
fn every_field_of_perf_script_may_be_printed() {
    let folder = tempfile::tempdir().unwrap();
    // Without symbols of a guest, perf omits events that were recorded while a guest's state was loaded.
    let symbols = folder.path().join("kallsyms");
    std::fs::write(&symbols, "ffffb26ddfe10000 T _stext\n").unwrap();
    let script = |fields: &str| {
        let mut command = Command::new("perf");
        command.args(["script", "-i"]).arg(path_of("arm64/D.perf.data"));
        command.arg("--guestkallsyms").arg(&symbols).args(fields.split_whitespace());
        command.output().ok().map(|output| output.stdout)
    };
    let Some(plain) = script("--ns") else { return testkit::skip!("perf is not installed") };
    let plain = read(plain);
    let (counts, exits) = (by_name(&plain), exits_of(&plain));
    assert!(counts["kvm_exit"] > 100, "{counts:?}");
    for fields in FIELDS {
        for (ns, rounding_ns) in [("", 1000), (" --ns", 0)] {
            let text = read(script(&format!("{fields}{ns}")).unwrap());
            assert_eq!(text.damage(), &[], "{fields}{ns}");
            assert_eq!(by_name(&text), counts, "{fields}{ns}");
            compare(fields, &exits_of(&text), &exits, rounding_ns);
        }
    }
    for (fields, lack) in [
        ("-F comm,tid,time,event,trace", "no CPU"),
        ("-F comm,cpu,time,event,trace", "no thread id"),
        ("-F comm,tid,cpu,event,trace", "no time"),
        ("-F event,trace", "events but no thread, CPU or time"),
    ] {
        let text = script(fields).unwrap();
        let error = sources::open_bytes(Path::new("t.txt"), text).unwrap_err().to_string();
        assert!(error.contains(lack) && error.contains("line 1 is"), "{fields}: {error}");
    }
}
