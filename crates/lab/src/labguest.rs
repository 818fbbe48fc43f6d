//! Finds the program that runs inside machines: built with this one, and found beside it.

use std::path::{Path, PathBuf};

use crate::arch::Arch;
use crate::error::{LabError, Result};

/// Names the program's file, when it is elsewhere.
const VARIABLE: &str = "HYPERSCOPE_LABGUEST";

const NAME: &str = "hyperscope-labguest";

/// The file for an architecture.
pub(crate) fn find(arch: Arch) -> Result<PathBuf> {
    if let Some(named) = std::env::var_os(VARIABLE).filter(|value| !value.is_empty()) {
        return Ok(named.into());
    }
    let own =
        std::env::current_exe().map_err(LabError::io("cannot find", Path::new("this program")))?;
    let found = candidates(&own, arch).into_iter().find(|path| path.is_file());
    found.ok_or_else(|| {
        let mend = format!(
            "`make labguest` builds it; {VARIABLE} names it when it is not beside this program"
        );
        LabError::missing(format!("{NAME} for {arch}"), mend)
    })
}

/// Where it may be, the best first.
fn candidates(own: &Path, arch: Arch) -> Vec<PathBuf> {
    let mut paths = Vec::new();
    // Beside the program, or above it: tests are one folder down in a build.
    for folder in own.ancestors().skip(1).take(2) {
        paths.push(folder.join(format!("{NAME}-{arch}")));
        paths.push(folder.join("../lib/hyperscope").join(format!("{NAME}-{arch}")));
        // cargo build --target puts each target's programs in a folder of its own.
        for profile in ["release", "debug"] {
            paths.push(folder.join(format!("../{arch}-unknown-linux-musl/{profile}/{NAME}")));
        }
        if arch == Arch::native() {
            paths.push(folder.join(NAME));
        }
    }
    paths
}
