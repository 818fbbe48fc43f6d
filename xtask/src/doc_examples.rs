//! Checks that a library has `doctest = false` exactly if its documentation has no example: rustdoc
//! takes seconds per library to search for examples.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde::Deserialize;

use crate::repository;

#[derive(Deserialize)]
struct Manifest {
    #[serde(default)]
    lib: Library,
}

#[derive(Default, Deserialize)]
struct Library {
    doctest: Option<bool>,
}

pub(crate) fn check() -> Result<()> {
    let root = repository::root();
    let mut faults = Vec::new();
    for folder in repository::crates(&root)? {
        if folder.join("src/lib.rs").is_file() {
            faults.extend(fault(&folder)?);
        }
    }
    repository::conclude("examples in documentation", &faults)
}

fn fault(folder: &Path) -> Result<Option<String>> {
    let manifest = folder.join("Cargo.toml");
    let text = fs::read_to_string(&manifest).with_context(|| manifest.display().to_string())?;
    let manifest: Manifest = toml::from_str(&text)?;
    let mut has_example = false;
    for file in repository::files(&folder.join("src"), &[])? {
        let is_source = file.extension().is_some_and(|extension| extension == "rs");
        has_example |= is_source && has_rust_example(&fs::read_to_string(&file)?);
    }
    let shown = folder.display();
    let runs_examples = manifest.lib.doctest.unwrap_or(true);
    Ok(if has_example && !runs_examples {
        Some(format!("{shown}: its examples do not run; remove `doctest = false`"))
    } else if runs_examples && !has_example {
        Some(format!("{shown}: it has no examples; add `doctest = false` to [lib]"))
    } else {
        None
    })
}

/// Whether the documentation in a source has a block that rustdoc compiles.
fn has_rust_example(source: &str) -> bool {
    let mut is_open = false;
    for line in source.lines().map(str::trim_start) {
        let comment = line.strip_prefix("///").or_else(|| line.strip_prefix("//!"));
        let Some(tag) = comment.and_then(|text| text.trim_start().strip_prefix("```")) else {
            continue;
        };
        if !is_open
            && matches!(tag.trim(), "" | "rust" | "no_run" | "should_panic" | "compile_fail")
        {
            return true;
        }
        is_open = !is_open;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::has_rust_example;

    #[test]
    fn only_blocks_of_rust_are_examples() {
        assert!(has_rust_example("/// Text.\n///\n/// ```\n/// f();\n/// ```\n"));
        assert!(has_rust_example("    //! ```no_run\n    //! f();\n    //! ```\n"));
        assert!(!has_rust_example("/// ```text\n/// a picture\n/// ```\n"));
        assert!(!has_rust_example("let text = \"```\";\n// ```\n"));
    }
}
