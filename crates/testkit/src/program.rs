//! Finds, builds and copies the programs that a test runs.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

use parking_lot::Mutex;

/// `cargo xtask tests` sets it after it has built all programs of the workspace.
const PROGRAMS_ARE_BUILT: &str = "HYPERSCOPE_PROGRAMS_BUILT";

/// Packages built so far by [`program_of`] in this process.
static BUILT: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// The program of another package of the workspace: the file `package` next to `sibling`, a program
/// that cargo built for this test (`env!("CARGO_BIN_EXE_…")`).
///
/// `cargo xtask tests` builds it in advance. `cargo test` builds programs of the tested package
/// only, so this function runs `cargo build` for it, once per process.
///
/// # Panics
///
/// Panics if the program cannot be built.
pub fn program_of(package: &str, sibling: impl AsRef<Path>) -> PathBuf {
    let path = sibling.as_ref().with_file_name(package);
    let mut built = BUILT.lock();
    if std::env::var_os(PROGRAMS_ARE_BUILT).is_none() && !built.iter().any(|name| name == package) {
        let status = Command::new(env!("CARGO"))
            .args(["build", "--locked", "--quiet", "--package", package])
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .status();
        assert!(
            status.as_ref().is_ok_and(ExitStatus::success),
            "cargo build {package}: {status:?}"
        );
        built.push(package.to_owned());
    }
    assert!(path.is_file(), "{} is missing", path.display());
    path
}

/// Copies a program so that the copy can run at once.
///
/// A child process (`cp`) writes the copy: children that other tests fork meanwhile would inherit a
/// file that this process has open for writing, and the kernel does not execute such a file
/// (`ETXTBSY`).
///
/// # Panics
///
/// Panics if `cp` fails.
pub fn copy_program(from: impl AsRef<Path>, to: impl AsRef<Path>) {
    let (from, to) = (from.as_ref(), to.as_ref());
    let copied = Command::new("cp").arg(from).arg(to).status();
    assert!(
        copied.as_ref().is_ok_and(ExitStatus::success),
        "{} is not copied to {}: {copied:?}",
        from.display(),
        to.display()
    );
}
