//! Help, manual pages and completions, all made from one definition.

use std::fs;

use crate::tool::{assert_golden, output_of};

/// The verbs that the help lists with a description, and those that it lists by name.
pub(crate) fn verbs() -> Vec<String> {
    let help = output_of(&["--help"]);
    let (_, listed) = help.split_once("<COMMAND>\n").unwrap();
    let (common, rest) = listed.split_once("\n\nMore, ").unwrap();
    let (rare, _) = rest.split_once("\n\n  help ").unwrap();
    let common = common.lines().filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
    let rare = rare.lines().skip(1).flat_map(str::split_whitespace);
    common.chain(rare).map(str::to_owned).collect()
}

#[test]
fn the_help_fits_on_a_screen() {
    let help = output_of(&["--help"]);
    let commands = help.split("\n\nMore, ").next().unwrap().lines();
    let commands = commands.filter(|line| line.starts_with("  ")).count();
    assert!((15..=23).contains(&commands), "{commands} commands, and help");
    assert!(help.lines().all(|line| line.chars().count() <= 100), "{help}");
}

#[test]
fn help_is_as_expected() {
    assert_golden("help.txt", &output_of(&["--help"]));
    assert_eq!(output_of(&["help"]), output_of(&["--help"]));
    for verb in verbs() {
        assert_golden(&format!("help-{verb}.txt"), &output_of(&[&verb, "--help"]));
    }
}

#[test]
fn version_is_that_of_the_package() {
    assert_eq!(output_of(&["--version"]), concat!("hyperscope ", env!("CARGO_PKG_VERSION"), "\n"));
}

#[test]
fn manual_pages_are_written_one_per_command() {
    let folder = tempfile::tempdir().unwrap();
    let pages = folder.path().join("man1");
    assert_eq!(output_of(&["man", "-o", pages.to_str().unwrap()]), "");
    assert_eq!(fs::read_to_string(pages.join("hyperscope.1")).unwrap(), output_of(&["man"]));
    for verb in verbs() {
        let page = fs::read_to_string(pages.join(format!("hyperscope-{verb}.1"))).unwrap();
        assert!(page.contains(".SH NAME") && page.contains(".SH OPTIONS"), "{verb}: {page}");
    }
    let names = fs::read_dir(&pages).unwrap().map(|page| page.unwrap().file_name());
    let (of_lab, others): (Vec<_>, Vec<_>) =
        names.partition(|name| name.to_string_lossy().starts_with("hyperscope-lab-"));
    // Including those of `bench advice`, `channels`, `exits` and `tracers`, of five verbs of `lake`, three of `fleet`,
    // and one of `flight`.
    assert_eq!((of_lab.len(), others.len()), (12, verbs().len() + 14));
}

#[test]
fn completions_know_verbs_and_options() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = output_of(&["completions", shell]);
        for word in ["hyperscope", "exits", "nested", "cpuid_leaf", "jsonl"] {
            // PowerShell and elvish don't complete values.
            let values = !["elvish", "powershell"].contains(&shell);
            let expected = values || !["cpuid_leaf", "jsonl"].contains(&word);
            assert!(!expected || script.contains(word), "{shell}: no {word}");
        }
    }
}
