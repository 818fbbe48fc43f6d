//! Other programs change a recording's tracing instance: losses are then unknown, or counted. The recorder's last
//! lines, `info` and `session.json` agree.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::agent::signal;
use crate::tool::{
    TRACEFS, command, file_info, lock_tracing, read_pages_during_calls, run, session_json,
    start_programs, wait_until,
};

struct Recorder {
    child: Child,
    folder: tempfile::TempDir,
}

impl Recorder {
    fn begin(event: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut child = command(&["record", "-e", event, "--for", "120s", "-o", "s"]);
        let child = child.current_dir(folder.path()).stderr(Stdio::piped()).spawn().unwrap();
        let recorder = Self { child, folder };
        // A new instance is enabled until it is switched off.
        let pages = recorder.folder.path().join("s/host.pages/cpu0");
        wait_until("it does not begin", || {
            let on = fs::read_to_string(recorder.file("tracing_on"));
            pages.exists() && on.is_ok_and(|on| on.trim() == "1")
        });
        // The recorder begins to watch for changes right after that.
        std::thread::sleep(Duration::from_millis(300));
        start_programs(5);
        recorder
    }

    /// A file of its instance.
    fn file(&self, name: &str) -> PathBuf {
        Path::new(TRACEFS).join(format!("instances/hyperscope-{}/{name}", self.child.id()))
    }

    fn set(&self, name: &str, text: &str) {
        fs::write(self.file(name), text).unwrap();
    }

    /// Ends it; returns code, messages, the output of `info`, and the session's document.
    fn end(self) -> (Option<i32>, String, Value, Value) {
        start_programs(5);
        signal(self.child.id(), "INT");
        let ended = self.child.wait_with_output().unwrap();
        let messages = String::from_utf8_lossy(&ended.stderr).into_owned();
        let session = self.folder.path().join("s");
        let info = file_info(&session)["losses"].take();
        (ended.status.code(), messages, info, session_json(&session)["recorded"].take())
    }
}

#[test]
fn a_changed_instance_makes_losses_unknown_everywhere() {
    let Some(_lock) = lock_tracing() else { return };
    let event = "events/sched/sched_process_exec/enable";
    for (file, there, back) in [
        ("trace", "", ""),
        ("tracing_on", "0", "1"),
        ("trace_clock", "counter", "mono"),
        ("tracing_cpumask", "1", "1"),
        (event, "0", "1"),
    ] {
        let recorder = Recorder::begin("sched_process_exec");
        recorder.set(file, there);
        start_programs(5);
        recorder.set(file, back);
        let (code, messages, info, session) = recorder.end();
        assert_eq!(code, Some(1), "{file}: {messages}");
        assert!(messages.contains(&format!("(it wrote {file}")), "{file}: {messages}");
        assert!(
            messages.contains(" KiB of pages, an unknown number of events lost, "),
            "{messages}"
        );
        assert_eq!(info["known"], false, "{file}: {info}");
        let faults = session["faults"].to_string();
        assert!(faults.contains("another program changed the tracing instance"), "{faults}");
    }
}

#[test]
fn a_recording_by_itself_has_lost_nothing() {
    let Some(_lock) = lock_tracing() else { return };
    let (code, messages, info, session) = Recorder::begin("sched_process_exec").end();
    assert_eq!((code, &info["known"]), (Some(0), &Value::Bool(true)), "{messages}");
    assert!(messages.contains(" 0 events lost, "), "{messages}");
    assert_eq!(session["faults"], serde_json::json!([]));
    assert!(session["cpus"].as_array().unwrap().iter().all(|cpu| cpu["missing"] == 0), "{session}");
}

/// Without its session, a file does not claim incomplete counts as complete.
#[test]
fn the_file_alone_does_not_claim_that_nothing_was_lost() {
    let Some(_lock) = lock_tracing() else { return };
    let recorder = Recorder::begin("sched_process_exec");
    recorder.set("trace", "");
    let copy = tempfile::tempdir().unwrap();
    let from = recorder.folder.path().join("s/host.dat");
    let folder = recorder.folder.path().to_owned();
    signal(recorder.child.id(), "INT");
    let Recorder { child, folder: temporary } = recorder;
    assert!(child.wait_with_output().unwrap().status.code().is_some(), "{folder:?}");
    let to = copy.path().join("alone.dat");
    fs::copy(&from, &to).unwrap();
    drop(temporary);
    assert_eq!(file_info(&to)["losses"]["known"], false);
}

#[test]
fn pages_that_others_read_are_counted_as_missing() {
    let Some(_lock) = lock_tracing() else { return };
    let recorder = Recorder::begin("raw_syscalls:sys_enter");
    read_pages_during_calls(&recorder.file(""));
    let (_, messages, info, session) = recorder.end();
    let missing = info["events_missing"].as_u64().unwrap();
    let lost = info["events_lost"].as_u64().unwrap();
    assert!(missing > 0, "{info}: {messages}");
    let cpus = session["cpus"].as_array().unwrap();
    let sum = |key: &str| cpus.iter().map(|cpu| cpu[key].as_u64().unwrap()).sum::<u64>();
    assert_eq!(sum("missing"), missing, "{messages}");
    assert_eq!(sum("overrun") + sum("commit_overrun") + sum("dropped"), lost);
    let summary = format!(" KiB of pages, {} events lost, ", missing + lost);
    assert!(messages.contains(&summary), "{summary}: {messages}");
}

#[test]
fn a_folder_that_is_moved_or_removed_is_named_as_it_is() {
    let Some(_lock) = lock_tracing() else { return };
    let recorder = Recorder::begin("sched_process_exec");
    let folder = recorder.folder.path().to_owned();
    fs::rename(folder.join("s"), folder.join("moved")).unwrap();
    signal(recorder.child.id(), "INT");
    let Recorder { child, folder: _kept } = recorder;
    let ended = child.wait_with_output().unwrap();
    let messages = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert_eq!(ended.status.code(), Some(0), "{messages}");
    let moved = folder.join("moved");
    let last = messages.lines().last().unwrap_or_default();
    assert_eq!(last, format!("hyperscope: session: {}", moved.display()), "{messages}");
    assert!(messages.contains("s was moved during recording"), "{messages}");
    assert_eq!(run(&["exits", moved.to_str().unwrap()]).code, Some(0));

    let recorder = Recorder::begin("sched_process_exec");
    fs::remove_dir_all(recorder.folder.path().join("s")).unwrap();
    signal(recorder.child.id(), "INT");
    let Recorder { child, folder } = recorder;
    let ended = child.wait_with_output().unwrap();
    let messages = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert_eq!(ended.status.code(), Some(1), "{messages}");
    assert!(messages.contains("its folder s was removed"), "{messages}");
    assert!(!messages.contains("can be read"), "{messages}");
    // The next start does not mention that one.
    let to = folder.path().join("next");
    let ran =
        run(&["record", "-e", "sched_process_exec", "--for", "100ms", "-o", to.to_str().unwrap()]);
    assert!(ran.code == Some(0) && !ran.stderr.contains("was killed"), "{}", ran.stderr);
}

/// During a recording, the kernel refuses to remove or rename an instance.
#[test]
fn nobody_takes_the_instance_away() {
    let Some(_lock) = lock_tracing() else { return };
    let recorder = Recorder::begin("sched_process_exec");
    let instance = recorder.file("");
    let busy = fs::remove_dir(&instance).unwrap_err();
    assert_eq!(busy.kind(), std::io::ErrorKind::ResourceBusy);
    assert!(fs::rename(&instance, instance.with_file_name("other")).is_err());
    let (code, messages, info, _) = recorder.end();
    assert_eq!((code, &info["known"]), (Some(0), &Value::Bool(true)), "{messages}");
}

/// In a mount namespace in which a recorder runs, tracefs is unmounted, and its instance disappears.
const UNMOUNTED: &str = "
    \"$1\" record -o s -e sched_process_exec $2 2> messages & recorder=$!
    until grep -q 1 /sys/kernel/tracing/instances/hyperscope-$recorder/tracing_on && grep -q clock messages; do
        sleep 0.1
    done
    sleep 0.5; env true; umount -l /sys/kernel/tracing; env true
    test -z \"$2\" || \"$1\" flight dump --pid $recorder > dumped
    kill -INT $recorder; wait $recorder; echo $?
";

/// Code and messages of a recorder whose instance is gone, and its folder.
fn record_unmounted(more: &str) -> (String, String, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let mut shell = std::process::Command::new("unshare");
    shell.args(["-m", "sh", "-c", UNMOUNTED, "sh", env!("CARGO_BIN_EXE_hyperscope"), more]);
    crate::tool::mark(&mut shell);
    let ran = shell.current_dir(folder.path()).output().unwrap();
    let messages = fs::read_to_string(folder.path().join("messages")).unwrap();
    // The next start cleans up what that one could not.
    let next = folder.path().join("next");
    let next = run(&[
        "record",
        "-e",
        "sched_process_exec",
        "--for",
        "100ms",
        "-o",
        next.to_str().unwrap(),
    ]);
    assert_eq!(next.code, Some(0), "{}", next.stderr);
    assert_eq!(crate::tool::left_in_tracefs(), [""; 0]);
    (String::from_utf8(ran.stdout).unwrap(), messages, folder)
}

#[test]
fn an_instance_that_is_gone_makes_losses_unknown() {
    let Some(_lock) = lock_tracing() else { return };
    let (code, messages, folder) = record_unmounted("");
    assert_eq!(code, "1\n", "{messages}");
    assert!(messages.contains("the recording could not be completed; s holds"), "{messages}");
    assert!(messages.contains("tracing_on: No such file"), "{messages}");
    let session = folder.path().join("s");
    assert_eq!(file_info(&session)["losses"]["known"], false, "{messages}");

    let (_, messages, folder) = record_unmounted("--flight 20s");
    assert!(messages.contains(" disappeared, because tracefs was unmounted"), "{messages}");
    assert!(messages.contains(" KiB of pages, an unknown number of events lost"), "{messages}");
    let session = fs::read_to_string(folder.path().join("dumped")).unwrap();
    assert_eq!(file_info(Path::new(session.trim_end()))["losses"]["known"], false, "{messages}");
}
