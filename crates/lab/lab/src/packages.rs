//! Debian packages, downloaded and unpacked into the cache, not installed.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::apt::Apt;
use crate::cache::{self, Cache};
use crate::emulator_faults;
use crate::error::{LabError, Result, last_lines};

/// Packages of one architecture.
#[derive(Clone, Debug)]
pub(crate) struct PackageSet {
    /// Debian's name of the architecture.
    pub(crate) architecture: &'static str,
    /// Requested packages; their dependencies are added.
    pub(crate) names: Vec<&'static str>,
}

/// Called at the begin of each step.
pub(crate) type ProgressFn<'a> = &'a dyn Fn(&str);

/// Marks a folder as complete; contains the names of the package files.
const COMPLETE: &str = ".complete";

/// Part of the folder's key: older folders have another QEMU.
const WHICH_QEMU: &[u8] = b"QEMU from backports, which lacks two known bugs";

/// The emulator with the bugs.
const QEMU: &str = "usr/bin/qemu-system-x86_64";

/// Disk space for downloads and unpacked packages, rounded up.
const ROOM_BYTES: u64 = 1 << 30;

/// Parts of packages that the lab never reads, although they contain most files.
const UNUSED: [&str; 6] = [
    "usr/share/doc",
    "usr/share/man",
    "usr/share/locale",
    "usr/share/perl",
    "usr/share/iso-codes",
    "usr/share/icons",
];

impl PackageSet {
    /// The folder of the unpacked packages; fetched unless it exists.
    pub(crate) fn unpacked(
        &self,
        cache: &Cache,
        offline: bool,
        progress: ProgressFn<'_>,
    ) -> Result<PathBuf> {
        let names = self.names.join(" ");
        let key = cache::key([self.architecture.as_bytes(), names.as_bytes(), WHICH_QEMU]);
        let _lock = cache.lock("packages")?;
        let folder = cache.folder("packages")?.join(format!("{}-{key}", self.architecture));
        if is_unpacked(&folder) {
            return Ok(folder);
        }
        if offline {
            let mend = "run `hyperscope lab fetch` with a network, or omit --offline";
            return Err(LabError::missing(format!("{names} ({})", self.architecture), mend));
        }
        cache.need_room(ROOM_BYTES)?;
        // Left by an interrupted run.
        remove(&folder)?;
        let apt = Apt::set_up(cache, self.architecture)?;
        progress("reading the list of packages");
        apt.update(progress)?;
        progress(&format!("downloading {names}"));
        let mut arguments =
            vec!["install", "--yes", "-qq", "--download-only", "--no-install-recommends"];
        arguments.extend(&self.names);
        apt.run(&arguments)?;
        let files = apt.downloaded()?;
        progress(&format!("unpacking {} packages", files.len()));
        files.iter().try_for_each(|file| unpack(file, &folder))?;
        for part in UNUSED {
            remove(&folder.join(part))?;
        }
        let qemu = folder.join(QEMU);
        if qemu.exists() {
            let left_in = emulator_faults::leave_out(&qemu)?;
            if left_in > 0 {
                progress(&format!(
                    "{left_in} known bugs of QEMU's emulator can't be located in this version: if it has them, machines that run guests may sometimes crash or hang"
                ));
            }
        }
        mark_complete(&folder, &files)?;
        remove(apt.folder())?;
        Ok(folder)
    }
}

/// Whether a folder contains unpacked packages.
pub(crate) fn is_unpacked(folder: &Path) -> bool {
    folder.join(COMPLETE).exists()
}

fn unpack(file: &Path, folder: &Path) -> Result<()> {
    let mut command = Command::new("dpkg-deb");
    run(command.arg("--extract").arg(file).arg(folder), "install dpkg").map(drop)
}

fn mark_complete(folder: &Path, files: &[PathBuf]) -> Result<()> {
    let names: Vec<_> =
        files.iter().filter_map(|file| Some(file.file_name()?.to_string_lossy())).collect();
    write(&folder.join(COMPLETE), &(names.join("\n") + "\n"))
}

/// Runs a program to its end and returns its output; an error has the end of its messages.
pub(crate) fn run(command: &mut Command, mend: &str) -> Result<String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.stdin(Stdio::null()).output().map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => LabError::missing(&name, mend),
        _ => LabError::Command { command: name.clone(), output: error.to_string() },
    })?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let arguments =
        command.get_args().map(|argument| argument.to_string_lossy()).collect::<Vec<_>>();
    Err(LabError::Command {
        command: format!("{name} {}", arguments.join(" ")),
        output: last_lines(&String::from_utf8_lossy(&output.stderr), 8),
    })
}

pub(crate) fn write(path: &Path, text: &str) -> Result<()> {
    let mut file = fs::File::create(path).map_err(LabError::io("cannot write", path))?;
    file.write_all(text.as_bytes()).map_err(LabError::io("cannot write", path))
}

fn remove(folder: &Path) -> Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(LabError::io("cannot remove", folder)(error))
        }
        _ => Ok(()),
    }
}
