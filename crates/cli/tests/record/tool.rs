//! Runs the command under test, and looks at tracefs from outside.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};
use rustix::fs::{FlockOperation, flock};
use serde_json::Value;

pub(crate) const TRACEFS: &str = "/sys/kernel/tracing";

/// What a run said.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Self {
            code: output.status.code(),
            stdout: text(&output.stdout),
            stderr: text(&output.stderr),
        }
    }
}

/// Leave to record this machine, until dropped: no other test does meanwhile, in this process or in
/// another.
pub(crate) struct TracingLock {
    _in_process: MutexGuard<'static, ()>,
    /// Locked: the kernel gives the lock back however the process ends.
    _on_machine: File,
}

/// Whether this machine can be recorded; says why not. Tests that record take turns: they look at
/// what is left in tracefs.
pub(crate) fn lock_tracing() -> Option<TracingLock> {
    static LOCK: Mutex<()> = Mutex::new(());
    let in_process = LOCK.lock();
    let instances = Path::new(TRACEFS).join("instances");
    if !instances.is_dir() {
        // Mounts it where it isn't, and is allowed to.
        let _ = Command::new("mount").args(["-t", "tracefs", "nodev", TRACEFS]).output();
    }
    let locked = File::open(&instances)
        .and_then(|folder| Ok(flock(&folder, FlockOperation::LockExclusive).map(|()| folder)?));
    let probe = instances.join("test-of-hyperscope");
    let (Ok(on_machine), Ok(())) = (locked, fs::create_dir(&probe)) else {
        testkit::skip!("no instance of tracefs can be made here");
        return None;
    };
    fs::remove_dir(&probe).unwrap();
    *BEFORE.lock() = all_in_tracefs();
    Some(TracingLock { _in_process: in_process, _on_machine: on_machine })
}

/// An environment mark of the processes that these tests start, and of their children: other recorders of this
/// machine do not have it.
const MARK: &str = "HYPERSCOPE_STARTED_BY_TESTS";

pub(crate) fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hyperscope"));
    command.args(arguments).env_remove("DEBUGINFOD_URLS");
    mark(&mut command);
    command
}

/// Marks a process that is to be started as one of these tests'.
pub(crate) fn mark(command: &mut Command) {
    command.env(MARK, std::process::id().to_string());
}

/// Whether a recorder runs that these tests did not start.
fn is_others(pid: u32) -> bool {
    let Ok(variables) = fs::read(format!("/proc/{pid}/environ")) else { return false };
    let mark = format!("{MARK}={}", std::process::id());
    // One that has ended and was not waited for has none.
    !variables.is_empty()
        && variables.split(|byte| *byte == 0).all(|variable| variable != mark.as_bytes())
}

pub(crate) fn run(arguments: &[&str]) -> Ran {
    command(arguments).output().unwrap().into()
}

/// What recorders that these tests started have in tracefs now: instances, and probes. What others have, who
/// record this machine meanwhile, is none of theirs.
pub(crate) fn left_in_tracefs() -> Vec<String> {
    let before = BEFORE.lock().clone();
    let mut leftovers = all_in_tracefs();
    leftovers.retain(|name| !owner(name).is_some_and(is_others) && !before.contains(name));
    leftovers
}

/// What was there when these tests had leave to record: others', whether they still run or not.
static BEFORE: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// What recorders have in tracefs now.
fn all_in_tracefs() -> Vec<String> {
    let entries = fs::read_dir(Path::new(TRACEFS).join("instances")).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut leftovers: Vec<String> = names.filter(|name| name.starts_with("hyperscope-")).collect();
    let probes = fs::read_to_string(Path::new(TRACEFS).join("kprobe_events")).unwrap_or_default();
    leftovers.extend(probes.lines().filter(|line| line.contains("hyperscope_")).map(str::to_owned));
    leftovers
}

/// The process whose an instance or a probe is, by its name.
fn owner(name: &str) -> Option<u32> {
    let rest = name.split_once("hyperscope").map(|(_, rest)| rest.get(1..).unwrap_or_default())?;
    rest.split(|char: char| !char.is_ascii_digit()).next()?.parse().ok()
}

/// What `hyperscope info` says of a session's host.
pub(crate) fn info(session: &Path) -> Value {
    file_info(session)
}

/// What `hyperscope info` says of a recording.
pub(crate) fn file_info(path: &Path) -> Value {
    let ran = run(&["info", "--format", "json", path.to_str().unwrap()]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    serde_json::from_str::<Value>(&ran.stdout).unwrap()["files"][0].take()
}

/// Waits for something that happens soon.
pub(crate) fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !is_so() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// What is in the files of pages of a recording that goes on.
pub(crate) fn kept_bytes(pages: &Path) -> u64 {
    let files = fs::read_dir(pages).unwrap().map(|file| file.unwrap());
    let cpus = files.filter(|file| file.file_name().to_str().unwrap().starts_with("cpu"));
    cpus.map(|file| file.metadata().unwrap().len()).sum()
}

/// The end of the path of [`own_program`].
pub(crate) const OWN: &str = "started_by_record_tests/true";

/// A program that these tests alone start: what is recorded is the whole machine, and others run `true`, too.
pub(crate) fn own_program() -> &'static Path {
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    PATH.get_or_init(|| {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(OWN);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        match std::os::unix::fs::symlink("/bin/true", &path) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => panic!("{path:?}: {error}"),
            _ => path,
        }
    })
}

pub(crate) fn start_programs(count: u32) {
    for _ in 0..count {
        assert!(Command::new(own_program()).status().unwrap().success());
    }
}

/// Reads the pages of an instance, so that its recorder misses them, while a program makes system calls.
pub(crate) fn read_pages_during_calls(instance: &Path) {
    let cpus = fs::read_dir(instance.join("per_cpu")).unwrap().count();
    let readers: Vec<Child> = (0..cpus)
        .map(|cpu| {
            let pages = instance.join(format!("per_cpu/cpu{cpu}/trace_pipe"));
            Command::new("cat").arg(pages).stdout(Stdio::null()).spawn().unwrap()
        })
        .collect();
    let calls = ["if=/dev/zero", "of=/dev/null", "bs=1", "count=200000"];
    Command::new("dd").args(calls).stderr(Stdio::null()).status().unwrap();
    for mut reader in readers {
        reader.kill().unwrap();
        reader.wait().unwrap();
    }
}

/// How often programs of a name were started, by events as JSON lines.
pub(crate) fn count_started(events: &str, program: &str) -> usize {
    let name = format!("/{program}\"");
    let is_its = |line: &&str| line.contains("sched_process_exec") && line.contains(&name);
    events.lines().filter(is_its).count()
}

/// What a session says of itself, which is as its schema has it.
pub(crate) fn session_json(session: &Path) -> Value {
    let text = fs::read_to_string(session.join("session.json")).unwrap();
    let stored: Value = serde_json::from_str(&text).unwrap();
    let schema = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/formats/session.schema.json");
    let schema: Value = serde_json::from_str(&fs::read_to_string(schema).unwrap()).unwrap();
    let valid = jsonschema::validate(&schema, &stored);
    assert!(valid.is_ok(), "{valid:?}");
    stored
}
