//! Files that processes had mapped, each once.

use std::collections::HashMap;
use std::sync::Arc;

use perfdata::BuildId;

/// Files of a machine that are kept apart.
const MAX_FILES: usize = 1 << 16;

/// Bytes of their paths.
const MAX_PATH_BYTES: usize = 16 << 20;

/// A file that was mapped.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MappedFile {
    /// Its path in the machine that mapped it; `[vdso]` and `//anon` are no paths, and have their names here.
    pub path: Arc<[u8]>,
    /// No other file has it, whatever its path.
    pub build_id: Option<BuildId>,
    /// Offset and length in bytes of its first mapping that was recorded: that of its code.
    pub mapped: (u64, u64),
}

impl MappedFile {
    /// The path's last part.
    #[must_use]
    pub fn name(&self) -> String {
        let last = self.path.rsplit(|&byte| byte == b'/').find(|part| !part.is_empty());
        String::from_utf8_lossy(last.unwrap_or(&self.path)).into_owned()
    }
}

/// The files of a machine, by number.
#[derive(Clone, Debug, Default)]
pub struct Files {
    list: Vec<MappedFile>,
    numbers: HashMap<(Arc<[u8]>, Option<BuildId>), u32>,
    path_bytes: usize,
}

impl Files {
    /// The file with a number.
    #[must_use]
    pub fn get(&self, number: u32) -> Option<&MappedFile> {
        self.list.get(usize::try_from(number).ok()?)
    }

    /// All of them, in the order of their numbers.
    #[must_use]
    pub fn list(&self) -> &[MappedFile] {
        &self.list
    }

    /// The number of a file; `None`: there are too many.
    pub(crate) fn number(
        &mut self,
        path: &[u8],
        build_id: Option<BuildId>,
        mapped: (u64, u64),
    ) -> Option<u32> {
        let key = (Arc::<[u8]>::from(path), build_id);
        if let Some(&number) = self.numbers.get(&key) {
            return Some(number);
        }
        let path_bytes = self.path_bytes.saturating_add(path.len());
        if self.list.len() >= MAX_FILES || path_bytes > MAX_PATH_BYTES {
            return None;
        }
        self.path_bytes = path_bytes;
        let number = u32::try_from(self.list.len()).ok()?;
        self.list.push(MappedFile { path: Arc::clone(&key.0), build_id, mapped });
        self.numbers.insert(key, number);
        Some(number)
    }
}
