//! The program by its own name: what it says of itself and of its verbs, and how it refuses others.

#![allow(clippy::unwrap_used)]

use std::process::{Command, Output};

fn hyperscope_fleet(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_hyperscope-fleet")).args(arguments).output().unwrap()
}

fn printed(arguments: &[&str]) -> String {
    let output = hyperscope_fleet(arguments);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn help_and_version_are_its_own() {
    let version = concat!("hyperscope-fleet ", env!("CARGO_PKG_VERSION"), "\n");
    assert_eq!(printed(&["--version"]), version);
    let help = printed(&["--help"]);
    assert!(help.contains("Usage: hyperscope-fleet <COMMAND>"), "{help}");
    assert!(help.contains("  lake   Collect the tables of many recordings"), "{help}");
    assert_eq!(printed(&["help"]), help);
}

#[test]
fn verbs_show_how_users_call_them() {
    for verb in ["fleet diff", "lake add", "sql"] {
        let words: Vec<&str> = verb.split(' ').chain(["--help"]).collect();
        let help = printed(&words);
        assert!(help.contains(&format!("Usage: hyperscope {verb} ")), "{verb}: {help}");
    }
}

#[test]
fn verbs_of_other_programs_are_wrong_usage() {
    let refused = hyperscope_fleet(&["lab", "up"]);
    assert_eq!(refused.status.code(), Some(2));
    let stderr = String::from_utf8(refused.stderr).unwrap();
    assert!(stderr.contains("unrecognized subcommand 'lab'"), "{stderr}");
}
