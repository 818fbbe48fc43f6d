//! The files that processes had mapped, without duplicates.

use std::collections::HashMap;
use std::sync::Arc;

use perfdata::BuildId;

/// Maximum distinct files of a machine.
const MAX_FILES: usize = 1 << 16;

/// Maximum total bytes of their paths.
const MAX_PATH_BYTES: usize = 16 << 20;

/// A mapped file.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MappedFile {
    /// Its path in the machine that mapped it; `[vdso]` and `//anon` are names, not paths.
    pub path: Arc<[u8]>,
    /// Identifies the file independent of its path.
    pub build_id: Option<BuildId>,
    /// Offset and length in bytes of its first recorded mapping, which is that of its code.
    pub mapped: (u64, u64),
}

impl MappedFile {
    /// The last component of the path.
    #[must_use]
    pub fn name(&self) -> String {
        let last = self.path.rsplit(|&byte| byte == b'/').find(|part| !part.is_empty());
        String::from_utf8_lossy(last.unwrap_or(&self.path)).into_owned()
    }
}

/// The files of a machine, by index.
#[derive(Clone, Debug, Default)]
pub struct Files {
    list: Vec<MappedFile>,
    numbers: HashMap<(Arc<[u8]>, Option<BuildId>), u32>,
    path_bytes: usize,
}

impl Files {
    /// The file with an index.
    #[must_use]
    pub fn get(&self, number: u32) -> Option<&MappedFile> {
        self.list.get(usize::try_from(number).ok()?)
    }

    /// All files in index order.
    #[must_use]
    pub fn list(&self) -> &[MappedFile] {
        &self.list
    }

    /// The index of a file; `None` if there are too many.
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
