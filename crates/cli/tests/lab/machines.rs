//! A machine: commands, files, timeouts, its console, its state.

use std::fs;
use std::io::Write;
use std::process::Stdio;

use crate::patience::Patient;
use crate::tool::{TestLab, WORKING, can_run, can_run_all, folder};

#[test]
fn level_1_runs_commands_and_takes_files() {
    if !can_run() {
        return;
    }
    let lab = TestLab::new("machines");
    lab.run(&["up", "--levels", "1", "--no-snapshot"]).done();

    let ran = lab.shell(1, "echo out; echo err >&2; uname -n; exit 7");
    assert_eq!(
        (ran.code, ran.stdout.as_str(), ran.stderr.as_str()),
        (Some(7), "out\nl1\n", "err\n")
    );
    assert_eq!(lab.shell(1, "kill -9 $$").code, Some(128 + 9));
    let ran = lab.run(&["exec", "1", "--timeout", "1", "--", "sleep", "60"]);
    assert_eq!(ran.code, Some(124));
    assert_eq!(lab.shell(1, "pidof sleep").stdout, "", "a command that took too long goes on");
    let ran = lab.run(&["exec", "1", "--", "/no/such"]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.contains("/no/such") && ran.stderr.contains("level 1"), "{}", ran.stderr);
    let many = lab.shell(1, "seq 200000").done().stdout;
    assert_eq!(many.lines().count(), 200_000);
    assert_eq!(many.lines().last(), Some("200000"));

    input_reaches_the_command(&lab);
    files_come_back_as_they_went(&lab);
    two_commands_run_at_once(&lab);

    let again = lab.run(&["up", "--levels", "1", "--no-snapshot"]).done();
    assert!(!again.stderr.contains("booting"), "{}", again.stderr);
    let other = lab.run(&["up", "--levels", "2", "--no-snapshot"]);
    assert_eq!(other.code, Some(1));
    assert!(other.stderr.contains("lab down"), "{}", other.stderr);
    let none = lab.run(&["exec", "2", "--", "true"]);
    assert!(none.code == Some(1) && none.stderr.contains("level 2"), "{}", none.stderr);
    assert!(lab.run(&["status"]).done().stdout.contains("machines: 1 level"));
    assert!(lab.run(&["console", "1"]).done().stdout.contains("hyperscope-lab: ready"));
}

fn input_reaches_the_command(lab: &TestLab) {
    let mut child = lab
        .command(&["exec", "1", "-i", "--", "sh", "-c", "sleep 0.2; wc -c"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(&vec![b'x'; 300_000]).unwrap();
    let ran = Patient::new(child, "wc -c".into()).finish(WORKING);
    assert_eq!(ran.stdout.trim(), "300000");
}

fn files_come_back_as_they_went(lab: &TestLab) {
    let folder = tempfile::tempdir().unwrap();
    let (here, back) = (folder.path().join("a"), folder.path().join("b"));
    let bytes: Vec<u8> = (0..3_000_001_u32).map(|at| (at % 251) as u8).collect();
    fs::write(&here, &bytes).unwrap();
    lab.run(&["put", "1", here.to_str().unwrap(), "/tmp/deep/er/a"]).done();
    lab.run(&["get", "1", "/tmp/deep/er/a", back.to_str().unwrap()]).done();
    assert!(fs::read(&back).unwrap() == bytes);
    let missing = lab.run(&["get", "1", "/tmp/none", back.to_str().unwrap()]);
    assert!(missing.code == Some(1) && missing.stderr.contains("/tmp/none"), "{}", missing.stderr);
}

fn two_commands_run_at_once(lab: &TestLab) {
    let script = "mkfifo /tmp/meet 2>/dev/null; echo met > /tmp/meet";
    let first = Patient::start(lab.command(&["exec", "1", "--", "sh", "-c", script]));
    let second = lab.shell(1, "until [ -p /tmp/meet ]; do sleep 0.1; done; cat /tmp/meet");
    assert_eq!(second.done().stdout, "met\n");
    first.finish(WORKING).done();
}

#[test]
fn a_file_tree_serves_the_first_machines_qemu_too() {
    if !can_run() {
        return;
    }
    let lab = TestLab::new("root");
    lab.run(&["fetch"]).done();
    let packages = std::fs::read_dir(folder().join("packages")).unwrap();
    let mut trees = packages.map(|entry| entry.unwrap().path());
    let tree = trees.find(|path| path.join("usr/bin/qemu-system-x86_64").exists()).unwrap();
    let tree = tree.to_str().unwrap();
    lab.run(&["up", "--levels", "1", "--no-snapshot", "--root", tree]).done();
    let machines = lab.processes();
    let qemu = format!("{tree}/usr/bin/qemu-system-x86_64");
    assert!(machines.iter().any(|line| line.contains(&qemu)), "{machines:?}");
    assert_eq!(lab.shell(1, "echo up").done().stdout, "up\n");
}

/// On this board, the emulator once refused all ports to programs, so that the workload died.
#[test]
fn a_guest_on_a_pc_makes_exits_of_all_kinds() {
    if !can_run_all() {
        return;
    }
    let lab = TestLab::new("pc");
    lab.run(&["up", "--levels", "2", "--guest-shm", "8"]).done();
    let made = lab.shell(2, "hyperscope-labguest exits port=5 cpuid=5 hypercall=5").done().stdout;
    assert_eq!(made.lines().count(), 3, "{made}");
    assert!(made.contains("OUT to port"), "{made}");
}
