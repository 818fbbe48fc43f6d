//! Perfetto, Chrome and Firefox exports: the same tracks, with the numbers of the other reports.

use std::collections::BTreeMap;
use std::fs;

use serde_json::Value;

use super::{HOST, INPUTS, SMP, counts, export, folder, parts_by_exits, parts_by_tracks, read};
use crate::inputs::write_raw_pages;
use crate::tool::{assert_golden, hyperscope, output_of};

const FORMATS: [&str; 3] = ["perfetto", "chrome", "firefox"];

/// Time by category on tracks whose names begin with `begins`.
fn ns(summary: &Value, begins: &str, category: &str) -> u64 {
    let tracks = summary["tracks"].as_object().unwrap().iter();
    let of_it = tracks.filter(|(track, _)| track.starts_with(begins));
    of_it.map(|(_, what)| what["ns"][category].as_u64().unwrap_or(0)).sum()
}

/// Parts of exits add up to the exits report, and so do their numbers, except exits without duration, in which the
/// recorded clock stood still.
fn adds_up(format: &str, summary: &Value, host: &str) {
    let expected = parts_by_exits(host);
    let mut found = parts_by_tracks(summary);
    assert!(expected.len() > 4);
    let mut missing = 0;
    for (reason, parts) in &expected {
        let of_it = found.entry(reason.clone()).or_default();
        if !parts.polls {
            of_it[1] += std::mem::take(&mut of_it[4]);
        }
        assert_eq!(of_it[1..], parts.sums[1..], "{format} {host} {reason:?}");
        let (counted, paired) = (of_it[0], parts.sums[0]);
        let all_take_time = parts.shortest_ns > 0;
        assert!(counted <= paired && (counted == paired || !all_take_time), "{reason:?}");
        missing += paired - counted;
    }
    assert_eq!(found.len(), expected.len(), "{format} {host}: no other reason");
    assert!(missing < 200, "{format} {host}: {missing}");
}

/// Each vCPU's time in each state equals that of `hyperscope cpu`.
fn is_as_cpu_has_it(summary: &Value, inputs: &[&str]) {
    let run = hyperscope(&[&["cpu", "--format", "json"], inputs].concat());
    let report: Value = serde_json::from_str(&run.out).unwrap();
    let vcpus = report["vcpus"].as_array().unwrap();
    assert!(run.code == 0 && !vcpus.is_empty());
    for vcpu in vcpus {
        let begins = format!("{} vCPUs", vcpu["vm"].as_str().unwrap());
        let ends = format!("/vCPU {}", vcpu["vcpu"]);
        let tracks = summary["tracks"].as_object().unwrap().iter();
        let (_, track) = tracks
            .into_iter()
            .find(|(track, _)| track.starts_with(&begins) && track.ends_with(&ends))
            .unwrap();
        let mut states = vcpu["states"].as_object().unwrap().clone();
        states.retain(|_, ns| ns.as_u64() > Some(0));
        for (state, ns) in &states {
            let found = &track["ns"][state.trim_end_matches("_ns")];
            // If some polling times are unknown, the report counts polling elsewhere.
            let polled = vcpu["states"]["halt_poll_ns"].is_null() && state == "exit_kernel_ns";
            assert!(found == ns || polled, "{inputs:?} {begins} {state}: {found} {ns}");
        }
    }
}

#[test]
fn formats_agree_with_each_other_and_with_other_reports() {
    let folder = folder();
    for inputs in testkit::sampled(INPUTS, 2) {
        let summaries = FORMATS.map(|format| {
            let file = folder.path().join(format);
            export(format, &file, inputs);
            read(format, &file)
        });
        let [perfetto, Some(chrome), Some(firefox)] = summaries else { continue };
        adds_up("chrome", &chrome, inputs[0]);
        is_as_cpu_has_it(&chrome, inputs);
        let recordings = |summary: &Value| summary["recordings"].as_array().unwrap().len();
        assert_eq!((recordings(&chrome), recordings(&firefox)), (inputs.len(), inputs.len()));
        for (track, what) in chrome["tracks"].as_object().unwrap() {
            let same = &firefox["tracks"][track];
            assert_eq!((&what["ns"], &what["slices"]), (&same["ns"], &same["slices"]), "{track}");
        }
        assert_eq!(chrome["instants"], firefox["instants"]);
        let events = counts(inputs[0]);
        for (name, count) in chrome["instants"].as_object().unwrap() {
            assert_eq!(events[&format!("kvm:{name}")], count.as_u64().unwrap(), "{name}");
        }
        // Every request of `path` with at least two steps on tracks has arrows from step to step.
        let args = [&["path", "--format", "json"][..], inputs].concat();
        let paths: Value = serde_json::from_str(&output_of(&args)).unwrap();
        let (flows, found) = (&chrome["flows"], paths["requests"].as_u64().unwrap());
        let requests = flows["request"].as_u64().unwrap();
        assert!(requests > found / 2 && requests <= found, "{requests} of {found}");
        assert!(flows["wakes"].as_u64() > Some(100), "{flows}");
        assert!(ns(&chrome, "host CPUs", "running") > 0);
        let by_cpu = ns(&chrome, "host CPUs", "running");
        assert_eq!(by_cpu, ns(&chrome, "host threads", "running"), "by CPU and by thread");
        // Every exit with a duration is in a rate, which counts 10 ms.
        let rates = chrome["rates"].as_object().unwrap().values();
        let rated: u64 = rates.map(|rate| rate.as_u64().unwrap() / 100).sum();
        let counted: u64 = parts_by_tracks(&chrome).values().map(|sums| sums[0]).sum();
        assert!(counted <= rated && rated <= events["kvm:kvm_exit"], "{counted} {rated}");
        if let Some(perfetto) = perfetto {
            agrees(&perfetto, &chrome, &events);
        }
    }
}

fn agrees(perfetto: &Value, chrome: &Value, events: &BTreeMap<String, u64>) {
    let tracks = perfetto["tracks"].as_object().unwrap();
    assert!(tracks.keys().any(|track| track.contains(" vCPUs")));
    for (track, what) in tracks {
        assert_eq!(what, &chrome["tracks"][track], "{track}");
    }
    for same in ["instants", "rates"] {
        assert_eq!(perfetto[same], chrome[same]);
    }
    // Both have requests; Perfetto derives wake-ups of the host's threads from its scheduling data.
    for kind in ["wakes", "injects"] {
        assert!(perfetto["flows"][kind].as_u64() <= chrome["flows"][kind].as_u64(), "{kind}");
    }
    assert!(perfetto["flows"]["request"].as_u64() > Some(0), "{}", perfetto["flows"]);
    assert_eq!(ns(perfetto, "host", "running"), 0);
    let switches = perfetto["switches"].as_object().unwrap().values();
    let switches: u64 = switches.map(|count| count.as_u64().unwrap()).sum();
    assert_eq!(switches, events["sched:sched_switch"]);
    assert_eq!(perfetto["wakings"].as_u64(), Some(events["sched:sched_waking"]));
}

/// Flows of this name in a Chrome trace: track and time in microseconds of each end.
fn chrome_flows(trace: &Value, name: &str) -> Vec<Vec<(String, f64)>> {
    let events = trace["traceEvents"].as_array().unwrap();
    let place = |event: &Value| (event["pid"].as_u64(), event["tid"].as_u64());
    let named = events.iter().filter(|event| event["name"] == "thread_name");
    let named = named.map(|event| (place(event), event["args"]["name"].as_str().unwrap()));
    let tracks: BTreeMap<_, _> = named.collect();
    let mut flows: BTreeMap<u64, Vec<(String, f64)>> = BTreeMap::new();
    for event in events.iter().filter(|event| event["name"] == name) {
        let end = (tracks[&place(event)].to_owned(), event["ts"].as_f64().unwrap());
        flows.entry(event["id"].as_u64().unwrap()).or_default().push(end);
    }
    flows.into_values().collect()
}

/// Whether a track belongs to the thread of a step: `vCPU 0`, or a name that ends with its id, whatever its name was
/// then.
fn is_on(track: &str, (thread, tid): (&str, u64)) -> bool {
    thread.ends_with(track) || track.ends_with(&format!(" {tid}"))
}

/// The thread of a step; a vCPU has two, in its guest and on the host.
fn thread_of(step: &Value) -> (&str, u64) {
    let (name, tid) = (step["thread"].as_str().unwrap(), step["tid"].as_u64().unwrap());
    (if name.contains("vCPU ") { name } else { "" }, tid)
}

#[test]
fn arrows_lead_along_what_a_task_waited_for() {
    let folder = folder();
    let files = ["fixtures/arm64/A.dat", "fixtures/arm64/A.guest.dat"];
    let args = [&["critical", "--task", "vm-148/init", "--format", "json"][..], &files].concat();
    let critical: Value = serde_json::from_str(&output_of(&args)).unwrap();
    let waits = critical["longest"].as_array().unwrap();
    let file = folder.path().join("critical");
    let to =
        ["export", "--to", "chrome", "--critical", "vm-148/init", "-o", file.to_str().unwrap()];
    assert_eq!(hyperscope(&[&to[..], &files].concat()).code, 0);
    let trace = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    let flows = chrome_flows(&trace, "critical");
    assert_eq!(flows.len(), waits.len());
    for (flow, wait) in flows.iter().zip(waits) {
        // Interrupts have no track, and consecutive steps of one thread are one end.
        let steps = wait["steps"].as_array().unwrap().iter();
        let mut steps: Vec<((&str, u64), f64)> = steps
            .filter(|step| step["thread"] != "interrupt")
            .map(|step| (thread_of(step), step["from_ns"].as_f64().unwrap() / 1e3))
            .collect();
        steps.dedup_by_key(|(thread, _)| *thread);
        // Ends before the begin of a track are missing.
        let first = steps.len() - flow.len();
        assert!(flow.len() > 5 && first <= 1, "{flow:?} {steps:?}");
        for ((track, us), (thread, from_us)) in flow.iter().zip(&steps[first..]) {
            assert!(
                is_on(track, *thread) && (us - from_us).abs() < 0.002,
                "{track} {us} {thread:?} {from_us}"
            );
        }
    }
}

#[test]
fn a_guests_tasks_had_the_time_of_its_vcpus() {
    let folder = folder();
    for inputs in &INPUTS[..3] {
        let file = folder.path().join("out");
        export("chrome", &file, inputs);
        let Some(summary) = read("chrome", &file) else { return };
        for state in ["guest_kernel", "guest_irq", "guest"] {
            let tracks = summary["tracks"].as_object().unwrap().iter();
            let tasks: u64 = tracks
                .filter(|(track, _)| track.contains(" tasks/"))
                .map(|(_, what)| what["ns"][state].as_u64().unwrap_or(0))
                .sum();
            let vcpus = ns(&summary, "vm-", state);
            // Interrupts and unknown times of the idle task belong to no task.
            assert!(tasks <= vcpus, "{inputs:?} {state}: {tasks} of {vcpus}");
        }
        let tasks = summary["tracks"].as_object().unwrap().keys();
        assert!(tasks.filter(|track| track.contains(" tasks/")).count() > 20);
    }
}

#[test]
fn a_window_cuts_spans_and_leaves_out_the_rest() {
    let folder = folder();
    for format in FORMATS {
        let file = folder.path().join(format);
        let window = ["--from", "65", "--until", "65.5", "-e", "kvm_exit"];
        export(format, &file, &[&window[..], &[HOST]].concat());
        let Some(summary) = read(format, &file) else { continue };
        let total_ns: u64 = summary["tracks"]
            .as_object()
            .unwrap()
            .iter()
            .filter(|(track, _)| track.contains("vCPU 0"))
            .flat_map(|(_, what)| what["ns"].as_object().unwrap().values())
            .map(|ns| ns.as_u64().unwrap())
            .sum();
        assert_eq!(total_ns, 500_000_000, "{format}: the vCPU did something all the time");
        let lines = super::lines(&["-e", "kvm_exit", "--from", "65", "--to", "65.5", HOST]);
        let exits = lines.lines().count() as u64 - 1;
        assert!(exits > 100);
        assert_eq!(summary["instants"]["kvm_exit"].as_u64(), Some(exits), "{format}");
    }
}

/// A recording with an event loss before one of its pages.
#[test]
fn losses_are_shown_where_they_were() {
    let folder = folder();
    write_raw_pages(SMP, folder.path(), |cpu| format!("cpu{cpu}"));
    let pages = folder.path().join("cpu1");
    let mut bytes = fs::read(&pages).unwrap();
    // The flag RB_MISSED_EVENTS of the third page's commit.
    bytes[2 * 4096 + 8 + 3] |= 0x80;
    fs::write(&pages, bytes).unwrap();
    let input = folder.path().to_str().unwrap();
    for format in FORMATS {
        let file = folder.path().join(format);
        let run = hyperscope(&["export", "--to", format, "-o", file.to_str().unwrap(), input]);
        assert_eq!(run.code, 0);
        assert!(run.err.contains("events were lost at 1 place"), "{}", run.err);
        let Some(summary) = read(format, &file) else { continue };
        assert_eq!(summary["instants"]["events lost"].as_u64(), Some(1), "{format}");
        let losses = &summary["recordings"][0]["uncounted_losses"];
        assert_eq!(losses.to_string().trim_matches('"'), "1", "{format}");
    }
}

#[test]
fn beginnings_are_as_expected() {
    let folder = folder();
    let file = folder.path().join("out");
    export("chrome", &file, &[SMP]);
    let text = fs::read_to_string(&file).unwrap();
    let mut head: Vec<&str> = text.lines().take(6).collect();
    for kind in ["\"cat\":\"exit_", "\"cat\":\"guest\"", "\"ph\":\"i\"", "\"ph\":\"C\""] {
        head.extend(text.lines().filter(|line| line.contains(kind)).take(3));
    }
    head.extend(text.lines().last());
    assert_golden("export-chrome.txt", &(head.join("\n") + "\n"));
}
