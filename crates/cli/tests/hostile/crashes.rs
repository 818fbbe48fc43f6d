//! A recorder is killed together with its guard, as happens with its cgroup: the next one saves the
//! events that are still in the kernel.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::process::{Pid, Signal, kill_process};

use crate::recorders::{INSTANCES, Recorder, hyperscope, instances, programs_in, run, start};
use crate::tool::{lock_tracing, start_programs, wait_until};

const PROGRAMS: u32 = 20;

/// Kills a recorder and its guard in such a way that neither detects the other's end.
fn kill_both(mut recorder: Recorder) {
    let guards = guards_of(recorder.id());
    assert_eq!(guards.len(), 1);
    for pid in &guards {
        kill_process(*pid, Signal::STOP).unwrap();
    }
    recorder.kill();
    for pid in guards {
        kill_process(pid, Signal::KILL).unwrap();
        wait_until("its guard stays", || rustix::process::test_kill_process(pid).is_err());
    }
}

/// Guard processes of a process.
fn guards_of(pid: u32) -> Vec<Pid> {
    let wanted = format!("--guard\0{pid}\0");
    let guards = fs::read_dir("/proc").unwrap().flatten().filter(|process| {
        let line = fs::read(process.path().join("cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).contains(&wanted)
    });
    let pids = guards.filter_map(|process| process.file_name().to_str()?.parse().ok());
    pids.filter_map(Pid::from_raw).collect()
}

/// Records briefly; returns the messages.
fn record_next(session: &Path) -> String {
    let to = session.to_str().unwrap();
    let (code, _, stderr) =
        run(&mut hyperscope(&["record", "-e", "sched_process_exec", "--for", "100ms", "-o", to]));
    assert_eq!(code, Some(0), "{stderr}");
    stderr
}

fn owners() -> Vec<PathBuf> {
    let files = fs::read_dir("/run/hyperscope").into_iter().flatten().flatten();
    files.map(|entry| entry.path()).collect()
}

#[test]
fn what_a_recorder_left_that_was_killed_with_its_guard_is_saved_by_the_next_one() {
    let Some(_lock) = lock_tracing() else { return };
    let place = tempfile::tempdir().unwrap();
    let (killed, next) = (place.path().join("killed"), place.path().join("next"));
    let recorder = start(&killed, &[]);
    let pid = recorder.id();
    start_programs(PROGRAMS);
    kill_both(recorder);
    assert_eq!(instances(), [format!("hyperscope-{pid}")]);
    let stderr = record_next(&next);
    assert!(stderr.contains(&format!("process {pid}")), "{stderr}");
    assert!(stderr.contains(killed.to_str().unwrap()), "{stderr}");
    assert_eq!(programs_in(&killed), PROGRAMS as usize, "{stderr}");
    assert_eq!((instances(), owners()), (Vec::new(), Vec::new()));
    assert!(!killed.join(".recorder").exists());
}

#[test]
fn without_its_session_the_rest_goes_to_a_new_folder_that_is_said() {
    let Some(_lock) = lock_tracing() else { return };
    let place = tempfile::tempdir().unwrap();
    let (killed, next) = (place.path().join("killed"), place.path().join("next"));
    let recorder = start(&killed, &[]);
    let pid = recorder.id();
    start_programs(PROGRAMS);
    kill_both(recorder);
    // Another folder has its name now: nothing is written there.
    fs::rename(&killed, place.path().join("elsewhere")).unwrap();
    fs::create_dir(&killed).unwrap();
    let stderr = record_next(&next);
    let recovered = place.path().join(format!("recovered-{pid}.hscope"));
    assert!(stderr.contains(recovered.to_str().unwrap()), "{stderr}");
    assert_eq!(programs_in(&recovered), PROGRAMS as usize, "{stderr}");
    assert_eq!(fs::read_dir(&killed).unwrap().count(), 0);
    assert_eq!((instances(), owners()), (Vec::new(), Vec::new()));
}

#[test]
fn a_process_that_looks_like_a_guard_keeps_nothing_from_being_cleaned_up() {
    let Some(_lock) = lock_tracing() else { return };
    let place = tempfile::tempdir().unwrap();
    let (killed, next) = (place.path().join("killed"), place.path().join("next"));
    let mut recorder = start(&killed, &[]);
    let pid = recorder.id().to_string();
    start_programs(PROGRAMS);
    let mut pretends = Command::new("sh");
    let mut pretends = pretends.args(["-c", "sleep 60", "--guard", &pid]).spawn().unwrap();
    wait_until("it does not start", || guards_of(pid.parse().unwrap()).len() == 2);
    let real: Vec<Pid> = guards_of(pid.parse().unwrap());
    let pretender = Pid::from_child(&pretends);
    for guard in real.into_iter().filter(|guard| *guard != pretender) {
        kill_process(guard, Signal::KILL).unwrap();
    }
    recorder.kill();
    record_next(&next);
    pretends.kill().unwrap();
    pretends.wait().unwrap();
    assert_eq!(instances(), Vec::<String>::new());
    assert_eq!(programs_in(&killed), PROGRAMS as usize);
}

#[test]
fn an_instance_of_nobody_is_saved_too() {
    let Some(_lock) = lock_tracing() else { return };
    let place = tempfile::tempdir().unwrap();
    // The state that an earlier version's recorder leaves; no process has its id any more.
    let mut gone = Command::new("true").spawn().unwrap();
    gone.wait().unwrap();
    let instance = Path::new(INSTANCES).join(format!("hyperscope-{}", gone.id()));
    fs::create_dir(&instance).unwrap();
    fs::write(instance.join("events/sched/sched_process_exec/enable"), "1").unwrap();
    start_programs(PROGRAMS);
    let stderr = record_next(&place.path().join("next"));
    let recovered = place.path().join(format!("recovered-{}.hscope", gone.id()));
    assert_eq!(programs_in(&recovered), PROGRAMS as usize, "{stderr}");
    assert_eq!(instances(), Vec::<String>::new());
}
