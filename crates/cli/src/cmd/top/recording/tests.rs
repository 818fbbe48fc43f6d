//! Tests recordings with programs that replace the recorder.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::thread;

use tempfile::TempDir;

use super::*;

/// A script that records and reports.
const WORKS: &str = r#"
case $1 in
record) mkdir "$7"; echo "hyperscope: recording" >&2; echo "$*" > "$7/host.dat" ;;
report) cp "$2/host.dat" "$4" ;;
esac"#;
/// A script that runs until it is interrupted.
const WAITS: &str = r#"
case $1 in
record) mkdir "$7"; echo > "$7/host.dat"
    trap 'echo ended > "$7/host.dat"; exit 0' INT
    echo "hyperscope: recording" >&2
    while :; do sleep 0.02; done ;;
report) cp "$2/host.dat" "$4" ;;
esac"#;
/// The same, but it ignores the interrupt.
const HANGS: &str = "trap '' INT; while :; do sleep 0.02; done";

fn stand_in(folder: &TempDir, script: &str) -> Recordings {
    let (text, program) = (folder.path().join("text"), folder.path().join("recorder"));
    // A shell cannot trap a signal that was ignored when it started, as SIGINT is in a background job of a script.
    fs::write(&text, format!("#!/usr/bin/env -S --default-signal=INT sh\n{script}\n")).unwrap();
    fs::set_permissions(&text, fs::Permissions::from_mode(0o755)).unwrap();
    testkit::copy_program(&text, &program);
    let times = Times {
        record: Duration::from_secs(10),
        besides: Duration::from_secs(10),
        report: Duration::from_secs(20),
        grace: Duration::from_secs(10),
    };
    Recordings::by(program, times, false)
}

/// Begins a recording as the key does, in a temporary folder.
fn begin(recordings: &mut Recordings, folder: &TempDir) -> PathBuf {
    let session = folder.path().join("web.hscope");
    let vm = ChosenVm { name: "web".to_owned(), process: 4711 };
    recordings.step = recordings.record(&vm, Some("vsock:3".to_owned()), session.clone());
    session
}

/// Continues until the notice is the expected one.
fn wait_for(recordings: &mut Recordings, wanted: impl Fn(&str) -> bool) -> String {
    let end = Instant::now() + Duration::from_secs(20);
    loop {
        recordings.go_on();
        let notice = recordings.notice().unwrap_or_default();
        if wanted(&notice) {
            return notice;
        }
        assert!(Instant::now() < end, "{notice}");
        thread::sleep(Duration::from_millis(5));
    }
}

fn is_idle(recordings: &Recordings) -> bool {
    matches!(recordings.step, Step::Idle(_))
}

#[test]
fn a_recording_ends_as_a_page() {
    let folder = tempfile::tempdir().unwrap();
    let mut recordings = stand_in(&folder, WORKS);
    let session = begin(&mut recordings, &folder);
    let page = session.join("report.html");
    let done = wait_for(&mut recordings, |notice| {
        notice.ends_with("report.html") && notice.starts_with("recorded web: /")
    });
    assert_eq!(done, format!("recorded web: {}", page.display()));
    let command_line = fs::read_to_string(page).unwrap();
    assert_eq!(
        command_line.trim_end(),
        format!("record --vm 4711 --for 10s -o {} --guest vsock:3", session.display())
    );
    assert_eq!(recordings.end(), [done]);
}

#[test]
fn the_key_ends_a_recording_that_runs_and_begins_no_second() {
    let folder = tempfile::tempdir().unwrap();
    let mut recordings = stand_in(&folder, WAITS);
    let session = begin(&mut recordings, &folder);
    let path = session.display();
    let wanted = format!("recording web: 0 of 10 s, into {path} (r stops it)");
    wait_for(&mut recordings, |notice| notice == wanted);
    recordings.press(Some(ChosenVm { name: "db".to_owned(), process: 1 }), None);
    assert_eq!(recordings.notice().unwrap(), format!("recording web: stopping, into {path}"));
    wait_for(&mut recordings, |notice| notice == format!("recorded web: {path}/report.html"));
    assert_eq!(fs::read_to_string(session.join("report.html")).unwrap(), "ended\n");
}

#[test]
fn why_nothing_was_recorded_is_the_recorders_last_line() {
    let folder = tempfile::tempdir().unwrap();
    let script = "echo 'hyperscope: one' >&2; echo 'hyperscope: tracing needs root' >&2; exit 1";
    let mut recordings = stand_in(&folder, script);
    begin(&mut recordings, &folder);
    let notice = wait_for(&mut recordings, |notice| notice.contains("not recorded"));
    assert_eq!(notice, "web was not recorded: tracing needs root");
    assert!(is_idle(&recordings));
    recordings.program = folder.path().join("none");
    begin(&mut recordings, &folder);
    assert!(
        recordings.notice().unwrap().contains("cannot start the recorder"),
        "{:?}",
        recordings.notice()
    );
    recordings.press(None, None);
    assert!(recordings.notice().unwrap().starts_with("no VM is selected"));
    assert_eq!(recordings.end().len(), 2);
}

#[test]
fn a_recorder_that_hangs_is_ended_at_its_deadline() {
    let folder = tempfile::tempdir().unwrap();
    let mut recordings = stand_in(&folder, HANGS);
    recordings.times.record = Duration::from_millis(100);
    recordings.times.besides = Duration::from_millis(200);
    recordings.times.grace = Duration::from_millis(200);
    begin(&mut recordings, &folder);
    let Step::Recording(recording) = &recordings.step else { panic!("{recordings:?}") };
    let process = format!("/proc/{}", recording.recorder.id());
    assert!(Path::new(&process).exists());
    let notice = wait_for(&mut recordings, |notice| notice.contains("not recorded"));
    assert_eq!(notice, "web was not recorded: it took too long and was stopped");
    assert!(!Path::new(&process).exists(), "it was not waited for");
}

#[test]
fn a_page_that_fails_leaves_the_command_that_makes_it() {
    let folder = tempfile::tempdir().unwrap();
    let script = WORKS.replace("cp \"$2/host.dat\" \"$4\"", "echo 'no room' >&2; exit 1");
    let mut recordings = stand_in(&folder, &script);
    let session = begin(&mut recordings, &folder);
    let notice = wait_for(&mut recordings, |notice| notice.contains("without a page"));
    let path = session.display();
    let command = format!("hyperscope report {path} -o {path}/report.html");
    assert_eq!(notice, format!("recorded web, without a page (no room): {command}"));
}

#[test]
fn leaving_ends_the_recorder_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let mut recordings = stand_in(&folder, WAITS);
    let session = begin(&mut recordings, &folder);
    wait_for(&mut recordings, |notice| notice.contains("0 of 10 s"));
    let Step::Recording(recording) = &recordings.step else { panic!("{recordings:?}") };
    let process = format!("/proc/{}", recording.recorder.id());
    let results = recordings.end();
    assert!(!Path::new(&process).exists());
    assert_eq!(fs::read_to_string(session.join("host.dat")).unwrap(), "ended\n");
    assert!(
        results[0].starts_with("recorded web, without a page (top ended): hyperscope report /")
    );
    assert_eq!(results.len(), 1);
}
