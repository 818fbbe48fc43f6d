//! Guests recorded by their agents on a real KVM host: over every channel, and through the ends that
//! guests come to.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::tool::{Ran, TestLab, can_run};

/// The channels to the lab's guest, and where its agent waits for each.
const CHANNELS: [(&str, &str); 3] = [
    ("shm:/run/lab/l2/memory", "shm"),
    ("virtio-serial:/run/lab/l2", "virtio-serial"),
    ("vsock:3", "vsock"),
];

/// Steps of the guest's load: two programs that hand bytes to each other, and switch all the time.
const LOAD: &str =
    "dd if=/dev/zero bs=64 count=3000 2>/dev/null | dd of=/dev/null bs=64 2>/dev/null";

/// A lab with this program in level 1 and agents in its guest.
struct Recorded {
    lab: TestLab,
    folder: tempfile::TempDir,
}

impl Recorded {
    fn up(name: &'static str) -> Self {
        let lab = TestLab::new(name);
        lab.run(&["up", "--levels", "2", "--guest-shm", "8", "--guest-cpus", "2"]).done();
        lab.run(&["put", "1", env!("CARGO_BIN_EXE_hyperscope"), "/bin/hyperscope"]).done();
        let agent = agent();
        lab.run(&["put", "2", agent.to_str().unwrap(), "/bin/hyperscope-agent"]).done();
        Self { lab, folder: tempfile::tempdir().unwrap() }
    }

    fn start_agent(&self, channel: &str) {
        let script = format!(
            "(hyperscope-agent {channel} >/tmp/agent.log 2>&1 &); \
             until grep -q waiting /tmp/agent.log; do sleep 0.1; done"
        );
        self.lab.shell(2, &script).done();
    }

    /// Begins to record; both machines are recorded when this returns.
    fn begin(&self, channel: &str) -> Child {
        // A command that waits on a pipe waits without waking up.
        self.lab.shell(1, "rm -rf /tmp/r /tmp/end; mkfifo /tmp/end").done();
        let script = format!(
            "hyperscope record --guest l2={channel} --guest-event sched --guest-event irq \
             -e kvm -e sched -o /tmp/r -- cat /tmp/end"
        );
        let mut recorder = self.lab.command(&["exec", "1", "--", "sh", "-c", &script]);
        let mut recorder = recorder.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let deadline = Instant::now() + Duration::from_secs(60);
        let begun = "pidof cat >/dev/null && [ -e /tmp/r/guest-l2.pages/trace_clock ]";
        while self.lab.shell(1, begun).code != Some(0) {
            assert!(recorder.try_wait().unwrap().is_none(), "{}", told(recorder).1);
            assert!(Instant::now() < deadline, "it does not begin");
        }
        recorder
    }

    fn end(&self, recorder: Child) -> (bool, String) {
        self.lab.shell(1, "timeout 20 sh -c 'echo > /tmp/end'").done();
        told(recorder)
    }

    /// Brings the session out of level 1.
    fn session(&self) -> PathBuf {
        let session = self.folder.path().join("s");
        let _ = std::fs::remove_dir_all(&session);
        std::fs::create_dir(&session).unwrap();
        for file in ["host.dat", "guest-l2.dat", "session.json"] {
            let to = session.join(file);
            self.lab.run(&["get", "1", &format!("/tmp/r/{file}"), to.to_str().unwrap()]).done();
        }
        session
    }
}

fn told(recorder: Child) -> (bool, String) {
    let output = recorder.wait_with_output().unwrap();
    (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
}

/// The agent is another package's: cargo builds it only when asked to.
fn agent() -> PathBuf {
    let built = Command::new(env!("CARGO"))
        .args(["build", "--locked", "--quiet", "--package", "hyperscope-agent"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .status();
    assert!(built.unwrap().success());
    Path::new(env!("CARGO_BIN_EXE_hyperscope")).with_file_name("hyperscope-agent")
}

fn hyperscope(arguments: &[&str]) -> Ran {
    let done: Ran =
        Command::new(env!("CARGO_BIN_EXE_hyperscope")).args(arguments).output().unwrap().into();
    done.done()
}

fn json(arguments: &[&str]) -> Value {
    serde_json::from_str(&hyperscope(arguments).stdout).unwrap()
}

/// Counts by event of a file, and all of them.
fn events(file: &Path) -> (Value, u64) {
    let info = json(&["info", "--format", "json", file.to_str().unwrap()]);
    let file = &info["files"][0];
    assert_eq!(file["losses"]["pages_damaged"], 0, "{file}");
    let counts = file["events"].clone();
    let all = counts.as_object().unwrap().values().map(|count| count.as_u64().unwrap()).sum();
    (counts, all)
}

/// How long the guest is under load; a short time unless all of the lab is to be tried.
fn load_seconds() -> u64 {
    if std::env::var_os("HYPERSCOPE_LAB_ALL").is_some() { 30 } else { 3 }
}

#[test]
fn guests_are_recorded_over_every_channel() {
    if !can_run() {
        return;
    }
    let recorded = Recorded::up("guests");
    for (channel, of_agent) in CHANNELS {
        recorded.start_agent(of_agent);
        let recorder = recorded.begin(channel);
        let seconds = load_seconds();
        let script = format!(
            "end=$(($(cut -d. -f1 /proc/uptime)+{seconds})); \
             while [ $(cut -d. -f1 /proc/uptime) -lt $end ]; do {LOAD}; done; \
             hyperscope-labguest exits cpuid=300 hypercall=200"
        );
        recorded.lab.shell(2, &script).done();
        let (ended_well, said) = recorded.end(recorder);
        assert!(ended_well, "{channel}: {said}");
        let session = recorded.session();
        check_whole(&session, channel, seconds);
        eprintln!("{channel}, {seconds} s of load: {}", said.lines().last().unwrap_or_default());
        recorded.lab.shell(2, "killall hyperscope-agent").done();
    }
}

/// Nothing lost, counts as made, one order of time, and trace-cmd reads the same.
fn check_whole(session: &Path, channel: &str, seconds: u64) {
    let (host, guest) = (session.join("host.dat"), session.join("guest-l2.dat"));
    let text = std::fs::read_to_string(session.join("session.json")).unwrap();
    let told: Value = serde_json::from_str(&text).unwrap();
    let told = &told["recorded"]["guests"][0];
    for cpu in told["cpus"].as_array().unwrap() {
        let lost = ["events_lost", "lost_bytes", "over_quota_bytes", "gaps"];
        assert!(lost.iter().all(|key| cpu[key] == 0), "{channel}: {cpu}");
    }
    let (counts, all) = events(&guest);
    let switches = counts["sched:sched_switch"].as_u64().unwrap();
    assert!(switches > 500 * seconds, "{channel}: {switches} switches");
    eprintln!("{channel}: {all} events, {} a second, none lost", all / seconds);
    let leaves = json(&["exits", "--format", "json", "--by", "cpuid_leaf", host.to_str().unwrap()]);
    let rows = leaves["rows"].as_array().unwrap();
    let made = rows.iter().find(|row| row["cpuid_leaf"] == 0x4000_4859).unwrap();
    assert_eq!(made["count"], 300, "{channel}");
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

#[test]
fn what_a_guest_sent_before_its_end_is_kept() {
    if !can_run() {
        return;
    }
    // How a guest ends, on which machine, and over which channel it is recorded.
    let ends = [
        (2, "echo c > /proc/sysrq-trigger", 0),
        (2, "echo b > /proc/sysrq-trigger", 1),
        (1, "killall -9 qemu-system-x86_64", 2),
    ];
    for (level, end, channel) in ends {
        let recorded = Recorded::up("guests-end");
        let (channel, of_agent) = CHANNELS[channel];
        recorded.start_agent(of_agent);
        let recorder = recorded.begin(channel);
        recorded.lab.shell(2, "for i in $(seq 200); do busybox true; done").done();
        // Full pages are sent every second.
        std::thread::sleep(Duration::from_secs(3));
        // The machine that ends does not say that it has done so.
        let mut ending = recorded.lab.command(&["exec", &level.to_string(), "--", "sh", "-c", end]);
        let mut ending = ending.stderr(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
        let gone = "until ! pidof qemu-system-x86_64 >/dev/null; do sleep 0.1; done";
        recorded.lab.shell(1, gone).done();
        let (ended_well, said) = recorded.end(recorder);
        let _ = ending.kill();
        let _ = ending.wait();
        assert!(!ended_well && said.contains("guest l2: its recording ended early"), "{said}");
        let session = recorded.session();
        let (counts, _) = events(&session.join("guest-l2.dat"));
        // The last page of each CPU was not full.
        let started = counts["sched:sched_process_exec"].as_u64();
        assert!(started >= Some(180), "{end}: {started:?} of 200 programs");
        let (host, _) = events(&session.join("host.dat"));
        assert!(host["kvm:kvm_exit"].as_u64() > Some(1000), "{end}: {host}");
        eprintln!(
            "`{end}` over {channel}: {started:?} of 200 programs kept; {}",
            said.lines().nth(3).unwrap_or_default()
        );
    }
}
