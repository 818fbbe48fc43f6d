//! Scenarios as data: which machines, what is recorded, what they do, what must be found.

use std::fs;
use std::path::Path;

use labguest::wire::{Key, Truth};
use serde::Deserialize;

use crate::arch::Arch;
use crate::description::Description;
use crate::error::{LabError, Result};
use crate::machine::{Board, Net};

/// The scenarios that come with the lab, with their names.
const BUNDLED: &[(&str, &str)] = &[
    ("idle", include_str!("../scenarios/idle.toml")),
    ("virtio", include_str!("../scenarios/virtio.toml")),
    ("samples", include_str!("../scenarios/samples.toml")),
    ("exits", include_str!("../scenarios/exits.toml")),
    ("net-virtio", include_str!("../scenarios/net-virtio.toml")),
    ("net-vhost", include_str!("../scenarios/net-vhost.toml")),
    ("disk", include_str!("../scenarios/disk.toml")),
    ("boot", include_str!("../scenarios/boot.toml")),
    ("shutdown", include_str!("../scenarios/shutdown.toml")),
    ("hypertrace", include_str!("../scenarios/hypertrace.toml")),
    ("collected", include_str!("../scenarios/collected.toml")),
    ("hypertrace-shm", include_str!("../scenarios/hypertrace-shm.toml")),
    ("hypertrace-boot", include_str!("../scenarios/hypertrace-boot.toml")),
    ("nested", include_str!("../scenarios/nested.toml")),
    ("nested-vgif", include_str!("../scenarios/nested-vgif.toml")),
];

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// Its name; that of its file.
    #[serde(skip)]
    pub name: String,
    /// What happens in it, in a sentence.
    pub summary: String,
    /// How many machines there are, one inside the other.
    pub levels: u8,
    /// How many of them are up when it begins; unset: all.
    started: Option<u8>,
    /// How much of its time an instruction takes, in ns; level 1 has one processor then.
    instruction_ns: Option<u32>,
    /// What level 1's emulated processor has beyond the usual, by QEMU's names.
    #[serde(default)]
    processor: String,
    /// What its guest has beyond the usual.
    #[serde(default)]
    guest: GuestChanges,
    pub(crate) record: Record,
    /// What is done before the recording begins.
    #[serde(default)]
    pub(crate) before: Vec<Step>,
    /// What is done while it is recorded.
    #[serde(default, rename = "step")]
    pub(crate) steps: Vec<Step>,
    /// What must be found in the recording, in addition to what the steps report.
    #[serde(default)]
    pub(crate) truth: Vec<Truth>,
}

/// What a guest has beyond the usual.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct GuestChanges {
    board: Option<Board>,
    cpus: Option<u32>,
    net: Option<Net>,
    disk_mib: Option<u32>,
    shm_mib: Option<u32>,
    /// What stands on its kernel's command line beyond the usual.
    #[serde(default)]
    append: String,
    /// The module that reports to the host by hypercall is copied there, and not loaded yet.
    #[serde(default)]
    module: bool,
}

/// The system of events that trace-cmd has probes in.
pub(crate) const PROBES: &str = "kprobes";

/// What is recorded: level 1, and its guest where events of that are named.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Record {
    /// Events and event systems of level 1.
    pub(crate) events: Vec<String>,
    /// Those of level 2.
    #[serde(default)]
    pub(crate) guest_events: Vec<String>,
    /// What level 2 has recorded since it booted is taken, as its kernel's command line says.
    #[serde(default)]
    pub(crate) guest_boot: bool,
    /// How long its events stay in its kernel at most.
    pub(crate) guest_flush_ms: Option<u32>,
    /// Whether what the guest's module stores in the memory that it shares is recorded, too.
    #[serde(default)]
    pub(crate) guest_module: bool,
    /// Whether hypercalls of level 2 are collected in level 1.
    #[serde(default)]
    pub(crate) hypercalls: bool,
    /// How often a second what level 1's processors run is sampled.
    pub(crate) sample_hz: Option<u32>,
    /// How often a second what level 2's processors run is sampled there.
    pub(crate) guest_sample_hz: Option<u32>,
    /// Sets of probes of level 2's agent.
    #[serde(default)]
    pub(crate) guest_probes: Vec<String>,
    /// Functions of level 1's kernel to set probes on.
    #[serde(default)]
    pub(crate) probes: Vec<String>,
    /// The kernel's buffer for each processor.
    #[serde(default = "usual_buffer_kib")]
    pub(crate) buffer_kib: u32,
}

impl Record {
    /// Level 1 alone, with the events that are recorded where none are named.
    pub(crate) fn of_host() -> Self {
        Self {
            events: Vec::new(),
            guest_events: Vec::new(),
            guest_boot: false,
            guest_flush_ms: None,
            guest_module: false,
            hypercalls: false,
            sample_hz: None,
            guest_sample_hz: None,
            guest_probes: Vec::new(),
            probes: Vec::new(),
            buffer_kib: usual_buffer_kib(),
        }
    }

    /// Whether level 2 is recorded, too.
    pub(crate) fn has_guest(&self) -> bool {
        let has_named = !self.guest_events.is_empty() || !self.guest_probes.is_empty();
        self.guest_boot || has_named || self.guest_sample_hz.is_some()
    }
}

fn usual_buffer_kib() -> u32 {
    20_000
}

/// One thing that is done.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Step {
    /// Run a command to its end.
    Run(RunStep),
    /// Start a machine, and wait until it is up.
    Start { level: u8 },
    /// Shut a machine down, and wait until its QEMU has ended.
    ShutDown { level: u8 },
    /// Have level 2, which booted meanwhile, recorded: what its kernel recorded by itself, and what
    /// comes.
    TakeGuest,
    /// Do nothing.
    Wait {
        /// How long.
        seconds: u64,
    },
}

/// A command.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RunStep {
    pub(crate) level: u8,
    /// Only in labs of this architecture.
    pub(crate) arch: Option<Arch>,
    /// The program and its arguments.
    pub(crate) argv: Vec<String>,
    /// Whether it prints what must be found: a line of JSON for each kind of event.
    #[serde(default)]
    pub(crate) truth: bool,
}

impl Scenario {
    /// The bundled scenarios.
    ///
    /// # Errors
    /// When one of them makes no sense.
    pub fn bundled() -> Result<Vec<Self>> {
        BUNDLED.iter().map(|(name, text)| Self::parse(name, text)).collect()
    }

    /// Has what level 1 runs sampled, too, HZ times a second. Only hyperscope samples, which names probes
    /// otherwise than scenarios do: they are left out, and what is expected of them.
    pub fn sample(&mut self, hz: u32) {
        self.record.sample_hz = Some(hz);
        self.record.probes.clear();
        self.record.events.retain(|event| event != PROBES);
        let is_probe = |key: &Key| matches!(key, Key::Name(name) if name.starts_with(PROBES));
        self.truth.retain(|truth| !is_probe(&truth.key));
    }

    /// A bundled scenario by its name, or one in a file.
    ///
    /// # Errors
    /// When there is neither, or it makes no sense.
    pub fn find(name: &str) -> Result<Self> {
        if let Some((name, text)) = BUNDLED.iter().find(|(bundled, _)| *bundled == name) {
            return Self::parse(name, text);
        }
        let path = Path::new(name);
        if !path.is_file() {
            let names: Vec<&str> = BUNDLED.iter().map(|(name, _)| *name).collect();
            let names = names.join(", ");
            let text = format!("unknown scenario {name:?}: use one of {names}, or a scenario file");
            return Err(LabError::Usage(text));
        }
        let text = fs::read_to_string(path).map_err(LabError::io("cannot read", path))?;
        let stem = path.file_stem().map_or(name.into(), |stem| stem.to_string_lossy());
        Self::parse(&stem, &text)
    }

    fn parse(name: &str, text: &str) -> Result<Self> {
        let invalid = |error| LabError::Usage(format!("the scenario {name} is invalid: {error}"));
        let mut scenario: Self = toml::from_str(text).map_err(invalid)?;
        name.clone_into(&mut scenario.name);
        Ok(scenario)
    }

    /// Whether it starts machines or shuts them down: then it is no guest in somebody's lab.
    #[must_use]
    pub fn changes_machines(&self) -> bool {
        let changes = |step: &Step| matches!(step, Step::Start { .. } | Step::ShutDown { .. });
        self.before.iter().chain(&self.steps).any(changes)
    }

    /// Whether its guest needs the module that reports to the host by hypercall.
    pub(crate) fn needs_module(&self) -> bool {
        self.guest.module
    }

    /// The lab that it runs in.
    #[must_use]
    pub fn description(&self, arch: Arch) -> Description {
        let mut lab = Description::new(arch, self.levels);
        lab.started = self.started.unwrap_or(self.levels);
        lab.instruction_ns = self.instruction_ns;
        lab.processor.clone_from(&self.processor);
        // QEMU stands still with more where instructions are counted.
        lab.cpus = self.instruction_ns.map_or(lab.cpus, |_| 1);
        lab.guest.board = self.guest.board.unwrap_or(lab.guest.board);
        lab.guest.cpus = self.guest.cpus.unwrap_or(lab.guest.cpus);
        lab.guest.net = self.guest.net;
        lab.guest.disk_mib = self.guest.disk_mib;
        lab.guest.shm_mib = self.guest.shm_mib;
        lab.guest.append.clone_from(&self.guest.append);
        lab
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bundled_scenarios_make_sense() {
        for scenario in Scenario::bundled().unwrap() {
            for arch in [Arch::X86_64, Arch::Aarch64] {
                let lab = scenario.description(arch);
                assert!(lab.started <= lab.levels, "{}", scenario.name);
                assert!(arch == Arch::Aarch64 || lab.check().is_ok(), "{}", scenario.name);
            }
            assert!(!scenario.record.events.is_empty(), "{}", scenario.name);
        }
    }

    #[test]
    fn a_scenario_that_is_not_there_is_refused_with_the_names_of_those_that_are() {
        let error = Scenario::find("none").unwrap_err().to_string();
        assert!(error.contains("exits") && error.contains("nested"), "{error}");
    }

    #[test]
    fn misspelt_keys_are_refused() {
        let text = "summary = ''\nlevels = 1\nstepp = []\n[record]\nevents = ['kvm']";
        assert!(Scenario::parse("x", text).unwrap_err().to_string().contains("stepp"));
    }
}
