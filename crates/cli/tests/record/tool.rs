//! Runs the command under test, and inspects tracefs from outside.

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

/// The output of a run.
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

/// The right to record this machine, until dropped: no other test records meanwhile, in this process or
/// another.
pub(crate) struct TracingLock {
    _in_process: MutexGuard<'static, ()>,
    /// Locked: the kernel releases the lock however the process ends.
    _on_machine: File,
}

/// Locks recording on this machine; prints the reason if it is impossible. Tests that record take turns,
/// because they check leftovers in tracefs.
pub(crate) fn lock_tracing() -> Option<TracingLock> {
    static LOCK: Mutex<()> = Mutex::new(());
    let in_process = LOCK.lock();
    let instances = Path::new(TRACEFS).join("instances");
    if !instances.is_dir() {
        // Mounts it if necessary and permitted.
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

/// Whether another program traces with the kernel's own buffer.
pub(crate) fn kernels_own_buffer_is_in_use() -> bool {
    let read = |name| fs::read_to_string(Path::new(TRACEFS).join(name)).unwrap();
    !read("set_event").trim().is_empty() || read("current_tracer").trim() != "nop"
}

/// An environment variable in all processes that these tests start, and their children; other recorders on
/// this machine lack it.
const MARK: &str = "HYPERSCOPE_STARTED_BY_TESTS";

pub(crate) fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hyperscope"));
    command.args(arguments).env_remove("DEBUGINFOD_URLS");
    mark(&mut command);
    command
}

/// Marks a process before its start.
pub(crate) fn mark(command: &mut Command) {
    command.env(MARK, std::process::id().to_string());
}

/// Whether a recorder was started outside these tests.
fn is_others(pid: u32) -> bool {
    let Ok(variables) = fs::read(format!("/proc/{pid}/environ")) else { return false };
    let mark = format!("{MARK}={}", std::process::id());
    // An ended process without a wait has no environment.
    !variables.is_empty()
        && variables.split(|byte| *byte == 0).all(|variable| variable != mark.as_bytes())
}

pub(crate) fn run(arguments: &[&str]) -> Ran {
    command(arguments).output().unwrap().into()
}

/// Instances and probes in tracefs of recorders that these tests started; those of other recorders don't
/// count.
pub(crate) fn left_in_tracefs() -> Vec<String> {
    let before = BEFORE.lock().clone();
    let mut leftovers = all_in_tracefs();
    leftovers.retain(|name| !owner(name).is_some_and(is_others) && !before.contains(name));
    leftovers
}

/// Entries before these tests got the lock: other recorders', whether they still run or not.
static BEFORE: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// All entries of recorders in tracefs.
fn all_in_tracefs() -> Vec<String> {
    let entries = fs::read_dir(Path::new(TRACEFS).join("instances")).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut leftovers: Vec<String> = names.filter(|name| name.starts_with("hyperscope-")).collect();
    let probes = fs::read_to_string(Path::new(TRACEFS).join("kprobe_events")).unwrap_or_default();
    leftovers.extend(probes.lines().filter(|line| line.contains("hyperscope_")).map(str::to_owned));
    leftovers
}

/// The process id in the name of an instance or a probe.
fn owner(name: &str) -> Option<u32> {
    let rest = name.split_once("hyperscope").map(|(_, rest)| rest.get(1..).unwrap_or_default())?;
    rest.split(|char: char| !char.is_ascii_digit()).next()?.parse().ok()
}

/// The output of `hyperscope info` for a session's host.
pub(crate) fn info(session: &Path) -> Value {
    file_info(session)
}

/// The output of `hyperscope info` for a recording.
pub(crate) fn file_info(path: &Path) -> Value {
    let ran = run(&["info", "--format", "json", path.to_str().unwrap()]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    serde_json::from_str::<Value>(&ran.stdout).unwrap()["files"][0].take()
}

/// Waits for a condition that soon holds.
pub(crate) fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !is_so() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Bytes in the page files of a running recording.
pub(crate) fn kept_bytes(pages: &Path) -> u64 {
    let files = fs::read_dir(pages).unwrap().map(|file| file.unwrap());
    let cpus = files.filter(|file| file.file_name().to_str().unwrap().starts_with("cpu"));
    cpus.map(|file| file.metadata().unwrap().len()).sum()
}

/// The end of the path of [`own_program`].
pub(crate) const OWN: &str = "started_by_record_tests/true";

/// A program that only these tests start: recordings cover the whole machine, and other programs run `true` as
/// well.
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

/// Number of starts of a program, from events as JSON lines.
pub(crate) fn count_started(events: &str, program: &str) -> usize {
    let name = format!("/{program}\"");
    let is_its = |line: &&str| line.contains("sched_process_exec") && line.contains(&name);
    events.lines().filter(is_its).count()
}

/// A session's own document, validated against its schema.
pub(crate) fn session_json(session: &Path) -> Value {
    let text = fs::read_to_string(session.join("session.json")).unwrap();
    let stored: Value = serde_json::from_str(&text).unwrap();
    let schema = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/formats/session.schema.json");
    let schema: Value = serde_json::from_str(&fs::read_to_string(schema).unwrap()).unwrap();
    let valid = jsonschema::validate(&schema, &stored);
    assert!(valid.is_ok(), "{valid:?}");
    stored
}
