//! The program by its own name: what it says of itself and of its verbs, and how it refuses others.

#![allow(clippy::unwrap_used)]

use std::process::{Command, Output};

fn hyperscope_lab(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_hyperscope-lab")).args(arguments).output().unwrap()
}

fn printed(arguments: &[&str]) -> String {
    let output = hyperscope_lab(arguments);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn help_and_version_are_its_own() {
    let version = concat!("hyperscope-lab ", env!("CARGO_PKG_VERSION"), "\n");
    assert_eq!(printed(&["--version"]), version);
    let help = printed(&["--help"]);
    assert!(help.contains("Usage: hyperscope-lab <COMMAND>"), "{help}");
    for line in ["  ab           Run a workload", "  lab          Boot virtual hosts"] {
        assert!(help.contains(line), "{line}: {help}");
    }
    assert_eq!(printed(&["help"]), help);
}

#[test]
fn verbs_show_how_users_call_them() {
    for verb in ["ab", "bench exits", "lab corpus", "lab up", "sensitivity"] {
        let words: Vec<&str> = verb.split(' ').chain(["--help"]).collect();
        let help = printed(&words);
        assert!(help.contains(&format!("Usage: hyperscope {verb} ")), "{verb}: {help}");
        let words: Vec<&str> = ["help"].into_iter().chain(verb.split(' ')).collect();
        assert_eq!(printed(&words), help);
    }
}

#[test]
fn verbs_of_other_programs_are_wrong_usage() {
    let refused = hyperscope_lab(&["exits", "trace.dat"]);
    assert_eq!(refused.status.code(), Some(2));
    let stderr = String::from_utf8(refused.stderr).unwrap();
    assert!(stderr.contains("unrecognized subcommand 'exits'"), "{stderr}");
}

#[test]
fn manual_pages_are_those_of_its_verbs() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().join("man1");
    assert_eq!(printed(&["man", "-o", folder.to_str().unwrap()]), "");
    let pages = std::fs::read_dir(&folder).unwrap();
    let mut pages: Vec<String> =
        pages.map(|page| page.unwrap().file_name().into_string().unwrap()).collect();
    pages.retain(|page| {
        !page.starts_with("hyperscope-lab-") && !page.starts_with("hyperscope-bench-")
    });
    pages.sort();
    let verbs = ["ab", "bench", "lab", "sensitivity"];
    assert_eq!(pages, verbs.map(|verb| format!("hyperscope-{verb}.1")));
    assert!(printed(&["man"]).contains("hyperscope\\-lab"));
}

#[test]
fn causes_are_listed_and_unknown_ones_are_refused_with_those_that_are_known() {
    let list = printed(&["lab", "corpus", "--list"]);
    for line in ["vcpu_preempted ", "none "] {
        assert!(list.lines().any(|listed| listed.starts_with(line)), "{list}");
    }
    let few = printed(&["lab", "corpus", "--list", "--only", "page_fault,none"]);
    assert_eq!(few.lines().count(), 2, "{few}");
    let refused = hyperscope_lab(&["lab", "corpus", "-o", "/nowhere", "--only", "gremlins"]);
    assert_eq!(refused.status.code(), Some(1));
    let stderr = String::from_utf8(refused.stderr).unwrap();
    assert!(stderr.contains("gremlins") && stderr.contains("page_fault"), "{stderr}");
    assert_eq!(hyperscope_lab(&["lab", "corpus"]).status.code(), Some(2), "-o is needed");
}

#[test]
fn a_corpus_is_not_written_over() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("labels.json"), "{}").unwrap();
    let refused = hyperscope_lab(&["lab", "corpus", "-o", folder.path().to_str().unwrap()]);
    assert_eq!(refused.status.code(), Some(1));
    let stderr = String::from_utf8(refused.stderr).unwrap();
    assert!(stderr.contains("already holds a corpus"), "{stderr}");
}
