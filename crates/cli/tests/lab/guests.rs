//! Guests recorded by their agents on a real KVM host, over every channel.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::hangs::Machines;
use crate::recorded::{CHANNELS, LOAD, Recorded, events, hyperscope, json};
use crate::tool::can_run_all;

/// Duration of the guest's load.
const LOAD_SECONDS: u64 = 30;
/// Prints the kernel's number of context switches so far.
const SWITCHES: &str = "grep ctxt /proc/stat";

#[test]
fn guests_are_recorded_over_every_channel() {
    if !can_run_all() {
        return;
    }
    let mut machines = Machines::new(|| Recorded::networked("guests"));
    for (channel, of_agent) in CHANNELS {
        machines.work(2, |recorded| record_over(recorded, channel, of_agent));
    }
    machines.work(2, |recorded| {
        let (channel, of_agent) = recorded.secret_channel();
        record_over(recorded, &channel, &of_agent);
    });
}

/// Records the guest under load, and checks the result.
fn record_over(recorded: &Recorded, channel: &str, of_agent: &str) {
    recorded.start_agent(of_agent);
    let recorder = recorded.begin(channel);
    let seconds = LOAD_SECONDS;
    let script = format!(
        "{SWITCHES}; end=$(($(cut -d. -f1 /proc/uptime)+{seconds})); \
         while [ $(cut -d. -f1 /proc/uptime) -lt $end ]; do {LOAD}; done; {SWITCHES}; \
         hyperscope-labguest exits cpuid=300 hypercall=200"
    );
    let made = switches(&recorded.lab.shell(2, &script).done().stdout);
    let (ended_well, log) = recorded.end(recorder);
    assert!(ended_well, "{channel}: {log}");
    check_whole(&recorded.session(), channel, seconds, made);
    let of_guest = log.lines().find(|line| line.contains(" guest l2: ")).unwrap_or_default();
    eprintln!("{channel}, {seconds} s of load: {of_guest}");
    recorded.lab.shell(2, "killall hyperscope-agent").done();
}

/// The kernel's context switches between the two outputs.
fn switches(output: &str) -> u64 {
    let counts = output.lines().filter_map(|line| line.strip_prefix("ctxt "));
    let counts: Vec<u64> = counts.map(|count| count.trim().parse().unwrap()).collect();
    assert_eq!(counts.len(), 2, "{output}");
    counts[1] - counts[0]
}

/// Nothing is lost, counts match, one order of time, and trace-cmd reads the same. `made` is the
/// number of switches that the guest's kernel counted meanwhile.
fn check_whole(session: &Path, channel: &str, seconds: u64, made: u64) {
    let (host, guest) = (session.join("host.dat"), session.join("guest-l2.dat"));
    let text = std::fs::read_to_string(session.join("session.json")).unwrap();
    let stored: Value = serde_json::from_str(&text).unwrap();
    check_described("session", &stored);
    let stored = &stored["recorded"]["guests"][0];
    for cpu in stored["cpus"].as_array().unwrap() {
        let lost = ["events_lost", "lost_bytes", "over_quota_bytes", "gaps"];
        assert!(lost.iter().all(|key| cpu[key] == 0), "{channel}: {cpu}");
    }
    let (counts, all) = events(&guest);
    let switches = counts["sched:sched_switch"].as_u64().unwrap();
    assert!(switches >= made && made > 1000, "{channel}: {switches} switches of {made}");
    eprintln!(
        "{channel}: {all} events, {} a second, none lost; {switches} switches, {made} of them made",
        all / seconds
    );
    let leaves = json(&["exits", "--format", "json", "--by", "cpuid_leaf", host.to_str().unwrap()]);
    let rows = leaves["rows"].as_array().unwrap();
    check_described("exits", &leaves);
    check_exits_of_channel(channel, stored, &leaves["recorder_cost"]["agents"][0]);
    let made = rows.iter().find(|row| row["cpuid_leaf"] == 0x4000_4859).unwrap();
    assert_eq!(made["count"], 300, "{channel}");
    let agent = &leaves["recorder_cost"]["agents"][0];
    assert!(agent["guest"] == "l2" && agent["cpu_ns"].as_u64() > Some(0), "{channel}: {agent}");
    for file in [&host, &guest] {
        let Ok(report) = Command::new("trace-cmd").arg("report").arg(file).output() else {
            eprintln!("trace-cmd is missing: not compared");
            break;
        };
        let lines = String::from_utf8_lossy(&report.stdout).lines().count() as u64;
        // The first line is the number of CPUs.
        assert_eq!(lines - 1, events(file).1, "{channel}: {}", file.display());
    }
    let merged = hyperscope(&["events", "--format", "jsonl", session.to_str().unwrap()]).stdout;
    let lines = merged.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let (mut last_ns, mut machines) = (0, std::collections::BTreeSet::new());
    for line in lines {
        let ts_ns = line["ts_ns"].as_u64().unwrap();
        assert!(ts_ns >= last_ns, "{channel}: {line}");
        last_ns = ts_ns;
        machines.insert(line["machine"].to_string());
    }
    assert_eq!(machines.len(), 2, "{channel}: {machines:?}");
}

fn check_described(schema: &str, document: &Value) {
    let formats = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/formats");
    let text = std::fs::read_to_string(formats.join(format!("{schema}.schema.json"))).unwrap();
    let valid = jsonschema::validate(&serde_json::from_str(&text).unwrap(), document);
    assert!(valid.is_ok(), "{schema}: {valid:?}");
}

/// Exits caused by the channel, in the session and in reports.
fn check_exits_of_channel(channel: &str, stored: &Value, shown: &Value) {
    let exits = stored["channel_exits"].as_u64();
    match channel.split(':').next() {
        Some("shm") => assert_eq!(exits, Some(0), "{stored}"),
        Some("virtio-serial" | "vsock") => assert!(exits > Some(0), "{stored}"),
        // A network also carries other traffic.
        _ => assert!(stored["channel_exits"].is_null(), "{stored}"),
    }
    assert_eq!(shown["channel_exits"], stored["channel_exits"]);
    let shown_exits = exits.map_or("unknown".into(), |exits| exits.to_string());
    eprintln!("{channel}: {shown_exits} exits at its channel's device");
}

/// Level 1 passes memory to level 2, which passes it on to level 3 as the file of its device.
#[test]
fn a_guest_in_a_guest_is_recorded_through_memory_that_is_handed_on() {
    if !can_run_all() {
        return;
    }
    let mut machines = Machines::new(|| Recorded::with_levels("guests-nested", 3));
    machines.work(3, record_level_three);
}

fn record_level_three(recorded: &Recorded) {
    recorded.start_agent_at(3, "shm");
    // It has the name that the harness expects, but is level 3.
    let recorder = recorded.begin("shm:/run/lab/l2/memory");
    recorded.lab.shell(3, "for i in $(seq 50); do busybox true; done; sleep 1").done();
    let (ended_well, log) = recorded.end(recorder);
    assert!(ended_well && log.contains("0 events lost"), "{log}");
    let file = recorded.session().join("guest-l2.dat");
    let (counts, all) = events(&file);
    assert!(counts["sched:sched_process_exec"].as_u64() >= Some(50), "{counts}");
    let info = hyperscope(&["info", file.to_str().unwrap()]).stdout;
    assert!(info.contains("Linux l3 ") && info.contains("lost        nothing"), "{info}");
    eprintln!("level 3 through level 2's device: {all} events, none lost");
}
