//! `-h` of each verb fits on a screen, and `docs/options.md` lists all options.

use std::collections::BTreeMap;

use crate::manual::verbs;
use crate::tool::{output_of, repository};

/// Max options in a `-h`, with `--help` itself.
const MAX_SHOWN: usize = 10;

/// Number of commands from which an option that they share is common.
const MIN_COMMON: usize = 5;

/// All verbs, and the commands of those that have some.
fn paths() -> Vec<String> {
    verbs().into_iter().flat_map(|verb| parts(&verb).into_iter().chain([verb])).collect()
}

fn parts(verb: &str) -> Vec<String> {
    let help = help_of(verb, "-h");
    let Some((_, listed)) = help.split_once("\nCommands:\n") else { return Vec::new() };
    let lines = listed.lines().take_while(|line| !line.is_empty());
    let named = lines.filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
    let named = named.filter(|name| !["", "help"].contains(name));
    named.map(|name| format!("{verb} {name}")).collect()
}

fn help_of(path: &str, flag: &str) -> String {
    output_of(&path.split(' ').chain([flag]).collect::<Vec<_>>())
}

/// The options that a help describes, without its examples.
fn options(help: &str) -> Vec<String> {
    let described = help.split("\nExamples:").next().unwrap().lines();
    let option = |line: &str| {
        let text = line.trim_start();
        let indent = line.len() - text.len();
        let begins = (2..=6).contains(&indent) && text.starts_with('-');
        let long = text.split([' ', ',']).find(|word| word.starts_with("--"))?;
        begins.then(|| long.trim_end_matches("...").to_owned())
    };
    described.filter_map(option).collect()
}

#[test]
fn short_help_shows_ten_options_at_most() {
    let paths = paths();
    assert!(paths.iter().any(|path| path == "lab up"), "{paths:?}");
    for path in paths {
        let (short, long) = (help_of(&path, "-h"), help_of(&path, "--help"));
        let (shown, all) = (options(&short), options(&long));
        assert!(all.contains(&"--help".to_owned()), "{path}: {long}");
        assert!(shown.len() <= MAX_SHOWN, "{path} -h shows {}: {shown:?}", shown.len());
        assert!(short.lines().all(|line| line.chars().count() <= 100), "{path}: {short}");
        let rest = format!("more options: hyperscope {path} --help");
        let rest =
            if all.len() == shown.len() + 1 { rest.replace("options", "option") } else { rest };
        let last = short.trim_end().lines().last().unwrap();
        assert_eq!(last.ends_with(&rest), all.len() > shown.len(), "{path}: {last}");
    }
}

#[test]
fn the_table_of_options_is_current() {
    let mut verbs_of: BTreeMap<String, usize> = BTreeMap::new();
    let mut listed = Vec::new();
    for path in paths() {
        let (shown, all) = (options(&help_of(&path, "-h")), options(&help_of(&path, "--help")));
        for option in all.into_iter().filter(|option| option != "--help") {
            *verbs_of.entry(option.clone()).or_default() += 1;
            listed.push((path.clone(), shown.contains(&option), option));
        }
    }
    testkit::assert_golden(repository().join("docs/options.md"), &table(&verbs_of, &listed));
}

fn table(verbs_of: &BTreeMap<String, usize>, listed: &[(String, bool, String)]) -> String {
    let common = verbs_of.values().filter(|verbs| **verbs >= MIN_COMMON).count();
    let shown = listed.iter().filter(|(_, is_shown, _)| *is_shown).count();
    let mut text = format!(
        "# Options\n\nThe commands have {} options under {} names. `-h` shows {shown} of them, at \
         most {MAX_SHOWN} of each command; `--help` and the manual pages show all. {common} names are \
         common: {MIN_COMMON} or more commands have them.\n\nA test writes this page from the help \
         of all commands: `make bless` updates it.\n\n| command | option | shown by | common |\n\
         |---|---|---|---|\n",
        listed.len(),
        verbs_of.len(),
    );
    for (path, is_shown, option) in listed {
        let by = if *is_shown { "`-h`" } else { "`--help`" };
        let common = if verbs_of[option] >= MIN_COMMON { "yes" } else { "" };
        text.push_str(&format!("| {path} | `{option}` | {by} | {common} |\n"));
    }
    text
}
