//! The map of the crates in ARCHITECTURE.md and CONTRIBUTING.md, drawn from the table of layers, and the
//! files that ARCHITECTURE.md names for each kind of change. Paths into crates that any page names must
//! be there, too.
//!
//! `cargo xtask map --write` draws it again; without it the pages are held against the table.

mod names;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use crate::layers::{LAYERS, below};
use crate::repository;

/// Where the map goes: between these two lines of a page.
const BEGIN: &str = "<!-- crates: cargo xtask map --write draws this -->\n";
const END: &str = "<!-- end of crates -->\n";

/// The page with the picture for a browser, too, and with the table of changes.
const ARCHITECTURE: &str = "ARCHITECTURE.md";

/// The page with the picture for a terminal only.
const CONTRIBUTING: &str = "CONTRIBUTING.md";

/// Head of the table of changes.
const CHANGES: &str = "| To change | Files | How |\n|---|---|---|\n";

/// What stands in the table of changes for a name of one's own.
const PLACEHOLDER: &str = "NAME";

type Table<'t> = BTreeMap<&'t str, &'t [&'t str]>;

/// The group that each crate's folder is in: `decode` of `crates/decode/ringbuf`.
type Groups = BTreeMap<String, String>;

/// Holds both pages against the table of layers and the files that are there, or draws the map again.
pub(crate) fn check(write: bool) -> Result<()> {
    let root = repository::root();
    let table: Table<'_> = LAYERS.iter().copied().collect();
    let groups = groups(&root)?;
    let terminal = for_terminal(&table, &groups);
    let browser = for_browser(&table, &groups);
    let mut faults = Vec::new();
    for (page, map) in [(ARCHITECTURE, format!("{terminal}\n{browser}")), (CONTRIBUTING, terminal)]
    {
        let path = root.join(page);
        let text = fs::read_to_string(&path).context(page)?;
        let drawn =
            drawn(&text, &map).with_context(|| format!("{page} has no place for the map"))?;
        if write {
            fs::write(&path, drawn).context(page)?;
        } else if drawn != text {
            faults.push(format!("{page} is not what the layers are: cargo xtask map --write"));
        }
    }
    let text = fs::read_to_string(root.join(ARCHITECTURE)).context(ARCHITECTURE)?;
    let changes = text.split_once(CHANGES).context("ARCHITECTURE.md has no table of changes")?.1;
    let (rows, missing) = missing(&root, changes);
    faults.extend(missing);
    faults.extend(names::check(&root)?);
    repository::conclude(&format!("map ({} crates, {rows} kinds of change)", table.len()), &faults)
}

/// The page with this map in its place.
fn drawn(page: &str, map: &str) -> Option<String> {
    let (before, rest) = page.split_once(BEGIN)?;
    let (_, after) = rest.split_once(END)?;
    Some(format!("{before}{BEGIN}{map}{END}{after}"))
}

/// How many crates stand below one another at most, down from this one.
fn level(table: &Table<'_>, name: &str) -> usize {
    let uses = table.get(name).copied().unwrap_or_default();
    uses.iter().map(|used| level(table, used) + 1).max().unwrap_or(0)
}

/// The crates that one uses and reaches by no other one.
fn direct<'t>(table: &Table<'t>, name: &str) -> Vec<&'t str> {
    let uses = table.get(name).copied().unwrap_or_default();
    let reached: BTreeSet<&str> = uses.iter().flat_map(|used| below(table, used)).collect();
    uses.iter().copied().filter(|used| !reached.contains(used)).collect()
}

/// Crates by level, the lowest first; those of a level by name.
fn levels<'t>(table: &Table<'t>) -> BTreeMap<usize, Vec<&'t str>> {
    let mut levels: BTreeMap<usize, Vec<&str>> = BTreeMap::new();
    for name in table.keys() {
        levels.entry(level(table, name)).or_default().push(name);
    }
    levels
}

/// The group of each crate that has one.
fn groups(root: &Path) -> Result<Groups> {
    let crates = root.join("crates");
    let named = repository::crates(root)?.into_iter().filter_map(|folder| {
        let inside = folder.strip_prefix(&crates).ok()?.to_str()?;
        let (group, name) = inside.split_once('/')?;
        Some((name.replace('_', "-"), group.to_owned()))
    });
    Ok(named.collect())
}

/// Lines for a terminal: `cli` on top, below each level those that it may use.
fn for_terminal(table: &Table<'_>, groups: &Groups) -> String {
    let width = table.keys().map(|name| name.len()).max().unwrap_or_default();
    let wide = groups.values().map(String::len).max().unwrap_or_default();
    let line = |level: &str, name: &str, uses: &str| {
        let group = groups.get(name).map_or("", String::as_str);
        format!("{level:>5}  {name:width$}  {group:wide$}  {uses}\n")
    };
    let mut out = "```text\n".to_owned();
    out += &format!("level  {:width$}  {:wide$}  uses, and all that these use\n", "crate", "in");
    out += &line("top", "cli", "any crate");
    for (level, names) in levels(table).into_iter().rev() {
        for name in names {
            let uses = direct(table, name).join(", ");
            out += &line(&level.to_string(), name, if uses.is_empty() { "-" } else { &uses });
        }
    }
    out + "```\n"
}

/// The same as a graph that forges draw, a box around each group: an arrow points where data flows,
/// from the used to the user.
fn for_browser(table: &Table<'_>, groups: &Groups) -> String {
    let mut out = "```mermaid\nflowchart LR\n".to_owned();
    let names: BTreeSet<&String> = groups.values().collect();
    for group in names {
        let inside = groups.iter().filter(|(_, of)| *of == group);
        let inside: Vec<&str> = inside.map(|(name, _)| name.as_str()).collect();
        out += &format!("  subgraph in-{group} [{group}]\n    {}\n  end\n", inside.join("; "));
    }
    let mut used = BTreeSet::new();
    for name in table.keys() {
        let below = direct(table, name);
        used.extend(below.iter().copied());
        for below in below {
            out += &format!("  {below} --> {name}\n");
        }
    }
    for name in table.keys().filter(|name| !used.contains(*name) && **name != "testkit") {
        out += &format!("  {name} --> cli\n");
    }
    out + "```\n"
}

/// Rows of the table of changes, and what is wrong with them.
fn missing(root: &Path, changes: &str) -> (usize, Vec<String>) {
    let rows: Vec<&str> = changes.lines().take_while(|line| line.starts_with('|')).collect();
    let mut faults = Vec::new();
    for row in &rows {
        let change = row.split('|').nth(1).unwrap_or_default().trim();
        let files: Vec<&str> = row.split('`').skip(1).step_by(2).collect();
        if files.is_empty() {
            faults.push(format!("{ARCHITECTURE}: {change}: names no file"));
        }
        let missing = files.into_iter().filter(|file| !is_there(root, file));
        faults.extend(missing.map(|file| format!("{ARCHITECTURE}: {change}: there is no {file}")));
        for link in row.split("](").skip(1).filter_map(|link| link.split(')').next()) {
            if !root.join(link).exists() {
                faults.push(format!("{ARCHITECTURE}: {change}: there is no {link}"));
            }
        }
    }
    (rows.len(), faults)
}

/// Whether a file is there; of one with a placeholder, its folder.
fn is_there(root: &Path, file: &str) -> bool {
    let path = Path::new(file);
    match path.iter().position(|part| part.to_string_lossy().contains(PLACEHOLDER)) {
        Some(at) => root.join(path.iter().take(at).collect::<std::path::PathBuf>()).is_dir(),
        None => root.join(path).exists(),
    }
}
