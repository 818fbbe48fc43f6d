//! Compares exits at device addresses with the first event of each exit that has an address.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use analyses::device_exits::{DeviceAddresses, device_exits};

use super::flat::{Event, by_vcpu_thread, events};
use super::naive_exits::exits_of;
use super::open;

/// Events with an exit's address, with the names of the address field, and of a field that must not match.
const GPA: [(&str, &[&str]); 4] = [
    ("kvm_page_fault", &["fault_address", "address"]),
    ("kvm_guest_fault", &["ipa"]),
    ("kvm_fast_mmio", &["gpa", "fast_mmio"]),
    ("kvm_mmio", &["gpa"]),
];
const OTHERS: [&str; 4] = ["kvm_msr", "kvm_hypercall", "kvm_hvc_arm64", "kvm_cpuid"];

/// Registers of x86's and arm64's devices, memory below them, and two ranges of ports.
const MEMORY: [RangeInclusive<u64>; 3] =
    [0x800_0000..=0xfff_ffff, 0xfe00_0000..=0xffff_ffff, 0x1000_0000..=0x7fff_ffff];
const PORTS: [RangeInclusive<u64>; 2] = [0x3f8..=0x3ff, 0xc000..=0xffff];

/// The address of an exit, and whether it is a memory address.
fn place(thread: u64, after: &[&Event<'_>]) -> Option<(bool, u64)> {
    let ends = |event: &Event<'_>| event.is("kvm_entry") || event.is("kvm_exit");
    let events =
        after.iter().filter(|event| event.ran() == thread).take_while(|event| !ends(event));
    for event in events {
        if OTHERS.iter().any(|name| event.is(name)) {
            return None;
        }
        if event.is("kvm_pio") {
            return Some((false, event.get("port").unwrap()));
        }
        if let Some((_, fields)) = GPA.iter().find(|(name, _)| event.is(name)) {
            return Some((true, fields.iter().find_map(|field| event.get(field)).unwrap()));
        }
    }
    None
}

/// Exits of a thread at memory addresses, at ports, and in total.
fn naive(thread: u64, events: &[&Event<'_>]) -> (u64, u64, u64) {
    let places = (0..events.len()).filter(|&at| events[at].is("kvm_exit"));
    let places = places.map(|at| place(thread, &events[at + 1..]));
    let (mut memory, mut ports, mut all) = (0, 0, 0);
    for (exit, place) in exits_of(thread, events).iter().zip(places) {
        all += 1;
        match place.filter(|_| exit.level == 1) {
            Some((true, gpa)) => {
                memory += u64::from(MEMORY.iter().any(|range| range.contains(&gpa)))
            }
            Some((false, port)) => {
                ports += u64::from(PORTS.iter().any(|range| range.contains(&port)))
            }
            None => {}
        }
    }
    (memory, ports, all)
}

fn device(vcpus: Option<BTreeSet<u32>>) -> DeviceAddresses {
    DeviceAddresses { vcpus, memory: MEMORY.to_vec(), ports: PORTS.to_vec() }
}

/// Checks every thread alone, all threads together, and a nonexistent one.
pub(crate) fn check(name: &str) -> (u64, u64) {
    let recording = open(name);
    let all = events(&recording);
    let by_thread = by_vcpu_thread(&all);
    let mut devices: Vec<_> = by_thread
        .keys()
        .map(|&thread| device(Some(BTreeSet::from([u32::try_from(thread).unwrap()]))))
        .collect();
    devices.extend([device(None), device(Some(BTreeSet::from([u32::MAX])))]);
    let found = device_exits(&recording, &devices, &|_| {});
    let mut sums = (0, 0, 0);
    for ((thread, events), found) in by_thread.iter().zip(&found) {
        let expected = naive(*thread, events);
        assert_eq!((found.memory, found.ports, found.all), expected, "{name}: {thread}");
        sums = (sums.0 + expected.0, sums.1 + expected.1, sums.2 + expected.2);
    }
    let [.., together, nobody] = &found[..] else { panic!("{name}: {found:?}") };
    assert_eq!((together.memory, together.ports, together.all), sums, "{name}");
    assert!(!nobody.is_known && nobody.all == 0, "{name}: {nobody:?}");
    (sums.0, sums.1)
}

#[test]
fn exits_at_devices_are_those_that_say_so() {
    let hosts = ["x86-svm/host-guest.dat", "x86-svm/tsc.dat", "x86-vmx/vmm.dat", "x86-vmx/smp.dat"];
    let nested = ["x86-svm/nested.dat", "x86-vmx/nested.dat", "arm64/A.dat", "arm64/D.dat"];
    let sums = hosts.into_iter().chain(nested).map(check);
    let (memory, ports) = sums.fold((0, 0), |sum, counts| (sum.0 + counts.0, sum.1 + counts.1));
    assert!(memory > 100 && ports > 100, "{memory} in memory, {ports} at ports");
}

#[test]
fn an_exit_without_an_event_for_its_address_is_not_known() {
    // Only x86 has ports; a guest's own recording has no exits.
    let arm = open("arm64/A.dat");
    let [both, memory] = [PORTS.to_vec(), Vec::new()].map(|ports| {
        let device = DeviceAddresses { ports, ..device(None) };
        device_exits(&arm, &[device], &|_| {})[0]
    });
    assert!(memory.is_known && !both.is_known, "{memory:?} {both:?}");
    let guest = open("x86-svm/tsc.guest.dat");
    let found = device_exits(&guest, &[device(None)], &|_| {})[0];
    assert!(!found.is_known && found.all == 0, "{found:?}");
}
