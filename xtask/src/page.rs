//! Checks that the pages in `web/dist` were built from the sources next to them.
//!
//! The build stores a hash of its sources in each page (`web/sources.ts`), so that this check needs
//! no npm.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use sha2::{Digest, Sha256};

use crate::repository;

/// The sources of the pages: the same as `INPUTS` in `web/sources.ts`.
const INPUTS: &[&str] = &[
    "fleet.html",
    "index.html",
    "package-lock.json",
    "package.json",
    "sources.ts",
    "src",
    "tsconfig.json",
    "vite.config.ts",
];

const PAGES: [&str; 2] = ["dist/report.html", "dist/fleet.html"];

/// Text before the hash in a page.
const MARK: &str = "name=\"hyperscope-sources\" content=\"";

/// Checks the pages.
pub(crate) fn check() -> Result<()> {
    let web = repository::root().join("web");
    let expected = hash(&web)?;
    let mut faults = Vec::new();
    for name in PAGES {
        let page = fs::read_to_string(web.join(name)).with_context(|| format!("web/{name}"))?;
        let stored = page.split_once(MARK).and_then(|(_, rest)| rest.split_once('"'));
        if stored.map(|(hash, _)| hash) != Some(expected.as_str()) {
            faults.push(format!("web/{name} is out of date with web/: run make web"));
        }
    }
    let lock =
        fs::read_to_string(web.join("package-lock.json")).context("web/package-lock.json")?;
    if lock.contains("\"resolved\"") {
        faults.push("web/package-lock.json names a registry: run npm install in web/".to_owned());
    }
    repository::conclude("page", &faults)
}

/// sha256 over each file's path, a zero byte, its length, a zero byte and its content.
fn hash(web: &Path) -> Result<String> {
    let mut files = Vec::new();
    for input in INPUTS {
        collect(&web.join(input), &mut files)?;
    }
    let mut named: Vec<(String, PathBuf)> = files
        .into_iter()
        .map(|file| {
            let name = file.strip_prefix(web).unwrap_or(&file).to_string_lossy().replace('\\', "/");
            (name, file)
        })
        .collect();
    named.sort();
    let mut hash = Sha256::new();
    for (name, file) in named {
        let content = fs::read(&file).with_context(|| file.display().to_string())?;
        hash.update(format!("{name}\0{}\0", content.len()));
        hash.update(&content);
    }
    Ok(repository::hex(hash))
}

fn collect(path: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    if !path.is_dir() {
        files.push(path.to_owned());
        return Ok(());
    }
    for entry in fs::read_dir(path).with_context(|| path.display().to_string())? {
        collect(&entry?.path(), files)?;
    }
    Ok(())
}
