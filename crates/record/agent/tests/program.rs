//! The program itself: what it prints and how it ends without a host. That it has an integration test also makes cargo
//! build it with all other tests, for those that start it.

#![allow(clippy::unwrap_used)]

use std::process::{Command, Output};

fn agent(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_hyperscope-agent")).args(arguments).output().unwrap()
}

#[test]
fn version_is_the_packages() {
    let output = agent(&["--version"]);
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(text.trim_end(), format!("hyperscope-agent {}", env!("CARGO_PKG_VERSION")));
}

#[test]
fn an_unknown_option_is_a_usage_error_that_names_the_help() {
    let output = agent(&["--no-such-option"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains("--no-such-option") && text.contains("--help"), "{text}");
}
