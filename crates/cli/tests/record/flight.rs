//! A flight recorder keeps the newest events, and makes complete sessions from them.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use serde_json::Value;

use crate::agent::{Agent, signal};
use crate::faults::SmallDisk;
use crate::tool::{
    OWN, command, count_started, info, left_in_tracefs, lock_tracing, own_program, run,
    session_json, start_programs, wait_until,
};

/// A running flight recorder.
pub(crate) fn start(to: &Path, arguments: &[&str]) -> Agent {
    let mut record = command(&["record", "-o", to.to_str().unwrap()]);
    let recorder = Agent(record.args(arguments).stderr(Stdio::null()).spawn().unwrap());
    wait_until("it can't be asked", || {
        Path::new(&format!("/run/hyperscope/{}.flight", recorder.pid())).exists()
    });
    recorder
}

/// Requests a dump; returns the session.
pub(crate) fn dump(recorder: &Agent, why: &str) -> PathBuf {
    let pid = recorder.pid().to_string();
    let ran = run(&["flight", "dump", "--pid", &pid, "--why", why]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    PathBuf::from(ran.stdout.trim_end())
}

/// Requests a dump; returns its document.
fn dump_as_json(recorder: &Agent) -> Value {
    let pid = recorder.pid().to_string();
    let ran = run(&["flight", "dump", "--pid", &pid, "--format", "json"]);
    let document: Value = serde_json::from_str(&ran.stdout).unwrap();
    let schema = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/formats/flight.schema.json");
    let schema: Value = serde_json::from_str(&fs::read_to_string(schema).unwrap()).unwrap();
    let valid = jsonschema::validate(&schema, &document);
    assert!(valid.is_ok(), "{valid:?}");
    document
}

fn sessions(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut sessions: Vec<PathBuf> =
        entries.filter(|path| path.extension().is_some_and(|end| end == "hscope")).collect();
    sessions.sort();
    sessions
}

pub(crate) fn end(mut recorder: Agent) {
    signal(recorder.pid(), "INT");
    assert!(recorder.0.wait().unwrap().success());
    assert_eq!(left_in_tracefs(), Vec::<String>::new());
}

/// Number of starts of a program, in the events of a session.
pub(crate) fn started(session: &Path, program: &str) -> usize {
    let events = run(&["events", "--format", "jsonl", session.to_str().unwrap()]);
    assert_eq!(events.code, Some(0), "{}", events.stderr);
    count_started(&events.stdout, program)
}

pub(crate) fn recorded(session: &Path) -> Value {
    session_json(session)["recorded"].clone()
}

/// The session has as many events as the kernel counted between its begin and its end, minus those that were
/// cut off.
pub(crate) fn lacks_nothing(session: &Path) {
    let info = info(session);
    assert_eq!(info["losses"]["known"], true, "{info}");
    assert_eq!(info["losses"]["events_lost"], 0, "{info}");
    assert_eq!(info["damage"], Value::Array(Vec::new()), "{info}");
}

#[test]
fn what_came_before_each_trigger_is_in_its_session() {
    let Some(_lock) = lock_tracing() else { return };
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("flight");
    // Each has a dozen segments.
    let recorder = start(&to, &["--flight", "20s", "-e", "sched", "-e", "raw_syscalls"]);
    start_programs(20);
    sleep(Duration::from_secs(2));
    let first = dump(&recorder, "slow");
    assert_eq!(started(&first, OWN), 20);
    lacks_nothing(&first);
    start_programs(7);
    sleep(Duration::from_secs(2));
    signal(recorder.pid(), "USR1");
    wait_until("it does not dump", || sessions(&to).len() == 2);
    let second = sessions(&to).pop().unwrap();
    assert_eq!(started(&second, OWN), 27, "what a dump took is there for the next");
    lacks_nothing(&second);
    says_why(&first, &second);
    end(recorder);
    assert!(!to.join("host.pages").exists());
    for verb in ["exits", "cpu", "info"] {
        let ran = run(&[verb, second.to_str().unwrap()]);
        assert!(ran.code == Some(0) && ran.stderr.is_empty(), "{verb}: {}", ran.stderr);
    }
}

fn says_why(first: &Path, second: &Path) {
    let text = fs::read_to_string(first.join("why.json")).unwrap();
    let why: Value = serde_json::from_str(&text).unwrap();
    let schema = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/formats/flight_why.schema.json");
    let schema: Value = serde_json::from_str(&fs::read_to_string(schema).unwrap()).unwrap();
    let valid = jsonschema::validate(&schema, &why);
    assert!(valid.is_ok(), "{valid:?}");
    assert!(why["trigger"]["text"] == "slow" && why["figures"].is_null(), "{why}");
    let words = fs::read_to_string(first.join("why.txt")).unwrap();
    let name = first.file_name().unwrap().to_str().unwrap();
    assert!(
        words.contains("slow") && words.contains(&format!("hyperscope exits {name}")),
        "{words}"
    );
    let [first, second] = [first, second].map(recorded);
    let trigger = |session: &Value| {
        (session["flight"]["trigger"]["kind"].clone(), session["flight"]["trigger"]["text"].clone())
    };
    assert_eq!(trigger(&first), ("command".into(), "slow".into()));
    assert_eq!(trigger(&second), ("signal".into(), Value::Null));
    let segments = second["flight"]["segments"].as_u64();
    assert!(segments >= Some(3), "{second}");
    assert_eq!(second["flight"]["shorter"], true, "it began less than the window before");
}

/// All events are between the two times at which both clocks were read.
fn lies_within_its_clocks(session: &Path) {
    let (info, recorded) = (info(session), recorded(session));
    let at = |pair: usize| recorded["clock_pairs"][pair]["trace_ns"].as_u64().unwrap();
    let [first_ns, last_ns] = ["first_ns", "last_ns"].map(|key| info[key].as_u64().unwrap());
    assert!(at(0) <= first_ns && last_ns <= at(1), "{info} {recorded}");
    let span_ns = at(1) - at(0);
    assert!(span_ns.abs_diff(recorded["duration_ns"].as_u64().unwrap()) < 50_000_000, "{recorded}");
}

#[test]
fn old_events_go_and_the_newest_stay() {
    let Some(_lock) = lock_tracing() else { return };
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("flight");
    let recorder =
        start(&to, &["--flight", "1s", "-e", "sched", "-e", "raw_syscalls", "--sessions", "2"]);
    start_programs(20);
    sleep(Duration::from_millis(2500));
    assert!(Command::new("/usr/bin/env").arg(own_program()).status().unwrap().success());
    let session = dump(&recorder, "");
    assert_eq!((started(&session, "env"), started(&session, OWN)), (1, 1));
    lacks_nothing(&session);
    lies_within_its_clocks(&session);
    let recorded = recorded(&session);
    assert!(recorded["duration_ns"].as_u64() >= Some(1_000_000_000), "{recorded}");
    assert_eq!(recorded["flight"]["shorter"], false);
    let first = session;
    dump(&recorder, "");
    let last = dump_as_json(&recorder);
    assert_eq!(last["session"].as_str(), sessions(&to).last().and_then(|path| path.to_str()));
    assert!(last["pages_bytes"].as_u64() > Some(4096), "{last}");
    let remaining = sessions(&to);
    assert!(remaining.len() == 2 && !remaining.contains(&first), "{remaining:?}");
    end(recorder);
}

/// Bytes of pages that a recorder keeps in its folder.
fn kept_bytes(to: &Path) -> u64 {
    let entries = fs::read_dir(to.join("host.pages")).unwrap().map(|entry| entry.unwrap());
    let segments = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with("cpu"));
    segments.map(|entry| entry.metadata().unwrap().len()).sum()
}

/// Bytes of pages in a session.
fn dumped_bytes(session: &Path) -> u64 {
    let recorded = recorded(session);
    let cpus = recorded["cpus"].as_array().unwrap();
    cpus.iter().map(|cpu| cpu["bytes"].as_u64().unwrap()).sum()
}

#[test]
fn no_more_is_kept_than_it_may_be() {
    let Some(_lock) = lock_tracing() else { return };
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("flight");
    let recorder = start(&to, &["--flight", "10m", "--size", "4M", "-e", "raw_syscalls"]);
    let script = "dd if=/dev/zero of=/dev/null bs=1 count=250000 2>/dev/null";
    let mut session = PathBuf::new();
    // If events come faster than segments can begin, little may be left on a busy machine: then it is
    // repeated.
    let is_much = (0..4).any(|_| {
        assert!(Command::new("sh").args(["-c", script]).status().unwrap().success());
        session = dump(&recorder, "");
        let (on_disk, pages) = (kept_bytes(&to), dumped_bytes(&session));
        // A million events are about 40 MB; those of a few checks may arrive before the oldest are removed.
        assert!(on_disk <= 8 << 20 && pages <= 8 << 20, "{on_disk} kept, {pages} dumped");
        pages > 1 << 20
    });
    assert!(is_much, "{}", dumped_bytes(&session));
    assert_eq!(recorded(&session)["flight"]["shorter"], true);
    // The buffers are also small, and the machine may be busy: losses are then known.
    assert_eq!(info(&session)["losses"]["known"], true);
    end(recorder);
}

/// Programs that make system calls without end: they fill a page in some microseconds.
struct Flood(Vec<Child>);

impl Flood {
    fn begin() -> Self {
        let dd = || {
            let mut dd = Command::new("dd");
            dd.args(["if=/dev/zero", "of=/dev/null", "bs=1"]).stderr(Stdio::null()).spawn()
        };
        Self((0..2).map(|_| dd().unwrap()).collect())
    }
}

impl Drop for Flood {
    fn drop(&mut self) {
        for dd in &mut self.0 {
            let _ = dd.kill();
            let _ = dd.wait();
        }
    }
}

#[test]
fn a_session_is_made_while_more_events_come_than_can_be_kept() {
    let Some(_lock) = lock_tracing() else { return };
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("flight");
    let recorder = start(&to, &["--flight", "10m", "--size", "8M", "-e", "raw_syscalls"]);
    let flood = Flood::begin();
    let mut pages = Vec::new();
    for _ in 0..4 {
        sleep(Duration::from_millis(500));
        let session = dump(&recorder, "");
        pages.push((kept_bytes(&to), dumped_bytes(&session)));
        assert_eq!(info(&session)["damage"], Value::Array(Vec::new()));
    }
    drop(flood);
    assert!(pages.iter().all(|(on_disk, dumped)| on_disk.max(dumped) <= &(16 << 20)), "{pages:?}");
    assert!(pages.iter().any(|(_, dumped)| *dumped > 1 << 20), "{pages:?}");
    end(recorder);
}

#[test]
fn a_full_disk_stops_dumping_and_not_tracing() {
    let Some(_lock) = lock_tracing() else { return };
    let Some(small) = SmallDisk::mount_of(64) else { return };
    let to = small.folder.path().join("flight");
    let recorder = start(&to, &["--flight", "20s", "--size", "4M", "-e", "sched_process_exec"]);
    start_programs(3);
    let ballast = small.folder.path().join("ballast");
    fs::write(&ballast, vec![1; 42 << 20]).unwrap();
    let pid = recorder.pid().to_string();
    let ran = run(&["flight", "dump", "--pid", &pid]);
    assert_eq!(ran.code, Some(1));
    assert!(
        ran.stderr.contains("MiB free") && ran.stderr.contains("recording continues"),
        "{}",
        ran.stderr
    );
    assert_eq!(sessions(&to), Vec::<PathBuf>::new());
    // Another program takes all pages: pages are missing, and are counted.
    let rest = Command::new("dd")
        .args(["if=/dev/zero", "bs=4k"])
        .arg(format!("of={}", ballast.display()))
        .output();
    assert!(!rest.unwrap().status.success());
    start_programs(5);
    sleep(Duration::from_secs(2));
    fs::remove_file(&ballast).unwrap();
    start_programs(11);
    let session = dump(&recorder, "");
    let (there, recorded) = (started(&session, OWN), recorded(&session));
    let info = info(&session);
    let missing = info["losses"]["events_missing"].as_u64().unwrap_or(0) as usize;
    assert!((11..19).contains(&there) && there + missing >= 19, "{there} {info} {recorded}");
    assert!(recorded["flight"]["unwritten_bytes"].as_u64() > Some(0), "{recorded}");
    end(recorder);
}

#[test]
fn what_one_kept_that_was_killed_is_a_session_of_the_next() {
    let Some(_lock) = lock_tracing() else { return };
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("flight");
    let arguments = ["--flight", "1200ms", "-e", "sched_process_exec", "-e", "raw_syscalls"];
    let mut killed = start(&to, &arguments);
    start_programs(6);
    // Several segments.
    sleep(Duration::from_millis(500));
    start_programs(3);
    killed.0.kill().unwrap();
    killed.0.wait().unwrap();
    wait_until("its instance stays", || left_in_tracefs().is_empty());
    assert_eq!(started(&to, OWN), 9, "it is a session as it is");
    let socket = format!("/run/hyperscope/{}.flight", killed.pid());
    let next = start(&to, &arguments);
    assert!(!Path::new(&socket).exists(), "{socket} is left");
    let remaining = sessions(&to);
    assert_eq!(remaining.len(), 1);
    assert_eq!(started(&remaining[0], OWN), 9);
    let dumped = dump(&next, "");
    assert_eq!(started(&dumped, OWN), 0);
    end(next);
}

#[test]
fn guests_newest_events_are_kept_too() {
    let Some(_lock) = lock_tracing() else { return };
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("flight");
    let channel = format!("unix:{}", folder.path().join("agent").display());
    let agent = Agent::start(&channel);
    let guest = format!("g={channel}");
    let arguments = ["--flight", "2s", "-e", "sched_process_exec", "--guest", &guest];
    let of_guest = ["--guest-event", "sched_process_exec", "--guest-event", "sched_switch"];
    let recorder = start(&to, &[&arguments[..], &of_guest[..]].concat());
    start_programs(9);
    let first = dump(&recorder, "");
    assert_eq!((started_in(&first, "host.dat"), started_in(&first, "guest-g.dat")), (9, 9));
    // Guests that sent nothing for two seconds are dropped.
    sleep(Duration::from_secs(5));
    start_programs(4);
    let second = dump(&recorder, "");
    assert_eq!((started_in(&second, "host.dat"), started_in(&second, "guest-g.dat")), (4, 4));
    let recorded = recorded(&second);
    assert_eq!(
        (&recorded["guests"][0]["name"], &recorded["faults"]),
        (&"g".into(), &Value::Array(Vec::new()))
    );
    assert_eq!(recorded["guests"][0]["faults"], Value::Array(Vec::new()), "{recorded}");
    assert!(!second.join("guest-g.pages").exists());
    let file_count = fs::read_dir(to.join("guest-g.pages")).unwrap().count();
    assert!(file_count < 60, "{file_count} files are kept of the guest");
    // It is in sessions as long as its data is kept.
    start_programs(2);
    sleep(Duration::from_millis(1200));
    drop(agent);
    let third = dump(&recorder, "");
    assert!(started_in(&third, "guest-g.dat") >= 2);
    end(recorder);
    assert!(!to.join("guest-g.pages").exists() && !to.join("host.pages").exists());
}

/// Number of program starts in one recording of a session.
fn started_in(session: &Path, file: &str) -> usize {
    started(&session.join(file), OWN)
}

/// Posts JSON as Alertmanager does; returns the status.
fn post(address: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    let head = format!(
        "POST /alert HTTP/1.1\r\nHost: {address}\r\nUser-Agent: Alertmanager/0.27\r\n\
         Content-Length: {}\r\nContent-Type: application/json\r\nAccept-Encoding: gzip\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer.split(' ').nth(1).unwrap_or_default().to_owned()
}

#[test]
fn an_alert_that_fires_makes_a_session() {
    let Some(_lock) = lock_tracing() else { return };
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("flight");
    let arguments = ["--flight", "20s", "-e", "sched_process_exec", "--alerts", "127.0.0.1:0"];
    let mut record = command(&["record", "-o", to.to_str().unwrap()]);
    let mut recorder = Agent(record.args(arguments).stderr(Stdio::piped()).spawn().unwrap());
    let stderr = BufReader::new(recorder.0.stderr.take().unwrap());
    let mut lines = stderr.lines().map_while(Result::ok);
    let line = lines.find(|line| line.contains("listening for alerts on")).unwrap();
    let address = line.split("http://").nth(1).unwrap().trim_end_matches("/alert").to_owned();
    std::thread::spawn(move || lines.for_each(drop));
    let path = format!("/run/hyperscope/{}.flight", recorder.pid());
    wait_until("it can't be asked", || Path::new(&path).exists());
    start_programs(4);
    let alert = |status: &str| {
        format!(
            r#"{{"version":"4","status":"{status}","alerts":[{{"status":"{status}","labels":{{"alertname":"RunQueue","vm":"web"}}}}]}}"#
        )
    };
    assert_eq!(post(&address, &alert("resolved")), "200");
    assert_eq!(post(&address, &alert("firing")), "200");
    // An alert right after it belongs to the same time.
    assert_eq!(post(&address, &alert("firing")), "200");
    assert_eq!(post(&address, "no JSON"), "400");
    wait_until("it does not dump", || !sessions(&to).is_empty());
    let session = &sessions(&to)[0];
    wait_until("it does not say why", || session.join("why.txt").exists());
    assert_eq!(started(session, OWN), 4);
    let trigger = &recorded(session)["flight"]["trigger"];
    assert!(trigger["kind"] == "alert" && trigger["text"] == "RunQueue (vm=web)", "{trigger}");
    end(recorder);
    assert_eq!(sessions(&to).len(), 1);
}

#[test]
fn one_that_does_not_run_is_not_asked() {
    let Some(_lock) = lock_tracing() else { return };
    let ran = run(&["flight", "dump"]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.contains("record --flight"), "{}", ran.stderr);
    let folder = tempfile::tempdir().unwrap();
    let [to, other] = ["one", "other"].map(|name| folder.path().join(name));
    let arguments = ["--flight", "1s", "-e", "sched_process_exec"];
    let recorders = [start(&to, &arguments), start(&other, &arguments)];
    let ran = run(&["flight", "dump"]);
    assert!(ran.code == Some(1) && ran.stderr.contains("--pid"), "{}", ran.stderr);
    let ran = run(&["flight", "dump", "--pid", "1"]);
    assert!(ran.code == Some(1) && ran.stderr.contains("process 1"), "{}", ran.stderr);
    let ran = run(&["record", "--flight", "1s", "-o", to.to_str().unwrap()]);
    assert!(ran.code == Some(1) && ran.stderr.contains("is recording into"), "{}", ran.stderr);
    let [first, second] = recorders;
    signal(first.pid(), "INT");
    end_both(first, second);
}

fn end_both(mut first: Agent, second: Agent) {
    assert!(first.0.wait().unwrap().success());
    end(second);
}
