//! Snapshots of booted labs: the first machine's memory in one file, the rest of its state in another.

use std::fs;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::boot_artifacts::BootArtifacts;
use crate::cache;
use crate::description::Description;
use crate::error::{LabError, Result};
use crate::lab::Lab;
use crate::machine::Memory;
use crate::processes;
use crate::session::Session;
use crate::start::SHORT;
use crate::up::ProgressFn;

/// Max snapshots to keep: each takes half a gigabyte or more.
const KEPT: usize = 6;
/// The state of a saved lab, without its memory.
const STATE: &str = "state";
/// Its memory.
const RAM: &str = "ram";

impl Lab {
    /// Loads the lab's snapshot; makes it first if there is none.
    pub(crate) fn boot_or_load(
        &self,
        artifacts: &BootArtifacts,
        description: &Description,
        report: ProgressFn<'_>,
    ) -> Result<()> {
        let key = artifacts.snapshot_key(self, description)?;
        let _lock = self.cache().lock(&format!("snapshot-{key}"))?;
        let folder = self.cache().folder("snapshots")?.join(&key);
        if !folder.join(STATE).exists() {
            self.make_snapshot(artifacts, description, &folder, report)?;
        }
        cache::used(&folder.join(STATE));
        cache::keep_newest(&self.cache().folder("snapshots")?, STATE, KEPT)?;
        let loaded = self.load_snapshot(artifacts, description, &folder, report);
        if loaded.is_err() {
            // Removed, so that it does not fail again. The original error matters.
            let _ = fs::remove_dir_all(&folder);
        }
        loaded
    }

    /// Boots the lab with its memory in a file, saves the rest next to it, and ends the lab.
    fn make_snapshot(
        &self,
        artifacts: &BootArtifacts,
        description: &Description,
        folder: &Path,
        report: ProgressFn<'_>,
    ) -> Result<()> {
        self.cache().need_room(u64::from(description.memory_mib) << 20)?;
        let unfinished = folder.with_extension("new");
        match fs::remove_dir_all(&unfinished) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(LabError::io("cannot remove", &unfinished)(error));
            }
            _ => {}
        }
        fs::create_dir_all(&unfinished).map_err(LabError::io("cannot make", &unfinished))?;
        let ram = unfinished.join(RAM).display().to_string();
        self.boot(artifacts, description, Memory::File(ram), report)?;
        self.step(report, "saving a snapshot", || {
            // Guests first, so that no vCPU is inside a guest when its machine is saved.
            for level in (2..=description.started).rev() {
                self.monitor(level)?.stop()?;
            }
            self.let_timers_settle(description);
            self.monitor(1)?.stop()?;
            self.monitor(1)?.save(&unfinished.join(STATE).display().to_string())?;
            let pids = processes::of_run(self.run_folder());
            self.monitor(1)?.quit()?;
            processes::end(&pids, SHORT);
            fs::rename(&unfinished, folder).map_err(LabError::io("cannot rename", &unfinished))
        })
    }

    /// Starts the lab from a snapshot, which stays unchanged.
    fn load_snapshot(
        &self,
        artifacts: &BootArtifacts,
        description: &Description,
        folder: &Path,
        report: ProgressFn<'_>,
    ) -> Result<()> {
        let ram = folder.join(RAM).display().to_string();
        let first = artifacts.first(self, description, Memory::CopyOf(ram), true)?;
        self.step(report, "loading a snapshot", || {
            let mut child = self.start(artifacts, &first)?;
            self.wait_for_sockets(&mut child)?;
            let mut monitor = self.monitor(1)?;
            monitor.load(&folder.join(STATE).display().to_string())?;
            monitor.go_on()?;
            drop(monitor);
            self.rearm_timers(description)?;
            for level in 2..=description.started {
                self.monitor(level)?.go_on()?;
            }
            (1..=description.started)
                .try_for_each(|level| set_clock(&mut self.open_session(level, SHORT)?))
        })
    }
}

/// Sets a machine's clock, which still has the time of the snapshot.
fn set_clock(session: &mut Session) -> Result<()> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
    session.check(&["date", "-s", &format!("@{now}")], SHORT).map(drop)
}
