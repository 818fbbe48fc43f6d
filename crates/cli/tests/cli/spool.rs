//! Recordings from a pipe: up to `--max-spool`, and not in memory.

use std::fs;
use std::process::Stdio;

use crate::tool::{Run, command, output_of};

const LARGE: &str = "fixtures/x86-svm/nested.dat";

/// Runs a verb with 24 MB on its standard input: a recording, followed by unrelated bytes.
fn with_pipe(args: &str) -> Run {
    let folder = tempfile::tempdir().unwrap();
    let program = env!("CARGO_BIN_EXE_hyperscope");
    let line = format!("{{ cat {LARGE}; head -c 16M /dev/zero; }} | {program} {args} /dev/stdin");
    let mut shell = std::process::Command::new("sh");
    shell.current_dir(command().get_current_dir().unwrap()).env("TMPDIR", folder.path());
    let output = shell.args(["-c", &line]).stdin(Stdio::null()).output().unwrap();
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "something is left");
    Run {
        code: output.status.code().unwrap_or(-1),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

#[test]
fn what_a_pipe_delivers_does_not_count_as_memory() {
    let run = with_pipe("exits --format json --max-memory 16M");
    assert_eq!((run.code, run.err.as_str()), (0, ""));
    let of_file = output_of(&["exits", "--format", "json", LARGE]);
    assert_eq!(run.out.replace("/dev/stdin", LARGE), of_file);
}

#[test]
fn a_pipe_that_delivers_more_than_it_may_is_an_error_that_names_the_limit() {
    for (limit, named) in [("20M", "20971520"), ("100K", "102400")] {
        let run = with_pipe(&format!("exits --max-spool {limit}"));
        assert_eq!((run.code, run.out.as_str()), (1, ""));
        let named =
            format!("/dev/stdin is a pipe or compressed, and yields more than the {named} bytes");
        assert!(run.err.contains(&named) && run.err.contains("--max-spool"), "{}", run.err);
    }
}
