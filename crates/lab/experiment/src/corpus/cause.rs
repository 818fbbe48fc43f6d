//! Causes as data: the machines, how the cause is planted, and what shows that it took effect.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use analyses::why::CauseId;
use lab::{Arch, Board, Description, Net, Tool};
use serde::Deserialize;

use super::draw::Draw;
use super::effect::Effect;
use super::kind::RecordingKind;
use crate::bench::{BenchError, Result};

/// Processors of level 1 where nothing else is asked for: enough that VMM, vCPUs and recorder need not wait for each other.
const HOST_CPUS: u32 = 4;

macro_rules! bundled {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../../causes/", $name, ".toml")))),*]
    };
}

/// The files that come with the program.
const BUNDLED: &[(&str, &str)] = bundled![
    "backend_slow",
    "clock_source",
    "cpu_quota",
    "exit_storm",
    "guest_code",
    "guest_lock",
    "halt_poll_burn",
    "halt_wakeup",
    "host_irq",
    "ipi_storm",
    "legacy_device",
    "nested_exits",
    "none",
    "page_fault",
    "preempted_exit_storm",
    "quota_serial_console",
    "recorder",
    "serial_console",
    "shared_cpu_timer_ticks",
    "slow_backend_legacy_device",
    "timer_ticks",
    "tlb_shootdown",
    "vcpu_preempted",
    "vcpus_share_cpu",
    "vhost_late",
    "vmm_device",
    "vmm_lock",
    "vmm_thread_late",
];

/// A cause, or several that are planted together.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CauseFile {
    /// Its name; that of its file.
    #[serde(skip)]
    pub name: String,
    /// What is wrong, in a sentence.
    pub summary: String,
    /// Ids of what is planted; the first costs most.
    pub(super) causes: Vec<String>,
    /// Whether the workload is the same without what is done in the host.
    #[serde(default)]
    pub(super) removable: bool,
    /// The VM that suffers; a program of its own has the name that the recorder gives it.
    #[serde(default = "usual_vm")]
    pub(super) vm: String,
    /// The vCPU that suffers; unset: all of them.
    pub(super) vcpu: Option<u32>,
    /// How many times as many recordings are made as of others.
    #[serde(default = "once")]
    pub(super) times: u32,
    #[serde(default)]
    machine: MachineShape,
    /// Numbers that scripts name in braces, for all variants.
    #[serde(default)]
    draw: BTreeMap<String, Draw>,
    /// What must have happened, for all variants.
    #[serde(default, rename = "effect")]
    effects: Vec<Effect>,
    #[serde(rename = "variant")]
    pub(super) variants: Vec<Variant>,
}

/// A way to plant it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Variant {
    pub(super) name: String,
    /// In place of the file's.
    machine: Option<MachineShape>,
    /// In place of the file's.
    pub(super) vm: Option<String>,
    #[serde(default)]
    draw: BTreeMap<String, Draw>,
    #[serde(default, rename = "effect")]
    effects: Vec<Effect>,
    /// The kinds of recordings that show it; unset: all.
    kinds: Option<Vec<RecordingKind>>,
    /// Whether each recording is of a guest that has just booted.
    #[serde(default)]
    pub(super) fresh_guest: bool,
    #[serde(flatten)]
    pub(super) scripts: Scripts,
}

/// What is done, as shells have it. In the host's scripts `$QEMU` is the process of the guest's QEMU, `$VCPU0` and so on are the
/// threads of its vCPUs, `$VHOST` are those of vhost, and `$ALL` is the
/// mask of all CPUs.
#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct Scripts {
    /// In the host, before the recording begins.
    #[serde(default)]
    pub(super) host_before: String,
    /// In the guest, before the recording begins.
    #[serde(default)]
    pub(super) guest_before: String,
    /// In the host, beside the workload; ended with it.
    #[serde(default)]
    pub(super) host_beside: String,
    /// The workload, in the guest.
    #[serde(default)]
    pub(super) guest: String,
    /// The workload, in the host.
    #[serde(default)]
    pub(super) host: String,
    /// The workload, in the guest's guest.
    #[serde(default)]
    pub(super) nested: String,
    /// In the guest, after the recording.
    #[serde(default)]
    pub(super) guest_after: String,
    /// In the host, after the recording.
    #[serde(default)]
    pub(super) host_after: String,
    /// Options of the recorder beyond the usual.
    #[serde(default)]
    pub(super) record: String,
    /// A program that starts the recorder: `taskset 1`.
    #[serde(default)]
    pub(super) record_with: String,
}

/// The machines beyond the usual.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct MachineShape {
    levels: Option<u8>,
    host_cpus: Option<u32>,
    cpus: Option<u32>,
    board: Option<Board>,
    net: Option<Net>,
    disk_mib: Option<u32>,
    #[serde(default)]
    qemu: String,
    #[serde(default)]
    append: String,
}

fn usual_vm() -> String {
    "l2".to_owned()
}

fn once() -> u32 {
    1
}

impl CauseFile {
    /// The files that come with the program.
    ///
    /// # Errors
    /// When one of them makes no sense.
    pub fn bundled() -> Result<Vec<Self>> {
        BUNDLED.iter().map(|(name, text)| Self::parse(name, text)).collect()
    }

    /// Those that have a cause or name that is asked for, or are in a file that is; all, where nothing is.
    ///
    /// # Errors
    /// When nothing is called so, or a file makes no sense.
    pub fn find(names: &[String]) -> Result<Vec<Self>> {
        let bundled = Self::bundled()?;
        if names.is_empty() {
            return Ok(bundled);
        }
        let mut found: Vec<Self> = Vec::new();
        for name in names {
            let is_named = |file: &&Self| file.name == *name || file.causes.contains(name);
            let files: Vec<Self> = bundled.iter().filter(is_named).cloned().collect();
            let files = if files.is_empty() { vec![Self::read(name, &bundled)?] } else { files };
            for file in files {
                if found.iter().all(|other| other.name != file.name) {
                    found.push(file);
                }
            }
        }
        Ok(found)
    }

    fn read(name: &str, bundled: &[Self]) -> Result<Self> {
        let path = Path::new(name);
        if !path.is_file() {
            let names: Vec<&str> = bundled.iter().map(|file| file.name.as_str()).collect();
            let text = format!("{name:?}: use one of {}, or a file", names.join(", "));
            return Err(BenchError::Malformed { what: "the list of causes", text });
        }
        let text = fs::read_to_string(path).map_err(BenchError::io("cannot read", path))?;
        let stem = path.file_stem().map_or(name.into(), |stem| stem.to_string_lossy());
        Self::parse(&stem, &text)
    }

    fn parse(name: &str, text: &str) -> Result<Self> {
        let malformed = |text: String| BenchError::Malformed {
            what: "a file with a cause",
            text: format!("{name}: {text}"),
        };
        let mut file: Self = toml::from_str(text).map_err(|error| malformed(error.to_string()))?;
        name.clone_into(&mut file.name);
        file.check().map_err(malformed)?;
        Ok(file)
    }

    fn check(&self) -> std::result::Result<(), String> {
        let is_known = |id: &&String| CauseId::ALL.iter().any(|known| known.name() == id.as_str());
        if let Some(id) = self.causes.iter().find(|id| !is_known(id)) {
            return Err(format!("unknown cause {id}"));
        }
        if self.causes.is_empty() || self.variants.is_empty() {
            return Err("a file needs causes and variants".to_owned());
        }
        for variant in &self.variants {
            let Scripts { guest, host, nested, .. } = &variant.scripts;
            if [guest, host, nested].into_iter().filter(|script| !script.is_empty()).count() != 1 {
                return Err(format!("the variant {} has not one workload", variant.name));
            }
            if self.is_healthy() != self.causes.contains(&"none".to_owned()) {
                return Err("none is no cause among others".to_owned());
            }
            if self.effects_of(variant).next().is_none() {
                return Err(format!("nothing shows that the variant {} took effect", variant.name));
            }
            for effect in self.effects_of(variant) {
                effect.check()?;
            }
            if self.draws_of(variant).values().any(Draw::is_empty) {
                return Err(format!("the variant {} draws from nothing", variant.name));
            }
        }
        Ok(())
    }

    /// Whether nothing is wrong.
    #[must_use]
    pub fn is_healthy(&self) -> bool {
        self.causes == ["none"]
    }

    /// What a variant draws.
    pub(super) fn draws_of(&self, variant: &Variant) -> BTreeMap<String, Draw> {
        let mut draws = self.draw.clone();
        draws.extend(variant.draw.clone());
        draws
    }

    /// What must have happened in a variant.
    pub(super) fn effects_of<'a>(
        &'a self,
        variant: &'a Variant,
    ) -> impl Iterator<Item = &'a Effect> {
        self.effects.iter().chain(&variant.effects)
    }

    /// The kinds of recordings that are made of a variant, of those that are wanted.
    pub(super) fn kinds_of(variant: &Variant, wanted: &[RecordingKind]) -> Vec<RecordingKind> {
        let fits =
            |kind: &&RecordingKind| variant.kinds.as_ref().is_none_or(|kinds| kinds.contains(kind));
        wanted.iter().filter(fits).copied().collect()
    }

    /// The lab that a variant needs; with `perf`, level 1 has that program.
    pub(super) fn machines_of(&self, variant: &Variant, perf: bool) -> Description {
        let shape = variant.machine.as_ref().unwrap_or(&self.machine);
        let mut lab = Description::new(Arch::X86_64, shape.levels.unwrap_or(2));
        lab.cpus = shape.host_cpus.unwrap_or(HOST_CPUS);
        lab.guest.cpus = shape.cpus.unwrap_or(lab.guest.cpus);
        lab.guest.board = shape.board.unwrap_or(lab.guest.board);
        lab.guest.net = shape.net;
        lab.guest.disk_mib = shape.disk_mib;
        lab.guest.qemu.clone_from(&shape.qemu);
        lab.guest.append.clone_from(&shape.append);
        if perf {
            lab.host_tools = vec![Tool::Perf];
        }
        lab
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> String {
        CauseFile::parse("x", text).unwrap_err().to_string()
    }

    const VARIANT: &str = "[[variant]]\nname = 'v'\nguest = 'true'\n";
    const EFFECT: &str = "[[variant.effect]]\ncounter = 'kvm.exits'\nper_second = 1\n";

    #[test]
    fn bundled_files_make_sense() {
        let files = CauseFile::bundled().unwrap();
        assert_eq!(files.len(), BUNDLED.len());
        assert!(files.iter().any(CauseFile::is_healthy));
    }

    #[test]
    fn every_file_in_the_folder_is_bundled() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/causes");
        let mut names: Vec<String> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().path().file_stem().unwrap().to_string_lossy().into_owned())
            .collect();
        names.sort();
        let bundled: Vec<&str> = BUNDLED.iter().map(|(name, _)| *name).collect();
        assert_eq!(names, bundled);
    }

    #[test]
    fn files_without_an_effect_or_with_unknown_words_are_refused() {
        let head = "summary = ''\ncauses = ['exit_storm']\n";
        assert!(CauseFile::parse("x", &format!("{head}{VARIANT}{EFFECT}")).is_ok());
        assert!(refused(&format!("{head}{VARIANT}")).contains("took effect"));
        assert!(refused(&format!("{head}speed = 1\n{VARIANT}{EFFECT}")).contains("speed"));
        let unknown = "summary = ''\ncauses = ['gremlins']\n";
        assert!(refused(&format!("{unknown}{VARIANT}{EFFECT}")).contains("gremlins"));
        let mixed = "summary = ''\ncauses = ['none', 'exit_storm']\n";
        assert!(refused(&format!("{mixed}{VARIANT}{EFFECT}")).contains("none"));
    }

    #[test]
    fn causes_are_found_by_their_id_and_by_their_file() {
        let names = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
            CauseFile::find(&words)
                .map(|files| files.iter().map(|f| f.name.clone()).collect::<Vec<_>>())
        };
        let storms = ["exit_storm", "preempted_exit_storm"];
        assert_eq!(names(&["exit_storm", "exit_storm"]).unwrap(), storms);
        assert_eq!(names(&["preempted_exit_storm"]).unwrap(), ["preempted_exit_storm"]);
        assert!(names(&["gremlins"]).unwrap_err().to_string().contains("exit_storm"));
        assert_eq!(names(&[]).unwrap().len(), BUNDLED.len());
    }
}
