//! The description of a lab: requested on the command line, and saved with a running lab.

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::arch::Arch;
use crate::error::{LabError, Result};
use crate::machine::{Accelerator, Board, Net};
use crate::tool::Tool;

/// The schema of the file in a running lab's folder.
const SCHEMA: &str = "hyperscope.lab/1";
/// QEMU's max time of an instruction: `MAX_ICOUNT_SHIFT` in its `softmmu/icount.c`.
const MAX_INSTRUCTION_NS: u32 = 1 << 10;

/// A lab's machines.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Description {
    /// `hyperscope.lab/1`.
    pub(crate) schema: String,
    /// Architecture of all machines.
    pub arch: Arch,
    /// Number of machines, one inside the other.
    pub levels: u8,
    /// Number of machines to start.
    pub started: u8,
    /// CPUs of the first machine.
    pub cpus: u32,
    /// Memory of the first machine.
    pub memory_mib: u32,
    /// Extra kernel command line arguments of the first machine.
    #[serde(default)]
    pub append: String,
    /// Extra CPU features of the first machine, or removed ones (`-npt`), by QEMU's names, separated by commas. Only
    /// for emulation.
    #[serde(default)]
    pub processor: String,
    /// Additional programs of the first machine.
    #[serde(default)]
    pub host_tools: Vec<Tool>,
    /// The first machine's guest; nested ones are like it, without its devices.
    pub guest: Guest,
    /// A folder of this system that the first machine can mount.
    pub share: Option<PathBuf>,
    /// The user's kernel, and its folder of modules.
    pub kernel: Option<(PathBuf, PathBuf)>,
    /// The guests' kernel, if it differs.
    #[serde(default)]
    pub guest_kernel: Option<(PathBuf, PathBuf)>,
    /// The user's file tree with programs, instead of packages.
    pub root: Option<PathBuf>,
    /// Accelerator of the first machine; `None`: KVM if it works.
    pub accelerator: Option<Accelerator>,
    /// Virtual time per instruction; `None`: real time.
    #[serde(default)]
    pub instruction_ns: Option<u32>,
}

/// A guest machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Guest {
    pub board: Board,
    /// Number of CPUs.
    pub cpus: u32,
    pub memory_mib: u32,
    /// Its network device.
    pub net: Option<Net>,
    /// Size of its disk.
    pub disk_mib: Option<u32>,
    /// Size of the memory that it shares with the machine below, for recording.
    #[serde(default)]
    pub shm_mib: Option<u32>,
    /// Extra kernel command line arguments.
    #[serde(default)]
    pub append: String,
    /// Extra QEMU options, separated by blanks.
    #[serde(default)]
    pub qemu: String,
    /// Additional programs; nested guests have them, too.
    #[serde(default)]
    pub tools: Vec<Tool>,
}

impl Description {
    /// A lab with this number of machines, and defaults otherwise.
    #[must_use]
    pub fn new(arch: Arch, levels: u8) -> Self {
        let board = if arch == Arch::X86_64 { Board::Microvm } else { Board::Virt };
        // A machine's memory includes its guest's, and that one's guest's; QEMU and images need the rest.
        let memory_mib = if levels > 2 { 4096 } else { 2048 };
        let guest_mib = if levels > 2 { 1024 } else { 256 };
        Self {
            schema: SCHEMA.into(),
            arch,
            levels,
            started: levels,
            cpus: 2,
            memory_mib,
            append: String::new(),
            processor: String::new(),
            host_tools: Vec::new(),
            guest: Guest {
                board,
                cpus: 1,
                memory_mib: guest_mib,
                net: None,
                disk_mib: None,
                shm_mib: None,
                append: String::new(),
                qemu: String::new(),
                tools: Vec::new(),
            },
            share: None,
            kernel: None,
            guest_kernel: None,
            root: None,
            accelerator: None,
            instruction_ns: None,
        }
    }

    /// Whether a scenario that needs the lab `wanted` can run in this one.
    #[must_use]
    pub fn fits(&self, wanted: &Self) -> bool {
        let shape = |lab: &Self| (lab.arch, lab.levels, lab.started);
        let devices =
            |lab: &Self| (lab.guest.board, lab.guest.net, lab.guest.disk_mib, lab.guest.shm_mib);
        let lines =
            |lab: &Self| (lab.append.clone(), lab.guest.append.clone(), lab.guest.qemu.clone());
        let same_lines = lines(self) == lines(wanted) && self.processor == wanted.processor;
        let same_time =
            wanted.instruction_ns.is_none() || self.instruction_ns == wanted.instruction_ns;
        let has = |tool| self.guest.tools.contains(tool);
        let host_has = |tool| self.host_tools.contains(tool);
        shape(self) == shape(wanted)
            && devices(self) == devices(wanted)
            && same_lines
            && same_time
            && wanted.guest.tools.iter().all(has)
            && wanted.host_tools.iter().all(host_has)
    }

    /// The guests' board: shared memory needs a board with PCI.
    pub(crate) fn guest_board(&self) -> Board {
        match (self.guest.shm_mib, self.guest.board) {
            (Some(_), Board::Microvm) => Board::Pc,
            (_, board) => board,
        }
    }

    /// Reads the description of a running lab; `None` if there is no such lab.
    pub(crate) fn read(run: &Path) -> Result<Option<Self>> {
        let path = run.join("lab.json");
        let text = match fs::read_to_string(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            other => other.map_err(LabError::io("cannot read", &path))?,
        };
        let invalid =
            |error: serde_json::Error| LabError::io("cannot understand", &path)(error.into());
        serde_json::from_str(&text).map(Some).map_err(invalid)
    }

    /// Writes it to the running lab's folder.
    pub(crate) fn write(&self, run: &Path) -> Result<()> {
        let path = run.join("lab.json");
        fs::write(&path, self.text()).map_err(LabError::io("cannot write", &path))
    }

    /// The description as JSON.
    pub(crate) fn text(&self) -> String {
        serde_json::to_string_pretty(self).unwrap_or_default()
    }

    /// Refuses impossible combinations.
    pub(crate) fn check(&self) -> Result<()> {
        let refuse = |text: &str| Err(LabError::Usage(text.to_owned()));
        if !(1..=3).contains(&self.levels) {
            return refuse("a lab has 1, 2 or 3 levels");
        }
        if self.arch == Arch::Aarch64 && self.levels > 2 {
            return refuse(
                "level 3 on aarch64 needs nested virtualization, which QEMU does not emulate there: use --levels 2",
            );
        }
        let known = |ns: u32| ns.is_power_of_two() && ns <= MAX_INSTRUCTION_NS;
        if self.instruction_ns.is_some_and(|ns| !known(ns)) {
            return refuse("the time of an instruction must be 1, 2, 4, ... or 1024 ns");
        }
        if self.instruction_ns.is_some() && self.accelerator == Some(Accelerator::Kvm) {
            return refuse("only the emulator counts instructions: use --accel tcg");
        }
        let is_name = |word: &str| {
            !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
        };
        if !self.processor.is_empty() && !self.processor.split(',').all(is_name) {
            return refuse(
                "--processor needs QEMU's feature names, such as vgif, separated by commas",
            );
        }
        if !self.processor.is_empty() && self.accelerator == Some(Accelerator::Kvm) {
            return refuse("--processor needs the emulator: use --accel tcg");
        }
        if self.cpus == 0 || self.guest.cpus == 0 {
            return refuse("a machine needs at least one processor");
        }
        Ok(())
    }
}
