//! Brings a lab up: collects what it needs, boots its machines or loads a snapshot.

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

/// How often machines are begun again because one of them hangs.
const BEGUN_AGAIN: u32 = 2;

/// How a lab is brought up.
#[derive(Clone, Debug)]
pub struct UpOptions {
    /// Fetch nothing.
    pub offline: bool,
    /// Load a snapshot when there is one, and save one when there is none.
    pub snapshot: bool,
}

/// A step of bringing a lab up; reported as it begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// What is done.
    pub text: String,
    /// How long it took the last time, where that is known.
    pub usual: Option<Duration>,
}

/// Called with each step as it begins.
pub type ProgressFn<'a> = &'a dyn Fn(Step);

impl Lab {
    /// Brings the lab up as described, and returns what it is then.
    ///
    /// # Errors
    /// When it is up already and different, something is missing, or a machine doesn't boot.
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
        // What a killed launcher left.
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
            // Its console comes with the error of the last try.
            let how = hangs.to_string();
            let how = how.lines().next().unwrap_or_default();
            report(Step { text: format!("{how}; trying again"), usual: None });
            self.end()?;
            began = self.begin(&artifacts, &description, options, report);
        }
        if began.is_err() {
            // The error is what matters.
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
            // What serves a shared folder has the machine's memory in its reach, and can't be saved.
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

    /// Boots all machines that are to be started.
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

    /// Does a step, and keeps how long it took for the next time.
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
        // Only a progress bar wants to know.
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

/// Those of the guests' tools that can't be had, and why; those that can are fetched, unless the manner is
/// to fetch nothing.
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

/// Checks that a scenario's guest can have the module that it needs, before anything is booted; what it takes to
/// know the guest's kernel is fetched, unless the options are to fetch nothing.
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

/// Gets everything a lab needs from the network.
///
/// # Errors
/// When something can't be had.
pub fn fetch(cache: &Cache, wanted: &Description, report: ProgressFn<'_>) -> Result<()> {
    BootArtifacts::collect(cache, wanted, &UpOptions { offline: false, snapshot: false }, report)
        .map(drop)
}
