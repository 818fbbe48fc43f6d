//! The folder of a VM's recording: named after the VM and the time, in a writable place.

use std::env;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::fs::{Access, access};

/// Max characters of a VM's name in its session's folder.
const MAX_NAME: usize = 40;

/// A new folder: in the current one, or in that for temporary files if the current one is not
/// writable.
pub(super) fn session(vm: &str) -> PathBuf {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    session_in(&folder(), vm, i64::try_from(since.as_secs()).unwrap_or(i64::MAX))
}

fn folder() -> PathBuf {
    let here = env::current_dir().ok().filter(|here| is_writable(here));
    here.unwrap_or_else(env::temp_dir)
}

fn is_writable(folder: &Path) -> bool {
    access(folder, Access::WRITE_OK | Access::EXEC_OK).is_ok()
}

fn session_in(folder: &Path, vm: &str, unix_s: i64) -> PathBuf {
    let name = format!("{}-{}", file_name(vm), printable::calendar::stamp_of(unix_s));
    // Two recordings in one second: the recorder refuses a folder that holds a recording.
    let numbered = (2..100).map(|number| format!("{name}-{number}.hscope"));
    let mut all = std::iter::once(format!("{name}.hscope")).chain(numbered);
    let free = all.find(|name| folder.join(name).symlink_metadata().is_err());
    folder.join(free.unwrap_or_else(|| format!("{name}.hscope")))
}

/// A VM's name as part of a file name, without characters that have a meaning for shells or
/// options.
fn file_name(vm: &str) -> String {
    let plain = |c: char| if c.is_alphanumeric() || "-_.".contains(c) { c } else { '_' };
    let name: String = vm.chars().take(MAX_NAME).map(plain).collect();
    let name = name.trim_start_matches(['.', '-']);
    if name.is_empty() { "vm".to_owned() } else { name.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_has_the_vms_name_and_the_time_and_is_new() {
        let folder = tempfile::tempdir().unwrap();
        let first = session_in(folder.path(), "web", 1_764_034_745);
        assert_eq!(first, folder.path().join("web-20251125T013905Z.hscope"));
        std::fs::create_dir(&first).unwrap();
        let second = session_in(folder.path(), "web", 1_764_034_745);
        assert_eq!(second, folder.path().join("web-20251125T013905Z-2.hscope"));
    }

    #[test]
    fn no_name_of_a_vm_leads_out_of_the_folder() {
        assert_eq!(file_name("../../etc/x"), "_.._etc_x");
        assert_eq!(file_name("--vm\u{1b}[2J"), "vm__2J");
        assert_eq!(file_name("..."), "vm");
        assert_eq!(file_name(&"a".repeat(500)).len(), MAX_NAME);
    }

    #[test]
    fn a_folder_that_is_not_there_is_not_written_to() {
        assert!(!is_writable(Path::new("/proc/none")));
        assert!(is_writable(&env::temp_dir()));
    }
}
