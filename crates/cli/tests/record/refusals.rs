//! Impossible recordings are refused before anything is set up.

use std::os::unix::process::CommandExt;

use crate::tool::{command, left_in_tracefs, lock_tracing, run};

fn refused(arguments: &[&str], words: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    let session = folder.path().join("s");
    let all: Vec<&str> = ["record", "-o", session.to_str().unwrap()]
        .into_iter()
        .chain(arguments.iter().copied())
        .collect();
    let ran = run(&all);
    assert_eq!(ran.code, Some(1), "{arguments:?}: {}", ran.stderr);
    for word in words {
        assert!(ran.stderr.contains(word), "{word} is not in {}", ran.stderr);
    }
    assert!(!session.exists(), "{arguments:?}");
    assert_eq!(left_in_tracefs(), Vec::<String>::new());
}

#[test]
fn names_that_are_not_there() {
    let Some(_lock) = lock_tracing() else { return };
    refused(&["-e", "sched_swich"], &["unknown event sched_swich", "did you mean sched_switch"]);
    refused(&["--vm", "nobody"], &["no VM nobody"]);
    refused(&["--clock", "sundial"], &["unknown clock sundial", "mono"]);
    refused(&["--kprobe", "no_such_function_at_all"], &["no_such_function_at_all"]);
}

#[test]
fn without_root() {
    let Some(_lock) = lock_tracing() else { return };
    let folder = tempfile::tempdir().unwrap();
    let mut command = command(&["record", "--for", "1s"]);
    // The user nobody.
    let ran = command.current_dir(folder.path()).uid(65534).gid(65534).output();
    let Ok(ran) = ran else { return testkit::skip!("this program can't be run by nobody") };
    let stderr = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.code() == Some(1) && stderr.contains("needs root"), "{stderr}");
}

#[test]
fn hosts_and_guests_that_would_sample_each_others_sampling() {
    for guest_hz in ["499", "998"] {
        let sample = ["--sample", "499", "--guest", "g=vsock:99", "--guest-sample", guest_hz];
        let words: Vec<&str> = ["record", "--for", "1s"].into_iter().chain(sample).collect();
        let ran = run(&words);
        assert!(ran.code == Some(2) && ran.stderr.contains("499 and 397"), "{ran:?}");
    }
}

#[test]
fn wrong_times() {
    for time in ["x", "-1s", "5y", "0", "0s"] {
        assert_eq!(run(&["record", &format!("--for={time}")]).code, Some(2), "{time}");
    }
}
