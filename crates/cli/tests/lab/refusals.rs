//! A lab that can't start reports what is missing, with a remedy.

use crate::patience::run;
use crate::tool::{Ran, TestLab, can_run, command, folder};

/// `hyperscope lab` in an empty folder.
fn in_empty_folder(arguments: &[&str]) -> Ran {
    let empty = tempfile::tempdir().unwrap();
    run(command(empty.path(), arguments))
}

fn refused(ran: &Ran, words: &[&str]) {
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    for word in words {
        assert!(ran.stderr.contains(word), "{word} is not in {}", ran.stderr);
    }
}

#[test]
fn offline_with_nothing_fetched() {
    refused(&in_empty_folder(&["up", "--offline"]), &["qemu-system", "linux-image", "lab fetch"]);
}

#[test]
fn no_apt() {
    let empty = tempfile::tempdir().unwrap();
    let mut up = command(empty.path(), &["up"]);
    up.env("PATH", "/nowhere");
    refused(&run(up), &["apt-get is missing", "--kernel"]);
}

#[test]
fn no_kernel() {
    if !can_run() {
        return;
    }
    let kernel = tempfile::tempdir().unwrap();
    let path = kernel.path().to_str().unwrap();
    let ran = command(
        &folder(),
        &["--name", "kernel", "up", "--kernel", "/no/kernel", "--modules", path],
    );
    refused(&run(ran), &["/no/kernel"]);
    let image = kernel.path().join("vmlinuz");
    std::fs::write(&image, "no kernel").unwrap();
    let arguments =
        ["--name", "kernel", "up", "--kernel", image.to_str().unwrap(), "--modules", path];
    let ran = run(command(&folder(), &arguments));
    refused(&ran, &["the kernel module", path]);
}

#[test]
fn a_root_without_programs() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().to_str().unwrap();
    let kernel = ["--kernel", "/etc/hostname", "--modules", path];
    let up = [&["up", "--root", path], &kernel[..]].concat();
    refused(&in_empty_folder(&up), &["is missing", path, "omit --root"]);
}

#[test]
fn more_memory_than_there_is() {
    if !can_run() {
        return;
    }
    let arguments = ["--name", "memory", "up", "--memory", "100000000"];
    let ran = run(command(&folder(), &arguments));
    refused(&ran, &["too little memory", "MiB are needed", "--memory"]);
}

#[test]
fn slips_of_the_pen() {
    refused(&in_empty_folder(&["--name", "../x", "status"]), &["not a valid lab name"]);
    refused(&in_empty_folder(&["run", "none", "-o", "/tmp/never"]), &["net-vhost", "exits"]);
    refused(&in_empty_folder(&["exec", "1", "--", "true"]), &["lab up"]);
    let long = format!("/tmp/{}", "x".repeat(100));
    let ran = run(command(std::path::Path::new(&long), &["up"]));
    refused(&ran, &["too long", "HYPERSCOPE_LAB_DIR"]);
    assert_eq!(in_empty_folder(&["up", "--levels", "4"]).code, Some(2));
    assert_eq!(in_empty_folder(&["exec", "1"]).code, Some(2));
    assert_eq!(in_empty_folder(&["status"]).stdout, "no lab is up\n");
}

/// The module is searched next to the program, so a copy of the program elsewhere has none.
#[test]
fn a_scenario_whose_module_is_missing_boots_nothing() {
    if !can_run() {
        return;
    }
    TestLab::new("no-module").run(&["fetch"]).done();
    let temporary = tempfile::tempdir().unwrap();
    let copy = temporary.path().join("hyperscope-lab");
    let program = testkit::program_of("hyperscope-lab", env!("CARGO_BIN_EXE_hyperscope"));
    testkit::copy_program(program, &copy);
    let mut scenario = std::process::Command::new(&copy);
    let session = temporary.path().join("out");
    scenario.args(["lab", "run", "hypertrace", "-o"]).arg(&session);
    scenario.env("HYPERSCOPE_LAB_DIR", folder());
    let ran = run(scenario);
    refused(&ran, &["the module hyperscope_guest for the kernel", "make kmod"]);
    assert!(!ran.stderr.contains("booting") && !session.exists(), "{}", ran.stderr);
}
