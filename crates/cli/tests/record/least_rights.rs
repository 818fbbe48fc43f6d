//! Verbs without root: each runs as another user, with exactly the capabilities that its unit or its documentation
//! grants. Emulated without systemd, by `setpriv`.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::agent::{Agent, signal};
use crate::tool::{left_in_tracefs, lock_tracing, run, wait_until};

const SERVE: &str = include_str!("../../../../packaging/systemd/hyperscope-serve.service");
const FLIGHT: &str = include_str!("../../../../packaging/systemd/hyperscope-flight.service");
/// nobody
const USER: &str = "65534";

/// The capabilities of a unit, both granted and bounding.
fn of_unit(unit: &'static str) -> Vec<&'static str> {
    let setting = |name: &str| {
        let mut lines = unit.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix('='));
        lines.next().unwrap().split_whitespace().collect::<Vec<_>>()
    };
    assert_eq!(setting("DynamicUser"), ["yes"]);
    assert_eq!(setting("AmbientCapabilities"), setting("CapabilityBoundingSet"));
    setting("AmbientCapabilities")
}

/// A program and a folder that every user can reach.
struct Stranger {
    folder: tempfile::TempDir,
    program: PathBuf,
}

impl Stranger {
    fn new() -> Option<Self> {
        if Command::new("setpriv").arg("--version").output().is_err() {
            testkit::skip!("setpriv is not installed");
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let everybody = || fs::Permissions::from_mode(0o755);
        fs::set_permissions(folder.path(), everybody()).unwrap();
        let program = folder.path().join("hyperscope");
        testkit::copy_program(env!("CARGO_BIN_EXE_hyperscope"), &program);
        fs::set_permissions(&program, everybody()).unwrap();
        let user_folder = folder.path().join("own");
        fs::create_dir(&user_folder).unwrap();
        let nobody = Some(USER.parse().unwrap());
        std::os::unix::fs::chown(&user_folder, nobody, nobody).unwrap();
        Some(Self { folder, program })
    }

    fn own_path(&self, name: &str) -> PathBuf {
        self.folder.path().join("own").join(name)
    }

    fn command(&self, capabilities: &[&str], arguments: &[&str]) -> Command {
        let names =
            capabilities.iter().map(|name| name.strip_prefix("CAP_").unwrap().to_lowercase());
        let set = names.fold("-all".to_owned(), |set, name| format!("{set},+{name}"));
        let mut command = Command::new("setpriv");
        command.args(["--reuid", USER, "--regid", USER, "--clear-groups", "--no-new-privs"]);
        let kinds = ["--inh-caps", "--ambient-caps", "--bounding-set"];
        command.args(kinds.map(|kind| format!("{kind}={set}")));
        command.arg(&self.program).args(arguments).stdin(Stdio::null());
        command
    }

    fn run(&self, capabilities: &[&str], arguments: &[&str]) -> Output {
        self.command(capabilities, arguments).output().unwrap()
    }
}

fn output_of(ran: &Output) -> String {
    String::from_utf8_lossy(&ran.stdout).into_owned() + &String::from_utf8_lossy(&ran.stderr)
}

#[test]
fn live_figures_take_the_capabilities_of_the_exporters_unit() {
    let Some(_lock) = lock_tracing() else { return };
    let Some(stranger) = Stranger::new() else { return };
    let args = ["top", "--for", "300ms", "--interval", "100ms", "--format", "jsonl"];
    let as_root = run(&args);
    if as_root.code != Some(0) {
        testkit::skip!("{}", as_root.stderr);
        return;
    }
    let with = of_unit(SERVE);
    let ran = stranger.run(&with, &args);
    assert!(
        ran.status.success() && output_of(&ran).contains("hyperscope.top/1"),
        "{}",
        output_of(&ran)
    );
    let ran = stranger.run(&with, &["serve", "--once", "--interval", "100ms"]);
    assert!(output_of(&ran).contains("\nhyperscope_self_intervals_total "), "{}", output_of(&ran));
    for missing in &with {
        let fewer: Vec<&str> = with.iter().copied().filter(|name| name != missing).collect();
        let ran = stranger.run(&fewer, &args);
        assert!(
            !ran.status.success() && output_of(&ran).contains("CAP_"),
            "{missing}: {}",
            output_of(&ran)
        );
    }
}

#[test]
fn recording_takes_one_capability_and_samples_another() {
    let Some(_lock) = lock_tracing() else { return };
    let Some(stranger) = Stranger::new() else { return };
    let record = |capabilities: &[&str], name: &str, more: &[&str]| {
        let to = stranger.own_path(name);
        let words = ["record", "-e", "sched_switch", "--for", "200ms", "-o", to.to_str().unwrap()];
        let ran = stranger.run(capabilities, &[&words[..], more].concat());
        (ran.status.success() && to.join("host.dat").exists(), output_of(&ran))
    };
    let (is_recorded, output) = record(&["CAP_DAC_OVERRIDE"], "one", &[]);
    assert!(is_recorded, "{output}");
    let (is_recorded, output) = record(&["CAP_DAC_READ_SEARCH"], "none", &[]);
    assert!(!is_recorded && output.contains("root"), "{output}");
    let samples = ["--sample", "99"];
    let (is_recorded, output) = record(&["CAP_DAC_OVERRIDE"], "few", &samples);
    assert!(!is_recorded && output.contains("CAP_PERFMON"), "{output}");
    let (is_recorded, output) = record(&["CAP_DAC_OVERRIDE", "CAP_PERFMON"], "two", &samples);
    assert!(is_recorded && stranger.own_path("two").join("host.data").exists(), "{output}");
    assert_eq!(left_in_tracefs(), Vec::<String>::new());
}

/// The folder of that user's sockets of recorders.
fn socket(agent: &Agent) -> String {
    format!("/run/hyperscope-{USER}/{}.flight", agent.pid())
}

#[test]
fn a_flight_recorder_takes_the_capabilities_of_its_unit_and_root_finds_it() {
    let Some(_lock) = lock_tracing() else { return };
    let Some(stranger) = Stranger::new() else { return };
    let to = stranger.own_path("flight");
    let words = ["record", "--flight", "1s", "-e", "sched_switch", "-o", to.to_str().unwrap()];
    let with = of_unit(FLIGHT);
    let mut recorder =
        Agent(stranger.command(&with, &words).stderr(Stdio::null()).spawn().unwrap());
    wait_until("it can't be asked", || Path::new(&socket(&recorder)).exists());
    // By its own user, and by root, which names the process.
    let pid = recorder.pid().to_string();
    let ran = stranger.run(&["CAP_DAC_OVERRIDE"], &["flight", "dump", "--pid", &pid]);
    assert!(ran.status.success(), "{}", output_of(&ran));
    let ran = run(&["flight", "dump", "--pid", &pid]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let session = PathBuf::from(ran.stdout.trim_end());
    assert!(session.starts_with(&to) && session.join("host.dat").exists(), "{session:?}");
    signal(recorder.pid(), "INT");
    assert!(recorder.0.wait().unwrap().success());
    assert_eq!(left_in_tracefs(), Vec::<String>::new());
}
