//! Finds the programs that run inside machines: they are built with this one, and located next to it.

use std::path::{Path, PathBuf};

use crate::arch::Arch;
use crate::error::{LabError, Result};

/// Overrides the path of the program.
const VARIABLE: &str = "HYPERSCOPE_LABGUEST";

const NAME: &str = "hyperscope-labguest";
/// Records a host.
const HYPERSCOPE: &str = "hyperscope";
/// Records a machine for the one below.
const AGENT: &str = "hyperscope-agent";
/// The module that reports a guest kernel's events by hypercall.
const MODULE: &str = "hyperscope_guest.ko";

/// The program for an architecture.
pub(crate) fn find(arch: Arch) -> Result<PathBuf> {
    if let Some(named) = std::env::var_os(VARIABLE).filter(|value| !value.is_empty()) {
        return Ok(named.into());
    }
    let program =
        std::env::current_exe().map_err(LabError::io("cannot find", Path::new("this program")))?;
    next_to(&program, NAME, arch).ok_or_else(|| {
        let mend =
            format!("build it with `make labguest`, next to this program, or set {VARIABLE}");
        LabError::missing(format!("{NAME} for {arch}"), mend)
    })
}

/// The recorder of hosts for an architecture, if it was built.
pub(crate) fn hyperscope(arch: Arch) -> Option<PathBuf> {
    if arch == Arch::native() {
        return os::programs::find(HYPERSCOPE);
    }
    next_to(&std::env::current_exe().ok()?, HYPERSCOPE, arch)
}

/// The agent for an architecture, if it was built.
pub(crate) fn agent(arch: Arch) -> Option<PathBuf> {
    next_to(&std::env::current_exe().ok()?, AGENT, arch)
}

/// The module that sends a guest's events to its host, if it was built for this kernel.
pub(crate) fn kernel_module(release: &str) -> Result<PathBuf> {
    built_module(release).ok_or_else(|| {
        let what = format!("the module hyperscope_guest for the kernel {release}");
        LabError::missing(what, "build it with `make kmod`")
    })
}

fn built_module(release: &str) -> Option<PathBuf> {
    let program = std::env::current_exe().ok()?;
    let file = format!("kmod/{release}/{MODULE}");
    let places =
        |folder: &Path| [folder.join(&file), folder.join(os::programs::LIBRARY).join(&file)];
    folders(&program).flat_map(places).find(|path| path.is_file())
}

/// LTTng's modules for a kernel, if they were built, as a folder of modules.
pub(crate) fn lttng_modules(release: &str) -> Option<PathBuf> {
    let program = std::env::current_exe().ok()?;
    let file = format!("kmod/{release}/lttng/lib/modules/{release}");
    folders(&program).map(|folder| folder.join(&file)).find(|path| path.is_dir())
}

/// Whether they were built for any kernel.
pub(crate) fn has_lttng_modules() -> bool {
    let Ok(program) = std::env::current_exe() else { return false };
    let releases = folders(&program).filter_map(|folder| folder.join("kmod").read_dir().ok());
    let mut releases =
        releases.flatten().filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    releases.any(|release| lttng_modules(&release).is_some())
}

fn next_to(program: &Path, name: &str, arch: Arch) -> Option<PathBuf> {
    let found = installed(program, name, arch).into_iter().find(|path| path.is_file());
    found.or_else(|| newest(built(program, name, arch)))
}

/// The program's folder and its parent: tests are in a subfolder of a build.
fn folders(program: &Path) -> impl Iterator<Item = &Path> {
    program.ancestors().skip(1).take(2)
}

/// Installed paths, best first.
fn installed(program: &Path, name: &str, arch: Arch) -> Vec<PathBuf> {
    let file = format!("{name}-{arch}");
    let places =
        |folder: &Path| [folder.join(&file), folder.join(os::programs::LIBRARY).join(&file)];
    folders(program).flat_map(places).collect()
}

/// Paths in cargo's target folder: with --target, each target and profile has its own folder.
fn built(program: &Path, name: &str, arch: Arch) -> Vec<PathBuf> {
    let mut paths = Vec::new();
    for folder in folders(program) {
        for profile in ["labguest", "release", "debug"] {
            paths.push(folder.join(format!("../{arch}-unknown-linux-musl/{profile}/{name}")));
        }
        if arch == Arch::native() {
            paths.push(folder.join(name));
        }
    }
    paths
}

/// The newest one: a program of an earlier build may be incompatible.
fn newest(paths: Vec<PathBuf>) -> Option<PathBuf> {
    let times = paths.into_iter().filter_map(|path| {
        let file = path.metadata().ok().filter(std::fs::Metadata::is_file)?;
        Some((file.modified().ok()?, path))
    });
    times.max().map(|(_, path)| path)
}
