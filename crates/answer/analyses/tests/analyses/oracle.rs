//! Compares reports on the bundled recordings with their truth files, and with a second, naive count.
//!
//! The oracle shares no code with `timeline`: it stores a recording as one flat list of events, and finds the
//! state of a thread at any time by searching backwards.

mod accounts;
mod boot;
mod by_code;
mod contents;
mod cpu;
mod device_exits;
mod flat;
mod level_two;
mod naive_arrows;
mod naive_critical;
mod naive_exits;
mod naive_guests;
mod naive_nested;
mod naive_paths;
mod states;

use std::path::PathBuf;

use sources::Recording;

/// Every recording in `fixtures/`.
const ALL: [&str; 16] = [
    "x86-svm/boot.dat",
    "x86-svm/boot.guest.dat",
    "x86-svm/host-guest.dat",
    "x86-svm/host-guest.guest.dat",
    "x86-svm/tsc.dat",
    "x86-svm/tsc.guest.dat",
    "x86-svm/nested.dat",
    "x86-vmx/vmm.dat",
    "x86-vmx/smp.dat",
    "x86-vmx/nested.dat",
    "arm64/A.dat",
    "arm64/A.guest.dat",
    "arm64/B-vhost-off.dat",
    "arm64/B-vhost-on.dat",
    "arm64/D.dat",
    "arm64/hypercalls/host.dat",
];

fn fixture(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../fixtures").join(name)
}

fn open(name: &str) -> Recording {
    sources::open(&fixture(name)).unwrap()
}

/// Contents of `NAME.truth.json`.
fn truth(name: &str) -> serde_json::Value {
    let path = fixture(name).with_extension("truth.json");
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

/// Checks every exit twice: by raw codes with the truth file, and one by one with the naive count.
fn check(name: &str) {
    by_code::check(name);
    accounts::check(name);
}

#[test]
fn amd_host_and_guest() {
    check("x86-svm/host-guest.dat");
}

#[test]
fn amd_host_on_tsc() {
    check("x86-svm/tsc.dat");
}

#[test]
fn amd_boot() {
    check("x86-svm/boot.dat");
}

#[test]
fn amd_nested() {
    check("x86-svm/nested.dat");
}

#[test]
fn intel_one_vm() {
    check("x86-vmx/vmm.dat");
}

#[test]
fn intel_three_vms_on_two_cpus() {
    check("x86-vmx/smp.dat");
}

#[test]
fn intel_nested() {
    check("x86-vmx/nested.dat");
}

#[test]
fn arm64_guest_over_vsock() {
    check("arm64/A.dat");
}

#[test]
fn arm64_network_without_vhost() {
    check("arm64/B-vhost-off.dat");
}

#[test]
fn arm64_network_with_vhost() {
    check("arm64/B-vhost-on.dat");
}

#[test]
fn arm64_seen_by_perf_too() {
    check("arm64/D.dat");
}

#[test]
fn arm64_with_hypercalls() {
    check("arm64/hypercalls/host.dat");
}
