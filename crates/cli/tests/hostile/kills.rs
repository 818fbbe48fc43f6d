//! `kill -9` after every system call that changes something: events recorded so far are readable, missing
//! ones are reported, and nothing stays in tracefs.
//!
//! The recorded machine is this one, as its own guest. A program writes numbered marks into the instances
//! of host and agent, so that the remaining marks show which ones are missing.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::agent::{Agent, signal};
use crate::extent::extent;
use crate::marks::{assert_losses_reported, instance, write_marks};
use crate::tool::{command, left_in_tracefs, lock_tracing, wait_until};
use crate::tracer::{Traced, stopped, trace};

/// Number of marks for each side's instance.
const MARKS: u64 = 5000;
/// A traced recorder finishes within this time, even on a loaded machine.
const SOON: Duration = Duration::from_secs(60);

/// The process to kill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Victim {
    Recorder,
    /// After its recorder, which is killed while all marks are in the kernel's buffers.
    Guard,
    RecorderAndGuard,
    Agent,
}

/// The result of one recording.
#[derive(Debug)]
#[allow(dead_code, reason = "shown by failures")]
struct Killed {
    traced: Traced,
    /// Marks written into each instance, host's and guest's.
    written: [u64; 2],
}

fn is_on(instance: &Path) -> bool {
    fs::read_to_string(instance.join("tracing_on")).is_ok_and(|text| text.trim() == "1")
}

/// Recorders on this machine that are killed, and the agent that is their guest.
struct Campaign {
    folder: tempfile::TempDir,
    agent: Option<Agent>,
    recordings: u32,
}

impl Campaign {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap(), agent: None, recordings: 0 }
    }

    fn channel(&self) -> String {
        format!("unix:{}", self.folder.path().join("agent").display())
    }

    /// The last recorder's messages.
    fn stderr(&self) -> std::path::PathBuf {
        self.folder.path().join("stderr")
    }

    /// Whether the last recorder reported that it records.
    fn has_begun(&self) -> bool {
        fs::read_to_string(self.stderr()).is_ok_and(|messages| messages.contains("recording"))
    }

    /// The agent; restarted if it was killed.
    fn agent(&mut self) -> u32 {
        let channel = self.channel();
        let agent = self.agent.get_or_insert_with(|| Agent::start(&channel));
        agent.pid()
    }

    /// Records host and guest into this folder.
    fn record(&self, session: &Path) -> std::process::Command {
        let guest = format!("g={}", self.channel());
        let mut record = command(&["record", "-e", "sched_process_exec", "--guest", &guest]);
        record.args(["--guest-event", "sched_process_exec", "-o"]).arg(session);
        record
    }

    /// Records, kills the victim after call number `kill_at` (or never if there are fewer), and checks the
    /// remains. Returns the number of calls.
    fn kill(&mut self, victim: Victim, kill_at: u64) -> u64 {
        self.recordings += 1;
        let session = self.folder.path().join(format!("s{}", self.recordings));
        let killed = self.killed(victim, kill_at, &session);
        let messages = fs::read_to_string(self.stderr()).unwrap();
        let what = format!("{victim:?} killed after call {kill_at}: {killed:?} {messages}");
        self.clean(victim, &what);
        let [of_host, of_guest] = killed.written;
        println!("{what}");
        assert_losses_reported(&session, "host", of_host, &what);
        assert_losses_reported(&session, "guest-g", of_guest, &what);
        fs::remove_dir_all(&session).unwrap_or_default();
        killed.traced.calls
    }

    fn killed(&mut self, victim: Victim, kill_at: u64, session: &Path) -> Killed {
        let agent = self.agent();
        let stderr = fs::File::create(self.stderr()).unwrap();
        let mut started = stopped(&self.record(session), stderr);
        let recorder = started.id();
        let (followed, over) = (AtomicBool::new(false), AtomicBool::new(false));
        let set_followed = || followed.store(true, Ordering::Relaxed);
        let others =
            || if victim == Victim::RecorderAndGuard { guards(recorder) } else { Vec::new() };
        let killed = thread::scope(|scope| {
            let marks = scope.spawn(|| {
                let written = mark_both(recorder, agent, session, &over);
                wait_until("nobody is followed", || followed.load(Ordering::Relaxed));
                // Stopped before it records, it keeps nothing, and reports that.
                let is_over = || over.load(Ordering::Relaxed);
                wait_until("it does not begin", || is_over() || self.has_begun());
                end(victim, recorder, agent);
                written
            });
            let tracer = scope.spawn(|| match victim {
                Victim::Recorder | Victim::RecorderAndGuard => {
                    trace(recorder, kill_at, &others, &set_followed)
                }
                Victim::Agent => trace(agent, kill_at, &others, &|| {
                    set_followed();
                    signal(recorder, "CONT");
                }),
                Victim::Guard => {
                    signal(recorder, "CONT");
                    wait_until("there is no guard", || guards(recorder).len() == 1);
                    trace(guards(recorder)[0], kill_at, &others, &set_followed)
                }
            });
            let traced = tracer.join().unwrap();
            over.store(true, Ordering::Relaxed);
            Killed { traced, written: marks.join().unwrap() }
        });
        // If the tracer followed it, it has also waited for it. For the kernel, a process without a wait
        // still exists.
        let _ = started.wait();
        if victim == Victim::Agent {
            // It has been waited for already.
            std::mem::forget(self.agent.take());
            let _ = fs::remove_file(self.folder.path().join("agent"));
        }
        killed
    }

    /// The surviving processes remove the victim's parts of tracefs; the next start does the rest.
    fn clean(&mut self, victim: Victim, what: &str) {
        if victim == Victim::Recorder {
            return wait_until(what, || left_in_tracefs().is_empty());
        }
        self.agent();
        self.recordings += 1;
        let next = self.folder.path().join(format!("s{}", self.recordings));
        let ran = self.record(&next).args(["--for", "1ms"]).output().unwrap();
        assert!(ran.status.success(), "{what}: {}", String::from_utf8_lossy(&ran.stderr));
        assert_eq!(left_in_tracefs(), Vec::<String>::new(), "{what}");
        fs::remove_dir_all(&next).unwrap();
    }
}

/// Writes marks into both instances once both record; `over`: no process is left that could.
fn mark_both(recorder: u32, agent: u32, session: &Path, over: &AtomicBool) -> [u64; 2] {
    let (host, guest) = (instance(recorder), instance(agent));
    let deadline = Instant::now() + SOON;
    // The files for reading a guest's pages are written once it reports that it records.
    let clock_file = session.join("guest-g.pages/trace_clock");
    while !(clock_file.exists() && is_on(&host) && is_on(&guest)) {
        if over.load(Ordering::Relaxed) || Instant::now() > deadline {
            return [0, 0];
        }
        thread::sleep(Duration::from_millis(2));
    }
    write_marks([&host, &guest], MARKS)
}

/// Ends the processes that were not killed.
fn end(victim: Victim, recorder: u32, agent: u32) {
    let is_there =
        |pid: u32| fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| !line.is_empty());
    if is_there(recorder) {
        signal(recorder, if victim == Victim::Guard { "KILL" } else { "INT" });
    }
    let deadline = Instant::now() + SOON;
    while is_there(recorder) {
        assert!(Instant::now() < deadline, "the recorder does not end");
        thread::sleep(Duration::from_millis(5));
    }
    if victim == Victim::Agent && is_there(agent) {
        signal(agent, "KILL");
    }
}

fn guards(recorder: u32) -> Vec<u32> {
    let wanted = format!("--guard\0{recorder}\0");
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let is_guard = |pid: &u32| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).contains(&wanted)
    };
    pids.filter(is_guard).collect()
}

/// The calls to kill after: the first, and the step to the next. For every third from the second on:
/// `HYPERSCOPE_KILLS=2+3`.
fn chosen() -> (u64, u64) {
    let setting = std::env::var("HYPERSCOPE_KILLS").ok();
    let choice = setting.and_then(|text| {
        let (first, step) = text.split_once('+')?;
        Some((first.parse().ok()?, step.parse().ok()?))
    });
    choice.unwrap_or((1, 1))
}

/// Kills a victim after each of its calls, or after some: the sample has one at its start, one while it
/// records, and one at its end.
fn kill_behind_calls(victim: Victim, sample: &[u64]) {
    let Some(_lock) = lock_tracing() else { return };
    let mut campaign = Campaign::new();
    let (first, step) = chosen();
    let mut next = 1;
    loop {
        let all = (next as u64 - 1) * step + first;
        let at = extent(sample.get(next - 1).copied(), Some(all));
        let Some(at) = at else { break };
        let calls = campaign.kill(victim, at);
        // It has ended before.
        if calls < at {
            break;
        }
        next += 1;
    }
    println!("{victim:?}: killed after {} calls", next - 1);
    drop(campaign);
    assert_eq!(left_in_tracefs(), Vec::<String>::new());
}

#[test]
fn a_recorder_that_is_killed_behind_any_call_leaves_what_can_be_read() {
    // The first: its folder of pages exists, but without the files to read them.
    kill_behind_calls(Victim::Recorder, &[32, 150, 285, 330]);
}

#[test]
fn a_guard_that_is_killed_behind_any_call_leaves_what_can_be_read() {
    kill_behind_calls(Victim::Guard, &[6]);
}

#[test]
fn a_recorder_that_is_killed_with_its_guard_leaves_what_can_be_read() {
    kill_behind_calls(Victim::RecorderAndGuard, &[290]);
}

#[test]
fn an_agent_that_is_killed_behind_any_call_leaves_what_it_sent() {
    kill_behind_calls(Victim::Agent, &[150, 245]);
}
