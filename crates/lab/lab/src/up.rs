//! Brings a lab up: collects what it needs, then boots its machines or loads a snapshot.

use std::fs;
use std::time::{Duration, Instant};

use crate::boot_artifacts::BootArtifacts;
use crate::cache::Cache;
use crate::description::Description;
use crate::error::{LabError, Result};
use crate::lab::Lab;
use crate::machine::Memory;
use crate::machine_programs;
use crate::scenario::Scenario;
use crate::share;
use crate::start::{BOOT, SHORT};
use crate::tool::Tool;

/// Max restarts of machines because one of them hangs.
const BEGUN_AGAIN: u32 = 2;

/// Options of bringing a lab up.
#[derive(Clone, Debug)]
pub struct UpOptions {
    /// Fetch nothing.
    pub offline: bool,
    /// Load a snapshot; save one first if there is none.
    pub snapshot: bool,
}

/// A step of bringing a lab up; reported as it begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// Description of the step.
    pub text: String,
    /// Time it took the last time, if known.
    pub usual: Option<Duration>,
}

/// Called at the begin of each step.
pub type ProgressFn<'a> = &'a dyn Fn(Step);

impl Lab {
    /// Brings the lab up as described, and returns its actual description.
    ///
    /// # Errors
    /// When it is up already and different, something is missing, or a machine does not boot.
    pub fn up(
        &self,
        wanted: &Description,
        options: &UpOptions,
        report: ProgressFn<'_>,
    ) -> Result<Description> {
        wanted.check()?;
        let _lock = self.cache().lock(self.name())?;
        if self.is_up() {
            return self.already_up(wanted);
        }
        // Left by a killed launcher.
        self.end()?;
        let artifacts = BootArtifacts::collect(self.cache(), wanted, options, report)?;
        let mut description = wanted.clone();
        description.accelerator = Some(artifacts.accelerator(self.cache(), wanted, report)?);
        need_memory(&description)?;
        let mut began = self.begin(&artifacts, &description, options, report);
        for _ in 0..BEGUN_AGAIN {
            let Err(hangs) = &began else { break };
            if !hangs.is_hang() {
                break;
            }
            // The error of the last try has its console.
            let how = hangs.to_string();
            let how = how.lines().next().unwrap_or_default();
            report(Step { text: format!("{how}; trying again"), usual: None });
            self.end()?;
            began = self.begin(&artifacts, &description, options, report);
        }
        if began.is_err() {
            // The original error matters.
            let _ = self.end();
        }
        began.map(|()| description)
    }

    fn already_up(&self, wanted: &Description) -> Result<Description> {
        let mut description = self.description()?;
        let accelerator = description.accelerator;
        description.accelerator = wanted.accelerator.and(accelerator);
        if description == *wanted {
            description.accelerator = accelerator;
            return Ok(description);
        }
        let text =
            "another lab with this name is up: run `hyperscope lab down` first, or choose a --name";
        Err(LabError::Usage(text.into()))
    }

    fn begin(
        &self,
        artifacts: &BootArtifacts,
        description: &Description,
        options: &UpOptions,
        report: ProgressFn<'_>,
    ) -> Result<()> {
        fs::create_dir_all(self.run_folder())
            .map_err(LabError::io("cannot make", self.run_folder()))?;
        match &description.share {
            // The server of a shared folder maps the machine's memory, which can't be saved then.
            Some(folder) => {
                share::serve(self, &artifacts.host, folder)?;
                self.boot(artifacts, description, Memory::Shared, report)?;
                share::mount(&mut self.open_session(1, SHORT)?)?;
            }
            None if options.snapshot => self.boot_or_load(artifacts, description, report)?,
            None => self.boot(artifacts, description, Memory::Own, report)?,
        }
        description.write(self.run_folder())
    }

    /// Boots all machines that have to be started.
    pub(crate) fn boot(
        &self,
        artifacts: &BootArtifacts,
        description: &Description,
        memory: Memory,
        report: ProgressFn<'_>,
    ) -> Result<()> {
        let first = artifacts.first(self, description, memory, false)?;
        self.step(report, "booting level 1", || {
            let mut child = self.start(artifacts, &first)?;
            self.wait_for_first(&mut child, BOOT[0]).map(drop)
        })?;
        for level in 2..=description.started {
            self.step(report, &format!("booting level {level}"), || {
                self.start_guest(description, level).map(drop)
            })?;
        }
        Ok(())
    }

    /// Runs a step, and saves its time for the next run.
    pub(crate) fn step<T>(
        &self,
        report: ProgressFn<'_>,
        text: &str,
        work: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        let file = self.cache().folder("times")?.join(text.replace(' ', "-"));
        let usual = fs::read_to_string(&file).ok().and_then(|ms| ms.trim().parse().ok());
        report(Step { text: text.to_owned(), usual: usual.map(Duration::from_millis) });
        let start = Instant::now();
        let done = work()?;
        // Only a progress bar uses it.
        let _ = fs::write(&file, start.elapsed().as_millis().to_string());
        Ok(done)
    }
}

/// Checks that the first machine fits in this system's memory.
fn need_memory(description: &Description) -> Result<()> {
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let available =
        line.and_then(|line| line.trim().trim_end_matches("kB").trim().parse::<u64>().ok());
    let needed_mib = u64::from(description.memory_mib);
    match available.map(|kib| kib / 1024) {
        Some(available_mib) if available_mib < needed_mib => Err(LabError::TooLittle {
            what: "memory".into(),
            available_mib,
            needed_mib,
            mend: "stop other programs, or use a smaller --memory",
        }),
        _ => Ok(()),
    }
}

/// Requested guest tools that are not available, and why; fetches the others, unless the options forbid it.
///
/// # Errors
/// When the machines themselves lack something.
pub fn missing_tools(
    cache: &Cache,
    wanted: &Description,
    options: &UpOptions,
    report: ProgressFn<'_>,
) -> Result<Vec<(Tool, LabError)>> {
    BootArtifacts::missing_tools(cache, wanted, options, report)
}

/// Checks before the boot that the module for a scenario's guest exists; fetches the guest's kernel to know its
/// release, unless the options forbid it.
///
/// # Errors
/// When the module was not built for that kernel.
pub fn need_module(
    cache: &Cache,
    scenario: &Scenario,
    wanted: &Description,
    options: &UpOptions,
    report: ProgressFn<'_>,
) -> Result<()> {
    if !scenario.needs_module() {
        return Ok(());
    }
    let release = BootArtifacts::guest_release(cache, wanted, options, report)?;
    machine_programs::kernel_module(&release).map(drop)
}

/// Fetches everything that a lab needs from the network.
///
/// # Errors
/// When something is not available.
pub fn fetch(cache: &Cache, wanted: &Description, report: ProgressFn<'_>) -> Result<()> {
    BootArtifacts::collect(cache, wanted, &UpOptions { offline: false, snapshot: false }, report)
        .map(drop)
}
