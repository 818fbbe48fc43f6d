//! Finds other programs of the same installation.

use std::env;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// The folder of internal programs, relative to that of the user's commands.
pub const LIBRARY: &str = "../lib/hyperscope";
/// The folder of the user's commands, relative to that of internal programs.
const COMMANDS: &str = "../../bin";

/// A program in the same folder as this one, or in its packages' folders.
#[must_use]
pub fn next_to_this(name: &str) -> Option<PathBuf> {
    let this = env::current_exe().ok()?;
    places(this.parent()?, name).into_iter().find(|path| path.is_file())
}

/// As [`next_to_this`], or in PATH; but not in PATH if this process is root on behalf of another
/// user, whose PATH could name any program.
#[must_use]
pub fn find(name: &str) -> Option<PathBuf> {
    next_to_this(name).or_else(|| {
        let path = env::var_os("PATH").filter(|_| !is_root_for_another())?;
        in_path(&path, name)
    })
}

fn places(folder: &Path, name: &str) -> [PathBuf; 3] {
    [folder.join(name), folder.join(LIBRARY).join(name), folder.join(COMMANDS).join(name)]
}

/// Ignores relative folders, because they depend on the current directory.
fn in_path(path: &OsStr, name: &str) -> Option<PathBuf> {
    let folders = env::split_paths(path).filter(|folder| folder.is_absolute());
    folders.map(|folder| folder.join(name)).find(|path| path.is_file())
}

/// Whether sudo or pkexec started this process for a user, or its file is set-user-id.
fn is_root_for_another() -> bool {
    let (real, effective) = (rustix::process::getuid(), rustix::process::geteuid());
    let caller = ["SUDO_UID", "PKEXEC_UID"].into_iter().filter_map(env::var_os);
    effective.is_root() && (!real.is_root() || caller.into_iter().any(|user| user != "0"))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn programs_are_found_from_the_commands_and_from_the_library() {
        let prefix = tempfile::tempdir().unwrap();
        let (commands, library) = (prefix.path().join("bin"), prefix.path().join("lib/hyperscope"));
        fs::create_dir_all(&commands).unwrap();
        fs::create_dir_all(&library).unwrap();
        fs::write(commands.join("hyperscope"), "").unwrap();
        fs::write(library.join("hyperscope-lab"), "").unwrap();
        let found = |from: &Path, name: &str| {
            let path = places(from, name).into_iter().find(|path| path.is_file())?;
            Some(fs::canonicalize(path).unwrap())
        };
        assert_eq!(found(&commands, "hyperscope-lab"), Some(library.join("hyperscope-lab")));
        assert_eq!(found(&library, "hyperscope"), Some(commands.join("hyperscope")));
        assert_eq!(found(&commands, "hyperscope-fleet"), None);
    }

    #[test]
    fn relative_folders_of_the_path_are_left_out() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("tool"), "").unwrap();
        let path = env::join_paths([Path::new("."), Path::new("src"), folder.path()]).unwrap();
        assert_eq!(in_path(&path, "tool"), Some(folder.path().join("tool")));
        // This crate has the file, relative to its folder, where tests run.
        assert_eq!(in_path(OsStr::new("src"), "lib.rs"), None);
    }
}
