//! Profiles of made-up guests whose code's times are known.

use analyses::{Evidence, Profile, ProfileRow, VcpuState, profile};
use proptest::prelude::*;
use testkit::Machine;

use crate::machinery::Machinery;

const VCPU: i32 = 100;
/// `SVM_EXIT_INTR`, `SVM_EXIT_MSR`.
const INTERRUPT: u64 = 0x60;
const MSR: u64 = 0x7c;
const KERNEL: u64 = 0xffff_ffff_8100_0000;
/// What each exit takes until the next entry.
const EXIT_NS: u64 = 50;

/// A run of the guest for `ns` from an entry on, left at `address` by an exit with this code.
#[derive(Clone, Copy, Debug)]
struct Run {
    ns: u64,
    address: u64,
    code: u64,
}

fn profile_of(runs: &[Run]) -> Profile {
    let mut host = Machinery::of(Machine::X86, "local");
    let mut now = 1_000;
    host.event(0, now, VCPU, "kvm_entry", &[]);
    for run in runs {
        now += run.ns;
        let fields = [("exit_reason", run.code), ("isa", 2), ("guest_rip", run.address)];
        host.event(0, now, VCPU, "kvm_exit", &fields);
        now += EXIT_NS;
        host.event(0, now, VCPU, "kvm_entry", &[]);
    }
    profile(&[host.recording()], &[], &|_| ())
}

fn at(profile: &Profile, address: u64) -> &ProfileRow {
    let is_it =
        |row: &&ProfileRow| row.frame.as_ref().is_some_and(|one| one.address == Some(address));
    profile.rows.iter().find(is_it).unwrap()
}

#[test]
fn a_sample_stands_for_the_time_in_the_guest_since_the_last_one() {
    let interrupt = |ns, address| Run { ns, address, code: INTERRUPT };
    let found = profile_of(&[
        interrupt(300, KERNEL),
        // Not a sample: where the guest asks for something is no matter of chance.
        Run { ns: 100, address: KERNEL + 0x30, code: MSR },
        interrupt(200, KERNEL + 0x10),
        interrupt(400, 0x1234),
    ]);
    assert_eq!((at(&found, KERNEL).time.ns, at(&found, KERNEL).time.samples), (300, 1));
    assert_eq!(at(&found, KERNEL + 0x10).time.ns, 300);
    assert_eq!(at(&found, KERNEL).state, VcpuState::GuestKernel);
    let user = found.rows.iter().find(|row| row.state == VcpuState::GuestUser).unwrap();
    assert_eq!((user.time.ns, user.frame.as_ref().unwrap().name()), (400, "[user]".to_owned()));
    let none = found.rows.iter().filter(|row| row.evidence == Evidence::None);
    assert_eq!(none.map(|row| row.time.ns).sum::<u64>(), 4 * EXIT_NS);
    assert_eq!(found.vcpus[0].time_ns, 1_000 + 4 * EXIT_NS);
}

#[test]
fn a_guest_without_interrupts_has_time_and_no_code() {
    let found = profile_of(&[Run { ns: 700, address: KERNEL, code: MSR }]);
    let guest: Vec<_> = found.rows.iter().filter(|row| row.state.is_guest()).collect();
    assert_eq!((guest.len(), guest[0].time.ns, guest[0].evidence), (1, 700, Evidence::None));
    assert_eq!((guest[0].time.low_ns, guest[0].time.high_ns), (700, 700));
}

/// Three functions in turn, interrupted every so often at what they are just doing.
fn guest_of(parts: [u64; 3], pieces: &[u64], swap: bool) -> (Profile, [f64; 3]) {
    let mut in_all = [0; 3];
    let (mut runs, mut at) = (Vec::new(), 0);
    let round: u64 = parts.iter().sum();
    for &ns in pieces {
        // A run ends in the function that has the CPU at its end.
        let place = (at + ns) % round;
        let function = if place < parts[0] {
            0
        } else if place < parts[0] + parts[1] {
            1
        } else {
            2
        };
        let shown = if swap { (function + 1) % 3 } else { function };
        runs.push(Run { ns, address: KERNEL + shown * 0x100, code: INTERRUPT });
        at += ns;
    }
    let whole = round as f64;
    for (of, part) in in_all.iter_mut().zip(parts) {
        *of = part;
    }
    (profile_of(&runs), in_all.map(|part| part as f64 / whole))
}

fn is_found((profile, truth): &(Profile, [f64; 3])) -> bool {
    let guest: u64 =
        profile.rows.iter().filter(|row| row.state.is_guest()).map(|row| row.time.ns).sum();
    (0..3).all(|function| {
        let address = Some(KERNEL + function as u64 * 0x100);
        let is_it =
            |row: &&ProfileRow| row.frame.as_ref().is_some_and(|one| one.address == address);
        let share =
            profile.rows.iter().find(is_it).map_or(0.0, |row| row.time.ns as f64 / guest as f64);
        (share - truth[function]).abs() < 0.06
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Functions that take 5 : 3 : 2, and other shares, are found; samples that are put to the next
    /// function are not taken for them.
    #[test]
    fn shares_are_found_and_wrong_samples_are_not(
        first in 300_u64..700,
        second in 100_u64..250,
        pieces in prop::collection::vec(1_u64..20_000, 2_000),
    ) {
        let parts = [first, second, 1_000 - first - second];
        prop_assert!(is_found(&guest_of(parts, &pieces, false)));
        let apart = parts.iter().zip([parts[2], parts[0], parts[1]]).any(|(one, other)| one.abs_diff(other) > 150);
        prop_assert!(!apart || !is_found(&guest_of(parts, &pieces, true)));
    }
}
