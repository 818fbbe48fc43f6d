//! A hanging guest is detected within half a minute while a command waits for it; an idle guest is left alone.

use std::time::{Duration, Instant};

use crate::patience::Patient;
use crate::tool::{TestLab, can_run_all};

/// Max time until detection, from its last sign of life.
const FOUND: Duration = Duration::from_secs(30);
/// Additional time for starting and ending programs on a loaded system.
const SLACK: Duration = Duration::from_secs(15);
/// Longer than the detection of a hanging guest.
const IDLE: &str = "sleep 40; echo slept";

#[test]
fn a_guest_that_stands_still_is_found_within_half_a_minute() {
    if !can_run_all() {
        return;
    }
    let lab = TestLab::new("still");
    lab.run(&["up", "--levels", "2"]).done();
    assert_eq!(lab.shell(2, IDLE).done().stdout, "slept\n");

    let waits = Patient::start(lab.command(&["exec", "2", "--", "sleep", "1000"]));
    lab.shell(2, "until pidof sleep; do sleep 0.1; done").done();
    lab.shell(1, "killall -STOP qemu-system-x86_64").done();
    let start = Instant::now();
    let ran = waits.finish(FOUND + SLACK);
    eprintln!("found after {:.1} s: {}", start.elapsed().as_secs_f64(), ran.stderr);
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.contains("level 2 hangs"), "{}", ran.stderr);
    assert!(ran.stderr.contains("a signal stopped its QEMU"), "{}", ran.stderr);

    lab.shell(1, "killall -CONT qemu-system-x86_64").done();
    assert_eq!(lab.shell(2, "echo alive").done().stdout, "alive\n");

    // A command that starts to wait later fails just as soon.
    lab.run(&["monitor", "2", "stop"]).done();
    let start = Instant::now();
    let ran = Patient::start(lab.command(&["exec", "2", "--", "true"])).finish(FOUND + SLACK);
    eprintln!("found after {:.1} s: {}", start.elapsed().as_secs_f64(), ran.stderr);
    assert!(ran.stderr.contains("its vCPUs do not run"), "{}", ran.stderr);
}
