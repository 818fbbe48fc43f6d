//! The kernel's initcall table: section and module of each initcall.

use std::collections::{HashMap, VecDeque};

use sources::Recording;

/// An entry of the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    /// The section: `con`, `early`, `0` to `7`, `1s` to `7s`, `rootfs`.
    pub(super) section: String,
    /// The module name (`KBUILD_MODNAME`).
    pub(super) module: String,
}

/// Initcalls by function name and level. Entries with equal keys are in the order of their calls.
#[derive(Debug, Default)]
pub(super) struct Table(HashMap<(String, &'static str), VecDeque<Entry>>);

/// Prefix of the symbols of table entries. Module, a number, a line number, function and section follow:
/// `__initcall__kmod_quirks__381_195_pci_apply_final_quirks5s`.
const PREFIX: &str = "__initcall__kmod_";
/// Sections as suffixes of symbols; longer suffixes come first.
const SECTIONS: [&str; 18] = [
    "rootfs", "early", "con", "1s", "2s", "3s", "4s", "5s", "6s", "7s", "0", "1", "2", "3", "4",
    "5", "6", "7",
];

impl Table {
    /// The table of the recorded kernel; empty if its symbols lack it.
    pub(super) fn new(guest: &Recording) -> Self {
        let mut table = Self::default();
        // The table is in the order of calls.
        for (_, name) in guest.kallsyms().iter() {
            let entry = std::str::from_utf8(name).ok().and_then(entry);
            if let Some((function, entry)) = entry {
                let key = (function.to_owned(), level_of(&entry.section));
                table.0.entry(key).or_default().push_back(entry);
            }
        }
        table
    }

    /// Removes the next entry of a function at a level: a later initcall with the same name uses the entry after
    /// it.
    pub(super) fn take(&mut self, function: &str, level: &str) -> Option<Entry> {
        let level = LEVELS.into_iter().find(|known_level| *known_level == level)?;
        self.0.get_mut(&(function.to_owned(), level))?.pop_front()
    }
}

/// Levels by the kernel's names.
const LEVELS: [&str; 10] =
    ["console", "early", "pure", "core", "postcore", "arch", "subsys", "fs", "device", "late"];

/// The level of a section, by the kernel's name.
fn level_of(section: &str) -> &'static str {
    match section.trim_end_matches('s') {
        "con" => "console",
        "early" => "early",
        "0" => "pure",
        "1" => "core",
        "2" => "postcore",
        "3" => "arch",
        "4" => "subsys",
        // trim_end_matches removed the last letter.
        "5" | "rootf" => "fs",
        "6" => "device",
        "7" => "late",
        _ => "",
    }
}

fn entry(symbol: &str) -> Option<(&str, Entry)> {
    let rest = symbol.strip_prefix(PREFIX)?;
    // The module name can contain two underscores, and a function name can begin with them: the numbers on both
    // sides of one underscore identify the separator.
    let (at, tail) = rest.match_indices("__").find_map(|(at, _)| {
        let tail = after_number(rest.get(at + 2..)?)?;
        Some((at, after_number(tail)?))
    })?;
    let section = SECTIONS.iter().find(|section| tail.ends_with(**section))?;
    let function = tail.strip_suffix(section)?;
    let module = rest.get(..at)?.to_owned();
    Some((function, Entry { section: (*section).to_owned(), module }))
}

/// The text after digits and an underscore.
fn after_number(text: &str) -> Option<&str> {
    let rest = text.trim_start_matches(|c: char| c.is_ascii_digit());
    rest.strip_prefix('_').filter(|_| rest.len() < text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbols_give_part_function_and_section() {
        for (symbol, function, module, section) in [
            (
                "__initcall__kmod_initramfs__341_777_populate_rootfsrootfs",
                "populate_rootfs",
                "initramfs",
                "rootfs",
            ),
            (
                "__initcall__kmod_quirks__381_195_pci_apply_final_quirks5s",
                "pci_apply_final_quirks",
                "quirks",
                "5s",
            ),
            ("__initcall__kmod_main__1_2___init6", "__init", "main", "6"),
            ("__initcall__kmod_a__b__3_4_x_1early", "x_1", "a__b", "early"),
        ] {
            let entry = entry(symbol).unwrap();
            assert_eq!((entry.0, &*entry.1.module, &*entry.1.section), (function, module, section));
        }
        for other in ["__initcall_end", "__initcallrootfs_start", "__initcall__kmod_x__1_y6", "x"] {
            assert_eq!(entry(other), None, "{other}");
        }
    }

    #[test]
    fn levels_have_their_sections() {
        let all = SECTIONS.map(level_of);
        assert!(all.iter().all(|level| !level.is_empty()));
        assert_eq!((level_of("rootfs"), level_of("5s"), level_of("7s")), ("fs", "fs", "late"));
    }
}
