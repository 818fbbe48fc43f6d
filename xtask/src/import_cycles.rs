//! Modules of a crate import each other in one direction: no cycles among the modules below its
//! root.
//!
//! An edge is a path `crate::MODULE` in code that is not a test, a name that the root re-exports
//! from a module, or a `use super::MODULE` in a file next to the root. The same rule holds within
//! each public module of a crate's root, which counts as a small crate of its own. Files inside
//! such a module may import each other freely.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::repository;

/// Crates and public modules that still have cycles, with the number of modules in a cycle. These
/// numbers may only decrease.
const REMAINING: &[(&str, usize)] = &[
    ("answer/analyses/lanes", 5),
    ("answer/analyses/path", 6),
    ("answer/analyses/profile", 5),
    ("answer/export", 5),
    ("answer/fleet/lake", 11),
    ("decode/ctf", 8),
    ("decode/sources", 12),
    ("lab/lab", 19),
    ("model/timeline", 4),
    ("record/tracefs", 7),
];

/// A test module ends a file's product code: it is the last block of a file.
const TESTS: &str = "#[cfg(test)]\nmod tests {";

type Imports = BTreeMap<String, BTreeSet<String>>;

pub(crate) fn check() -> Result<()> {
    let root = repository::root();
    let crates = root.join("crates");
    let (mut faults, mut total) = (Vec::new(), 0);
    for Library { name, src, root_file, path } in libraries(&root, &crates)? {
        let remaining =
            REMAINING.iter().find(|(known, _)| *known == name).map_or(0, |(_, count)| *count);
        let in_cycles = in_cycles(&imports(&src, root_file.as_deref(), &path)?);
        total += in_cycles.len();
        if in_cycles.len() > remaining {
            let modules = in_cycles.into_iter().collect::<Vec<_>>().join(", ");
            faults.push(format!("crates/{name}: these modules import each other in a cycle: {modules}; move what they share into a module of its own"));
        } else if in_cycles.len() < remaining {
            let count = in_cycles.len();
            faults.push(format!("crates/{name} has {count} modules in cycles: write that number in xtask/src/import_cycles.rs"));
        }
    }
    repository::conclude(&format!("import cycles ({total} modules left)"), &faults)
}

/// A crate, or a public module of a crate.
struct Library {
    /// `model/symbols`, or `model/symbols/instructions`.
    name: String,
    /// The folder of its modules.
    src: PathBuf,
    /// The root file, unless it is `lib.rs` or `main.rs` in `src`.
    root_file: Option<PathBuf>,
    /// The prefix of paths to its modules: `crate::`, or `crate::instructions::`.
    path: String,
}

fn libraries(root: &Path, crates: &Path) -> Result<Vec<Library>> {
    let mut libraries = Vec::new();
    for folder in repository::crates(root)? {
        let name = folder.strip_prefix(crates).unwrap_or(&folder).display().to_string();
        let src = folder.join("src");
        let text = fs::read_to_string(src.join("lib.rs")).unwrap_or_default();
        for module in
            text.lines().filter_map(|line| line.strip_prefix("pub mod ")?.strip_suffix(';'))
        {
            let adjacent = src.join(module).with_extension("rs");
            let root_file =
                if adjacent.is_file() { adjacent } else { src.join(module).join("mod.rs") };
            libraries.push(Library {
                name: format!("{name}/{module}"),
                src: src.join(module),
                root_file: Some(root_file),
                path: format!("crate::{module}::"),
            });
        }
        libraries.push(Library { name, src, root_file: None, path: "crate::".to_owned() });
    }
    libraries.retain(|library| library.src.is_dir());
    Ok(libraries)
}

/// By module below a library's root: the other modules that it imports.
fn imports(src: &Path, root_file: Option<&Path>, path: &str) -> Result<Imports> {
    let mut files = repository::files(src, &["tests"])?;
    files.retain(|file| {
        file.extension().is_some_and(|kind| kind == "rs") && !file.ends_with("tests.rs")
    });
    let mut texts: Vec<(String, bool, String)> = Vec::new();
    let read = |file: &Path| fs::read_to_string(file).with_context(|| file.display().to_string());
    let mut at_root = root_file.map(read).transpose()?.map(|text| code(&text)).unwrap_or_default();
    for file in &files {
        let text = read(file)?;
        let inside = file.strip_prefix(src).unwrap_or(file);
        let mut parts = inside.iter().filter_map(|part| part.to_str());
        let first = parts.next().unwrap_or_default();
        let (module, is_next_to_root) = (first.trim_end_matches(".rs"), first.ends_with(".rs"));
        match module {
            "lib" | "main" if root_file.is_none() => at_root += &code(&text),
            // The root of a module in its own folder.
            "mod" => {}
            _ => texts.push((module.to_owned(), is_next_to_root, code(&text))),
        }
    }
    let modules: BTreeSet<String> = texts.iter().map(|(module, ..)| module.clone()).collect();
    let exported = exported(&at_root, &modules);
    let mut imports = Imports::new();
    for (module, is_next_to_root, text) in &texts {
        let mut names = names_after(text, path);
        if *is_next_to_root {
            names.extend(names_after(text, "use super::"));
        }
        let used = names.into_iter().filter_map(|name| {
            if modules.contains(&name) { Some(name) } else { exported.get(&name).cloned() }
        });
        imports.entry(module.clone()).or_default().extend(used.filter(|used| used != module));
    }
    Ok(imports)
}

/// A source text without comments and tests.
fn code(text: &str) -> String {
    let text = text.split(TESTS).next().unwrap_or_default();
    let lines = text.lines().map(|line| line.split("//").next().unwrap_or_default());
    lines.collect::<Vec<_>>().join("\n")
}

/// The first names of all paths that follow `prefix`: `a` and `b` of `crate::{a::X, b}`.
fn names_after(text: &str, prefix: &str) -> Vec<String> {
    let mut names = Vec::new();
    for rest in text.split(prefix).skip(1) {
        match rest.strip_prefix('{') {
            Some(list) => names.extend(first_names(list)),
            None => names.push(name(rest)),
        }
    }
    names
}

/// The first names of a list's items, up to the closing brace.
fn first_names(list: &str) -> Vec<String> {
    let (mut depth, mut names, mut is_new) = (0_usize, Vec::new(), true);
    for (at, character) in list.char_indices() {
        match character {
            '}' if depth == 0 => break,
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => is_new = true,
            _ if is_new && !character.is_whitespace() => {
                names.push(name(list.get(at..).unwrap_or_default()));
                is_new = false;
            }
            _ => {}
        }
    }
    names
}

fn name(text: &str) -> String {
    text.chars().take_while(|character| character.is_alphanumeric() || *character == '_').collect()
}

/// By name that the root re-exports: the module that defines it.
fn exported(root: &str, modules: &BTreeSet<String>) -> BTreeMap<String, String> {
    let mut exported = BTreeMap::new();
    for statement in root.split("use ").skip(1).filter_map(|rest| rest.split(';').next()) {
        let path = statement.trim_start_matches("crate::").trim_start_matches("self::");
        let Some((module, rest)) =
            path.split_once("::").filter(|(module, _)| modules.contains(*module))
        else {
            continue;
        };
        let names =
            rest.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|name| !name.is_empty());
        exported.extend(names.map(|name| (name.to_owned(), module.to_owned())));
    }
    exported
}

/// Modules that import themselves through others.
fn in_cycles(imports: &Imports) -> BTreeSet<String> {
    let reaches_itself = |module: &String| {
        let (mut reached, mut open) = (BTreeSet::new(), vec![module]);
        while let Some(next) = open.pop() {
            for used in imports.get(next).into_iter().flatten() {
                if reached.insert(used) {
                    open.push(used);
                }
            }
        }
        reached.contains(module)
    };
    imports.keys().filter(|module| reaches_itself(module)).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edges(edges: &[(&str, &[&str])]) -> Imports {
        let used = |used: &[&str]| used.iter().map(|&name| name.to_owned()).collect();
        edges.iter().map(|(module, names)| ((*module).to_owned(), used(names))).collect()
    }

    #[test]
    fn modules_that_reach_themselves_are_in_a_cycle() {
        let imports = edges(&[("a", &["b"]), ("b", &["c"]), ("c", &["b"]), ("d", &["a"])]);
        assert_eq!(in_cycles(&imports).into_iter().collect::<Vec<_>>(), ["b", "c"]);
    }

    #[test]
    fn first_names_of_paths_and_lists_are_imports() {
        let text =
            "use crate::{\n    alpha::{One, Two},\n    beta,\n};\nlet x = crate::gamma::f();";
        assert_eq!(names_after(text, "crate::"), ["alpha", "beta", "gamma"]);
    }

    #[test]
    fn names_that_the_root_exports_are_those_of_their_modules() {
        let modules = BTreeSet::from(["alpha".to_owned()]);
        let exported = exported("pub use alpha::{One, part::Two};\nuse std::fs;\n", &modules);
        assert_eq!(exported.get("Two"), Some(&"alpha".to_owned()));
        assert!(!exported.contains_key("fs"));
    }

    #[test]
    fn comments_and_tests_import_nothing() {
        let text =
            code("use crate::a;\n// crate::b\n#[cfg(test)]\nmod tests {\n    use crate::c;\n}\n");
        assert_eq!(names_after(&text, "crate::"), ["a"]);
    }
}
