//! Scenarios as data: the machines, what to record, the steps, and what the recording must contain.

use std::fs;
use std::path::Path;

use labguest::wire::{Key, Truth};
use serde::Deserialize;

use crate::arch::Arch;
use crate::description::Description;
use crate::error::{LabError, Result};
use crate::machine::{Board, Net};

/// The bundled scenarios, by name.
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
    /// Its name, the name of its file.
    #[serde(skip)]
    pub name: String,
    /// A summary in one sentence.
    pub summary: String,
    /// Number of machines, one inside the other.
    pub levels: u8,
    /// Number of machines that are up at the begin; `None`: all.
    started: Option<u8>,
    /// Virtual time per instruction, in ns; level 1 then has one CPU.
    instruction_ns: Option<u32>,
    /// Extra CPU features of emulated level 1, by QEMU's names.
    #[serde(default)]
    processor: String,
    /// Differences of the guest from the default.
    #[serde(default)]
    guest: GuestChanges,
    pub(crate) record: Record,
    /// Steps before the recording begins.
    #[serde(default)]
    pub(crate) before: Vec<Step>,
    /// Steps during the recording.
    #[serde(default, rename = "step")]
    pub(crate) steps: Vec<Step>,
    /// What the recording must contain, in addition to what the steps report.
    #[serde(default)]
    pub(crate) truth: Vec<Truth>,
}

/// Differences of a guest from the default.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct GuestChanges {
    board: Option<Board>,
    cpus: Option<u32>,
    net: Option<Net>,
    disk_mib: Option<u32>,
    shm_mib: Option<u32>,
    /// Extra kernel command line arguments.
    #[serde(default)]
    append: String,
    /// Copies the module that reports to the host by hypercall to the guest, without loading it.
    #[serde(default)]
    module: bool,
}

/// The event system of trace-cmd's probes.
pub(crate) const PROBES: &str = "kprobes";

/// What to record: level 1, and its guest if guest events are given.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Record {
    /// Events and event systems of level 1.
    pub(crate) events: Vec<String>,
    /// Events and event systems of level 2.
    #[serde(default)]
    pub(crate) guest_events: Vec<String>,
    /// Fetch the boot recording of level 2, which its kernel command line started.
    #[serde(default)]
    pub(crate) guest_boot: bool,
    /// Max time that events stay in the guest kernel's buffer.
    pub(crate) guest_flush_ms: Option<u32>,
    /// Also record the frames that the guest's module stores in shared memory.
    #[serde(default)]
    pub(crate) guest_module: bool,
    /// Collect hypercalls of level 2 in level 1.
    #[serde(default)]
    pub(crate) hypercalls: bool,
    /// Samples per second of level 1's CPUs.
    pub(crate) sample_hz: Option<u32>,
    /// Samples per second of level 2's CPUs, taken there.
    pub(crate) guest_sample_hz: Option<u32>,
    /// Probe sets of level 2's agent.
    #[serde(default)]
    pub(crate) guest_probes: Vec<String>,
    /// Functions of level 1's kernel to probe.
    #[serde(default)]
    pub(crate) probes: Vec<String>,
    /// Size of each CPU's buffer in the kernel.
    #[serde(default = "usual_buffer_kib")]
    pub(crate) buffer_kib: u32,
}

impl Record {
    /// Only level 1, with the default events.
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

/// A step of a scenario.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Step {
    /// Run a command to its end.
    Run(RunStep),
    /// Start a machine, and wait until it is up.
    Start { level: u8 },
    /// Shut a machine down, and wait until its QEMU has ended.
    ShutDown { level: u8 },
    /// Record level 2, which booted meanwhile: its boot recording, and its further events.
    TakeGuest,
    /// Do nothing.
    Wait { seconds: u64 },
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
    /// Whether it prints what the recording must contain: a line of JSON for each kind of event.
    #[serde(default)]
    pub(crate) truth: bool,
}

impl Scenario {
    /// The bundled scenarios.
    ///
    /// # Errors
    /// When one of them is invalid.
    pub fn bundled() -> Result<Vec<Self>> {
        BUNDLED.iter().map(|(name, text)| Self::parse(name, text)).collect()
    }

    /// Also samples level 1's CPUs, HZ times per second. Only hyperscope samples, and it names probes differently from
    /// scenarios: the probes and their expectations are removed.
    pub fn sample(&mut self, hz: u32) {
        self.record.sample_hz = Some(hz);
        self.record.probes.clear();
        self.record.events.retain(|event| event != PROBES);
        let is_probe = |key: &Key| matches!(key, Key::Name(name) if name.starts_with(PROBES));
        self.truth.retain(|truth| !is_probe(&truth.key));
    }

    /// A bundled scenario by its name, or one from a file.
    ///
    /// # Errors
    /// When there is neither, or it is invalid.
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

    /// Whether it starts machines or shuts them down: then it must not run in a user's lab.
    #[must_use]
    pub fn changes_machines(&self) -> bool {
        let changes = |step: &Step| matches!(step, Step::Start { .. } | Step::ShutDown { .. });
        self.before.iter().chain(&self.steps).any(changes)
    }

    /// Whether its guest needs the module that reports to the host by hypercall.
    pub(crate) fn needs_module(&self) -> bool {
        self.guest.module
    }

    /// The lab that it needs.
    #[must_use]
    pub fn description(&self, arch: Arch) -> Description {
        let mut lab = Description::new(arch, self.levels);
        lab.started = self.started.unwrap_or(self.levels);
        lab.instruction_ns = self.instruction_ns;
        lab.processor.clone_from(&self.processor);
        // QEMU hangs with more CPUs if instructions are counted.
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
