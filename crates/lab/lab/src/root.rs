//! A file tree with programs: unpacked packages, or this system's.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fs;
use std::path::{Path, PathBuf};

use crate::arch::Arch;
use crate::elf::{self, Needs};
use crate::error::{LabError, Result};
use crate::packages;

/// Folders to search for programs.
const PROGRAM_FOLDERS: [&str; 8] = [
    "usr/bin",
    "bin",
    "usr/sbin",
    "sbin",
    "usr/local/bin",
    "usr/local/sbin",
    "usr/lib/qemu",
    "usr/libexec",
];

/// A file tree of one architecture.
#[derive(Clone, Debug)]
pub(crate) struct Root {
    path: PathBuf,
    arch: Arch,
}

impl Root {
    /// The file tree at a path.
    pub(crate) fn new(path: PathBuf, arch: Arch) -> Self {
        Self { path, arch }
    }

    pub(crate) fn program(&self, name: &str) -> Result<PathBuf> {
        self.existing(PROGRAM_FOLDERS.iter().map(|folder| format!("{folder}/{name}")))
            .ok_or_else(|| self.missing(name))
    }

    /// The first of these data files that exists: its path below /usr/share, and its full path.
    pub(crate) fn data<'a>(&self, names: &[&'a str]) -> Result<(&'a str, PathBuf)> {
        let found = names
            .iter()
            .find_map(|name| Some((*name, self.existing([format!("usr/share/{name}")])?)));
        found.ok_or_else(|| self.missing(&names.join(" or ")))
    }

    /// The newest kernel, and its folder of modules.
    pub(crate) fn kernel(&self) -> Result<Kernel> {
        let boot = self.path.join("boot");
        let entries = fs::read_dir(&boot).map_err(LabError::io("cannot read", &boot))?;
        let mut kernels: Vec<_> = entries
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .filter(|name| name.starts_with("vmlinuz-"))
            .collect();
        kernels.sort();
        let name = kernels.pop().ok_or_else(|| self.missing("a kernel in /boot"))?;
        let release = name.trim_start_matches("vmlinuz-");
        let modules = self
            .existing(["usr/lib/modules", "lib/modules"].map(|at| format!("{at}/{release}")))
            .ok_or_else(|| self.missing(&format!("the folder of modules of {release}")))?;
        Ok(Kernel { image: boot.join(&name), modules })
    }

    fn existing(&self, names: impl IntoIterator<Item = String>) -> Option<PathBuf> {
        names.into_iter().map(|name| self.path.join(name)).find(|path| path.exists())
    }

    fn missing(&self, what: &str) -> LabError {
        let mend = if packages::is_unpacked(&self.path) {
            "download the packages again with `hyperscope lab clean` and `hyperscope lab fetch`"
        } else {
            "install it there, or omit --root"
        };
        LabError::missing(format!("{what} in {}", self.path.display()), mend)
    }

    /// All files that a program needs to run elsewhere, except for itself: destination and source.
    pub(crate) fn closure(&self, program: &Path) -> Result<BTreeMap<String, PathBuf>> {
        let mut files = BTreeMap::new();
        let mut open = vec![program.to_owned()];
        while let Some(path) = open.pop() {
            let needs = read_needs(&path)?;
            if let Some(loader) = &needs.loader {
                let name = loader.rsplit('/').next().unwrap_or(loader);
                files.insert(loader.clone(), self.library(name, &[])?);
            }
            for name in &needs.libraries {
                let place = format!("/lib/{}/{name}", self.arch.triplet());
                if let Entry::Vacant(vacant) = files.entry(place) {
                    let found = self.library(name, &folders(&needs, &path))?;
                    open.push(vacant.insert(found).clone());
                }
            }
        }
        Ok(files)
    }

    /// Finds a library by name; searches these folders first.
    pub(crate) fn library(&self, name: &str, first: &[PathBuf]) -> Result<PathBuf> {
        let triplet = self.arch.triplet();
        let usual = [
            format!("lib/{triplet}"),
            format!("usr/lib/{triplet}"),
            "lib".into(),
            "usr/lib".into(),
            "lib64".into(),
        ];
        let places = first.iter().cloned().chain(usual.iter().map(|folder| self.path.join(folder)));
        // Skips links to absolute paths, which leave the tree.
        let mut found = places.map(|folder| folder.join(name)).filter(|path| path.is_file());
        found.next().ok_or_else(|| self.missing(name))
    }

    /// The command prefix that runs this tree's programs on this machine, with their own loader and libraries.
    pub(crate) fn command_prefix(&self, program: &Path) -> Result<Vec<String>> {
        let mut words = Vec::new();
        if self.path != Path::new("/")
            && let Some(loader) = read_needs(program)?.loader
        {
            let name = loader.rsplit('/').next().unwrap_or(&loader);
            let loader = self.library(name, &[])?;
            let triplet = self.arch.triplet();
            let folders = ["lib", "usr/lib"]
                .map(|lib| self.path.join(lib).join(triplet).display().to_string());
            words.extend([
                loader.display().to_string(),
                "--library-path".into(),
                folders.join(":"),
            ]);
        }
        words.push(program.display().to_string());
        Ok(words)
    }

    /// QEMU's folder of loadable modules.
    pub(crate) fn qemu_modules(&self) -> PathBuf {
        self.path.join("usr/lib").join(self.arch.triplet()).join("qemu")
    }

    /// The path of the tree.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

fn read_needs(path: &Path) -> Result<Needs> {
    let bytes = fs::read(path).map_err(LabError::io("cannot read", path))?;
    elf::needs(path, &bytes)
}

fn folders(needs: &Needs, file: &Path) -> Vec<PathBuf> {
    let origin = file.parent().map(|folder| folder.display().to_string()).unwrap_or_default();
    needs.folders.iter().map(|folder| PathBuf::from(folder.replace("$ORIGIN", &origin))).collect()
}

/// A kernel and its modules.
#[derive(Clone, Debug)]
pub(crate) struct Kernel {
    /// The image that QEMU starts.
    pub(crate) image: PathBuf,
    /// The folder /lib/modules/RELEASE.
    pub(crate) modules: PathBuf,
}
