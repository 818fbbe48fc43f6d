//! Each promise of `docs/specification.md` names a test that enforces it, and that test exists.
//!
//! A promise is a table row that begins with its number: `| L1 | text | `path/of/tests.rs::name`
//! |`. The letter is that of its section. The numbers of a section start at 1 without gaps, so that
//! a dropped promise is noticed.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use crate::repository;

/// The page with the promises.
const PAGE: &str = "docs/specification.md";

/// A row of a table of promises.
#[derive(Debug, PartialEq, Eq)]
struct Promise<'t> {
    section: char,
    number: u32,
    /// The last cell, which names the tests.
    tests: &'t str,
}

/// Checks every promise of the page.
pub(crate) fn check() -> Result<()> {
    let root = repository::root();
    let text = fs::read_to_string(root.join(PAGE)).context(PAGE)?;
    let promises: Vec<Promise<'_>> = text.lines().filter_map(promise).collect();
    let mut sources = Sources::default();
    let mut faults = gaps(&promises);
    for promise in &promises {
        let name = format!("{PAGE}: {}{}", promise.section, promise.number);
        let references: Vec<&str> = references(promise.tests).collect();
        if references.is_empty() {
            faults.push(format!("{name} names no test"));
        }
        let missing =
            references.into_iter().filter(|reference| !sources.has_test(&root, reference));
        faults.extend(
            missing.map(|reference| format!("{name}: the test {reference} does not exist")),
        );
    }
    if promises.is_empty() {
        faults.push(format!("{PAGE} has no promises"));
    }
    repository::conclude(&format!("promises ({})", promises.len()), &faults)
}

/// The promise in a line of the page, if there is one.
fn promise(line: &str) -> Option<Promise<'_>> {
    let cells: Vec<&str> = line.strip_prefix("| ")?.strip_suffix(" |")?.split(" | ").collect();
    let (number, tests) = (cells.first()?.trim(), cells.last()?);
    let mut characters = number.chars();
    let section = characters.next().filter(char::is_ascii_uppercase)?;
    Some(Promise { section, number: characters.as_str().parse().ok()?, tests })
}

/// Numbers that are missing or duplicate.
fn gaps(promises: &[Promise<'_>]) -> Vec<String> {
    let mut last = BTreeMap::<char, u32>::new();
    let mut faults = Vec::new();
    for promise in promises {
        let last = last.entry(promise.section).or_default();
        if promise.number != *last + 1 {
            let (section, number) = (promise.section, promise.number);
            faults.push(format!("{PAGE}: {section}{number} follows {section}{last}"));
        }
        *last = promise.number;
    }
    faults
}

/// Tests named in a cell as `path.rs::name` in backticks.
fn references(cell: &str) -> impl Iterator<Item = &str> {
    cell.split('`').skip(1).step_by(2)
}

/// Source texts by path; `None` if the file does not exist.
#[derive(Default)]
struct Sources(HashMap<String, Option<String>>);

impl Sources {
    fn has_test(&mut self, root: &Path, reference: &str) -> bool {
        let Some((path, name)) = reference.split_once("::") else { return false };
        let read = || fs::read_to_string(root.join(path)).ok();
        let text = self.0.entry(path.to_owned()).or_insert_with(read);
        text.as_deref().is_some_and(|text| is_test(text, name))
    }
}

/// Whether a source has a test with this name that is not ignored.
fn is_test(text: &str, name: &str) -> bool {
    let head = format!("fn {name}(");
    let Some(at) = text.lines().position(|line| line.trim_start().starts_with(&head)) else {
        return false;
    };
    let before: Vec<&str> = text.lines().take(at).map(str::trim).collect();
    // The attributes and documentation of the test.
    let attributes =
        before.iter().rev().take_while(|line| line.starts_with("#[") || line.starts_with("//"));
    let attributes: Vec<&&str> = attributes.collect();
    attributes.iter().any(|line| **line == "#[test]")
        && !attributes.iter().any(|line| line.starts_with("#[ignore"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_tables_are_promises() {
        let row = "| L2 | Ends within 6 s \\| always. | `a.rs::b`, `c.rs::d` |";
        let promise = promise(row).unwrap();
        assert_eq!((promise.section, promise.number), ('L', 2));
        assert_eq!(references(promise.tests).collect::<Vec<_>>(), ["a.rs::b", "c.rs::d"]);
        for other in ["| # | Promise | Test |", "|---|---|---|", "text", "| l1 | x | `a::b` |"] {
            assert_eq!(super::promise(other), None, "{other}");
        }
    }

    #[test]
    fn numbers_run_without_gaps_in_each_section() {
        let promise = |section, number| Promise { section, number, tests: "" };
        assert!(gaps(&[promise('A', 1), promise('B', 1), promise('A', 2)]).is_empty());
        assert_eq!(gaps(&[promise('A', 1), promise('A', 3)]).len(), 1);
        assert_eq!(gaps(&[promise('A', 1), promise('A', 1)]).len(), 1);
    }

    #[test]
    fn a_test_has_its_attribute() {
        let text = "#[test]\nfn kept() {}\n\nfn helper() {}\n\n#[test]\n#[ignore]\nfn off() {}\n";
        assert!(is_test(text, "kept"));
        assert!(!is_test(text, "helper") && !is_test(text, "off") && !is_test(text, "absent"));
    }
}
