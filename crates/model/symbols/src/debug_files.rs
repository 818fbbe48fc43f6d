//! Finds files with functions by build id.

use std::ffi::OsStr;
use std::fmt;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use perfdata::BuildId;
use sys::FileMap;

use crate::elf::ElfFunctions;
use crate::fetch::{Fetch, Installed, WantedFile};
use crate::files::MappedFile;

/// A file with functions.
pub(crate) struct ElfOnDisk {
    pub(crate) file: FileMap,
    pub(crate) functions: ElfFunctions,
}

impl fmt::Debug for ElfOnDisk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ElfOnDisk")
            .field("functions", &self.functions.len())
            .finish_non_exhaustive()
    }
}

impl ElfOnDisk {
    /// Opens a file if it has this build id. Only regular files are opened, because paths come from
    /// recordings.
    fn open(path: &Path, build_id: &BuildId) -> Option<Self> {
        if !fs::metadata(path).ok()?.is_file() {
            return None;
        }
        let file = FileMap::open(path).ok()?;
        let functions = ElfFunctions::parse(&file).ok()?;
        (functions.build_id == Some(*build_id)).then_some(Self { file, functions })
    }
}

/// Folders and other sources of debug files.
#[derive(Default)]
pub struct DebugFiles {
    folders: Vec<PathBuf>,
    fetch: Option<Box<dyn Fetch>>,
}

impl fmt::Debug for DebugFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DebugFiles").field("folders", &self.folders).finish_non_exhaustive()
    }
}

impl DebugFiles {
    /// Debug files in `folders`, in this order; each has files `.build-id/xx/yyyy.debug`.
    #[must_use]
    pub const fn of_folders(folders: Vec<PathBuf>) -> Self {
        Self { folders, fetch: None }
    }

    /// Debug files in `/usr/lib/debug`, where distributions' packages install them; then files from
    /// the source of [`fetch_by`](crate::fetch_by).
    #[must_use]
    pub fn of_this_system() -> Self {
        Self::of_folders(vec![PathBuf::from("/usr/lib/debug")]).then(Box::new(Installed))
    }

    /// Requests files from `fetch` if no folder has them.
    #[must_use]
    pub fn then(self, fetch: Box<dyn Fetch>) -> Self {
        Self { fetch: Some(fetch), ..self }
    }

    /// The best available files for a mapped file: one with its functions, and one with the
    /// recorded offsets.
    pub(crate) fn find(&mut self, file: &MappedFile, is_here: bool) -> FoundFiles {
        let Some(build_id) = &file.build_id else { return FoundFiles::default() };
        let path = Path::new(OsStr::from_bytes(&file.path));
        let original =
            (is_here && path.is_absolute()).then(|| ElfOnDisk::open(path, build_id)).flatten();
        if original
            .as_ref()
            .is_some_and(|original| original.functions.is_whole && !original.functions.is_empty())
        {
            return FoundFiles { original, debug: None };
        }
        let debug = self.in_folders(build_id).or_else(|| {
            let wanted =
                if original.is_some() { WantedFile::DebugFile } else { WantedFile::Either };
            let path = self.fetch.as_mut()?.fetch(&file.name(), build_id, wanted)?;
            ElfOnDisk::open(&path, build_id)
        });
        FoundFiles { original, debug }
    }

    fn in_folders(&self, build_id: &BuildId) -> Option<ElfOnDisk> {
        let hex = build_id.to_string();
        let (first, rest) = hex.split_at_checked(2)?;
        let name = format!(".build-id/{first}/{rest}.debug");
        self.folders.iter().find_map(|folder| ElfOnDisk::open(&folder.join(&name), build_id))
    }
}

/// The result of the search for a file.
#[derive(Debug, Default)]
pub(crate) struct FoundFiles {
    /// The file itself.
    pub(crate) original: Option<ElfOnDisk>,
    /// Its debug file.
    pub(crate) debug: Option<ElfOnDisk>,
}

impl FoundFiles {
    /// The file with the functions.
    pub(crate) fn functions(&self) -> Option<&ElfOnDisk> {
        let has_some = |file: &&ElfOnDisk| !file.functions.is_empty();
        self.debug.as_ref().filter(has_some).or_else(|| self.original.as_ref().filter(has_some))
    }

    /// The file's own address of one of its offsets.
    pub(crate) fn address_of(&self, offset: u64, mapped: (u64, u64)) -> Option<u64> {
        match (&self.original, &self.debug) {
            (Some(original), _) => original.functions.address_of(offset),
            (None, Some(debug)) => debug.functions.address_of_mapped(offset, mapped),
            (None, None) => None,
        }
    }
}
