//! Silent or slow connections don't prevent recording.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::process::Child;
use std::time::{Duration, Instant};

use channel::wire::{Message, Start, encode};

use crate::agent::{Agent, signal};
use crate::extent::extent;
use crate::tool::{command, lock_tracing, run, wait_until};

fn free_address() -> String {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string()
}

/// Connections that begin a message and stop.
fn slow(at: &str, count: usize) -> Vec<TcpStream> {
    let slow = |_| {
        let mut stream = TcpStream::connect(at).unwrap();
        // The peer may close it immediately.
        let _ = stream.write_all(b"HSCM");
        stream
    };
    (0..count).map(slow).collect()
}

fn record(channel: &str, folder: &tempfile::TempDir, times: usize) {
    for at in 0..times {
        let to = folder.path().join(at.to_string());
        let guest = format!("g={channel}");
        let event = "sched_process_exec";
        let mut words = vec!["record", "-e", event, "--guest", &guest, "--guest-event", event];
        words.extend(["--for", "100ms", "-o", to.to_str().unwrap()]);
        let ran = run(&words);
        assert_eq!(ran.code, Some(0), "recording {at}: {}", ran.stderr);
        let _ = fs::remove_dir_all(to);
    }
}

#[test]
fn connections_that_say_nothing_refuse_no_recording() {
    let Some(_lock) = lock_tracing() else { return };
    let folder = tempfile::tempdir().unwrap();
    let at = free_address();
    let _agent = Agent::start(&format!("tcp-plain:{at}"));
    let idle = TcpStream::connect(&at).unwrap();
    record(&format!("tcp-plain:{at}"), &folder, extent(2, 8));
    let many = slow(&at, extent(100, 500));
    record(&format!("tcp-plain:{at}"), &folder, extent(2, 8));
    drop((idle, many));
}

#[test]
fn connections_without_a_handshake_refuse_no_recording_over_tls() {
    let Some(_lock) = lock_tracing() else { return };
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    for name in ["guest", "host"] {
        assert_eq!(run(&["keys", "-o", &path(""), name]).code, Some(0));
    }
    let at = free_address();
    let channel = |side: &str, other: &str| {
        let (identity, peers) = (path(&format!("{side}.pem")), path(&format!("{other}.crt")));
        format!("tls:{at},identity={identity},peers={peers}")
    };
    let _agent = Agent::start(&channel("guest", "host"));
    let silent = slow(&at, extent(70, 300));
    record(&channel("host", "guest"), &folder, extent(2, 8));
    drop(silent);
}

#[test]
fn connections_that_say_nothing_refuse_no_recording_by_trace_cmds_protocol() {
    let Some(_lock) = lock_tracing() else { return };
    let folder = tempfile::tempdir().unwrap();
    let at = free_address();
    let _agent = Agent::start_with(&["--trace-cmd", &format!("tcp:{at}")]);
    let idle: Vec<TcpStream> = (0..70).map(|_| TcpStream::connect(&at).unwrap()).collect();
    record(&format!("trace-cmd:tcp:{at}"), &folder, extent(1, 8));
    drop(idle);
}

/// `listen`, with its messages in a file.
struct Listening {
    folder: tempfile::TempDir,
    at: String,
    child: Child,
}

impl Listening {
    fn begin() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let at = free_address();
        let (address, to) = (format!("tcp-plain:{at}"), folder.path().join("guests"));
        let stderr = File::create(folder.path().join("said")).unwrap();
        let words = ["listen", &address, "-e", "sched_process_exec", "-o", to.to_str().unwrap()];
        let child = command(&words).stderr(stderr).spawn().unwrap();
        let listening = Self { folder, at, child };
        wait_until("it does not listen", || listening.stderr().contains("waiting for agents"));
        listening
    }

    fn stderr(&self) -> String {
        fs::read_to_string(self.folder.path().join("said")).unwrap()
    }

    fn end(mut self) -> String {
        signal(self.child.id(), "INT");
        assert!(self.child.wait().unwrap().success(), "{}", self.stderr());
        self.stderr()
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn connections_that_are_slow_keep_no_guest_from_a_host_that_listens() {
    let Some(_lock) = lock_tracing() else { return };
    let listening = Listening::begin();
    for at in 1..=extent(2, 8) {
        let slow = slow(&listening.at, extent(100, 500));
        let agent = Agent::start(&format!("connect:tcp-plain:{}", listening.at));
        let recorded = || listening.stderr().matches("recording guest").count();
        wait_until("the guest is not recorded", || recorded() == at);
        // Before the slow connections time out, and before this one counts as gone.
        drop((agent, slow));
        std::thread::sleep(Duration::from_millis(50));
    }
    let stderr = listening.end();
    assert!(!stderr.contains("refused"), "{stderr}");
}

#[test]
fn a_host_that_asks_for_nothing_has_to_leave() {
    // It may send no request for a minute.
    if !extent(false, true) {
        return;
    }
    let Some(_lock) = lock_tracing() else { return };
    let folder = tempfile::tempdir().unwrap();
    let at = free_address();
    let _agent = Agent::start(&format!("tcp-plain:{at}"));
    let mut host = TcpStream::connect(&at).unwrap();
    host.write_all(&channel::wire::encode(5, &channel::wire::Message::HostHello).unwrap()).unwrap();
    std::thread::sleep(Duration::from_secs(70));
    record(&format!("tcp-plain:{at}"), &folder, 1);
}

/// A host's first messages: a greeting, and a request to record.
fn request() -> Vec<u8> {
    let start = Start { events: vec!["sched_process_exec".into()], ..Start::default() };
    let start = Message::Start(Box::new(start));
    [Message::HostHello, start].iter().flat_map(|message| encode(5, message).unwrap()).collect()
}

/// Max time that an agent lets a later host wait, in addition to the time without a CPU on this machine.
const MAX_WAIT: Duration = Duration::from_secs(1);

/// How long threads of a process have waited for a CPU.
fn without_cpu(pid: u32) -> Duration {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    let waited_ns = threads.filter_map(|thread| {
        // Some threads end meanwhile.
        let stat = fs::read_to_string(thread.ok()?.path().join("schedstat")).ok()?;
        stat.split_whitespace().nth(1)?.parse::<u64>().ok()
    });
    Duration::from_nanos(waited_ns.sum())
}

/// Sends a request to an agent, and waits for the first bytes of its reply; returns the time on an otherwise idle
/// machine.
fn answered(agent: &Agent, mut host: impl Read + Write, asks: &[u8]) -> Duration {
    let (start, before) = (Instant::now(), without_cpu(agent.pid()));
    host.write_all(asks).unwrap();
    host.read_exact(&mut [0; 8]).unwrap();
    let waited = start.elapsed();
    let without_cpu = without_cpu(agent.pid()).saturating_sub(before);
    eprintln!("answered after {waited:?}, {without_cpu:?} of that without a CPU");
    waited.saturating_sub(without_cpu)
}

/// Each host sends a request, and disconnects before the reply. An agent once needed at least half a second for each,
/// and ten for some.
#[test]
fn hosts_that_go_away_at_once_keep_nobody_waiting() {
    let Some(_lock) = lock_tracing() else { return };
    let (folder, at) = (tempfile::tempdir().unwrap(), free_address());
    let socket = folder.path().join("agent");
    let (over_tcp, over_unix) = (format!("tcp-plain:{at}"), format!("unix:{}", socket.display()));
    let agents = [&over_tcp, &over_unix].map(|channel| Agent::start(channel));
    for _ in 0..1000 {
        TcpStream::connect(&at).unwrap().write_all(&request()).unwrap();
        UnixStream::connect(&socket).unwrap().write_all(&request()).unwrap();
    }
    let asks = encode(7, &Message::HostHello).unwrap();
    let waited = answered(&agents[0], TcpStream::connect(&at).unwrap(), &asks);
    assert!(waited < MAX_WAIT, "{waited:?}");
    let waited = answered(&agents[1], UnixStream::connect(&socket).unwrap(), &asks);
    assert!(waited < MAX_WAIT, "{waited:?}");
    record(&over_tcp, &folder, 1);
    record(&over_unix, &folder, 1);
}

#[test]
fn hosts_that_go_away_at_once_keep_nobody_waiting_by_trace_cmds_protocol() {
    use channel::wire::trace_cmd::{Message, Request, encode};
    let Some(_lock) = lock_tracing() else { return };
    let (folder, at) = (tempfile::tempdir().unwrap(), free_address());
    let agent = Agent::start_with(&["--trace-cmd", &format!("tcp:{at}")]);
    let arguments = ["-e", "sched_process_exec"].map(str::to_owned).to_vec();
    let request = Request { arguments, ..Request::default() };
    let request = encode(&Message::Request(request)).unwrap();
    for _ in 0..1000 {
        TcpStream::connect(&at).unwrap().write_all(&request).unwrap();
    }
    let waited = answered(&agent, TcpStream::connect(&at).unwrap(), &request);
    assert!(waited < MAX_WAIT, "{waited:?}");
    record(&format!("trace-cmd:tcp:{at}"), &folder, 1);
}
