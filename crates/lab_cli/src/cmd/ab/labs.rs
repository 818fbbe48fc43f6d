//! One lab per configuration: all are up at the same time, and the workload runs in the guest of each in turn.

use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, bail};
use experiment::bench::ExitCounts;
use experiment::{Configuration, Count, RunOf, Watch};
use lab::{Arch, Cache, Description, Lab, Net, Session, Tool, UpOptions};
use printable::messages;

use super::exit_metrics::reason_in_names;
use super::lab_toggle::LabToggle;
use crate::args::lab_workload::LabWorkload;
use crate::lab_steps::LabSteps;
use session::Misuse;

/// Max time for preparing a guest.
const SHORT: Duration = Duration::from_secs(60);
/// The program that counts exits in level 1.
const PROGRAM: &str = "hyperscope-labguest";

/// Running labs; drop ends them.
#[derive(Debug)]
pub(super) struct Labs {
    labs: Vec<(Lab, Description)>,
    workload: Option<LabWorkload>,
    program: PathBuf,
}

impl Labs {
    /// Brings up one lab for each setup, a list of toggles; ends all if `stop` is set meanwhile.
    pub(super) fn up(
        setups: &[String],
        workload: Option<LabWorkload>,
        stop: &AtomicBool,
    ) -> anyhow::Result<Self> {
        let tool = workload.and_then(LabWorkload::tool);
        let wanted = setups.iter().map(|setup| description(setup, tool));
        let wanted: Vec<Description> = wanted.collect::<Result<_, _>>()?;
        let cache = Cache::locate(None)?;
        let program = std::env::current_exe().context("cannot find the path of this program")?;
        let mut labs = Self { labs: Vec::new(), workload, program };
        let steps = LabSteps::new();
        let options = UpOptions { offline: false, snapshot: true };
        for (wanted, side) in wanted.into_iter().zip('a'..) {
            let lab = Lab::named(&cache, &format!("ab-{}-{side}", std::process::id()))?;
            // Added before it is up, so that its remains are removed with the others after a failure.
            labs.labs.push((lab.clone(), wanted.clone()));
            lab.up(&wanted, &options, &|step| steps.show(&step))?;
            if stop.load(Ordering::Relaxed) {
                bail!("interrupted");
            }
            connect(&lab, &wanted)?;
        }
        steps.finish();
        Ok(labs)
    }

    /// The configurations: without a setup before a run, and with the workload in the deepest guest.
    pub(super) fn configurations(&self, workload: &[String]) -> Vec<Configuration> {
        let configuration_of = |(lab, wanted): &(Lab, Description)| Configuration {
            setup: String::new(),
            workload: Some(self.in_guest(lab, wanted, workload)),
        };
        self.labs.iter().map(configuration_of).collect()
    }

    fn in_guest(&self, lab: &Lab, wanted: &Description, workload: &[String]) -> Vec<String> {
        let level = wanted.levels.to_string();
        let program = self.program.display().to_string();
        let words = [&*program, "lab", "--name", lab.name(), "exec", &level, "--"];
        let words = words.map(str::to_owned).into_iter();
        match (self.workload, workload) {
            (Some(lab_workload), _) => words.chain(lab_workload.command(wanted.levels)).collect(),
            // A shell command.
            (None, [line]) => {
                words.chain(["sh".to_owned(), "-c".to_owned(), line.clone()]).collect()
            }
            (None, workload) => words.chain(workload.iter().cloned()).collect(),
        }
    }

    /// The labs, by configuration.
    pub(super) fn all(&self) -> Vec<Lab> {
        self.labs.iter().map(|(lab, _)| lab.clone()).collect()
    }

    /// Counts exits in level 1 of the lab that runs the workload.
    pub(super) fn exits(&self) -> anyhow::Result<LabExits> {
        let sessions = self.labs.iter().map(|(lab, _)| lab.session(1)).collect::<Result<_, _>>()?;
        Ok(LabExits { sessions, running: 0, before: ExitCounts::default() })
    }
}

impl Drop for Labs {
    fn drop(&mut self) {
        for (lab, _) in &self.labs {
            if let Err(error) = lab.down() {
                let _ = writeln!(messages(), "hyperscope: {error}");
            }
        }
    }
}

/// The lab of a configuration.
fn description(setup: &str, tool: Option<Tool>) -> anyhow::Result<Description> {
    let toggles = LabToggle::read(setup).map_err(Misuse)?;
    let mut lab = Description::new(Arch::X86_64, 2);
    lab.guest.net = Some(Net::Virtio);
    lab.guest.tools.extend(tool);
    toggles.iter().for_each(|toggle| toggle.apply(&mut lab));
    if lab.levels > 2 && toggles.contains(&LabToggle::Vhost) {
        bail!(Misuse("vhost runs in level 1: it needs levels=2".to_owned()));
    }
    Ok(lab)
}

/// Sets guests' addresses, and starts the receiver of their streams on the machine below.
fn connect(lab: &Lab, wanted: &Description) -> anyhow::Result<()> {
    for level in 2..=wanted.levels {
        let below = level - 1;
        lab.session(below)?.check(&["iperf3", "--server", "--daemon"], SHORT)?;
        let script = format!(
            "ip address add 10.77.{level}.2/24 dev eth0; ip link set eth0 up; ping -c 1 10.77.{level}.1"
        );
        lab.session(level)?.check(&["sh", "-c", &script], SHORT)?;
    }
    Ok(())
}

/// Exits by reason, from histograms in the kernels of level 1.
#[derive(Debug)]
pub(super) struct LabExits {
    sessions: Vec<Session>,
    running: usize,
    before: ExitCounts,
}

impl LabExits {
    fn counts(&mut self) -> io::Result<ExitCounts> {
        let session = self.sessions.get_mut(self.running);
        let session = session.ok_or_else(|| io::Error::other("its lab is missing"))?;
        let output = session.check(&[PROGRAM, "exit-counts"], SHORT).map_err(io::Error::other)?;
        Ok(serde_json::from_str(&output)?)
    }
}

impl Watch for LabExits {
    fn begin(&mut self, run: RunOf) -> io::Result<()> {
        self.running = run.side.place();
        self.before = self.counts()?;
        Ok(())
    }

    fn end(&mut self) -> io::Result<Vec<Count>> {
        let after = self.counts()?;
        Ok(more(&self.before, &after))
    }
}

/// The counts between two readings.
fn more(before: &ExitCounts, after: &ExitCounts) -> Vec<Count> {
    let mut names = timeline::reasons::ReasonNames::of_event_text(&after.format);
    let count_before = |isa, code| {
        let same = before.reasons.iter().find(|reason| (reason.isa, reason.code) == (isa, code));
        same.map_or(0, |reason| reason.count)
    };
    let mut sum = 0;
    let mut counts = Vec::new();
    for reason in &after.reasons {
        let count = reason.count.saturating_sub(count_before(reason.isa, reason.code));
        sum += count;
        // Level 1 sees the exits of nested guests as exits of its own guest.
        let name = format!("exits_{}", reason_in_names(1, &names.name(reason.isa, reason.code)));
        counts.push(Count { name, kind: Some("exits"), value: count as f64 });
    }
    counts.insert(0, Count { name: "exits".into(), kind: None, value: sum as f64 });
    counts
}
