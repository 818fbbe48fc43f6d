//! Facts about the machines' architecture, for tests that run on both.

use std::path::{Path, PathBuf};

use crate::tool::{can_run, can_run_all};

/// Cargo profiles of programs for machines of another architecture.
const PROFILES: [&str; 3] = ["labguest", "release", "debug"];

/// The architecture of a lab's machines.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Architecture {
    X86,
    Arm,
}

impl Architecture {
    /// Its name for `lab up --arch`.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::X86 => "x86_64",
            Self::Arm => "aarch64",
        }
    }

    /// Its name in Debian.
    pub(crate) fn of_debian(self) -> &'static str {
        match self {
            Self::X86 => "amd64",
            Self::Arm => "arm64",
        }
    }

    /// The arguments of `make` for building modules of its kernel here.
    pub(crate) fn of_kbuild(self) -> &'static [&'static str] {
        match self {
            Self::Arm if !self.is_native() => &["ARCH=arm64", "CROSS_COMPILE=aarch64-linux-gnu-"],
            _ => &[],
        }
    }

    /// Whether machines with this program and its agent can and should run here; prints the reason if
    /// not.
    pub(crate) fn can_run_all(self) -> bool {
        match self {
            Self::X86 => can_run_all(),
            Self::Arm => can_run() && arm_is_asked_for() && self.has_programs(),
        }
    }

    fn has_programs(self) -> bool {
        ["hyperscope", "hyperscope-agent"].iter().all(|program| self.is_built(program))
    }

    /// Whether a program was built for these machines.
    pub(crate) fn is_built(self, program: &str) -> bool {
        let is_there = self.is_native() || self.built(program).is_some();
        if !is_there {
            testkit::skip!("{program} is not built for {self:?} (`make test-lab-aarch64` does)");
        }
        is_there
    }

    fn is_native(self) -> bool {
        match self {
            Self::X86 => cfg!(target_arch = "x86_64"),
            Self::Arm => cfg!(target_arch = "aarch64"),
        }
    }

    /// The newest build without this system's C library.
    fn built(self, program: &str) -> Option<PathBuf> {
        let all = Path::new(env!("CARGO_BIN_EXE_hyperscope")).ancestors().nth(2).unwrap();
        let folder = all.join(format!("{}-unknown-linux-musl", self.name()));
        let files = PROFILES.map(|profile| folder.join(profile).join(program));
        let times = files
            .into_iter()
            .filter_map(|file| Some((file.metadata().ok()?.modified().ok()?, file)));
        times.max().map(|(_, file)| file)
    }

    /// A program for these machines; `native` is this system's own.
    pub(crate) fn program(self, name: &str, native: impl FnOnce() -> PathBuf) -> PathBuf {
        if self.is_native() { native() } else { self.built(name).unwrap() }
    }

    /// The prefix of the GNU tools that read its programs.
    pub(crate) fn tools(self) -> &'static str {
        match self {
            _ if self.is_native() => "",
            Self::X86 => "x86_64-linux-gnu-",
            Self::Arm => "aarch64-linux-gnu-",
        }
    }
}

/// Whether tests on Arm machines were requested, and the program for them is built.
pub(crate) fn arm_is_asked_for() -> bool {
    if std::env::var_os("HYPERSCOPE_LAB_AARCH64").is_none() {
        testkit::skip!("`make test-lab-aarch64` runs it");
        return false;
    }
    Architecture::Arm.is_built("hyperscope-labguest")
}
