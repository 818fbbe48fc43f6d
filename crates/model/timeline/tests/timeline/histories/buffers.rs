//! Events that are enabled in several buffers of a recording happened once.

use proptest::prelude::*;
use timeline::Outcome;

use super::host::{Host, only_parts, parts, windows};
use super::random::{Case, config, lives, losses};

const V: i32 = 100;
const OTHER: i32 = 7;
const TOP: &str = "";
const INSTANCE: &str = "instance";

/// An event and its fields.
type Event = (&'static str, &'static [(&'static str, u64)]);

const EXIT: Event = ("kvm_exit", &[("exit_reason", 0x78), ("isa", 2)]);
const ENTRY: Event = ("kvm_entry", &[("vcpu_id", 0)]);
const TO_USER: Event = ("kvm_userspace_exit", &[("reason", 2)]);
const FROM_USER: Event = ("kvm_fpu", &[("load", 1)]);
const AWAY: Event =
    ("sched_switch", &[("prev_pid", V as u64), ("prev_state", 1), ("next_pid", OTHER as u64)]);
const BACK: Event =
    ("sched_switch", &[("prev_pid", OTHER as u64), ("prev_state", 0), ("next_pid", V as u64)]);

/// Records an event of thread V in both buffers: first in `first`, 3 ns later in the other.
fn twice(host: &mut Host, first: &'static str, cpu: u32, ns: u64, (name, fields): Event) {
    let second = other_than(first);
    host.event_in(first, cpu, ns, V, name, fields);
    host.event_in(second, cpu, ns + 3, V, name, fields);
}

fn other_than(buffer: &str) -> &'static str {
    if buffer == TOP { INSTANCE } else { TOP }
}

fn outcomes(host: &Host) -> Vec<(u64, Outcome)> {
    host.exits().iter().map(|exit| (exit.span.start_ns, exit.span.outcome)).collect()
}

#[test]
fn exits_in_two_buffers_count_once() {
    for first in [TOP, INSTANCE] {
        let mut host = Host::x86();
        for round in 1..=3 {
            let ns = 1_000 * round;
            twice(&mut host, first, 0, ns, EXIT);
            twice(&mut host, first, 0, ns + 100, TO_USER);
            twice(&mut host, first, 0, ns + 300, FROM_USER);
            twice(&mut host, first, 0, ns + 400, ENTRY);
        }
        let found = host.read();
        let expected = [1_000, 2_000, 3_000].map(|ns| (ns, Some(ns + 400)));
        assert_eq!(windows(&found.exits), expected);
        for exit in &found.exits {
            assert_eq!(exit.span.parts, parts([200, 200, 0, 0, 0]));
        }
        assert_eq!(found.exits[1].span.guest_ns, 600);
        assert_eq!(found.pass.repeated_buffers, [other_than(first)]);
    }
}

#[test]
fn exits_between_two_instances_count_once() {
    let mut host = Host::x86();
    for (ns, (name, fields)) in [(1_000, EXIT), (1_700, ENTRY)] {
        host.event_in("one", 0, ns, V, name, fields).event_in("two", 0, ns + 2, V, name, fields);
    }
    assert_eq!(windows(&host.exits()), [(1_000, Some(1_700))]);
}

/// A wake-up looks back at what came before it: recorded twice, it would find no polling any more.
#[test]
fn wake_ups_in_two_buffers_count_once() {
    let mut host = Host::x86();
    twice(&mut host, TOP, 0, 1_000, EXIT);
    twice(&mut host, TOP, 0, 1_300, AWAY);
    twice(&mut host, TOP, 0, 1_800, BACK);
    twice(&mut host, TOP, 0, 1_900, ("kvm_vcpu_wakeup", &[("ns", 800), ("waited", 1)]));
    twice(&mut host, TOP, 0, 2_000, ENTRY);
    assert_eq!(only_parts(&host), parts([300, 0, 0, 500, 200]));
    assert!(!host.exits()[0].span.poll_unknown);
}

#[test]
fn switches_in_two_buffers_and_exits_in_one() {
    let mut host = Host::x86();
    host.exit(0, 1_000, V, 0x78);
    twice(&mut host, INSTANCE, 0, 1_200, AWAY);
    host.wake(1, 1_400, OTHER, V);
    twice(&mut host, INSTANCE, 0, 1_500, BACK);
    host.entry(0, 1_700, V, 0);
    assert_eq!(only_parts(&host), parts([400, 0, 100, 200, 0]));
    assert!(host.read().pass.repeated_buffers.is_empty());
}

#[test]
fn exits_in_two_buffers_and_switches_in_one() {
    let mut host = Host::x86();
    twice(&mut host, INSTANCE, 0, 1_000, EXIT);
    host.switch(0, 1_200, V, 1, OTHER).wake(1, 1_400, OTHER, V).switch(0, 1_500, OTHER, 0, V);
    twice(&mut host, INSTANCE, 0, 1_700, ENTRY);
    assert_eq!(only_parts(&host), parts([400, 0, 100, 200, 0]));
}

#[test]
fn nested_exits_in_two_buffers_count_once() {
    let mut host = Host::x86();
    let at = |host: &mut Host, ns, event| twice(host, TOP, 0, ns, event);
    at(&mut host, 1_000, EXIT);
    at(&mut host, 1_050, ("kvm_nested_vmenter", &[]));
    at(&mut host, 1_100, ENTRY);
    at(&mut host, 2_000, EXIT);
    at(&mut host, 2_010, ("kvm_nested_vmexit", &[]));
    at(&mut host, 2_020, ("kvm_nested_vmexit_inject", &[("exit_code", 0x72)]));
    at(&mut host, 2_100, ENTRY);
    at(&mut host, 3_000, EXIT);
    at(&mut host, 3_100, ENTRY);
    let levels: Vec<_> = host.exits().iter().map(|exit| exit.span.level).collect();
    assert_eq!(levels, [1, 2, 1]);
}

/// An instance that counts exits and nothing else, begun first.
#[test]
fn exits_alone_in_another_buffer_still_find_their_entries() {
    let mut host = Host::x86();
    for ns in [1_000, 2_000] {
        twice(&mut host, INSTANCE, 0, ns, EXIT);
        host.entry(0, ns + 700, V, 0);
    }
    assert_eq!(windows(&host.exits()), [(1_000, Some(1_700)), (2_000, Some(2_700))]);
}

#[test]
fn each_vm_may_have_an_instance_of_its_own() {
    let mut host = Host::x86();
    for (buffer, thread, ns) in [("one", 100, 1_000), ("two", 200, 1_010)] {
        for (ns, (name, fields)) in [(ns, EXIT), (ns + 500, ENTRY)] {
            host.event_in(buffer, 0, ns, thread, name, fields);
        }
    }
    let found = host.read();
    assert_eq!(windows(&found.exits), [(1_000, Some(1_500)), (1_010, Some(1_510))]);
    assert!(found.pass.repeated_buffers.is_empty());
}

#[test]
fn a_loss_in_a_buffer_that_only_repeats_drops_nothing() {
    let mut host = Host::x86();
    for ns in [1_000, 2_000, 3_000] {
        twice(&mut host, TOP, 0, ns, EXIT);
        if ns == 2_000 {
            host.lose_in(INSTANCE, 0);
        }
        host.switch(0, ns + 100, V, 1, OTHER).switch(0, ns + 200, OTHER, 0, V);
        twice(&mut host, TOP, 0, ns + 700, ENTRY);
    }
    assert_eq!(outcomes(&host), [1_000, 2_000, 3_000].map(|ns| (ns, Outcome::Paired)));
}

/// Who gives the switches of a thread is unknown while none was seen.
#[test]
fn a_loss_in_a_buffer_that_repeats_may_hide_switches() {
    let mut host = Host::x86();
    for ns in [1_000, 2_000, 3_000] {
        twice(&mut host, TOP, 0, ns, EXIT);
        if ns == 2_000 {
            host.lose_in(INSTANCE, 0);
        }
        twice(&mut host, TOP, 0, ns + 700, ENTRY);
    }
    let (paired, lost) = (Outcome::Paired, Outcome::LostIn);
    assert_eq!(outcomes(&host), [(1_000, paired), (2_000, lost), (3_000, paired)]);
}

#[test]
fn a_loss_in_the_buffer_that_gives_drops_the_pair_though_another_has_it() {
    let mut host = Host::x86();
    for ns in [1_000, 2_000, 3_000] {
        host.exit(0, ns, V, 0x78);
        if ns == 2_000 {
            host.lose(0);
        }
        host.entry(0, ns + 700, V, 0);
        host.event_in(INSTANCE, 0, ns + 3, V, EXIT.0, EXIT.1);
        host.event_in(INSTANCE, 0, ns + 703, V, ENTRY.0, ENTRY.1);
    }
    let (paired, lost) = (Outcome::Paired, Outcome::LostIn);
    assert_eq!(outcomes(&host), [(1_000, paired), (2_000, lost), (3_000, paired)]);
}

/// The thread may have been off its CPU for all of the loss: where its time went is unknown.
#[test]
fn a_loss_among_the_switches_of_its_cpu_drops_a_pair_of_another_buffer() {
    let mut host = Host::x86();
    let switch = |host: &mut Host, ns, (name, fields): Event| {
        host.event_in(INSTANCE, 0, ns, V, name, fields);
    };
    host.exit(0, 1_000, V, 0x78);
    switch(&mut host, 1_100, AWAY);
    switch(&mut host, 1_200, BACK);
    host.entry(0, 1_700, V, 0).exit(0, 2_000, V, 0x78);
    host.event_in(INSTANCE, 0, 1_800, OTHER, "softirq_entry", &[]);
    host.lose_in(INSTANCE, 0).event_in(INSTANCE, 0, 2_600, OTHER, "softirq_entry", &[]);
    host.entry(0, 2_700, V, 0).exit(0, 3_000, V, 0x78).entry(0, 3_700, V, 0);
    let (paired, lost) = (Outcome::Paired, Outcome::LostIn);
    assert_eq!(outcomes(&host), [(1_000, paired), (2_000, lost), (3_000, paired)]);
}

/// A network instance loses events by the thousand: a thread that stayed on its CPU lost none.
#[test]
fn a_loss_in_a_buffer_of_other_things_is_no_matter_for_a_thread_that_stayed() {
    let mut host = Host::x86();
    host.exit(0, 500, V, 1).switch(0, 510, V, 0, OTHER).switch(0, 520, OTHER, 0, V);
    host.entry(0, 530, V, 0).exit(0, 1_000, V, 1).entry(0, 1_500, V, 0);
    host.event_in(INSTANCE, 0, 900, OTHER, "softirq_entry", &[]).lose_in(INSTANCE, 0);
    host.event_in(INSTANCE, 0, 1_400, OTHER, "softirq_entry", &[]);
    assert_eq!(windows(&host.exits()), [(500, Some(530)), (1_000, Some(1_500))]);
}

/// Names of the events that make up lives.
const NAMES: [&str; 8] = [
    "kvm_exit",
    "kvm_entry",
    "kvm_userspace_exit",
    "kvm_fpu",
    "kvm_vcpu_wakeup",
    "sched_switch",
    "sched_waking",
    "softirq_entry",
];

/// Whether the event of that name is enabled, going by one flag for each name.
fn enabled(flags: [bool; NAMES.len()]) -> impl Fn(&str) -> bool {
    move |name| NAMES.iter().zip(flags).any(|(candidate, enabled)| *candidate == name && enabled)
}

proptest! {
    #![proptest_config(config(200))]

    /// Whatever is enabled in two buffers and whatever in one of them.
    #[test]
    fn events_happen_once_however_often_they_are_recorded(
        lives in lives(),
        in_top in any::<[bool; NAMES.len()]>(),
        in_both in any::<[bool; NAMES.len()]>(),
        late_ns in 0_u64..4,
    ) {
        let (in_top, in_both) = (enabled(in_top), enabled(in_both));
        let case = || Case::new(&lives, true);
        let mut host = Host::x86();
        case().only(|name| in_top(name) || in_both(name)).record(&mut host, TOP, 0);
        // What an instance has alone comes in time, what it repeats a little later.
        case().only(|name| !in_top(name) && !in_both(name)).record(&mut host, INSTANCE, 0);
        case().only(in_both).record(&mut host, "late", late_ns);
        case().check_all(&host.exits())?;
    }

    /// Losses in either buffer, where the one has what the other has, or all of the scheduler's.
    #[test]
    fn with_losses_what_is_recorded_twice_is_true(
        lives in lives(),
        in_both in any::<[bool; NAMES.len()]>(),
        scheduler_apart in any::<bool>(),
        in_top in losses(),
        in_instance in losses(),
    ) {
        let (mut host, in_both) = (Host::x86(), enabled(in_both));
        let apart = |name: &str| scheduler_apart && name.starts_with("sched");
        let case = || Case::new(&lives, true);
        let mut top = case().only(|name| !apart(name));
        top.lose(&in_top);
        top.record(&mut host, TOP, 0);
        let mut instance = case().only(|name| apart(name) || in_both(name));
        instance.lose(&in_instance);
        instance.record(&mut host, INSTANCE, 0);
        case().check_found(&host.exits(), true)?;
    }
}
