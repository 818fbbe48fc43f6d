//! Guests recorded by their agents: this machine serves as its own guest.

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::agent::{Agent, signal};
use crate::samples::{BUSY, counted, perf_counts};
use crate::tool::{
    OWN, Ran, TRACEFS, command, count_started, file_info, kept_bytes, kernels_own_buffer_is_in_use,
    left_in_tracefs, lock_tracing, own_program, run, session_json, start_programs, wait_until,
};

pub(crate) struct Setup {
    folder: tempfile::TempDir,
}

impl Setup {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().to_owned()
    }

    /// A channel of this machine to itself.
    fn channel(&self) -> String {
        format!("unix:{}", self.path("agent"))
    }

    /// The key part of a side's address; creates both sides' keys at first use.
    fn keys(&self, side: &str, other: &str) -> String {
        for name in [side, other] {
            if !self.folder.path().join(format!("{name}.pem")).exists() {
                let made = run(&["keys", "-o", self.folder.path().to_str().unwrap(), name]);
                assert_eq!(made.code, Some(0), "{}", made.stderr);
            }
        }
        let (identity, peers) =
            (self.path(&format!("{side}.pem")), self.path(&format!("{other}.crt")));
        format!(",identity={identity},peers={peers}")
    }

    /// Memory that a guest would share with its host.
    fn memory(&self) -> String {
        let path = self.path("memory");
        fs::File::create(&path).unwrap().set_len(4 << 20).unwrap();
        path
    }

    pub(crate) fn session(&self) -> String {
        self.path("s")
    }

    /// Arguments that record program starts, on both sides.
    fn arguments(&self) -> Vec<String> {
        let guest = format!("g={}", self.channel());
        let session = self.session();
        let words = ["record", "-e", "sched_process_exec", "--guest", &guest, "--guest-event"];
        let more = ["sched_process_exec", "-o", &session];
        words.iter().chain(&more).map(|word| (*word).to_owned()).collect()
    }

    /// Begins to record; both sides are active when this returns.
    fn begin(&self, more: &[&str]) -> Child {
        let arguments = self.arguments();
        let arguments: Vec<&str> =
            arguments.iter().map(String::as_str).chain(more.iter().copied()).collect();
        let child = command(&arguments).stderr(Stdio::piped()).spawn().unwrap();
        // The files for reading pages are written once the guest reports that it records.
        let clock_file = self.folder.path().join("s/guest-g.pages/trace_clock");
        wait_until("it did not begin", || clock_file.exists());
        // A signal before the recorder knows that as well would stop the start.
        thread::sleep(Duration::from_millis(200));
        child
    }

    /// Makes system calls until this many bytes of the guest's events are in the session. The number of calls
    /// depends on the machine: a small buffer loses events that are not read in time.
    fn make_calls_until_kept(&self, bytes: u64) {
        let pages = self.folder.path().join("s/guest-g.pages");
        wait_until("too few pages came", || {
            make_calls(10_000);
            kept_bytes(&pages) >= bytes
        });
    }

    /// Starts another recording of the same guest.
    fn record_again(&self) -> Ran {
        let (guest, to) = (format!("g={}", self.channel()), self.path("again"));
        let event = "sched_switch";
        run(&[
            "record",
            "-e",
            event,
            "--guest",
            &guest,
            "--guest-event",
            event,
            "-o",
            &to,
            "--for",
            "100ms",
        ])
    }

    fn guest(&self) -> Value {
        let text = fs::read_to_string(self.folder.path().join("s/session.json")).unwrap();
        let session: Value = serde_json::from_str(&text).unwrap();
        session["recorded"]["guests"][0].clone()
    }

    /// Number of program starts in a file of the session.
    pub(crate) fn started(&self, file: &str) -> usize {
        let path = self.folder.path().join("s").join(file);
        let events = run(&["events", "--format", "jsonl", path.to_str().unwrap()]);
        count_started(&events.stdout, OWN)
    }
}

fn outcome(child: Child) -> (Option<i32>, String) {
    let output = child.wait_with_output().unwrap();
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

fn ended(child: Child) -> (Option<i32>, String) {
    signal(child.id(), "INT");
    outcome(child)
}

#[test]
fn host_and_guest_are_recorded_together_over_each_channel() {
    let Some(_lock) = lock_tracing() else { return };
    let (free, secret) = (free_address(), free_address());
    let setup = Setup::new();
    let channels = [
        (setup.channel(), setup.channel()),
        (format!("tcp-plain:{free}"), format!("tcp-plain:{free}")),
        (
            format!("tls:{secret}{}", setup.keys("guest", "host")),
            format!("tls:{secret}{}", setup.keys("host", "guest")),
        ),
        (format!("shm:{}", setup.memory()), format!("shm:{}", setup.memory())),
    ];
    for (of_agent, of_host) in channels {
        let setup = Setup::new();
        let _agent = Agent::start(&of_agent);
        let guest = format!("g={of_host}");
        let session = setup.session();
        let ran = run(&[
            "record",
            "-e",
            "sched_process_exec",
            "--guest",
            &guest,
            "--guest-event",
            "sched_process_exec",
            "-o",
            &session,
            "--",
            "sh",
            "-c",
            &format!("for i in 1 2 3 4 5 6 7 8 9 10; do {}; done", own_program().display()),
        ]);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        assert!(
            ran.stderr.contains("guest g:") && ran.stderr.contains("0 events lost"),
            "{}",
            ran.stderr
        );
        assert_eq!((setup.started("host.dat"), setup.started("guest-g.dat")), (10, 10));
        let guest = setup.guest();
        assert_eq!(guest["channel"], of_host);
        assert!(guest["agent_cpu_ns"].as_u64() > Some(0), "{guest}");
        // None of these channels has a device of its own in a guest.
        let exits = guest.as_object().unwrap().get("channel_exits");
        assert_eq!(exits, Some(&Value::Null), "{guest}");
        assert!(!Path::new(&session).join("guest-g.pages").exists());
        session_json(Path::new(&session));
        // trace-cmd counts the same, if it is installed.
        if let Some(count) = counted_by_trace_cmd(&Path::new(&session).join("guest-g.dat")) {
            let info = file_info(&Path::new(&session).join("guest-g.dat"));
            assert_eq!(info["events"]["sched:sched_process_exec"].as_u64(), Some(count));
        }
    }
    assert_eq!(left_in_tracefs(), Vec::<String>::new());
}

#[test]
fn a_guest_samples_itself_over_each_channel() {
    let Some(_lock) = lock_tracing() else { return };
    let setup = Setup::new();
    let channels = [
        setup.channel(),
        format!("tcp-plain:{}", free_address()),
        format!("shm:{}", setup.memory()),
    ];
    for channel in channels {
        let setup = Setup::new();
        let _agent = Agent::start(&channel);
        let (guest, session) = (format!("g={channel}"), setup.session());
        let words = ["record", "-e", "sched_process_exec", "--guest", &guest, "-o", &session];
        let more = ["--guest-event", "sched_switch", "--guest-sample", "397"];
        let words: Vec<&str> =
            words.into_iter().chain(more).chain(["--", "sh", "-c", BUSY]).collect();
        let ran = run(&words);
        if ran.stderr.contains("its samples: ") {
            return testkit::skip!("{}", ran.stderr);
        }
        assert_eq!(ran.code, Some(0), "{channel}: {}", ran.stderr);
        let sampler = &setup.guest()["sampler"];
        let samples = sampler["samples"].as_u64().unwrap();
        assert!(samples > 0 && sampler["hz"] == 397, "{sampler}");
        assert!(ran.stderr.contains(" of c"), "{}", ran.stderr);
        let file = Path::new(&session).join("guest-g.data");
        let event = sampler["event"].as_str().unwrap();
        assert_eq!(counted(&file, event), samples, "{channel}");
        if let Some(printed) = perf_counts(&file) {
            assert_eq!(printed, samples, "{channel}");
        }
        session_json(Path::new(&session));
        // This machine is the guest: its agent sends its kernel's code if the kernel shows it to the recorder as
        // well.
        let code = Path::new(&session).join("guest-g.kcore");
        let len = fs::metadata(&code).ok().map(|code| code.len());
        assert_eq!(sampler["code"]["bytes"].as_u64(), len, "{channel}: {sampler}");
        assert_eq!(len.is_some(), fs::File::open("/proc/kcore").is_ok(), "{channel}");
        // It is read with the guest's recording.
        let profile = run(&["profile", &session]);
        assert!(profile.code == Some(0), "{profile:?}");
    }
    assert_eq!(left_in_tracefs(), Vec::<String>::new());
}

fn free_address() -> String {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string()
}

fn counted_by_trace_cmd(file: &Path) -> Option<u64> {
    let output = std::process::Command::new("trace-cmd").arg("report").arg(file).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    Some(text.lines().filter(|line| line.contains("sched_process_exec")).count() as u64)
}

/// Pages with more than ten thousand system calls: the events at begin and end of a call take a hundred bytes.
const KEPT: u64 = 2 << 20;

#[test]
fn an_agent_that_is_killed_leaves_what_it_sent() {
    let Some(_lock) = lock_tracing() else { return };
    let setup = Setup::new();
    let agent = Agent::start(&setup.channel());
    let more = ["--guest-event", "raw_syscalls", "--guest-buffer", "64"];
    let recorder = setup.begin(&more);
    setup.make_calls_until_kept(KEPT);
    agent.signal("KILL");
    start_programs(5);
    let (code, messages) = ended(recorder);
    assert_eq!(code, Some(1));
    assert!(
        messages.contains("guest g: its recording ended early: it closed the channel"),
        "{messages}"
    );
    let guest = Path::new(&setup.session()).join("guest-g.dat");
    let calls = file_info(&guest)["events"]["raw_syscalls:sys_enter"].as_u64();
    assert!(calls > Some(10_000), "{calls:?}");
    assert_eq!(setup.started("host.dat"), 5);
    // The next agent removes its leftovers in the kernel.
    drop(agent);
    let _agent = Agent::start(&setup.channel());
    let ran = setup.record_again();
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(left_in_tracefs(), Vec::<String>::new());
}

/// Makes hundreds of thousands of system calls, which fill a small buffer many times.
fn make_calls(count: u32) {
    let count = format!("count={count}");
    let dd = std::process::Command::new("dd")
        .args(["if=/dev/zero", "of=/dev/null", "bs=1", &count])
        .stderr(Stdio::null())
        .status();
    assert!(dd.unwrap().success());
}

#[test]
fn a_recorder_that_is_killed_leaves_a_readable_guest_and_an_agent_that_goes_on() {
    let Some(_lock) = lock_tracing() else { return };
    let setup = Setup::new();
    let agent = Agent::start(&setup.channel());
    let mut recorder = setup.begin(&["--guest-event", "raw_syscalls", "--guest-buffer", "64"]);
    setup.make_calls_until_kept(KEPT);
    recorder.kill().unwrap();
    recorder.wait().unwrap();
    wait_until("instances stay", || left_in_tracefs().is_empty());
    let folder = Path::new(&setup.session()).join("guest-g.pages");
    let calls = file_info(&folder)["events"]["raw_syscalls:sys_enter"].as_u64();
    assert!(calls > Some(10_000), "{calls:?}");
    let ran = setup.record_again();
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    drop(agent);
}

/// If a program in the guest has a file of the agent's instance open, the kernel doesn't remove the instance.
#[test]
fn an_instance_that_somebody_uses_stops_no_recording_and_goes_when_it_is_free() {
    let Some(_lock) = lock_tracing() else { return };
    let setup = Setup::new();
    let agent = Agent::start(&setup.channel());
    let recorder = setup.begin(&[]);
    let instance =
        PathBuf::from(format!("/sys/kernel/tracing/instances/hyperscope-{}", agent.pid()));
    let in_use = fs::File::options().write(true).open(instance.join("trace_marker")).unwrap();
    let (code, stderr) = ended(recorder);
    assert_eq!(code, Some(0), "{stderr}");
    assert!(instance.exists());
    let ran = setup.record_again();
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    drop(in_use);
    wait_until("the instance stays", || left_in_tracefs().is_empty());
}

#[test]
fn a_host_that_is_slow_loses_events_which_are_counted_and_placed() {
    let Some(_lock) = lock_tracing() else { return };
    let setup = Setup::new();
    let _agent = Agent::start(&setup.channel());
    let recorder = setup.begin(&["--guest-event", "raw_syscalls", "--guest-buffer", "64"]);
    make_calls(20_000);
    signal(recorder.id(), "STOP");
    // That must not block the guest.
    let before = Instant::now();
    make_calls(400_000);
    assert!(before.elapsed() < Duration::from_secs(30));
    signal(recorder.id(), "CONT");
    std::thread::sleep(Duration::from_millis(300));
    make_calls(1000);
    let (code, messages) = ended(recorder);
    assert_eq!(code, Some(0), "{messages}");
    let lost: u64 = setup.guest()["cpus"]
        .as_array()
        .unwrap()
        .iter()
        .map(|cpu| cpu["events_lost"].as_u64().unwrap())
        .sum();
    assert!(lost > 100_000, "{lost}");
    let info = file_info(&Path::new(&setup.session()).join("guest-g.dat"));
    // Losses that the kernel counted are in the pages, where they happened.
    let placed = info["losses"]["events_lost"].as_u64().unwrap();
    assert!(placed > 0 && placed <= lost, "{placed} of {lost}");
    let calls = info["events"]["raw_syscalls:sys_enter"].as_u64().unwrap();
    assert!(calls + lost > 420_000, "{calls} + {lost}");
}

#[test]
fn a_guest_gets_no_more_room_than_its_quota() {
    let Some(_lock) = lock_tracing() else { return };
    let setup = Setup::new();
    let _agent = Agent::start(&setup.channel());
    let recorder = setup.begin(&[
        "--guest-event",
        "raw_syscalls",
        "--guest-quota",
        "512K",
        "--guest-buffer",
        "256",
    ]);
    make_calls(100_000);
    let (code, messages) = ended(recorder);
    // The kernel's symbols alone exceed that, if there are any.
    assert!(matches!(code, Some(0 | 1)), "{messages}");
    assert!(messages.contains("pages missing"), "{messages}");
    let guest = setup.guest();
    let sum = |key: &str| -> u64 {
        guest["cpus"].as_array().unwrap().iter().map(|cpu| cpu[key].as_u64().unwrap()).sum()
    };
    assert!(sum("bytes") <= 512 << 10 && sum("over_quota_bytes") > 1 << 20, "{guest}");
    assert!(file_info(&Path::new(&setup.session()).join("guest-g.dat"))["events"].is_object());
}

#[test]
fn what_cannot_be_is_refused_in_words() {
    let Some(_lock) = lock_tracing() else { return };
    let setup = Setup::new();
    let nobody = run(&["record", "--guest", &setup.channel(), "-o", &setup.session()]);
    assert_eq!(nobody.code, Some(1));
    assert!(nobody.stderr.contains("cannot connect to"), "{}", nobody.stderr);
    let _agent = Agent::start(&setup.channel());
    let guest = format!("g={}", setup.channel());
    let wrong =
        run(&["record", "--guest", &guest, "--guest-event", "sched_swich", "-o", &setup.session()]);
    assert_eq!(wrong.code, Some(1));
    let text = "cannot record the guest g: unknown event sched_swich; did you mean";
    assert!(wrong.stderr.contains(text), "{}", wrong.stderr);
    let recorder = setup.begin(&[]);
    let second = run(&["record", "--guest", &guest, "-o", &setup.path("t"), "--for", "1s"]);
    assert_eq!(second.code, Some(1));
    assert!(second.stderr.contains("another host records this machine"), "{}", second.stderr);
    assert_eq!(ended(recorder).0, Some(0));
    let twice = run(&["record", "--guest", &guest, "--guest", &guest, "-o", &setup.path("u")]);
    assert!(twice.stderr.contains("two guests have the name g"), "{}", twice.stderr);
    let pigeon = run(&["record", "--guest", "pigeon:1", "-o", &setup.path("u")]);
    assert!(pigeon.stderr.contains("vsock:CID[:PORT]"), "{}", pigeon.stderr);
    assert_eq!(left_in_tracefs(), Vec::<String>::new());
}

#[test]
fn an_agent_that_is_asked_to_end_sends_what_it_has() {
    let Some(_lock) = lock_tracing() else { return };
    let setup = Setup::new();
    let mut agent = Agent::start(&setup.channel());
    let recorder = setup.begin(&[]);
    start_programs(7);
    agent.signal("TERM");
    assert!(agent.0.wait().unwrap().success());
    let (code, messages) = ended(recorder);
    assert!(code == Some(1) && messages.contains("a signal stopped its agent"), "{messages}");
    assert_eq!(setup.started("guest-g.dat"), 7);
    assert_eq!(left_in_tracefs(), Vec::<String>::new());
}

#[test]
fn guests_that_connect_get_sessions_of_their_own() {
    let Some(_lock) = lock_tracing() else { return };
    let setup = Setup::new();
    let free = free_address();
    let (at, to) = (format!("tcp-plain:{free}"), setup.path("guests"));
    let log_file = fs::File::create(setup.path("said")).unwrap();
    let arguments = ["listen", &at, "-e", "sched_process_exec", "--guests", "2", "-o", &to];
    let listener = command(&arguments).stderr(log_file).spawn().unwrap();
    let log = || fs::read_to_string(setup.path("said")).unwrap();
    let agents: Vec<Agent> = (0..3).map(|_| Agent::start(&format!("connect:{at}"))).collect();
    let recorded = || {
        let entries = fs::read_dir(&to).into_iter().flatten().map(|entry| entry.unwrap().path());
        let is_recorded = |path: &std::path::PathBuf| {
            let mut inside = fs::read_dir(path).into_iter().flatten();
            inside.any(|entry| entry.unwrap().path().join("trace_clock").exists())
        };
        entries.filter(is_recorded).count()
    };
    wait_until("guests are not recorded", || recorded() == 2);
    wait_until("the third is not refused", || log().contains("2 guests are recorded already"));
    start_programs(4);
    assert_eq!(ended(listener).0, Some(0), "{}", log());
    for entry in fs::read_dir(&to).unwrap() {
        let folder = entry.unwrap().path();
        let events = run(&["events", "--format", "jsonl", folder.to_str().unwrap()]);
        let started = count_started(&events.stdout, OWN);
        assert_eq!(started, 4, "{}: {}", folder.display(), events.stderr);
    }
    drop(agents);
}

#[test]
fn strangers_are_not_listened_to() {
    let Some(_lock) = lock_tracing() else { return };
    let setup = Setup::new();
    let at = free_address();
    let _agent = Agent::start(&format!("tls:{at}{}", setup.keys("guest", "host")));
    let record = |channel: &str| {
        let to = setup.path("never");
        run(&[
            "record",
            "-e",
            "sched_switch",
            "--guest",
            &format!("g={channel}"),
            "-o",
            &to,
            "--for",
            "100ms",
        ])
    };
    let plain = record(&format!("tcp-plain:{at}"));
    assert_eq!(plain.code, Some(1), "{}", plain.stderr);
    let stranger = record(&format!("tls:{at}{}", setup.keys("stranger", "guest")));
    assert_eq!(stranger.code, Some(1), "{}", stranger.stderr);
    // A host that expects another agent.
    let wrong = record(&format!("tls:{at}{}", setup.keys("host", "stranger")));
    assert!(wrong.code == Some(1) && wrong.stderr.contains("certificate"), "{}", wrong.stderr);
    let unsaid = record(&format!("tcp:{at}"));
    assert!(unsaid.stderr.contains("tcp is not encrypted"), "{}", unsaid.stderr);
    let known = record(&format!("tls:{at}{}", setup.keys("host", "guest")));
    assert_eq!(known.code, Some(0), "{}", known.stderr);
}

#[test]
fn filters_and_probes_of_guests_are_those_that_were_asked_for() {
    let Some(_lock) = lock_tracing() else { return };
    let setup = Setup::new();
    let _agent = Agent::start(&setup.channel());
    let filter = "sched_process_exec filename ~ \"*/env\"";
    let recorder = setup.begin(&["--guest-filter", filter]);
    start_programs(3);
    let env = |_| std::process::Command::new("/usr/bin/env").arg(own_program()).status().unwrap();
    assert!((0..4).map(env).all(|status| status.success()));
    assert_eq!(ended(recorder).0, Some(0));
    let path = Path::new(&setup.session()).join("guest-g.dat");
    let events = run(&["events", "--format", "jsonl", path.to_str().unwrap()]).stdout;
    assert_eq!(events.lines().filter(|line| line.contains("/env\"")).count(), 4, "{events}");
    assert_eq!(setup.started("guest-g.dat"), 0);
    assert!(setup.started("host.dat") >= 3);
    let (guest, to) = (format!("g={}", setup.channel()), setup.path("t"));
    let wrong = run(&[
        "record",
        "--guest",
        &guest,
        "--guest-event",
        "sched_switch",
        "--guest-filter",
        "sched_switch no_such_field == 1",
        "-o",
        &to,
    ]);
    assert!(wrong.code == Some(1) && wrong.stderr.contains("filter"), "{}", wrong.stderr);
}

/// The kernel's own buffers, which record starts of programs until this is dropped.
struct KernelsOwn {
    was_on: String,
}

impl KernelsOwn {
    fn file(name: &str) -> PathBuf {
        Path::new(TRACEFS).join(name)
    }

    fn start() -> Self {
        let was_on = fs::read_to_string(Self::file("tracing_on")).unwrap();
        fs::write(Self::file("trace"), "").unwrap();
        fs::write(Self::file("tracing_on"), "1").unwrap();
        fs::write(Self::file("set_event"), "sched:sched_process_exec").unwrap();
        Self { was_on }
    }
}

impl Drop for KernelsOwn {
    fn drop(&mut self) {
        let _ = fs::write(Self::file("set_event"), "");
        let _ = fs::write(Self::file("tracing_on"), self.was_on.trim());
    }
}

/// The kernel's own buffers stand for those of a guest that records from its boot on. They are shared: the test is
/// skipped if another program uses them.
#[test]
fn what_a_kernel_recorded_before_is_taken() {
    let Some(_lock) = lock_tracing() else { return };
    if kernels_own_buffer_is_in_use() {
        return testkit::skip!("somebody traces with the kernel's own buffers");
    }
    let kernels_own = KernelsOwn::start();
    start_programs(6);
    let setup = Setup::new();
    let _agent = Agent::start(&setup.channel());
    let guest = format!("g={}", setup.channel());
    let ran = run(&[
        "record",
        "-e",
        "sched_process_exec",
        "--guest",
        &guest,
        "--guest-boot",
        "-o",
        &setup.session(),
        "--for",
        // A guest is polled until it is up, and is recorded when it replies.
        "3s",
    ]);
    drop(kernels_own);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!((setup.started("host.dat"), setup.started("guest-g.dat")), (0, 6));
}
