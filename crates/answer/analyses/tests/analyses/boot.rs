//! Boots that the lab cannot produce: many machines at once, and invalid boot events.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::machinery::Machinery;
use analyses::boot::{Boot, BootMarks, BootedMachine, PhaseKind, boot};
use analyses::view::View;
use hypertrace::collected::{Begin, ClockPair, Entry, Hypercall, VERSION, Words};
use hypertrace::{MARK_NUMBER, mark_words};
use sources::{Collected, Recording};

const MS: u64 = 1_000_000;

fn found(recording: Recording, collected: Option<Collected>, marks: &BootMarks) -> (Boot, u64) {
    let (read, stored) = (AtomicU64::new(0), recording.stored_len());
    let progress = |bytes: u64| {
        read.fetch_add(bytes, Ordering::Relaxed);
    };
    let boot = boot(View::on_own_clocks(&[recording]), &[collected], marks, &progress);
    (boot, read.into_inner() / stored)
}

/// A guest's mark, which is one hypercall.
fn mark(host: &mut Machinery, ns: u64, thread: i32, id: u16, text: &str) {
    let [[a0, a1, a2, a3]] = mark_words(id, text)[..] else { panic!("{text} is too long") };
    let fields = [("nr", MARK_NUMBER), ("a0", a0), ("a1", a1), ("a2", a2), ("a3", a3)];
    host.event(0, ns, thread, "kvm_hypercall", &fields);
}

fn exit(host: &mut Machinery, ns: u64, thread: i32) {
    host.event(0, ns, thread, "kvm_exit", &[("exit_reason", 0x81), ("isa", 2)]);
}

fn entry(host: &mut Machinery, ns: u64, thread: i32) {
    host.event(0, ns, thread, "kvm_entry", &[("vcpu_id", 0)]);
}

fn phases(machine: &BootedMachine) -> Vec<(PhaseKind, &str, u64, u64)> {
    let phase = |boot_phase: &analyses::boot::Phase| {
        let exits = boot_phase.host.as_ref().map_or(u64::MAX, |host| host.exits);
        (boot_phase.duration_ns(), exits)
    };
    let all = machine.phases.iter();
    all.map(|boot_phase| {
        (boot_phase.kind, &*boot_phase.name, phase(boot_phase).0, phase(boot_phase).1)
    })
    .collect()
}

#[test]
fn all_machines_of_a_host_are_found_in_as_many_passes_as_one() {
    let passes = [1, 40].map(machines_of_a_host);
    assert_eq!(passes[0], passes[1]);
}

/// Number of passes to find all machines of a host.
fn machines_of_a_host(vms: u64) -> u64 {
    let mut host = Machinery::new("local");
    let thread = |vm: u64| 1000 + i32::try_from(vm).unwrap();
    for step in 0..100_u64 {
        for vm in 0..vms {
            let (ns, thread) = (MS * (1 + step * vms + vm), thread(vm));
            exit(&mut host, ns, thread);
            let id = u16::try_from(vm).unwrap();
            match step {
                10 => mark(&mut host, ns + 10, thread, id, "loaded"),
                // Each machine is up one step later than the previous one.
                step if step == 20 + vm => mark(&mut host, ns + 10, thread, id, "up"),
                step if step > 90 => mark(&mut host, ns + 10, thread, id, "up again"),
                80 => mark(&mut host, ns + 10, thread, id, "down"),
                _ => {}
            }
            entry(&mut host, ns + 20, thread);
        }
    }
    host.lose(0);
    host.event(0, MS * (1 + 100 * vms), 3, "sched_waking", &[("pid", 4)]);
    let marks = BootMarks { until: Some("up".into()), down: Some("down".into()) };
    let (boot, passes) = found(host.recording(), None, &marks);
    assert_eq!(boot.machines.len() as u64, vms);
    assert_eq!((boot.losses.len(), boot.losses[0].uncounted_losses), (1, 1));
    let step_ns = vms * MS;
    for (vm, machine) in (0..).zip(&boot.machines) {
        assert_eq!(machine.vm.as_deref(), Some(&*format!("vm-{}", thread(vm))));
        // An exit precedes its own hypercall: the mark's exit belongs to the previous phase.
        let expected = [
            (PhaseKind::Before, "before tracing", 10 * step_ns + 10, 11),
            (PhaseKind::User, "sends events by hypercall", (10 + vm) * step_ns, 10 + vm),
            (PhaseKind::Running, "up", (60 - vm) * step_ns, 60 - vm),
            (PhaseKind::Shutdown, "down", 19 * step_ns, 19),
            (PhaseKind::After, "after tracing", 10, 0),
        ];
        assert_eq!(phases(machine), expected, "{vm}");
    }
    passes
}

#[test]
fn a_collector_alone_shows_a_boot() {
    let begin = Begin { version: VERSION, clock: "local".into(), ..Begin::default() };
    let pair = |ns: u64| {
        let (mono_before_ns, mono_after_ns) = (ns - 10, ns + 10);
        Entry::Pair(ClockPair { mono_before_ns, trace: ns, mono_after_ns })
    };
    let hypercall = |ns: u64, thread: u32, text: &str| {
        let words = mark_words(u16::try_from(ns / MS).unwrap(), text)[0];
        let number = MARK_NUMBER;
        let words = Words::new(&words);
        let hypercall =
            Hypercall { exit_mono_ns: ns, number, thread, words, ..Hypercall::default() };
        Entry::Hypercall(hypercall)
    };
    let entries = [
        Entry::Begin(begin),
        pair(MS),
        hypercall(5 * MS, 7, "loaded"),
        hypercall(9 * MS, 7, "up"),
        hypercall(20 * MS, 7, "power off"),
        hypercall(30 * MS, 7, "last"),
        pair(90 * MS),
    ];
    let bytes: Vec<u8> = entries.iter().flat_map(Entry::to_bytes).collect();
    let collected = Collected::of_bytes("host.collected".as_ref(), bytes).unwrap();
    let mut host = Machinery::new("local");
    host.event(0, 5 * MS, 3, "sched_waking", &[("pid", 7)]);
    let marks = BootMarks { until: Some("up".into()), down: Some("power".into()) };
    let (boot, _) = found(host.recording(), Some(collected), &marks);
    let [machine] = &boot.machines[..] else { panic!("{boot:?}") };
    let unknown = u64::MAX;
    let expected = [
        (PhaseKind::User, "sends events by hypercall", 4 * MS, unknown),
        (PhaseKind::Running, "up", 11 * MS, unknown),
        (PhaseKind::Shutdown, "power off", 10 * MS, unknown),
    ];
    assert_eq!(phases(machine), expected);
    assert_eq!((machine.vcpus, machine.exits), (1, None));
    assert_eq!(machine.mark, Some(("up".into(), 9 * MS)));
}

#[test]
fn initcalls_that_all_last_long_are_added_up_in_time() {
    const CALLS: u64 = 4000;
    let mut guest = Machinery::new("local");
    // All initcalls start, each in its own thread, before the first one ends.
    for (name, from) in [("initcall_start", 1), ("initcall_finish", 1 + CALLS)] {
        for call in 0..CALLS {
            let thread = i32::try_from(1 + call).unwrap();
            guest.event(0, MS * (from + call), thread, name, &[("func", 0x1000 + call)]);
        }
    }
    let (boot, _) = found(guest.recording(), None, &BootMarks::default());
    let [machine] = &boot.machines[..] else { panic!("{} machines", boot.machines.len()) };
    assert_eq!(machine.initcalls.len() as u64, CALLS);
    for initcall in &machine.initcalls {
        assert_eq!(initcall.duration_ns(), Some(CALLS * MS));
        // Its own start, the starts of all later ones, and the ends of all earlier ones.
        assert_eq!(initcall.weight.map(|weight| weight.events), Some(CALLS));
    }
}
