//! Permissions of the files and folders that are created in a folder.

use rustix::fs::Mode;

/// The permissions of created files and folders: users who may read the files can also enter the
/// folders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Modes {
    files: u32,
}

impl Default for Modes {
    /// Only for this user: 0600 and 0700.
    fn default() -> Self {
        Self { files: 0o600 }
    }
}

impl Modes {
    /// Files with these permissions; `None` if the owner could not read and write them, if others
    /// could write them, or if they were executable.
    #[must_use]
    pub fn of_files(bits: u32) -> Option<Self> {
        (bits & !0o044 == 0o600).then_some(Self { files: bits })
    }

    /// The permissions of files.
    #[must_use]
    pub fn file_bits(self) -> u32 {
        self.files
    }

    pub(crate) fn file(self) -> Mode {
        Mode::from_raw_mode(self.files)
    }

    pub(crate) fn folder(self) -> Mode {
        // Read permission of a folder implies search permission.
        Mode::from_raw_mode(self.files | (self.files & 0o444) >> 2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_else_may_write() {
        let folder = |bits| Modes::of_files(bits).map(|modes| modes.folder().as_raw_mode());
        assert_eq!(folder(0o600), Some(0o700));
        assert_eq!(folder(0o640), Some(0o750));
        assert_eq!(folder(0o644), Some(0o755));
        for wrong in [0o660, 0o602, 0o700, 0o400, 0o4600, 0, 0o1600] {
            assert_eq!(folder(wrong), None, "{wrong:o}");
        }
    }
}
