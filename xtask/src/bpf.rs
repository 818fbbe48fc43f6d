//! Checks that the BPF programs kept in `bpf/` were built from the source beside them.
//!
//! The build puts a hash of its source into a section of the object; no clang is needed to hold it
//! against that.

use std::fs;

use anyhow::{Context, Result};
use sha2::{Digest, Sha256};

use crate::repository;

/// Checks the object.
pub(crate) fn check() -> Result<()> {
    let folder = repository::root().join("bpf");
    let source = fs::read(folder.join("collect.bpf.c")).context("bpf/collect.bpf.c")?;
    let object = fs::read(folder.join("collect.bpf.o")).context("bpf/collect.bpf.o")?;
    let mut faults = Vec::new();
    if !holds(&object, &hash(&source)) {
        faults.push("bpf/collect.bpf.o is not what bpf/ builds: make bpf".to_owned());
    }
    repository::conclude("bpf", &faults)
}

fn hash(source: &[u8]) -> String {
    Sha256::digest(source).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Whether the hash stands in the object, as a text with its end.
fn holds(object: &[u8], hash: &str) -> bool {
    let text = [hash.as_bytes(), &[0]].concat();
    object.windows(text.len()).any(|window| window == text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_source_is_told() {
        let hash_of_one = hash(b"one");
        let object = format!("\x7fELF..{hash_of_one}\0..");
        assert!(holds(object.as_bytes(), &hash_of_one));
        assert!(!holds(object.as_bytes(), &hash(b"other")));
        assert!(!holds(hash_of_one.as_bytes(), &hash_of_one));
    }

    #[test]
    fn the_kept_object_is_of_its_source() {
        check().unwrap();
    }
}
