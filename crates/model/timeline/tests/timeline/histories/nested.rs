//! Levels: whose exit it was, and who dealt with it.

use timeline::Handler;

use super::host::{Host, Seen};

const VMRUN: u64 = 0x80;
const HLT: u64 = 0x78;
const NPF: u64 = 0x400;
const INTR: u64 = 0x60;

fn levels(exits: &[Seen]) -> Vec<(u64, u8, Handler)> {
    exits.iter().map(|exit| (exit.span.code, exit.span.level, exit.span.handler)).collect()
}

impl Host {
    /// An exit of level 2, with the event that says so.
    fn level_two_exit(&mut self, cpu: u32, ns: u64, thread: i32, reason: u64) -> &mut Self {
        let fields = [("exit_reason", reason), ("isa", 2)];
        self.exit(cpu, ns, thread, reason).event(cpu, ns + 1, thread, "kvm_nested_vmexit", &fields)
    }

    fn inject(&mut self, cpu: u32, ns: u64, thread: i32, reason: u64) -> &mut Self {
        self.event(
            cpu,
            ns,
            thread,
            "kvm_nested_vmexit_inject",
            &[("exit_code", reason), ("isa", 2)],
        )
    }

    fn vmenter(&mut self, cpu: u32, ns: u64, thread: i32) -> &mut Self {
        self.event(cpu, ns, thread, "kvm_nested_vmenter", &[])
    }
}

#[test]
fn a_round_trip_of_level_two() {
    let mut host = Host::x86();
    host.exit(0, 1_000, 100, VMRUN).vmenter(0, 1_010, 100).entry(0, 1_100, 100, 0);
    host.level_two_exit(0, 2_000, 100, NPF).entry(0, 2_100, 100, 0);
    host.level_two_exit(0, 3_000, 100, INTR).inject(0, 3_010, 100, HLT).entry(0, 3_100, 100, 0);
    host.exit(0, 4_000, 100, HLT).entry(0, 4_100, 100, 0);
    let exits = host.exits();
    let expected = [
        (VMRUN, 1, Handler::Kernel),
        (NPF, 2, Handler::Kernel),
        (INTR, 2, Handler::L1),
        (HLT, 1, Handler::Kernel),
    ];
    assert_eq!(levels(&exits), expected);
    assert_eq!(exits[2].span.injected_as, HLT);
    assert!(exits[0].span.entered_l2);
}

#[test]
fn vcpus_run_their_nested_guests_at_once() {
    let mut host = Host::x86();
    host.exit(0, 1_000, 100, VMRUN).vmenter(0, 1_010, 100).entry(0, 1_100, 100, 0);
    host.exit(1, 1_001, 101, INTR).entry(1, 1_002, 101, 1);
    host.exit(1, 1_500, 101, VMRUN).vmenter(1, 1_510, 101).entry(1, 1_520, 101, 1);
    host.level_two_exit(0, 1_600, 100, NPF).inject(0, 1_610, 100, NPF).entry(0, 1_700, 100, 0);
    host.level_two_exit(1, 1_605, 101, NPF).entry(1, 1_705, 101, 1);
    host.exit(0, 2_000, 100, INTR).entry(0, 2_100, 100, 0);
    host.exit(1, 2_000, 101, INTR).entry(1, 2_100, 101, 1);
    let levels_of = |thread: u32| {
        let exits = host.exits();
        let mine: Vec<_> = exits.into_iter().filter(|exit| exit.thread == thread).collect();
        levels(&mine)
    };
    let (kernel, l1) = (Handler::Kernel, Handler::L1);
    assert_eq!(levels_of(100), [(VMRUN, 1, kernel), (NPF, 2, l1), (INTR, 1, kernel)]);
    // Dealt with before kvm_nested_vmexit was reached, the last one is level 2's all the same.
    let expected = [(INTR, 1, kernel), (VMRUN, 1, kernel), (NPF, 2, kernel), (INTR, 2, kernel)];
    assert_eq!(levels_of(101), expected);
}

#[test]
fn a_failed_enter_stays_in_level_one() {
    let mut host = Host::x86();
    host.exit(0, 1_000, 100, VMRUN).vmenter(0, 1_010, 100);
    host.event(0, 1_020, 100, "kvm_nested_vmenter_failed", &[]).entry(0, 1_100, 100, 0);
    host.exit(0, 2_000, 100, INTR).entry(0, 2_100, 100, 0);
    let kernel = Handler::Kernel;
    assert_eq!(levels(&host.exits()), [(VMRUN, 1, kernel), (INTR, 1, kernel)]);
}

/// Level 2 is entered and left by the host's software alone: it halts at once, or its state does
/// not load. The exit is level 1's, and level 1 runs after it.
#[test]
fn an_enter_that_is_taken_back_stays_in_level_one() {
    let mut host = Host::x86();
    host.exit(0, 1_000, 100, VMRUN).vmenter(0, 1_010, 100).inject(0, 1_050, 100, INTR);
    host.entry(0, 1_100, 100, 0).exit(0, 2_000, 100, INTR).entry(0, 2_100, 100, 0);
    let kernel = Handler::Kernel;
    assert_eq!(levels(&host.exits()), [(VMRUN, 1, kernel), (INTR, 1, kernel)]);
}

#[test]
fn the_recording_starts_in_level_two() {
    let mut host = Host::x86();
    host.level_two_exit(0, 1_000, 100, NPF).entry(0, 1_100, 100, 0);
    host.exit(0, 2_000, 100, INTR).entry(0, 2_100, 100, 0);
    let kernel = Handler::Kernel;
    assert_eq!(levels(&host.exits()), [(NPF, 2, kernel), (INTR, 2, kernel)]);
}
