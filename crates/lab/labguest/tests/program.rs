//! The program outside a machine of the lab. That it has an integration test also makes cargo build it with all other
//! tests, for those that boot machines with it.

use std::process::Command;

#[test]
fn outside_the_lab_it_refuses_to_run() {
    let output = Command::new(env!("CARGO_BIN_EXE_hyperscope-labguest")).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(String::from_utf8(output.stderr).unwrap().contains("hyperscope lab"));
}
