//! Compares CPU time of threads with a count of every switch, and with the kernel's own accounting.

use std::collections::{BTreeMap, HashMap};

use analyses::align::align;
use analyses::cpu::{CpuUse, cpu};
use analyses::states::Part;
use analyses::view::View;
use sources::Recording;

use super::{flat, open};

fn use_of(names: &[&str]) -> (Vec<Recording>, CpuUse) {
    let mut recordings: Vec<Recording> = names.iter().map(|name| open(name)).collect();
    let guests = align(&recordings, None, &|_| ());
    for guest in &guests {
        guest.apply(&mut recordings[guest.guest]);
    }
    let cpu_use = cpu(View::new(&recordings, &guests), &[], &|_| ());
    (recordings, cpu_use)
}

/// Time between switches by CPU; the time before the first switch belongs to the thread that it switches out.
fn by_switches(recording: &Recording) -> BTreeMap<u64, u64> {
    let all = flat::events(recording);
    let mut sums = BTreeMap::new();
    for number in 0..recording.streams().iter().map(|stream| stream.cpu() + 1).max().unwrap_or(0) {
        let cpu_events: Vec<_> = all.iter().filter(|event| event.cpu == number).collect();
        let (Some(first), Some(last)) = (cpu_events.first(), all.last()) else { continue };
        let mut from = first.ns;
        let mut runs = first.ran();
        for event in cpu_events.iter().filter(|event| event.is("sched_switch")) {
            assert_eq!(event.get("prev_pid"), Some(runs), "a switch is missing");
            *sums.entry(runs).or_insert(0) += event.ns - from;
            (from, runs) = (event.ns, event.get("next_pid").unwrap());
        }
        *sums.entry(runs).or_insert(0) += last.ns - from;
    }
    sums.retain(|_, ns| *ns > 0);
    sums
}

#[test]
fn threads_had_what_switches_show() {
    for name in ["arm64/A.dat", "arm64/D.dat", "x86-svm/tsc.dat", "x86-vmx/smp.dat"] {
        let (recordings, cpu_use) = use_of(&[name]);
        let found: BTreeMap<u64, u64> = cpu_use
            .threads
            .iter()
            .map(|thread| (u64::from(thread.thread), thread.cpu_ns))
            .collect();
        assert_eq!(found, by_switches(&recordings[0]), "{name}");
        let on_cpus: u64 = cpu_use.cpus.iter().flat_map(|cpu| cpu.by_part.values()).sum();
        assert_eq!(on_cpus, found.values().sum::<u64>(), "{name}: all time is some thread's");
        assert!(cpu_use.cpus.iter().all(|cpu| cpu.unknown_ns == 0), "{name}");
    }
}

/// `sched_stat_runtime` has the scheduler's accounting. The scheduler updates it when it starts to select the next
/// thread, tens of microseconds before `sched_switch` on emulated kernels: threads with frequent switches differ
/// most.
#[test]
fn threads_had_what_the_kernel_accounted() {
    for name in ["arm64/A.dat", "x86-svm/tsc.dat"] {
        let (recordings, cpu_use) = use_of(&[name]);
        let mut accounted: HashMap<u64, u64> = HashMap::new();
        for event in flat::events(&recordings[0]) {
            if let Some(ns) = event.get("runtime").filter(|_| event.is("sched_stat_runtime")) {
                *accounted.entry(event.get("pid").unwrap()).or_default() += ns;
            }
        }
        let large = cpu_use
            .threads
            .iter()
            .filter(|thread| thread.thread != 0 && thread.cpu_ns > 100_000_000);
        let mut checked = 0;
        for thread in large {
            let kernel_ns = accounted[&u64::from(thread.thread)];
            let off = thread.cpu_ns.abs_diff(kernel_ns) as f64 / thread.cpu_ns as f64;
            assert!(off < 0.07, "{name} {:?}: {} and {kernel_ns}", thread.name, thread.cpu_ns);
            checked += 1;
        }
        assert!(checked >= 4, "{name}: {checked}");
    }
}

#[test]
fn threads_that_serve_a_vm_are_found() {
    let parts = |name: &str| -> Vec<(u32, Part)> {
        let (_, cpu_use) = use_of(&[name]);
        let serve = cpu_use.threads.iter().filter(|thread| thread.vm == Some(0));
        let mut parts: Vec<_> = serve.map(|thread| (thread.thread, thread.part)).collect();
        parts.sort_unstable();
        parts
    };
    use Part::{Vcpu, Vhost, Vmm};
    assert_eq!(parts("arm64/A.dat"), [(125, Vmm), (148, Vcpu), (158, Vhost)]);
    assert_eq!(parts("arm64/B-vhost-on.dat"), [(729, Vhost), (732, Vcpu)]);
    assert_eq!(parts("arm64/B-vhost-off.dat"), [(538, Vmm), (556, Vcpu)]);
    let tsc = [(97, Vmm), (106, Vcpu), (107, Vcpu), (108, Vhost), (126, Vmm)];
    assert_eq!(parts("x86-svm/tsc.dat"), tsc);
}

/// On-CPU time of vCPUs by their states equals the CPU time that the scheduler gave their threads since they
/// became vCPUs.
#[test]
fn vcpus_were_on_cpus_as_their_threads_were() {
    for names in [&["arm64/A.dat", "arm64/A.guest.dat"][..], &["x86-svm/tsc.dat"], &["arm64/D.dat"]]
    {
        let (_, cpu_use) = use_of(names);
        for vcpu in &cpu_use.vcpus {
            let thread =
                cpu_use.threads.iter().find(|thread| thread.thread == vcpu.thread).unwrap();
            let states_ns = vcpu.times.on_cpu();
            let off = states_ns.abs_diff(thread.cpu_ns) as f64 / thread.cpu_ns as f64;
            assert!(off < 0.01, "{names:?}: {states_ns} and {}", thread.cpu_ns);
        }
    }
}
