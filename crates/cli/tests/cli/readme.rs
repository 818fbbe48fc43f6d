//! Commands in `console` blocks of README.md and the guides print what the blocks show.
//!
//! A shell runs each line that begins with `$ ` in the repository's root, on 100 columns, with this
//! build of `hyperscope` on the PATH; the lines below it are its output. `HYPERSCOPE_BLESS=1`
//! rewrites the outputs.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::tool::repository;

/// Guides outside `docs/guide`; all pages of that folder are guides.
const GUIDES: &[&str] = &[
    "README.md",
    "docs/alignment.md",
    "docs/boot.md",
    "docs/calls.md",
    "docs/diff.md",
    "docs/cpu.md",
    "docs/export.md",
    "docs/fleet.md",
    "docs/formats/exits.md",
    "docs/formats/nested.md",
    "docs/critical.md",
    "docs/vmm.md",
    "docs/irqs.md",
    "docs/virtio.md",
    "docs/formats/ctf.md",
    "docs/formats/perf-data.md",
    "docs/formats/session.md",
    "docs/path.md",
    "docs/profile.md",
];

/// Max lines of the front page, so that newcomers read it.
const MAX_README_LINES: usize = 120;
/// Max lines of a command with its output.
const MAX_BLOCK_LINES: usize = 9;

/// Runs a command of a guide and returns its output.
fn shell(command: &str) -> String {
    let program = Path::new(env!("CARGO_BIN_EXE_hyperscope")).parent().unwrap();
    let path = format!("{}:{}", program.display(), env::var("PATH").unwrap());
    let output = Command::new("bash")
        .args(["-c", command])
        .current_dir(repository())
        .env("PATH", path)
        .env("COLUMNS", "100")
        .output()
        .unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "$ {command}\n{errors}");
    String::from_utf8(output.stdout).unwrap() + &errors
}

/// The guide with the current outputs in its `console` blocks.
fn with_real_outputs(guide: &str) -> String {
    let mut real = String::new();
    let mut in_block = false;
    for line in guide.lines() {
        let fence = line.starts_with("```");
        if fence {
            in_block = !in_block && line == "```console";
        }
        match line.strip_prefix("$ ").filter(|_| in_block) {
            Some(command) => real += &format!("{line}\n{}", shell(command)),
            None if in_block && !fence => {}
            None => real += &format!("{line}\n"),
        }
    }
    real
}

/// All guides of the repository: those in its root and in `docs`.
fn guides() -> Vec<PathBuf> {
    let mut folders = vec![repository()];
    let docs = repository().join("docs");
    folders.extend(fs::read_dir(&docs).unwrap().map(|entry| entry.unwrap().path()));
    folders.push(docs);
    let entries = folders.iter().filter(|folder| folder.is_dir()).flat_map(fs::read_dir);
    let paths = entries.flatten().map(|entry| entry.unwrap().path());
    paths.filter(|path| path.extension().is_some_and(|extension| extension == "md")).collect()
}

#[test]
fn links_lead_somewhere() {
    let guides = guides();
    assert!(guides.len() > 10, "{guides:?}");
    for guide in guides {
        let text = fs::read_to_string(&guide).unwrap();
        for link in text.split("](").skip(1).filter_map(|rest| rest.split_once(')')) {
            let target = link.0.split('#').next().unwrap();
            let outside = target.contains("://") || target.is_empty();
            let there = guide.parent().unwrap().join(target).exists();
            assert!(outside || there, "{}: {target}", guide.display());
        }
    }
}

#[test]
fn the_front_page_is_short() {
    let readme = fs::read_to_string(repository().join("README.md")).unwrap();
    let lines = readme.lines().count();
    assert!(lines <= MAX_README_LINES, "{lines} lines");
    // A block fits on one screen next to its explanation.
    for block in readme.split("```console\n").skip(1) {
        let lines = block.split("```").next().unwrap().lines().count();
        assert!((2..=MAX_BLOCK_LINES).contains(&lines), "{lines} lines of output: {block}");
    }
}

#[test]
fn every_page_is_in_the_index() {
    let index = fs::read_to_string(repository().join("docs/README.md")).unwrap();
    let guide = fs::read_to_string(repository().join("docs/guide/README.md")).unwrap();
    for page in guides() {
        let name = page.strip_prefix(repository().join("docs")).unwrap_or(&page);
        let name = name.to_str().unwrap();
        let is_linked = match name.strip_prefix("guide/") {
            Some(name) => guide.contains(&format!("({name})")),
            None => {
                index.contains(&format!("({name})")) || !page.starts_with(repository().join("docs"))
            }
        };
        assert!(is_linked || name.ends_with("README.md"), "no index links {name}");
    }
}

#[test]
fn guides_show_what_happens() {
    let pages = guides().into_iter().filter(|page| page.parent().unwrap().ends_with("docs/guide"));
    for path in GUIDES.iter().map(|name| repository().join(name)).chain(pages) {
        let guide = fs::read_to_string(&path).unwrap();
        testkit::assert_golden(&path, &with_real_outputs(&guide));
    }
}
