//! The processes of a lab, found by their command lines, so that none is missed even if the program that started them
//! is gone.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, test_kill_process};

/// Max time for a killed process to disappear.
const DYING: Duration = Duration::from_secs(10);

/// The processes with sockets in this folder.
pub(crate) fn of_run(run: &Path) -> Vec<Pid> {
    // QEMU's command line escapes a comma as two.
    let socket = format!("path={}/", run.display().to_string().replace(',', ",,"));
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let numbers = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    numbers.filter(|&number| mentions(number, &socket)).filter_map(Pid::from_raw).collect()
}

fn mentions(number: i32, text: &str) -> bool {
    let Ok(line) = fs::read(format!("/proc/{number}/cmdline")) else { return false };
    line.split(|&byte| byte == 0).any(|word| String::from_utf8_lossy(word).contains(text))
}

/// Whether a process runs.
pub(crate) fn is_alive(pid: Pid) -> bool {
    // An ended child of this process stays as a zombie, which has no command line.
    test_kill_process(pid).is_ok()
        && fs::read(format!("/proc/{}/cmdline", pid.as_raw_nonzero()))
            .is_ok_and(|line| !line.is_empty())
}

/// Waits until all have ended; kills the remaining ones after `patience`.
pub(crate) fn end(pids: &[Pid], patience: Duration) {
    if wait(pids, patience) {
        return;
    }
    for &pid in pids {
        // Fails if it has just ended.
        let _ = kill_process(pid, Signal::KILL);
    }
    wait(pids, DYING);
}

fn wait(pids: &[Pid], patience: Duration) -> bool {
    let deadline = Instant::now() + patience;
    while pids.iter().any(|&pid| is_alive(pid)) {
        if Instant::now() > deadline {
            return false;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    true
}
