//! Build ids of mapped files, read from the mapped files themselves, not from what is at their paths now.
//!
//! Programs of all users run, and none is trusted. A mapped file is identified before it is opened; only regular files
//! on local file systems are opened, each once, and at most a few KiB are read.

use std::collections::HashMap;
use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::time::Duration;

use os::waits::Deadline;
use perfdata::BuildId;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, StatxFlags, open, statx};

use crate::elf_notes::elf_build_id;
use crate::mounts::LocalMounts;

/// Max files to read: hosts with hundreds of programs have a few thousand.
const MAX_FILES: usize = 1 << 14;
/// Max time for all files.
const MAX_TIME: Duration = Duration::from_secs(2);

/// Results for files that were mapped before sampling began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EarlierMappings {
    /// Number of mappings of code in files.
    pub files: u64,
    /// Mappings with a known build id.
    pub build_ids: u64,
    /// Mappings whose file was not read, because of the max number or time.
    pub left_out: u64,
}

/// Device and inode number.
type FileNumber = ((u32, u32), u64);

/// Reads build ids, and caches them.
#[derive(Debug)]
pub(crate) struct MappedFiles {
    mounts: LocalMounts,
    known: HashMap<FileNumber, Option<BuildId>>,
    until: Deadline,
    counts: EarlierMappings,
}

impl MappedFiles {
    /// Starts the time limit.
    pub(crate) fn new() -> Self {
        Self {
            mounts: LocalMounts::find(),
            known: HashMap::new(),
            until: Deadline::after(MAX_TIME),
            counts: EarlierMappings::default(),
        }
    }

    pub(crate) fn counts(&self) -> EarlierMappings {
        self.counts
    }

    /// The build id of the file that a process has mapped at these addresses.
    pub(crate) fn build_id(&mut self, pid: u32, start: u64, end: u64) -> Option<BuildId> {
        self.counts.files = self.counts.files.saturating_add(1);
        if self.until.has_passed() {
            self.counts.left_out = self.counts.left_out.saturating_add(1);
            return None;
        }
        let found = self.of_file(&format!("/proc/{pid}/map_files/{start:x}-{end:x}"));
        self.counts.build_ids = self.counts.build_ids.saturating_add(found.is_some().into());
        found
    }

    fn of_file(&mut self, path: &str) -> Option<BuildId> {
        // O_PATH does not involve the driver or server.
        let file = open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).ok()?;
        let number = self.local_file(&file)?;
        if let Some(known) = self.known.get(&number) {
            return *known;
        }
        if self.known.len() >= MAX_FILES {
            self.counts.left_out = self.counts.left_out.saturating_add(1);
            return None;
        }
        let found = read(&file);
        self.known.insert(number, found);
        found
    }

    /// Device and inode of a regular file that can be read without blocking.
    fn local_file(&self, file: &OwnedFd) -> Option<FileNumber> {
        let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC;
        let about = statx(file, c"", flags, StatxFlags::BASIC_STATS | StatxFlags::MNT_ID).ok()?;
        let device = (about.stx_dev_major, about.stx_dev_minor);
        // Since Linux 5.8.
        let mount = (about.stx_mask & StatxFlags::MNT_ID.bits() != 0).then_some(about.stx_mnt_id);
        let is_file = FileType::from_raw_mode(about.stx_mode.into()) == FileType::RegularFile;
        (is_file && self.mounts.has(device, mount)).then_some((device, about.stx_ino))
    }
}

fn read(file: &OwnedFd) -> Option<BuildId> {
    let again = format!("/proc/self/fd/{}", file.as_fd().as_raw_fd());
    // O_NONBLOCK: does not wait for a lease holder.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = File::from(open(again, flags, Mode::empty()).ok()?);
    elf_build_id(|into, at| file.read_at(into, at))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::process::Command;

    use super::*;

    fn text(path: &std::path::Path) -> &str {
        path.to_str().unwrap()
    }

    #[test]
    fn code_of_this_process_has_the_build_id_of_its_file() {
        let maps = fs::read_to_string("/proc/self/maps").unwrap();
        let exe = std::env::current_exe().unwrap();
        let is_code = |line: &&str| line.contains("r-xp") && line.ends_with(text(&exe));
        let (range, _) = maps.lines().find(is_code).unwrap().split_once(' ').unwrap();
        let (start, end) = range.split_once('-').unwrap();
        let [start, end] = [start, end].map(|text| u64::from_str_radix(text, 16).unwrap());
        let name = format!("/proc/self/map_files/{start:x}-{end:x}");
        if let Err(error) = fs::File::open(&name) {
            testkit::skip!("{name}: {error}");
            return;
        }
        let file = fs::read(exe).unwrap();
        let expected =
            elf_build_id(|into, at| (&file[file.len().min(at as usize)..]).read_into(into));
        let mut files = MappedFiles::new();
        let found = files.build_id(std::process::id(), start, end);
        assert!(found.is_some() && found == expected, "{found:?}, {expected:?}");
        assert_eq!(files.build_id(std::process::id(), start, end + 4096), None);
        assert_eq!(files.counts(), EarlierMappings { files: 2, build_ids: 1, left_out: 0 });
    }

    /// Reads like a file.
    trait ReadInto {
        fn read_into(self, into: &mut [u8]) -> std::io::Result<usize>;
    }

    impl ReadInto for &[u8] {
        fn read_into(mut self, into: &mut [u8]) -> std::io::Result<usize> {
            std::io::Read::read(&mut self, into)
        }
    }

    /// Pipes, devices, and files with generated content: the test ends.
    #[test]
    fn nothing_but_local_files_is_opened() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let mut files = MappedFiles::new();
        for path in [text(&pipe), "/dev/zero", "/dev/kmsg", text(folder.path()), "/proc/self/maps"]
        {
            let file = open(path, OFlags::PATH, Mode::empty()).unwrap();
            assert_eq!((files.local_file(&file), files.of_file(path)), (None, None), "{path}");
        }
        assert!(files.known.is_empty());
    }

    #[test]
    fn a_file_is_read_once_and_after_the_deadline_none() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("program");
        fs::copy(std::env::current_exe().unwrap(), &path).unwrap();
        let mut files = MappedFiles::new();
        let found = files.of_file(text(&path));
        if !files.known.is_empty() {
            assert!(found.is_some());
            fs::write(&path, b"").unwrap();
            assert_eq!(files.of_file(text(&path)), found);
        } else {
            testkit::skip!("{} is in no local file system", path.display());
        }
        files.until = Deadline::after(Duration::ZERO);
        assert_eq!(files.build_id(std::process::id(), 1, 2), None);
        assert_eq!(files.counts().left_out, 1);
    }
}
