//! Runs the command under test.

use std::path::{Path, PathBuf};
use std::process::Command;

/// What a run left behind.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

/// The repository: commands run there, so that paths in outputs are the same everywhere.
pub(crate) fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// The built program, in an environment that says nothing of terminals and of servers.
pub(crate) fn command() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hyperscope"));
    command.current_dir(repository()).env_remove("COLUMNS").env_remove("NO_COLOR");
    command.env_remove("DEBUGINFOD_URLS");
    command
}

/// Runs `hyperscope` with these arguments.
pub(crate) fn hyperscope(args: &[&str]) -> Run {
    let output = command().args(args).output().unwrap();
    Run {
        code: output.status.code().unwrap_or(-1),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

/// Standard output of a run that has to succeed without a word on standard error, but for what its recording
/// lost: one of the bundled ones, and one of LTTng's, lack events.
pub(crate) fn output_of(args: &[&str]) -> String {
    let run = hyperscope(args);
    let is_loss = |line: &&str| {
        line.ends_with("events that the kernel counted and the recording does not hold")
            || line.contains(": LTTng dropped ")
    };
    let err: Vec<&str> = run.err.lines().filter(|line| !is_loss(line)).collect();
    assert_eq!((run.code, err.join("\n").as_str()), (0, ""), "hyperscope {}", args.join(" "));
    run.out
}

/// Standard output of a run of a part of recordings, which says on standard error what it leaves out.
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
