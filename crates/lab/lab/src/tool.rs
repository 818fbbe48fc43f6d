//! Additional programs of guests, each from its own Debian packages.

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::arch::Arch;
use crate::error::{LabError, Result};
use crate::machine_programs;
use crate::root::Root;

/// A program that a guest can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Tool {
    /// The kernel's `perf`.
    Perf,
    /// A small C compiler.
    Tcc,
    /// `lttng` with its daemons and its kernel modules, which `kmod/lttng` builds.
    Lttng,
}

#[derive(Clone, Debug)]
pub(crate) struct ToolFile {
    /// Its path in a guest.
    pub(crate) place: String,
    pub(crate) file: PathBuf,
    /// The file tree of its libraries, if it is a program.
    pub(crate) libraries: Option<Root>,
}

impl Tool {
    /// Checks that files exist which are built instead of packaged.
    pub(crate) fn check_built(self) -> Result<()> {
        if self == Self::Lttng && !machine_programs::has_lttng_modules() {
            return Err(LabError::missing("LTTng's modules", "build them with `kmod/lttng`"));
        }
        Ok(())
    }

    /// Its Debian package.
    pub(crate) fn package(self) -> &'static str {
        match self {
            Self::Perf => "linux-perf",
            Self::Tcc => "tcc",
            Self::Lttng => "lttng-tools",
        }
    }

    /// Its files for a kernel.
    pub(crate) fn files(self, root: &Root, arch: Arch, release: &str) -> Result<Vec<ToolFile>> {
        let program = |place: &str, file: PathBuf| ToolFile {
            place: place.to_owned(),
            file,
            libraries: Some(root.clone()),
        };
        match self {
            Self::Perf => Ok(vec![program("/bin/perf", root.program("perf")?)]),
            Self::Tcc => Ok(vec![program("/bin/tcc", root.program("tcc")?)]),
            Self::Lttng => {
                let consumer = format!("/usr/lib/{}/lttng/libexec/lttng-consumerd", arch.triplet());
                let file = root.path().join(consumer.trim_start_matches('/'));
                let mut files = vec![program(&consumer, file)];
                for name in ["lttng", "lttng-sessiond"] {
                    files.push(program(&format!("/bin/{name}"), root.program(name)?));
                }
                let (schema, file) = root.data(&["xml/lttng/session.xsd"])?;
                files.push(ToolFile {
                    place: format!("/usr/share/{schema}"),
                    file,
                    libraries: None,
                });
                files.extend(lttng_modules(release)?);
                Ok(files)
            }
        }
    }
}

/// LTTng's kernel modules, and the files that describe their dependencies.
fn lttng_modules(release: &str) -> Result<Vec<ToolFile>> {
    let folder = machine_programs::lttng_modules(release).ok_or_else(|| {
        let what = format!("LTTng's modules for the kernel {release}");
        LabError::missing(what, "build them with `kmod/lttng`")
    })?;
    let mut files = Vec::new();
    let mut open = vec![folder.clone()];
    while let Some(path) = open.pop() {
        for entry in fs::read_dir(&path).map_err(LabError::io("cannot read", &path))? {
            let path = entry.map_err(LabError::io("cannot read", &path))?.path();
            if path.is_dir() {
                open.push(path);
                continue;
            }
            let below = path.strip_prefix(&folder).unwrap_or(Path::new(""));
            let place = format!("/lib/modules/{release}/{}", below.display());
            files.push(ToolFile { place, file: path, libraries: None });
        }
    }
    Ok(files)
}
