//! Records each run, with a recorder on this system or in the run's lab, and counts the run's exits in the recording.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use analyses::cpu::cpu;
use analyses::exits::{Exits, exits};
use analyses::group::By;
use analyses::states::VcpuState;
use command::programs::HYPERSCOPE;
use experiment::{Count, RunOf, Watch};
use lab::{Lab, LabRecording};
use os::waits::Deadline;
use session::{Session, VmNames};
use sources::Recording;

use super::exit_metrics::{ReasonSums, exit_metrics};
use command::running::Running;

/// Max time for a recorder to begin, and to write everything at its end.
const PATIENCE: Duration = Duration::from_secs(60);
/// Interval of checking whether it has begun.
const LOOK: Duration = Duration::from_millis(5);

/// The folder of all sessions.
#[derive(Debug)]
struct Folder(PathBuf);

impl Folder {
    /// Makes the folder.
    fn new(folder: &Path) -> io::Result<Self> {
        std::fs::create_dir(folder).map_err(|error| {
            let text = format!("--record: cannot create the folder {}: {error}", folder.display());
            io::Error::new(error.kind(), text)
        })?;
        Ok(Self(folder.to_owned()))
    }

    /// The path of a run's session; `None` during the warm-up, which doesn't count.
    fn session(&self, run: RunOf) -> Option<PathBuf> {
        let name = format!("block-{:02}-{}.hscope", run.block, run.side.name());
        (run.block > 0).then(|| self.0.join(name))
    }
}

/// Records runs into a folder.
#[derive(Debug)]
pub(super) struct Recordings {
    folder: Folder,
    vm: Option<String>,
    /// Max time of a run.
    workload: Duration,
    running: Option<(PathBuf, Running)>,
}

impl Recordings {
    /// Records into a new folder.
    pub(super) fn begin(folder: &Path, vm: Option<&str>, workload: Duration) -> io::Result<Self> {
        let (folder, vm) = (Folder::new(folder)?, vm.map(str::to_owned));
        Ok(Self { folder, vm, workload, running: None })
    }
}

impl Watch for Recordings {
    fn begin(&mut self, run: RunOf) -> io::Result<()> {
        if let Some(session) = self.folder.session(run) {
            let recorder = self.recorder(&session)?;
            self.running = Some((session, recorder));
        }
        Ok(())
    }

    fn end(&mut self) -> io::Result<Vec<Count>> {
        let Some((session, mut recorder)) = self.running.take() else { return Ok(Vec::new()) };
        if !recorder.end()?.success() {
            let late =
                recorder.is_late().then(|| "the recorder did not end within a minute".to_owned());
            return Err(failed(&session, &late.unwrap_or_else(|| last_message(&recorder))));
        }
        counts(&session, self.vm.as_deref()).map_err(io::Error::other)
    }
}

impl Recordings {
    /// Starts `hyperscope record`; it records when this returns.
    fn recorder(&self, session: &Path) -> io::Result<Running> {
        let mut arguments = vec![OsStr::new("record"), OsStr::new("-o"), session.as_os_str()];
        if let Some(vm) = &self.vm {
            arguments.extend([OsStr::new("--vm"), OsStr::new(vm)]);
        }
        let at_most = PATIENCE.saturating_add(self.workload);
        let program = HYPERSCOPE.path().map_err(io::Error::other)?;
        let mut recorder = Running::start(&program, arguments, at_most, PATIENCE)?;
        let deadline = Deadline::after(PATIENCE);
        while !recorder.has_said("hyperscope: recording") {
            if recorder.look()?.is_some() {
                return Err(failed(session, &last_message(&recorder)));
            }
            if deadline.has_passed() {
                return Err(failed(session, "the recorder did not start within a minute"));
            }
            thread::sleep(LOOK);
        }
        Ok(recorder)
    }
}

/// Records level 1 of a run's lab into a folder.
#[derive(Debug)]
pub(super) struct LabRecordings {
    folder: Folder,
    labs: Vec<Lab>,
    running: Option<(PathBuf, LabRecording)>,
}

impl LabRecordings {
    /// Records into a new folder; `labs` has the running labs by configuration.
    pub(super) fn begin(folder: &Path, labs: Vec<Lab>) -> anyhow::Result<Self> {
        let folder = Folder::new(folder)?;
        labs.iter().try_for_each(Lab::prepare_recordings)?;
        Ok(Self { folder, labs, running: None })
    }
}

impl Watch for LabRecordings {
    fn begin(&mut self, run: RunOf) -> io::Result<()> {
        let lab = self.labs.get(run.side.place());
        let lab = lab.ok_or_else(|| io::Error::other("its lab is missing"))?;
        if let Some(session) = self.folder.session(run) {
            self.running = Some((session, lab.begin_recording().map_err(io::Error::other)?));
        }
        Ok(())
    }

    fn end(&mut self) -> io::Result<Vec<Count>> {
        let Some((session, recording)) = self.running.take() else { return Ok(Vec::new()) };
        recording.end(&session).map_err(|error| failed(&session, &error.to_string()))?;
        counts(&session, None).map_err(io::Error::other)
    }
}

fn last_message(recorder: &Running) -> String {
    recorder.last_line().unwrap_or_else(|| "its recorder printed nothing".to_owned())
}

fn failed(session: &Path, why: &str) -> io::Error {
    io::Error::other(format!("no recording {}: {why}", session.display()))
}

/// The metrics of `--exits`, from a recording.
fn counts(session: &Path, vm: Option<&str>) -> anyhow::Result<Vec<Count>> {
    let session = Session::open(&[session.to_owned()], &VmNames::default())?;
    let used = cpu(session.view(), &[], &|_| ());
    let times = || used.vms.iter().filter(|vm_use| vm.is_none_or(|vm| vm_use.name == vm));
    let guest_ns = times().map(|vm| vm.times.guest()).sum();
    let waits = [VcpuState::Waiting, VcpuState::Preempted];
    let run_queue_ns = times().map(|vm| vm.times.of_all(&waits)).sum();
    let all: Vec<Exits> = session.recordings().iter().map(by_reason).collect();
    let rows = all.iter().flat_map(|exits| &exits.rows);
    let rows = rows.filter(|row| vm.is_none_or(|vm| row.group.vm.as_deref() == Some(vm)));
    let sums = rows.map(|row| ReasonSums {
        level: row.group.level.unwrap_or(1),
        reason: row.group.reason.as_deref().unwrap_or_default(),
        waiting: row.waiting,
        count: row.tally.count,
        cost_ns: row.tally.costs.sum(),
    });
    Ok(exit_metrics(&sums.collect::<Vec<_>>(), guest_ns, run_queue_ns))
}

fn by_reason(recording: &Recording) -> Exits {
    exits(recording, &[By::Vm, By::Level, By::Reason], &|_| ())
}
