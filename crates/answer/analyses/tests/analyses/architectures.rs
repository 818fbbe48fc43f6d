//! Exits and requests on architectures without a bundled real recording: synthetic events with the formats of the
//! kernel's headers.

use crate::machinery::Machinery;
use analyses::exits::exits;
use analyses::group::By;
use analyses::known_parts::KnownParts;
use analyses::path::{PathEnds, paths};
use analyses::view::View;
use testkit::Machine;

const VCPU: i32 = 100;
const IOTHREAD: i32 = 90;

/// A reason in the result of `exits`: instruction set, name, code, and whether the guest waits.
type Reason = (String, String, String, bool);

fn reason(isa: &str, name: &str, code: &str, waits: bool) -> Reason {
    (isa.to_owned(), name.to_owned(), code.to_owned(), waits)
}

/// The reasons of all exits, sorted by name.
fn reasons(machine: Machine, events: &[(&str, &[(&str, u64)])]) -> Vec<Reason> {
    let mut host = Machinery::for_machine(machine, "local");
    for (stamp, (name, fields)) in (1_000..).step_by(100).zip(events) {
        host.event(0, stamp, VCPU, name, fields);
    }
    let found = exits(&host.recording(), &[By::Reason], &|_| ());
    let reason_of = |row: &analyses::exits::ExitRow| {
        let group = &row.group;
        reason(
            group.isa.unwrap().name(),
            group.reason.as_deref().unwrap(),
            &group.code.as_ref().unwrap().to_string(),
            row.waiting,
        )
    };
    let mut all: Vec<Reason> = found.rows.iter().map(reason_of).collect();
    all.sort();
    all
}

/// The recording has the formats of switches and of exits to user space: the events were enabled, and none
/// occurred.
#[test]
fn parts_whose_events_were_on_and_never_came_are_zero() {
    let mut host = Machinery::for_machine(Machine::X86, "local");
    host.event(0, 1_000, VCPU, "kvm_exit", &[("exit_reason", 10), ("isa", 1)]);
    host.event(0, 1_100, VCPU, "kvm_entry", &[]);
    let found = exits(&host.recording(), &[By::Reason], &|_| ());
    let parts = KnownParts::new(&found.rows[0].tally, &found.recorded);
    assert_eq!((parts.user_ns, parts.off_cpu_ns), (Some(0), Some(0)));
    assert_eq!((parts.kernel_ns, parts.not_split_ns, parts.cost_ns), (Some(100), 0, Some(100)));
}

#[test]
fn arm64_reasons_are_pairs_of_which_the_trap_has_a_class() {
    let found = reasons(
        Machine::Arm64,
        &[
            ("kvm_exit", &[("ret", 2), ("esr_ec", 1)]),
            ("kvm_entry", &[]),
            ("kvm_exit", &[("ret", 0)]),
            ("kvm_entry", &[]),
        ],
    );
    let expected = [reason("arm64", "IRQ", "0:0", false), reason("arm64", "WFx", "2:1", true)];
    assert_eq!(found, expected);
}

#[test]
fn s390_waits_in_the_wait_state() {
    let found = reasons(
        Machine::S390,
        &[
            ("kvm_s390_sie_exit", &[("icptcode", 0x1c)]),
            ("kvm_s390_sie_enter", &[("id", 0)]),
            ("kvm_s390_sie_exit", &[("icptcode", 4)]),
            ("kvm_s390_sie_enter", &[("id", 0)]),
        ],
    );
    let expected =
        [reason("s390", "Instruction", "4", false), reason("s390", "Wait state", "28", true)];
    assert_eq!(found, expected);
}

#[test]
fn powerpc_waits_when_the_vcpu_has_ceded() {
    let found = reasons(
        Machine::Powerpc,
        &[
            ("kvm_guest_exit", &[("trap", 0xc00), ("ceded", 1)]),
            ("kvm_guest_enter", &[("vcpu_id", 0)]),
            ("kvm_guest_exit", &[("trap", 0xc00)]),
            ("kvm_guest_enter", &[("vcpu_id", 0)]),
            ("kvm_guest_exit", &[("trap", 0x123)]),
            ("kvm_guest_enter", &[("vcpu_id", 0)]),
        ],
    );
    let expected = [
        reason("powerpc", "0:291", "0:291", false),
        reason("powerpc", "SYSCALL", "0:3072", false),
        reason("powerpc", "SYSCALL (ceded)", "1:3072", true),
    ];
    assert_eq!(found, expected);
}

#[test]
fn loongarch_names_exceptions_and_waits_when_idle() {
    let found = reasons(
        Machine::Loongarch,
        &[
            ("kvm_exit", &[("reason", 22)]),
            ("kvm_exit_idle", &[("reason", 64)]),
            ("kvm_reenter", &[]),
            ("kvm_exit", &[("reason", 22)]),
            ("kvm_reenter", &[]),
            ("kvm_exit", &[("reason", 99)]),
            ("kvm_reenter", &[]),
        ],
    );
    let expected = [
        reason("loongarch", "0x63", "99", false),
        reason("loongarch", "GSPR", "22", false),
        reason("loongarch", "IDLE", "64", true),
    ];
    assert_eq!(found, expected);
}

#[test]
fn riscv_has_the_names_of_the_kernels_causes() {
    let irq = |number: u64| 1 << 63 | number;
    let codes = [23, irq(5), 22, irq(13), 18, 1 << 31 | 9];
    let exits: Vec<[(&str, u64); 1]> = codes.iter().map(|code| [("scause", *code)]).collect();
    let events: Vec<(&str, &[(&str, u64)])> =
        exits.iter().flat_map(|exit| [("kvm_exit", &exit[..]), ("kvm_entry", &[])]).collect();
    let found = reasons(Machine::Riscv, &events);
    let expected = [
        reason("riscv", "0x12", "18", false),
        reason("riscv", "EXC_STORE_GUEST_PAGE_FAULT", "23", false),
        reason("riscv", "EXC_VIRTUAL_INST_FAULT", "22", false),
        reason("riscv", "IRQ_PMU_OVF", "9223372036854775821", false),
        reason("riscv", "IRQ_S_EXT", "2147483657", false),
        reason("riscv", "IRQ_S_TIMER", "9223372036854775813", false),
    ];
    assert_eq!(found, expected);
}

/// The flag bits above the reason are part of its name: otherwise two rows would have the same name. A failed
/// entry is not a wait.
#[test]
fn vmx_reasons_have_their_flags_and_a_failed_entry_is_no_wait() {
    let code = |code: u64| [("exit_reason", code), ("isa", 1)];
    let codes = [48, 0x0400_0000 | 48, 12, 0x8000_0000 | 12, 0x8400_0000 | 33, 0x8000_0000 | 999];
    let exits: Vec<[(&str, u64); 2]> = codes.map(code).to_vec();
    let events: Vec<(&str, &[(&str, u64)])> =
        exits.iter().flat_map(|exit| [("kvm_exit", &exit[..]), ("kvm_entry", &[])]).collect();
    let found = reasons(Machine::X86, &events);
    let expected = [
        reason("vmx", "0x800003e7", "2147484647", false),
        reason("vmx", "0x84000021", "2214592545", false),
        reason("vmx", "EPT_VIOLATION", "48", false),
        reason("vmx", "EPT_VIOLATION 0x4000000", "67108912", false),
        reason("vmx", "HLT", "12", true),
        reason("vmx", "HLT FAILED_VMENTRY", "2147483660", false),
    ];
    assert_eq!(found, expected);
}

/// The events by which a vCPU enters its guest, writes to a device, and enters the guest again; and the name of
/// its first exit.
type Kick = (
    Machine,
    (&'static str, &'static [(&'static str, u64)]),
    (&'static str, &'static [(&'static str, u64)]),
);

/// A write to a device wakes the I/O thread: the path is the same, whatever exits are called on the architecture.
#[test]
fn requests_are_followed_on_every_architecture() {
    let kicks: [Kick; 6] = [
        (Machine::X86, ("kvm_entry", &[("vcpu_id", 0)]), ("kvm_exit", &[("exit_reason", 48)])),
        (Machine::Arm64, ("kvm_entry", &[]), ("kvm_exit", &[("ret", 2), ("esr_ec", 0x24)])),
        (
            Machine::S390,
            ("kvm_s390_sie_enter", &[("id", 0)]),
            ("kvm_s390_sie_exit", &[("icptcode", 4)]),
        ),
        (Machine::Riscv, ("kvm_entry", &[]), ("kvm_exit", &[("scause", 21)])),
        (
            Machine::Powerpc,
            ("kvm_guest_enter", &[("vcpu_id", 0)]),
            ("kvm_guest_exit", &[("trap", 0xe00)]),
        ),
        (Machine::Loongarch, ("kvm_enter", &[]), ("kvm_exit", &[("reason", 2)])),
    ];
    for (machine, entry, exit) in kicks {
        let mut host = Machinery::for_machine(machine, "local");
        host.cmdlines = "100 qemu\n90 qemu\n".to_owned();
        let switch = |prev: i32, state: u64, next: i32| {
            [("prev_pid", prev as u64), ("prev_state", state), ("next_pid", next as u64)]
        };
        host.event(0, 10, VCPU, entry.0, entry.1);
        host.event(1, 50, IOTHREAD, "sched_switch", &switch(IOTHREAD, 1, 0));
        host.event(0, 995, VCPU, exit.0, exit.1);
        host.event(0, 1_000, VCPU, "kvm_mmio", &[("type", 2), ("gpa", 0xfe00_0010)]);
        host.event(0, 1_010, VCPU, "sched_waking", &[("pid", IOTHREAD as u64)]);
        host.event(0, 1_020, VCPU, entry.0, entry.1);
        host.event(1, 1_040, 0, "sched_switch", &switch(0, 0, IOTHREAD));
        host.event(1, 1_200, IOTHREAD, "sched_switch", &switch(IOTHREAD, 1, 0));
        let found =
            paths(View::on_own_clocks(&[host.recording()]), &PathEnds::default(), &|_| ()).unwrap();
        let names: Vec<&str> = found.paths.iter().map(|path| path.name.as_str()).collect();
        assert_eq!(names, ["mmio write 0xfe000010: vcpu → iothread, one way"], "{machine:?}");
    }
}
