//! `hyperscope why`: recordings of the lab in which a cause was planted, and of healthy VMs.

use std::fs;

use serde::Deserialize;
use serde_json::Value;

use crate::tool::{assert_golden, command, hyperscope, output_of, recordings, repository};

const CORPUS: &str = "crates/cli/tests/cli/corpus";
const SMP: &str = "fixtures/x86-vmx/smp.dat";

/// Lines of a terminal that an answer takes.
const MAX_LINES: usize = 12;

/// A recording of `hyperscope-lab lab corpus`, and what made it slow. `guest` and `host` are the commands that did.
#[derive(Deserialize)]
struct Planted {
    folder: String,
    causes: Vec<String>,
}

fn corpus() -> Vec<Planted> {
    let labels = fs::read(repository().join(CORPUS).join("labels.json")).unwrap();
    serde_json::from_slice(&labels).unwrap()
}

fn why(files: &[&str]) -> Value {
    let args = [&["why", "--format", "json"], files].concat();
    serde_json::from_str(&output_of(&args)).unwrap()
}

#[test]
fn planted_causes_come_first_and_healthy_vms_have_none() {
    let planted = corpus();
    assert!(planted.len() >= 10, "{}", planted.len());
    for Planted { folder, causes } in planted {
        let answer = why(&[&format!("{CORPUS}/{folder}")]);
        let first = answer["causes"][0]["cause"].as_str().unwrap();
        let none = causes.is_empty().then_some("none");
        assert!(
            causes.iter().map(String::as_str).chain(none).any(|cause| cause == first),
            "{folder}: {answer:#}"
        );
    }
}

/// A cause is a part of the VM's time, and its evidence lies in the recording.
#[test]
fn budgets_add_up_and_causes_are_parts_of_them() {
    let mut found = 0;
    for path in recordings() {
        let answer = why(&[&path]);
        for vm in answer["vms"].as_array().unwrap() {
            let parts =
                ["guest_ns", "idle_ns", "exits_ns", "run_queue_ns", "blocked_ns", "unknown_ns"];
            let sum: u64 = parts.iter().map(|part| vm[part].as_u64().unwrap()).sum();
            assert_eq!(vm["total_ns"], sum, "{path}: {vm}");
        }
        let causes = answer["causes"].as_array().unwrap();
        let costs: Vec<u64> =
            causes.iter().map(|cause| cause["cost_ns"].as_u64().unwrap()).collect();
        assert!(costs.is_sorted_by(|a, b| a >= b), "{path}: {costs:?}");
        for cause in causes.iter().filter(|cause| cause["cause"] != "none") {
            let vms = answer["vms"].as_array().unwrap();
            let vm = vms.iter().find(|vm| vm["vm"] == cause["vm"]).unwrap();
            assert!(cause["cost_ns"].as_u64() <= vm["total_ns"].as_u64(), "{path}: {cause}");
            assert!(!cause["evidence"].as_array().unwrap().is_empty(), "{path}: {cause}");
            assert!(!cause["helps"].as_array().unwrap().is_empty(), "{path}: {cause}");
            found += 1;
        }
    }
    assert!(found >= 8, "{found}");
}

#[test]
fn an_answer_fits_on_a_screen() {
    for path in recordings() {
        for columns in ["80", "100"] {
            let run = command().args(["why", &path]).env("COLUMNS", columns).output().unwrap();
            let text = String::from_utf8(run.stdout).unwrap();
            // The first sentence may take a second line on a narrow terminal.
            assert!(text.lines().count() <= MAX_LINES + 1, "{path}: {text}");
        }
    }
}

#[test]
fn the_next_command_runs() {
    for Planted { folder, .. } in corpus() {
        let path = format!("{CORPUS}/{folder}");
        for cause in why(&[&path])["causes"].as_array().unwrap() {
            let next = cause["next"][0].as_str().unwrap();
            let mut args: Vec<&str> = next.split(' ').skip(1).collect();
            args.push(&path);
            if args[0] == "report" {
                continue;
            }
            output_of(&args);
        }
    }
}

#[test]
fn one_vm_can_be_asked_about() {
    let all = why(&[SMP]);
    assert_eq!(all["vms"].as_array().unwrap().len(), 3);
    let one_vm = why(&["--vm", "vm-119", SMP]);
    assert_eq!(one_vm["question"]["vm"], "vm-119");
    assert_eq!(one_vm["vms"].as_array().unwrap().len(), 1);
    // The others are still known for what they are: vCPUs that take its CPU.
    assert_eq!(one_vm["causes"][0]["cause"], "vcpus_share_cpu");
    for (args, message) in
        [(["--vm", "web"], "no VM is called web"), (["--vcpu", "0"], "whole VMs")]
    {
        let run = hyperscope(&["why", args[0], args[1], SMP]);
        assert_eq!(run.code, 2, "{}", run.err);
        assert!(run.err.contains(message), "{}", run.err);
    }
    assert_golden("why.csv", &output_of(&["why", "--format", "csv", SMP]));
}
