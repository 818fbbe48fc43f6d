//! Other programs that change a flight recorder's tracing instance, or its folder.

use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::Stdio;

use crate::agent::Agent;
use crate::flight::{dump, end, lacks_nothing, recorded, start, started};
use crate::tool::{
    OWN, TRACEFS, command, info, left_in_tracefs, lock_tracing, read_pages_during_calls, run,
    start_programs, wait_until,
};

/// Changes of the instance by other programs make losses unknown in every dump that may overlap with them, and
/// in no other.
#[test]
fn a_changed_instance_makes_losses_of_its_dumps_unknown() {
    let Some(_lock) = lock_tracing() else { return };
    let folder = tempfile::tempdir().unwrap();
    let recorder = start(folder.path(), &["--flight", "60s", "-e", "sched_process_exec"]);
    let instance = Path::new(TRACEFS).join(format!("instances/hyperscope-{}", recorder.pid()));
    let event = "events/sched/sched_process_exec/enable";
    start_programs(5);
    lacks_nothing(&dump(&recorder, "undisturbed"));
    for (file, there, back) in [
        ("trace", "", ""),
        ("tracing_on", "0", "1"),
        ("trace_clock", "counter", "mono"),
        ("tracing_cpumask", "1", "3"),
        (event, "0", "1"),
    ] {
        fs::write(instance.join(file), there).unwrap();
        fs::write(instance.join(file), back).unwrap();
        start_programs(5);
        // The second dump also overlaps with it.
        for which in ["first", "second"] {
            let session = dump(&recorder, which);
            let losses = info(&session)["losses"].clone();
            assert_eq!(losses["known"], false, "{file}, {which}: {losses}");
            let faults = recorded(&session)["faults"].to_string();
            assert!(faults.contains("another program changed the tracing instance"), "{faults}");
            assert!(faults.contains(file), "{file}, {which}: {faults}");
        }
    }
    end(recorder);
}

/// Pages that other programs take from the buffers are missing in the dump.
#[test]
fn pages_that_others_read_are_missing_in_dumps() {
    let Some(_lock) = lock_tracing() else { return };
    let folder = tempfile::tempdir().unwrap();
    let recorder = start(folder.path(), &["--flight", "60s", "-e", "raw_syscalls:sys_enter"]);
    let instance = Path::new(TRACEFS).join(format!("instances/hyperscope-{}", recorder.pid()));
    read_pages_during_calls(&instance);
    let losses = info(&dump(&recorder, "read by others"))["losses"].clone();
    let missing =
        losses["events_missing"].as_u64().unwrap() + losses["events_lost"].as_u64().unwrap();
    assert!(missing > 0 || losses["known"] == false, "{losses}");
    end(recorder);
}

/// Sessions follow their moved folder; a removed folder ends the recorder with a message.
#[test]
fn a_folder_that_is_moved_or_removed_is_named_as_it_is() {
    let Some(_lock) = lock_tracing() else { return };
    let folder = tempfile::tempdir().unwrap();
    let (to, moved) = (folder.path().join("flight"), folder.path().join("moved"));
    let mut record = command(&["record", "-o", to.to_str().unwrap(), "-e", "sched_process_exec"]);
    let record = record.args(["--flight", "2s"]).stderr(Stdio::piped()).spawn().unwrap();
    let mut recorder = Agent(record);
    let pid = recorder.pid();
    wait_until("it can't be asked", || {
        Path::new(&format!("/run/hyperscope/{pid}.flight")).exists()
    });
    start_programs(3);
    fs::rename(&to, &moved).unwrap();
    let session = dump(&recorder, "moved");
    assert!(session.starts_with(&moved), "{session:?}");
    assert_eq!(started(&session, OWN), 3);
    lacks_nothing(&session);
    // The recorder creates files in it meanwhile.
    wait_until("its folder stays", || fs::remove_dir_all(&moved).is_ok());
    let ran = run(&["flight", "dump", "--pid", &pid.to_string()]);
    let is_over = ran.stderr.contains("no flight recorder runs");
    assert!(ran.code == Some(1) && (is_over || ran.stderr.contains("was removed")), "{ran:?}");
    // It ends on its own.
    let ended = recorder.0.wait().unwrap();
    let mut messages = String::new();
    recorder.0.stderr.take().unwrap().read_to_string(&mut messages).unwrap();
    assert_eq!(ended.code(), Some(1), "{messages}");
    let last = messages.lines().last().unwrap_or_default();
    assert!(last.contains("flight") && last.contains("was removed during recording"), "{messages}");
    assert_eq!(left_in_tracefs(), Vec::<String>::new());
}
