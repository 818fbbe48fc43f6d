//! Words that the project doesn't use: old names and phrases, in identifiers, strings, comments and documents.
//!
//! `docs/glossary.md` has the terms to use. `xtask/words-left.txt` says how many refused words each folder
//! still has: the numbers may only fall, and `cargo xtask words --write` lowers them.

mod rules;
mod scan;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use self::rules::{APART, EXEMPT, FROZEN, MAX_BETWEEN, MICRO, PLURALS, RULES, Scope};
use self::scan::{Language, Word, words};
use crate::repository;

/// What each folder still has.
const LEFT: &str = "xtask/words-left.txt";

/// What goes before the numbers in [`LEFT`].
const HEAD: &str =
    "# Refused words that a folder still has: cargo xtask words --write lowers the numbers.\n";

/// Folders that are not the project's own text.
const SKIPPED: &[&str] = &["target", "corpus", "artifacts", "node_modules", "dist", ".git"];

/// A refused word where it stands.
#[derive(Debug, PartialEq, Eq)]
struct Finding {
    line: usize,
    found: String,
    instead: &'static str,
}

/// Checks every text of the repository; with `write`, lowers the numbers that each folder may have, and
/// with `list` prints all that is found in it.
pub(crate) fn check(write: bool, list: Option<&str>) -> Result<()> {
    let root = repository::root();
    let limits = fs::read_to_string(root.join(LEFT)).with_context(|| LEFT.to_owned())?;
    let limits = parse(&limits);
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for file in repository::files(&root, SKIPPED)? {
        let path = file.strip_prefix(&root).unwrap_or(&file).to_path_buf();
        let Some(language) = language(&path) else { continue };
        let text = fs::read_to_string(&file).with_context(|| path.display().to_string())?;
        let lines = findings(&path, language, &text).into_iter().map(|finding| {
            let Finding { line, found, instead } = finding;
            format!("{}:{line}: `{found}`: write {instead}", path.display())
        });
        found.entry(folder(&path)).or_default().extend(lines);
    }
    if let Some(prefix) = list {
        found
            .values()
            .flatten()
            .filter(|line| line.starts_with(prefix))
            .for_each(|line| println!("{line}"));
    }
    if write {
        return fs::write(root.join(LEFT), lowered(&limits, &found)).context(LEFT);
    }
    let total: usize = found.values().map(Vec::len).sum();
    repository::conclude(&format!("words ({total} left)"), &risen(&limits, &found))
}

/// The numbers of a file like [`LEFT`].
fn parse(text: &str) -> BTreeMap<String, usize> {
    let row = |line: &str| {
        let (folder, count) = line.rsplit_once(' ')?;
        Some((folder.to_owned(), count.parse().ok()?))
    };
    text.lines().filter(|line| !line.starts_with('#')).filter_map(row).collect()
}

/// Faults of each folder that has more than it may.
fn risen(limits: &BTreeMap<String, usize>, found: &BTreeMap<String, Vec<String>>) -> Vec<String> {
    let more = found.iter().filter_map(|(folder, lines)| {
        let may = limits.get(folder).copied().unwrap_or_default();
        (lines.len() > may).then(|| {
            let shown = lines.iter().map(|line| format!("{line}\n")).collect::<String>();
            format!("{shown}{folder}: {} refused words, {may} may be left", lines.len())
        })
    });
    more.collect()
}

/// The text of [`LEFT`] with lower numbers where there are fewer; none rises.
fn lowered(limits: &BTreeMap<String, usize>, found: &BTreeMap<String, Vec<String>>) -> String {
    let rows = limits.iter().filter_map(|(folder, may)| {
        let count = found.get(folder).map_or(0, Vec::len).min(*may);
        (count > 0).then(|| format!("{folder} {count}\n"))
    });
    HEAD.to_owned() + &rows.collect::<String>()
}

/// Which folder a file counts for: a group of crates, another folder at the top, or the file itself.
fn folder(path: &Path) -> String {
    let parts: Vec<&str> = path.iter().filter_map(|part| part.to_str()).collect();
    match parts.as_slice() {
        ["crates", group, _, ..] => format!("crates/{group}"),
        [top, ..] => (*top).to_owned(),
        [] => String::new(),
    }
}

/// What a file of the repository is read as; none: it is not read.
fn language(path: &Path) -> Option<Language> {
    let name = path.file_name()?.to_str()?;
    let extension = path.extension().and_then(|kind| kind.to_str());
    if matches!(name, "package-lock.json" | "words-left.txt") || name.starts_with("LICENSE") {
        return None;
    }
    let is_exempt = EXEMPT.iter().any(|(folder, _)| path.starts_with(folder));
    let is_page = matches!(name, "README.md" | "PROVENANCE.toml");
    if is_exempt && !(path.starts_with("fixtures") && is_page) {
        return None;
    }
    match extension {
        Some("rs" | "ts" | "js" | "mjs" | "c" | "h") => Some(Language::Code),
        Some("md" | "toml" | "txt" | "html" | "css" | "json" | "config") => Some(Language::Text),
        None if !name.starts_with('.') => Some(Language::Text),
        _ => None,
    }
}

/// Whether numbers in this file are ones that a person reads.
fn has_outputs(path: &Path) -> bool {
    path.extension().is_some_and(|kind| kind == "md" || kind == "txt")
}

/// What is refused in a file.
fn findings(path: &Path, language: Language, text: &str) -> Vec<Finding> {
    let mut masked = text.to_owned();
    for (frozen, _) in FROZEN {
        masked = masked.replace(frozen, &"-".repeat(frozen.len()));
    }
    let words = words(&masked, language);
    let mut found = refused(&words);
    found.extend(micro(&masked));
    if has_outputs(path) {
        found.extend(masked.lines().enumerate().flat_map(|(at, line)| plurals(at + 1, line)));
    }
    found.sort_by_key(|finding| finding.line);
    found
}

fn refused(words: &[Word]) -> Vec<Finding> {
    let mut found = Vec::new();
    for (at, word) in words.iter().enumerate() {
        let rest = words.get(at..).unwrap_or_default();
        let matching = RULES.iter().find(|rule| {
            rule.words.len() <= rest.len()
                && rule.words.iter().zip(rest).all(|(wanted, word)| word.text == *wanted)
                && (rule.scope == Scope::Everywhere || word.in_code)
        });
        if let Some(rule) = matching
            && !tells_apart(rest)
        {
            let found_words = rule.words.join(" ");
            found.push(Finding { line: word.line, found: found_words, instead: rule.instead });
        }
    }
    found
}

/// Whether it is "tell … apart".
fn tells_apart(words: &[Word]) -> bool {
    let is_tell =
        words.first().is_some_and(|word| matches!(word.text.as_str(), "tell" | "tells" | "told"));
    is_tell && words.iter().skip(1).take(MAX_BETWEEN).any(|word| word.text == APART)
}

fn micro(text: &str) -> impl Iterator<Item = Finding> {
    let has = |(at, line): (usize, &str)| {
        let instead = "us, as docs/glossary.md has it";
        line.contains(MICRO).then(|| Finding { line: at + 1, found: "\u{b5}s".to_owned(), instead })
    };
    text.lines().enumerate().filter_map(has)
}

/// "1 exits", but not "level 1 exits" and "v1.1 exits".
fn plurals(number: usize, line: &str) -> impl Iterator<Item = Finding> {
    let parts: Vec<&str> = line.split_whitespace().collect();
    (0..parts.len()).filter_map(move |at| {
        let noun = parts.get(at + 1)?.trim_matches(|c: char| !c.is_ascii_alphanumeric());
        let before = at.checked_sub(1).and_then(|at| parts.get(at)).copied().unwrap_or_default();
        let counted = parts.get(at)?.trim_start_matches(['(', '`', '"']) == "1"
            && PLURALS.contains(&noun.to_ascii_lowercase().as_str())
            && !matches!(
                before.to_ascii_lowercase().as_str(),
                "level" | "vcpu" | "cpu" | "-" | "–"
            );
        counted.then(|| Finding {
            line: number,
            found: format!("1 {noun}"),
            instead: "the singular",
        })
    })
}
