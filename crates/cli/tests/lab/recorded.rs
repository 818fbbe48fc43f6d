//! A lab whose guest is recorded together with its host, with this program and its agent.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::architecture::Architecture;
use crate::patience::{Patient, run};
use crate::tool::{Ran, TestLab};

/// The channels to the lab's guest, and the agent's address for each.
pub(crate) const CHANNELS: [(&str, &str); 3] = [
    ("shm:/run/lab/l2/memory", "shm"),
    ("virtio-serial:/run/lab/l2", "virtio-serial"),
    ("vsock:3", "vsock"),
];

/// Timeout for a guest to begin to record. It exceeds `--guest-wait` below, so that the recorder itself reports the
/// failure.
const BEGINNING: Duration = Duration::from_secs(200);
/// Interval of checks in level 1.
const BETWEEN_LOOKS: Duration = Duration::from_millis(1500);
/// Timeout for a recorder to write everything after its end.
const ENDING: Duration = Duration::from_secs(180);

/// The guest's load: two programs that exchange bytes through a pipe, and switch all the time.
pub(crate) const LOAD: &str =
    "dd if=/dev/zero bs=64 count=3000 2>/dev/null | dd of=/dev/null bs=64 2>/dev/null";

/// A lab with this program in level 1 and agents in its guest.
pub(crate) struct Recorded {
    pub(crate) lab: TestLab,
    folder: tempfile::TempDir,
}

impl Recorded {
    pub(crate) fn up(name: &'static str) -> Self {
        Self::for_architecture(Architecture::X86, name)
    }

    /// The same with machines of this architecture.
    pub(crate) fn for_architecture(architecture: Architecture, name: &'static str) -> Self {
        Self::with(TestLab::for_architecture(architecture, name), 2, &[])
    }

    /// The same with a network between the two machines.
    pub(crate) fn networked(name: &'static str) -> Self {
        let recorded = Self::with(TestLab::new(name), 2, &["--guest-net", "virtio"]);
        let device = "ip address add 10.77.2.2/24 dev eth0; ip link set eth0 up; \
                      ping -c 3 10.77.2.1";
        recorded.lab.shell(2, device).done();
        recorded
    }

    /// The same with the agent in the innermost of this many machines.
    pub(crate) fn with_levels(name: &'static str, levels: u8) -> Self {
        Self::with(TestLab::new(name), levels, &[])
    }

    fn with(lab: TestLab, levels: u8, more: &[&str]) -> Self {
        let count = levels.to_string();
        let up = ["--levels", &count, "--guest-shm", "8", "--guest-cpus", "2"];
        lab.up(&[&up, more].concat());
        lab.put_program(1);
        let agent = lab.architecture().program("hyperscope-agent", agent);
        lab.put_stripped(levels, &agent, "/bin/hyperscope-agent");
        Self { lab, folder: tempfile::tempdir().unwrap() }
    }

    /// Gives both machines their keys; returns the TLS channel between them, and its agent's address.
    pub(crate) fn secret_channel(&self) -> (String, String) {
        self.lab
            .shell(1, "hyperscope keys -o /tmp/keys host && hyperscope keys -o /tmp/keys guest")
            .done();
        for file in ["guest.pem", "host.crt"] {
            let here = self.folder.path().join(file);
            let (here, there) = (here.to_str().unwrap(), format!("/tmp/keys/{file}"));
            self.lab.run(&["get", "1", &there, here]).done();
            self.lab.run(&["put", "2", here, &there]).done();
        }
        let keys = |side: &str, other: &str| {
            format!("tls:10.77.2.2:8823,identity=/tmp/keys/{side}.pem,peers=/tmp/keys/{other}.crt")
        };
        (keys("host", "guest"), keys("guest", "host"))
    }

    pub(crate) fn start_agent(&self, channel: &str) {
        self.start_agent_at(2, channel);
    }

    pub(crate) fn start_agent_at(&self, level: u8, channel: &str) {
        let script = format!(
            "(hyperscope-agent {channel} >/tmp/agent.log 2>&1 &); \
             until grep -q waiting /tmp/agent.log; do sleep 0.1; done"
        );
        self.lab.shell(level, &script).done();
    }

    /// Begins to record; both machines are recorded when this returns.
    pub(crate) fn begin(&self, channel: &str) -> Child {
        self.begin_with(channel, "--guest-event sched --guest-event irq -e kvm -e sched")
    }

    /// The same with other arguments for the events.
    pub(crate) fn begin_with(&self, channel: &str, what: &str) -> Child {
        let what = format!("--guest l2={channel} --guest-wait 180s {what}");
        self.begin_until(&what, "[ -e /tmp/r/guest-l2.pages/trace_clock ]")
    }

    /// Records only the host.
    pub(crate) fn begin_alone(&self, what: &str) -> Child {
        self.begin_until(what, "true")
    }

    /// Begins, and waits until the host is recorded and `condition` holds there.
    fn begin_until(&self, what: &str, condition: &str) -> Child {
        // A command that waits on a pipe does not wake up meanwhile.
        self.lab.shell(1, "rm -rf /tmp/r /tmp/end; mkfifo /tmp/end").done();
        let script = format!("hyperscope record {what} -o /tmp/r -- cat /tmp/end");
        let mut recorder = self.lab.command(&["exec", "1", "--", "sh", "-c", &script]);
        let mut recorder = recorder.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let deadline = Instant::now() + BEGINNING;
        let condition = format!("pidof cat >/dev/null && {condition}");
        while self.lab.shell(1, &condition).code != Some(0) {
            assert!(recorder.try_wait().unwrap().is_none(), "{}", outcome(recorder).1);
            assert!(Instant::now() < deadline, "it does not begin");
            // Each check takes CPU time from the guest that is waited for.
            std::thread::sleep(BETWEEN_LOOKS);
        }
        recorder
    }

    pub(crate) fn end(&self, recorder: Child) -> (bool, String) {
        self.lab.shell(1, "timeout 20 sh -c 'echo > /tmp/end'").done();
        outcome(recorder)
    }

    /// Copies the session out of level 1.
    pub(crate) fn session(&self) -> PathBuf {
        self.session_with(&[])
    }

    /// The same, with the samples of both sides.
    pub(crate) fn sampled_session(&self) -> PathBuf {
        let samples = ["host.data", "host.clock", "guest-l2.data", "guest-l2.clock"];
        let code = ["host.kcore", "guest-l2.kcore"];
        self.session_with(&[&samples[..], &code].concat())
    }

    /// The same, with these files.
    pub(crate) fn session_with(&self, more: &[&str]) -> PathBuf {
        self.files(&[&["host.dat", "guest-l2.dat", "session.json"][..], more].concat())
    }

    /// The recording and the samples of the host alone.
    pub(crate) fn session_of_host(&self) -> PathBuf {
        self.files(&["host.dat", "session.json", "host.data", "host.clock"])
    }

    fn files(&self, names: &[&str]) -> PathBuf {
        let session = self.folder.path().join("s");
        let _ = std::fs::remove_dir_all(&session);
        std::fs::create_dir(&session).unwrap();
        for file in names {
            let to = session.join(file);
            self.lab.run(&["get", "1", &format!("/tmp/r/{file}"), to.to_str().unwrap()]).done();
        }
        session
    }
}

pub(crate) fn outcome(recorder: Child) -> (bool, String) {
    let ran = Patient::new(recorder, "hyperscope record".into()).finish(ENDING);
    (ran.code == Some(0), ran.stderr)
}

/// The agent's program.
pub(crate) fn agent() -> PathBuf {
    testkit::program_of("hyperscope-agent", env!("CARGO_BIN_EXE_hyperscope"))
}

pub(crate) fn hyperscope(arguments: &[&str]) -> Ran {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hyperscope"));
    command.args(arguments);
    run(command).done()
}

pub(crate) fn json(arguments: &[&str]) -> Value {
    serde_json::from_str(&hyperscope(arguments).stdout).unwrap()
}

/// The counts of events in a file, and their sum.
pub(crate) fn events(file: &Path) -> (Value, u64) {
    let info = json(&["info", "--format", "json", file.to_str().unwrap()]);
    let file = &info["files"][0];
    assert_eq!(file["losses"]["pages_damaged"], 0, "{file}");
    let counts = file["events"].clone();
    let all = counts.as_object().unwrap().values().map(|count| count.as_u64().unwrap()).sum();
    (counts, all)
}
