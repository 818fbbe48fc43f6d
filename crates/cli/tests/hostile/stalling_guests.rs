//! Guests that try to stall their host: in every case, recording ends within seconds of its end or of a
//! signal, and the recorded events are readable. Prints a table (`--nocapture`).

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use channel::wire::{Message, Status};

use crate::extent::extent;
use crate::played_agent::{Agent, drip, page, play};
use crate::tool::{info, left_in_tracefs, lock_tracing};

/// Exceeds the duration of an end on a busy machine, but is far below the former stalls.
const ENDS: Duration = Duration::from_secs(30);
/// Timeout of the test for a recorder.
const PATIENCE: Duration = Duration::from_secs(60);
const SECOND: Duration = Duration::from_secs(1);
const OFTEN: Duration = Duration::from_millis(50);

/// A way to stall.
struct Stall {
    what: &'static str,
    act: fn(Agent),
}

/// Guests that record, and don't end.
const AT_THE_END: &[Stall] = &[
    Stall {
        what: "garbage on the control stream after Stop, a byte every 0.3 s",
        act: |mut agent| {
            let _pages = agent.begin();
            agent.wait_for_stop();
            agent.drip(b"x", Duration::from_millis(300));
        },
    },
    Stall {
        what: "garbage on the control stream, without end",
        act: |mut agent| {
            let _pages = agent.begin();
            agent.drip(&[b'x'; 4096], Duration::ZERO);
        },
    },
    Stall {
        what: "a message now and then after Stop, never the last",
        act: |mut agent| {
            let _pages = agent.begin();
            agent.wait_for_stop();
            while agent.say(&Message::Status(Status::default())).is_ok() {
                thread::sleep(OFTEN);
            }
        },
    },
    Stall {
        what: "nothing after Stop",
        act: |mut agent| {
            let _pages = agent.begin();
            agent.wait_for_stop();
            agent.ignore();
        },
    },
    Stall {
        what: "reads nothing once it records",
        act: |mut agent| {
            let _pages = agent.begin();
            agent.ignore();
        },
    },
    Stall {
        what: "a byte every 0.05 s on a page stream after its end",
        act: |mut agent| {
            let pages = agent.begin();
            agent.wait_for_stop();
            agent.end();
            drip(pages, b"x", OFTEN);
        },
    },
    Stall {
        what: "pages without end",
        act: |mut agent| {
            let pages = agent.begin();
            drip(pages, &page(agent.session, 0, 0), Duration::ZERO);
        },
    },
];

/// Guests that don't start to record.
const AT_THE_START: &[Stall] = &[
    Stall { what: "nothing in place of the hello", act: |agent| agent.ignore() },
    Stall {
        what: "a byte every second in place of the hello",
        act: |agent| agent.drip(b"x", SECOND),
    },
    Stall {
        what: "messages without end in place of the hello",
        act: |mut agent| while agent.say(&Message::Status(Status::default())).is_ok() {},
    },
    Stall {
        what: "a hello, and no Started",
        act: |mut agent| {
            let _pages = agent.greet(1);
            agent.ignore();
        },
    },
];

/// A recorder and its guest.
struct Stalled {
    what: &'static str,
    folder: tempfile::TempDir,
    recorder: Child,
}

impl Stalled {
    fn begin(stall: &Stall, more: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("agent");
        play(&socket, stall.act);
        let stderr = fs::File::create(folder.path().join("said")).unwrap();
        let recorder = Command::new(program())
            .args(["record", "-e", "sched_process_exec", "--guest"])
            .arg(format!("g=unix:{}", socket.display()))
            .args(["--guest-event", "sched_process_exec", "-o"])
            .arg(folder.path().join("s"))
            .args(more)
            .stderr(Stdio::from(stderr))
            .spawn()
            .unwrap();
        Self { what: stall.what, folder, recorder }
    }

    fn session(&self) -> PathBuf {
        self.folder.path().join("s")
    }

    fn stderr(&self) -> String {
        fs::read_to_string(self.folder.path().join("said")).unwrap()
    }

    fn signal(&self, name: &str) {
        let pid = self.recorder.id().to_string();
        assert!(Command::new("kill").args([&format!("-{name}"), &pid]).status().unwrap().success());
    }

    /// The time until it ends, and its exit code; kills it after the timeout.
    fn ended(&mut self) -> (Option<Duration>, Option<i32>) {
        let before = Instant::now();
        while before.elapsed() < PATIENCE {
            if let Some(status) = self.recorder.try_wait().unwrap() {
                return (Some(before.elapsed()), status.code());
            }
            thread::sleep(Duration::from_millis(5));
        }
        self.recorder.kill().unwrap();
        self.recorder.wait().unwrap();
        (None, None)
    }

    /// Nothing of it remains in tracefs.
    fn left_nothing(&self) {
        let instance = format!("hyperscope-{}", self.recorder.id());
        assert!(!left_in_tracefs().contains(&instance), "{}: {instance} is left", self.what);
    }

    /// Waits until it reports that it records: an earlier signal stops the start.
    fn wait_until_recording(&self) {
        let before = Instant::now();
        while !self.stderr().contains("hyperscope: recording ") {
            assert!(before.elapsed() < ENDS, "{}: it did not begin: {}", self.what, self.stderr());
            thread::sleep(Duration::from_millis(5));
        }
    }
}

/// The program under test, or another one for comparison.
fn program() -> PathBuf {
    let other = std::env::var_os("HYPERSCOPE_UNDER_TEST");
    other.map_or_else(|| env!("CARGO_BIN_EXE_hyperscope").into(), PathBuf::from)
}

/// Runs each one alone, or, in a sample, all of them in parallel.
fn each(stalls: &'static [Stall], run: fn(&'static Stall)) {
    if extent(false, true) {
        return stalls.iter().for_each(run);
    }
    let runs: Vec<_> = stalls.iter().map(|stall| thread::spawn(move || run(stall))).collect();
    runs.into_iter().for_each(|run| run.join().unwrap());
}

fn check(stalled: &Stalled, how: &str, took: Option<Duration>) {
    let shown = took.map_or_else(|| "not ended".to_owned(), |took| format!("{took:.1?}"));
    eprintln!("{:<60} {how:<28} {shown}", stalled.what);
    assert!(took.is_some_and(|took| took < ENDS), "{}: {}", stalled.what, stalled.stderr());
    stalled.left_nothing();
}

fn is_readable(session: &Path) {
    assert!(info(session)["events"].is_object(), "{}", session.display());
}

#[test]
fn no_guest_keeps_a_recording_from_ending_when_its_time_is_over() {
    let Some(_lock) = lock_tracing() else { return };
    each(AT_THE_END, |stall| {
        let mut stalled = Stalled::begin(stall, &["--for", "1s"]);
        stalled.wait_until_recording();
        thread::sleep(SECOND);
        let (took, _) = stalled.ended();
        check(&stalled, "after --for", took);
        assert!(stalled.session().join("host.dat").exists(), "{}", stalled.stderr());
        is_readable(&stalled.session());
    });
}

#[test]
fn no_guest_keeps_a_recording_from_ending_at_a_signal() {
    let Some(_lock) = lock_tracing() else { return };
    each(AT_THE_END, |stall| {
        let mut stalled = Stalled::begin(stall, &["--guest-wait", "2s"]);
        stalled.wait_until_recording();
        stalled.signal("TERM");
        let (took, _) = stalled.ended();
        check(&stalled, "after SIGTERM, waits for 2 s", took);
        assert!(stalled.session().join("host.dat").exists(), "{}", stalled.stderr());
    });
}

#[test]
fn a_second_signal_leaves_the_readable_folder_at_once() {
    let Some(_lock) = lock_tracing() else { return };
    let mut stalled = Stalled::begin(&AT_THE_END[3], &["--guest-wait", "10m"]);
    stalled.wait_until_recording();
    stalled.signal("INT");
    thread::sleep(SECOND);
    assert!(stalled.recorder.try_wait().unwrap().is_none(), "it waits for the guest");
    stalled.signal("INT");
    let (took, code) = stalled.ended();
    check(&stalled, "after a second SIGINT", took);
    assert_eq!(code, Some(1), "{}", stalled.stderr());
    let session = stalled.session();
    assert!(!session.join("host.dat").exists() && session.join("host.pages").is_dir());
    assert!(stalled.stderr().contains("can be read"), "{}", stalled.stderr());
    is_readable(&session.join("host.pages"));
}

#[test]
fn a_signal_ends_a_wait_for_guests_that_has_begun() {
    let Some(_lock) = lock_tracing() else { return };
    let mut stalled = Stalled::begin(&AT_THE_END[3], &["--guest-wait", "10m", "--for", "100ms"]);
    stalled.wait_until_recording();
    thread::sleep(2 * SECOND);
    assert!(stalled.recorder.try_wait().unwrap().is_none(), "it waits for the guest");
    stalled.signal("INT");
    let (took, _) = stalled.ended();
    check(&stalled, "after SIGINT while it waits", took);
    assert!(stalled.session().join("host.dat").exists(), "{}", stalled.stderr());
    assert!(stalled.stderr().contains("--guest-wait"), "{}", stalled.stderr());
}

#[test]
fn no_guest_holds_a_start_up_and_signals_end_it_at_once() {
    let Some(_lock) = lock_tracing() else { return };
    each(AT_THE_START, |stall| {
        let mut stalled = Stalled::begin(stall, &[]);
        thread::sleep(SECOND);
        stalled.signal("INT");
        let (took, code) = stalled.ended();
        check(&stalled, "SIGINT while it starts", took);
        assert_eq!(code, Some(1));
        assert!(stalled.stderr().contains("before anything was recorded"), "{}", stalled.stderr());
        assert!(!stalled.session().exists());
    });
    each(&AT_THE_START[..3], |stall| {
        let mut stalled = Stalled::begin(stall, &[]);
        let (took, code) = stalled.ended();
        check(&stalled, "start alone", took);
        assert_eq!(code, Some(1), "{}", stalled.stderr());
    });
}
