//! Rules for every Rust file: its first lines, its length, and where unsafe code may be.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use crate::repository;

/// Folders that hold Rust files.
const FOLDERS: &[&str] = &["benches", "crates", "fuzz", "xtask"];

/// Build results inside those folders.
const SKIPPED: &[&str] = &["target", "corpus", "artifacts"];

/// The only crate with unsafe code.
const UNSAFE_HOME: &str = "crates/system/sys";

/// A longer file covers more than one subject.
const MAX_LINES: usize = 600;

/// Code here creates files only through the crate `folder`: root writes sessions into places that
/// other users may have prepared.
const CHECKED_FOLDERS: &str = "crates/record/recorder/src";

/// Functions that create, replace or remove files by path.
const BY_PATH: &[&str] = &[
    "fs::write(",
    "fs::rename(",
    "fs::copy(",
    "fs::remove_file(",
    "fs::remove_dir_all(",
    "File::create",
    "OpenOptions",
];

/// The first attribute of each library and program.
const FORBIDS: &str = "#![forbid(unsafe_code)]";

/// Text after the keyword `unsafe` where it makes code unsafe.
const UNSAFE_USES: &[&str] = &[" {", "{", " fn ", " impl", " extern", " trait ", "(", " &"];

/// Checks every Rust file of the repository.
pub(crate) fn check() -> Result<()> {
    let root = repository::root();
    let mut files = Vec::new();
    for folder in FOLDERS.iter().map(|folder| root.join(folder)).filter(|path| path.exists()) {
        files.extend(repository::files(&folder, SKIPPED)?);
    }
    files.retain(|file| file.extension().is_some_and(|extension| extension == "rs"));
    let mut faults = Vec::new();
    for file in &files {
        let text = fs::read_to_string(file).with_context(|| file.display().to_string())?;
        let path = file.strip_prefix(&root).unwrap_or(file);
        faults.extend(faults_of(path, &text));
    }
    repository::conclude(&format!("source rules ({} files)", files.len()), &faults)
}

fn faults_of(path: &Path, text: &str) -> Vec<String> {
    let shown = path.display();
    let mut faults = Vec::new();
    // An interpreter line must stay first.
    let begin = text.lines().find(|line| !line.starts_with("#!/"));
    if !begin.is_some_and(|line| line.starts_with("//!")) {
        faults.push(format!("{shown}: does not start with a `//!` sentence"));
    }
    let lines = text.lines().count();
    if lines >= MAX_LINES {
        faults.push(format!("{shown}: {lines} lines; {MAX_LINES} are too many"));
    }
    if !path.starts_with(UNSAFE_HOME) {
        let used = text.lines().enumerate().filter(|(_, line)| uses_unsafe(line));
        faults.extend(
            used.map(|(at, _)| format!("{shown}:{}: unsafe outside {UNSAFE_HOME}", at + 1)),
        );
    }
    if is_root(path) && !text.contains(FORBIDS) {
        faults.push(format!("{shown}: lacks `{FORBIDS}`: only {UNSAFE_HOME} may have unsafe code"));
    }
    if path.starts_with(CHECKED_FOLDERS) && !path.ends_with("hostile.rs") {
        let product = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
        let by_path = |line: &str| BY_PATH.iter().any(|word| line.contains(word));
        let used = product.lines().enumerate().filter(|(_, line)| by_path(line));
        faults.extend(used.map(|(at, _)| {
            format!("{shown}:{}: a session's file is not created through SessionFolder", at + 1)
        }));
    }
    faults
}

/// Whether it is the root file of a library or a program, whose `forbid` applies to all of its
/// files. Fuzz targets come from a macro with unsafe code.
fn is_root(path: &Path) -> bool {
    let parts: Vec<&str> = path.iter().filter_map(|part| part.to_str()).collect();
    let is_product = matches!(
        parts.as_slice(),
        ["crates", .., "src", "lib.rs" | "main.rs"]
            | ["crates", .., "src", "bin", _]
            | ["crates", .., "build.rs"]
            | ["xtask", "src", "main.rs"]
            | ["fuzz", "surfaces", "src", "lib.rs"]
    );
    is_product && !path.starts_with(UNSAFE_HOME)
}

fn uses_unsafe(line: &str) -> bool {
    let code = line.split("//").next().unwrap_or_default();
    code.match_indices("unsafe").any(|(at, word)| {
        let before = code[..at].chars().next_back();
        let after = &code[at + word.len()..];
        !before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == '"')
            && (after.is_empty() || UNSAFE_USES.iter().any(|usage| after.starts_with(usage)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unsafe_code_is_distinguished_from_talk_about_it() {
        let block = ["unsafe", "{ *pointer }"].join(" ");
        assert!(uses_unsafe(&block));
        assert!(uses_unsafe(&["pub ", "unsafe", " fn read()"].concat()));
        assert!(!uses_unsafe("#![forbid(unsafe_code)]"));
        assert!(!uses_unsafe(&format!("// {block}")));
    }

    #[test]
    fn each_library_and_program_forbids_unsafe_code() {
        for root in
            ["crates/record/channel/src/lib.rs", "crates/cli/src/main.rs", "xtask/src/main.rs"]
        {
            assert_eq!(faults_of(Path::new(root), "//! It.\n").len(), 1, "{root}");
            let text = format!("//! It.\n\n{FORBIDS}\n");
            assert_eq!(faults_of(Path::new(root), &text), Vec::<String>::new());
        }
        let sys = faults_of(Path::new("crates/system/sys/src/lib.rs"), "//! It.\n");
        assert_eq!(sys, Vec::<String>::new());
    }

    #[test]
    fn each_rule_has_its_fault() {
        let path = Path::new("crates/decode/ftrace/src/ringbuf/page.rs");
        assert_eq!(faults_of(path, "//! Pages.\n"), Vec::<String>::new());
        assert_eq!(faults_of(path, "use raw_bytes::Abi;\n").len(), 1);
        assert_eq!(faults_of(path, &format!("//! Pages.\n{}", "\n".repeat(600))).len(), 1);
        let text = ["//! Pages.\n", "unsafe", " {}\n"].concat();
        assert_eq!(faults_of(path, &text).len(), 1);
        assert_eq!(faults_of(Path::new("crates/system/sys/src/file_map.rs"), &text).len(), 0);
        let text = "//! Pages.\nfs::write(path, bytes)?;\n";
        assert_eq!(faults_of(Path::new("crates/record/recorder/src/pump.rs"), text).len(), 1);
        assert_eq!(faults_of(path, text), Vec::<String>::new());
    }
}
