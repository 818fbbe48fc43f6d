//! Copies programs that a test then runs.

use std::path::Path;
use std::process::{Command, ExitStatus};

/// Copies a program, so that the copy can be run at once.
///
/// Another process writes it: a file that this one had open to write would be so in the children that
/// other tests fork meanwhile, too, and the kernel runs no program that is open to write (`ETXTBSY`).
///
/// # Panics
///
/// Panics where `cp` fails.
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
