//! Checks that the BPF programs kept in `bpf/` were built from the sources next to them.
//!
//! The build stores a hash of its sources in a section of the object, so that this check needs no
//! clang.

use std::fs;

use anyhow::{Context, Result};
use sha2::{Digest, Sha256};

use crate::repository;

/// Architectures of hosts with an object.
const MACHINES: [&str; 2] = ["x86", "arm64"];
/// Programs, the architecture header that each uses, and their other headers, in the order of
/// `bpf/build`.
const PROGRAMS: [(&str, &str, &[&str]); 3] = [
    ("collect", "collect", &["arm64_vcpu.h", "counts.h"]),
    (
        "live",
        "live",
        &[
            "live_sums.h",
            "live_takers.h",
            "live_state.h",
            "live_task.h",
            "arm64_vcpu.h",
            "counts.h",
        ],
    ),
    ("delay", "live", &["live_task.h", "arm64_vcpu.h", "counts.h"]),
];

/// Checks the objects.
pub(crate) fn check() -> Result<()> {
    let mut faults = Vec::new();
    for (program, of_machine, headers) in PROGRAMS {
        for machine in MACHINES {
            let object = format!("{program}_{machine}.bpf.o");
            let own_names = [format!("{program}.bpf.c"), format!("{of_machine}_{machine}.h")];
            let names = own_names.iter().map(String::as_str).chain(headers.iter().copied());
            let sources = names.map(read).collect::<Result<Vec<_>>>()?;
            if !holds(&read(&object)?, &hash(&sources.concat())) {
                faults.push(format!("bpf/{object} is out of date with bpf/: run make bpf"));
            }
        }
    }
    repository::conclude("bpf", &faults)
}

fn read(name: &str) -> Result<Vec<u8>> {
    fs::read(repository::root().join("bpf").join(name)).with_context(|| format!("bpf/{name}"))
}

fn hash(source: &[u8]) -> String {
    Sha256::digest(source).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Whether the object contains the hash as a NUL-terminated text.
fn holds(object: &[u8], hash: &str) -> bool {
    let text = [hash.as_bytes(), &[0]].concat();
    object.windows(text.len()).any(|window| window == text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_source_is_found() {
        let hash_of_one = hash(b"one");
        let object = format!("\x7fELF..{hash_of_one}\0..");
        assert!(holds(object.as_bytes(), &hash_of_one));
        assert!(!holds(object.as_bytes(), &hash(b"other")));
        assert!(!holds(hash_of_one.as_bytes(), &hash_of_one));
    }

    #[test]
    fn the_kept_objects_are_of_their_sources() {
        check().unwrap();
    }
}
