//! Restarts the machines of a measurement if they did not survive a run.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use lab::{Description, Lab, LabError};

use crate::bench::error::{BenchError, Result};
use crate::bench::shape::up_options;

/// Called at the begin of each step.
pub type ProgressFn<'a> = &'a dyn Fn(String);

/// Max repetitions of runs.
const REPEATS: u32 = 10;
/// Prints the end of the guest's console output and QEMU's messages.
const LAST_WORDS: [&str; 3] = [
    "sh",
    "-c",
    "tail -n 5 /run/lab/l2/console.log /run/lab/l2/qemu.log; pidof qemu-system-x86_64",
];
/// Max time for a machine to answer.
const SHORT: Duration = Duration::from_secs(20);

/// A lab whose machines are prepared for runs by a function, which makes `M` from a running lab.
pub(crate) struct RestartingLab<'a, M> {
    lab: &'a Lab,
    wanted: Description,
    pub(crate) report: ProgressFn<'a>,
    prepare: &'a dyn Fn(&Lab) -> Result<M>,
    /// `None` until they are prepared.
    pub(crate) machines: Option<M>,
    is_down: bool,
    pub(crate) repeated_runs: u32,
}

impl<'a, M> RestartingLab<'a, M> {
    /// From a lab that is up with the wanted description.
    pub(crate) fn new(
        lab: &'a Lab,
        wanted: Description,
        report: ProgressFn<'a>,
        prepare: &'a dyn Fn(&Lab) -> Result<M>,
    ) -> Self {
        Self { lab, wanted, report, prepare, machines: None, is_down: false, repeated_runs: 0 }
    }

    /// Makes a run; if the machines do not survive it, restarts them and repeats the run.
    pub(crate) fn run<T>(
        &mut self,
        name: &str,
        run: &mut dyn FnMut(&mut M) -> Result<T>,
    ) -> Result<T> {
        loop {
            let error = match self.try_run(run) {
                Err(BenchError::Lab(error)) if is_gone(&error) => error,
                ran => return ran,
            };
            if self.repeated_runs >= REPEATS {
                return Err(error.into());
            }
            self.repeated_runs += 1;
            (self.report)(format!("{name}: {error}; trying again in new machines"));
            let last = self.lab.session(1).and_then(|mut host| host.check(&LAST_WORDS, SHORT));
            (self.report)(format!(
                "last output of the guest: {}",
                last.unwrap_or_default().trim_end()
            ));
            self.down()?;
        }
    }

    /// The lab's description, current or for the next run.
    pub(crate) fn wanted(&self) -> &Description {
        &self.wanted
    }

    /// Changes the lab for the next run, which brings it up if the description differs.
    pub(crate) fn change(&mut self, wanted: Description) -> Result<()> {
        if self.wanted != wanted {
            self.wanted = wanted;
            self.down()?;
        }
        Ok(())
    }

    fn down(&mut self) -> Result<()> {
        self.machines = None;
        self.lab.down()?;
        self.is_down = true;
        Ok(())
    }

    fn try_run<T>(&mut self, run: &mut dyn FnMut(&mut M) -> Result<T>) -> Result<T> {
        let mut machines = match self.machines.take() {
            Some(machines) => machines,
            None => self.prepared()?,
        };
        let ran = run(&mut machines);
        self.machines = Some(machines);
        ran
    }

    fn prepared(&mut self) -> Result<M> {
        if self.is_down {
            let options = up_options(self.wanted.instruction_ns.is_some(), true);
            self.lab.up(&self.wanted, &options, &|step| (self.report)(step.text))?;
            self.is_down = false;
        }
        (self.report)("copying programs into the machines".into());
        (self.prepare)(self.lab)
    }
}

/// Whether the error means that a machine is gone.
fn is_gone(error: &LabError) -> bool {
    matches!(
        error,
        LabError::Channel { .. }
            | LabError::Machine { .. }
            | LabError::Hangs { .. }
            | LabError::Io { .. }
    )
}

/// A folder for temporary files; removed when dropped.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn make() -> Result<Self> {
        let path = std::env::temp_dir().join(format!("hyperscope-bench-{}", std::process::id()));
        fs::create_dir_all(&path).map_err(BenchError::io("cannot make", &path))?;
        Ok(Self(path))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
