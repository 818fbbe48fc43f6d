//! Kernel modules: their files, and their load order.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use object::Endianness;
use object::elf::FileHeader64;
use object::read::elf::{FileHeader, SectionHeader};

use crate::error::{LabError, Result};

#[derive(Debug)]
pub(crate) struct KernelModules {
    /// Files by the module's name, with underscores.
    files: BTreeMap<String, PathBuf>,
    /// Names of built-in modules.
    built_in: BTreeSet<String>,
    /// Names of compressed modules (`NAME.ko.xz`), which can't be used.
    packed: BTreeSet<String>,
    folder: PathBuf,
}

impl KernelModules {
    /// Lists the folder /lib/modules/RELEASE.
    pub(crate) fn list(folder: &Path) -> Result<Self> {
        let (mut files, mut packed) = (BTreeMap::new(), BTreeSet::new());
        let mut open = vec![folder.to_owned()];
        while let Some(path) = open.pop() {
            for entry in fs::read_dir(&path).map_err(LabError::io("cannot read", &path))? {
                let entry = entry.map_err(LabError::io("cannot read", &path))?;
                let kind = entry.file_type().map_err(LabError::io("cannot read", &path))?;
                let file_name = entry.file_name();
                if kind.is_dir() {
                    open.push(entry.path());
                } else if let Some((name, rest)) = file_name.to_string_lossy().split_once(".ko") {
                    match rest {
                        "" => drop(files.insert(normal(name), entry.path())),
                        ".xz" | ".zst" | ".gz" => drop(packed.insert(normal(name))),
                        _ => {}
                    }
                }
            }
        }
        // A user's own kernel may lack this file.
        let list = fs::read_to_string(folder.join("modules.builtin")).unwrap_or_default();
        let name = |line: &str| Some(normal(line.rsplit('/').next()?.strip_suffix(".ko")?));
        let built_in = list.lines().filter_map(name).collect();
        Ok(Self { files, built_in, packed, folder: folder.to_owned() })
    }

    /// The files of these modules and their dependencies, dependencies first. Skips built-in modules.
    pub(crate) fn in_order(&self, names: &[&str]) -> Result<Vec<PathBuf>> {
        let mut order = Vec::new();
        let mut seen = BTreeSet::new();
        for name in names {
            self.add(&normal(name), &mut seen, &mut order)?;
        }
        Ok(order)
    }

    fn add(&self, name: &str, seen: &mut BTreeSet<String>, order: &mut Vec<PathBuf>) -> Result<()> {
        if self.built_in.contains(name) || !seen.insert(name.to_owned()) {
            return Ok(());
        }
        let Some(file) = self.files.get(name) else {
            let what = format!("the kernel module {name} in {}", self.folder.display());
            let remedy = if self.packed.contains(name) {
                "the module is compressed: unpack all modules of the folder (unxz, unzstd or gunzip), then run depmod"
            } else {
                "use a kernel that has it built in or as a module"
            };
            return Err(LabError::missing(what, remedy));
        };
        for needed in depends(file)? {
            self.add(&needed, seen, order)?;
        }
        order.push(file.clone());
        Ok(())
    }
}

/// Module names may have dashes or underscores.
fn normal(name: &str) -> String {
    name.replace('-', "_")
}

/// A module's dependencies: `depends=a,b` in its section `.modinfo`.
fn depends(file: &Path) -> Result<Vec<String>> {
    let bytes = fs::read(file).map_err(LabError::io("cannot read", file))?;
    let section = modinfo(&bytes).map_err(|error| {
        let source = std::io::Error::new(std::io::ErrorKind::InvalidData, error);
        LabError::io("cannot read the kernel module", file)(source)
    })?;
    let entries = section.split(|&byte| byte == 0);
    let list =
        entries.filter_map(|entry| entry.strip_prefix(b"depends=")).next().unwrap_or_default();
    let names = String::from_utf8_lossy(list).into_owned();
    Ok(names.split(',').filter(|name| !name.is_empty()).map(normal).collect())
}

fn modinfo(bytes: &[u8]) -> object::Result<&[u8]> {
    let header = FileHeader64::<Endianness>::parse(bytes)?;
    let endian = header.endian()?;
    let sections = header.sections(endian, bytes)?;
    let found = sections.section_by_name(endian, b".modinfo");
    found.map_or(Ok(&[]), |(_, section)| section.data(endian, bytes))
}
