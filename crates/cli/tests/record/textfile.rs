//! `hyperscope serve --textfile`: metrics for the textfile collector of node_exporter.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::tool::{lock_tracing, run};

/// Intervals in the page of a file; `None`: it is missing or incomplete.
fn intervals(file: &Path) -> Option<u64> {
    let text = fs::read_to_string(file).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("hyperscope_self_intervals_total "));
    line?.trim().parse().ok()
}

#[test]
fn the_file_goes_on_and_is_gone_at_the_end() {
    let Some(_lock) = lock_tracing() else { return };
    let as_root = run(&["serve", "--once", "--interval", "100ms"]);
    if as_root.code != Some(0) {
        testkit::skip!("{}", as_root.stderr);
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("hyperscope.prom");
    let mut command = Command::new(env!("CARGO_BIN_EXE_hyperscope"));
    command.args(["serve", "--interval", "50ms", "--textfile"]).arg(&file).stdin(Stdio::null());
    let mut serve = command.spawn().unwrap();
    let start = Instant::now();
    while intervals(&file) < Some(3) {
        assert!(serve.try_wait().unwrap().is_none() && start.elapsed() < Duration::from_secs(60));
        // Readers see only complete pages.
        assert!(!file.exists() || intervals(&file).is_some());
        std::thread::sleep(Duration::from_millis(5));
    }
    kill_process(Pid::from_child(&serve), Signal::TERM).unwrap();
    assert!(serve.wait().unwrap().success());
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);

    let nowhere = run(&["serve", "--textfile", "/nowhere/hyperscope.prom"]);
    assert_eq!(nowhere.code, Some(1));
    assert!(
        nowhere.stderr.contains("cannot create /nowhere/hyperscope.prom"),
        "{}",
        nowhere.stderr
    );
}
