//! Runs the command under test.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, LazyLock, OnceLock};

use parking_lot::Mutex;

/// Verbs whose output depends only on their arguments and files.
const REPORTS: [&str; 18] = [
    "advice", "align", "boot", "calls", "cpu", "critical", "diff", "events", "exits", "info",
    "irqs", "nested", "path", "profile", "report", "virtio", "vmm", "why",
];

/// Runs with more output are not shared between tests: pages of ten recordings have less.
const MAX_KEPT_BYTES: usize = 4 << 20;

/// Runs by arguments, `None` if they printed too much; the first test that needs a run makes it, and others wait.
type Runs = HashMap<Vec<String>, Arc<OnceLock<Option<Run>>>>;

static KEPT: LazyLock<Mutex<Runs>> = LazyLock::new(Mutex::default);

/// The result of a run.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

/// The repository: commands run there, so that paths in outputs are the same everywhere.
pub(crate) fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// The built program next to those that it starts, in an environment without settings of terminals and servers.
pub(crate) fn command() -> Command {
    let program = env!("CARGO_BIN_EXE_hyperscope");
    for other in ["hyperscope-lab", "hyperscope-fleet"] {
        testkit::program_of(other, program);
    }
    let mut command = Command::new(program);
    command.current_dir(repository()).env_remove("COLUMNS").env_remove("NO_COLOR");
    command.env_remove("DEBUGINFOD_URLS");
    command
}

/// Runs `hyperscope` with these arguments. Many tests compare reports, so several need the same report of a bundled
/// recording: it is made once. A test of repeated runs uses [`command`] itself.
pub(crate) fn hyperscope(args: &[&str]) -> Run {
    if !is_repeatable(args) {
        return run(args);
    }
    let key = args.iter().map(|&arg| arg.to_owned()).collect();
    let cell = Arc::clone(KEPT.lock().entry(key).or_default());
    let mut too_long = None;
    let shared = cell.get_or_init(|| {
        let run = run(args);
        if run.out.len() + run.err.len() <= MAX_KEPT_BYTES {
            return Some(run);
        }
        too_long = Some(run);
        None
    });
    shared.clone().or(too_long).unwrap_or_else(|| run(args))
}

/// Whether the arguments request a report of bundled recordings, which no test changes.
fn is_repeatable(args: &[&str]) -> bool {
    let is_bundled = |arg: &&str| arg.starts_with("fixtures/") || !arg.contains('/');
    args.first().is_some_and(|verb| REPORTS.contains(verb))
        && !args.contains(&"-o")
        && args.iter().all(is_bundled)
}

fn run(args: &[&str]) -> Run {
    let output = command().args(args).output().unwrap();
    Run {
        code: output.status.code().unwrap_or(-1),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

/// Standard output of a run that must succeed without messages, except about losses: one bundled recording and one of
/// LTTng's lack events.
pub(crate) fn output_of(args: &[&str]) -> String {
    let run = hyperscope(args);
    let is_loss = |line: &&str| {
        line.ends_with("events that the kernel counted but the recording does not contain")
            || line.contains(": LTTng dropped ")
    };
    let err: Vec<&str> = run.err.lines().filter(|line| !is_loss(line)).collect();
    assert_eq!((run.code, err.join("\n").as_str()), (0, ""), "hyperscope {}", args.join(" "));
    run.out
}

/// Standard output of a run on a part of recordings, which reports omissions on standard error.
pub(crate) fn output_of_part(args: &[&str]) -> String {
    let run = hyperscope(args);
    assert_eq!(run.code, 0, "hyperscope {}: {}", args.join(" "), run.err);
    assert!(run.err.contains("left out: "), "hyperscope {}: {}", args.join(" "), run.err);
    run.out
}

/// All bundled recordings, as paths from the repository's root.
pub(crate) fn recordings() -> Vec<String> {
    let mut found = Vec::new();
    for folder in ["arm64", "x86-svm", "x86-vmx"] {
        for entry in std::fs::read_dir(repository().join("fixtures").join(folder)).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            if name.ends_with(".dat") {
                found.push(format!("fixtures/{folder}/{name}"));
            }
        }
    }
    found.sort();
    assert!(found.len() >= 11, "{found:?}");
    found
}

/// Compares with `golden/NAME`.
pub(crate) fn assert_golden(name: &str, actual: &str) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/golden");
    testkit::assert_golden(folder.join(name), actual);
}
