//! Starts, kills and inspects recorders from outside.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use crate::tool::wait_until;

pub(crate) const INSTANCES: &str = "/sys/kernel/tracing/instances";

pub(crate) fn hyperscope(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hyperscope"));
    command.args(arguments);
    command
}

/// The result of a run: its code, its output, its messages.
pub(crate) fn run(command: &mut Command) -> (Option<i32>, String, String) {
    let Output { status, stdout, stderr } = command.output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (status.code(), text(&stdout), text(&stderr))
}

/// A recorder; dropping this kills it, and its guard finishes the recording.
#[derive(Debug)]
pub(crate) struct Recorder(Child);

impl Recorder {
    pub(crate) fn id(&self) -> u32 {
        self.0.id()
    }

    pub(crate) fn kill(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }

    /// Whether it ended successfully.
    pub(crate) fn ends(&mut self) -> bool {
        self.0.wait().unwrap().success()
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts a recorder of program starts, and waits until it records.
pub(crate) fn start(session: &Path, more: &[&str]) -> Recorder {
    let arguments = ["record", "-e", "sched_process_exec", "-o", session.to_str().unwrap()];
    let mut command = hyperscope(&arguments);
    let recorder = Recorder(command.args(more).stderr(Stdio::null()).spawn().unwrap());
    wait_until("it did not begin", || {
        let instance = format!("{INSTANCES}/hyperscope-{}", recorder.id());
        let reads = |file| fs::read_to_string(format!("{instance}/{file}")).unwrap_or_default();
        reads("set_event").contains("sched_process_exec") && reads("tracing_on").trim() == "1"
    });
    recorder
}

/// The instances of recorders in tracefs.
pub(crate) fn instances() -> Vec<String> {
    let names = fs::read_dir(INSTANCES).unwrap().flatten();
    let names = names.filter_map(|entry| entry.file_name().into_string().ok());
    names.filter(|name| name.starts_with("hyperscope-")).collect()
}

/// The number of programs named `true` in a recording.
pub(crate) fn programs_in(recording: &Path) -> usize {
    let (_, events, _) =
        run(&mut hyperscope(&["events", "--format", "jsonl", recording.to_str().unwrap()]));
    events.lines().filter(|line| line.contains("/true\"")).count()
}
