//! Other machines, byte orders, long sizes, and older kernels.

use raw_bytes::{Abi, ByteOrder, LongSize};
use testkit::{KernelFormats, Machine};
use timeline::Detail;

use super::host::{Host, LITTLE_64, windows};

const BIG_64: Abi = Abi { order: ByteOrder::Big, long: LongSize::Eight };
const LITTLE_32: Abi = Abi { order: ByteOrder::Little, long: LongSize::Four };
const BIG_32: Abi = Abi { order: ByteOrder::Big, long: LongSize::Four };

fn codes(host: &Host) -> Vec<u64> {
    host.exits().iter().map(|exit| exit.span.code).collect()
}

#[test]
fn s390() {
    let mut host = Host::new(KernelFormats::new(Machine::S390, BIG_64));
    let enter = |host: &mut Host, ns| {
        host.event(0, ns, 100, "kvm_s390_sie_enter", &[("id", 3), ("pswaddr", 0x1_2345)]);
    };
    enter(&mut host, 1_000);
    let exit = [("id", 3), ("icptcode", 0x1c), ("pswaddr", 0x1_2345)];
    host.event(0, 1_500, 100, "kvm_s390_sie_exit", &exit);
    enter(&mut host, 1_700);
    let found = host.read();
    assert_eq!(windows(&found.exits), [(1_500, Some(1_700))]);
    assert_eq!((found.exits[0].span.code, found.exits[0].span.guest_ns), (0x1c, 500));
    assert_eq!(found.pass.vcpus[0].vcpu_id, Some(3));
}

#[test]
fn riscv() {
    let mut host = Host::new(KernelFormats::new(Machine::Riscv, LITTLE_64));
    let (interrupt, fault) = (1 << 63 | 5, 21);
    host.event(0, 1_000, 100, "kvm_exit", &[("scause", interrupt), ("sepc", 0x8000_0000)]);
    host.event(0, 1_100, 100, "kvm_entry", &[("pc", 0x8000_0000)]);
    host.event(0, 2_000, 100, "kvm_exit", &[("scause", fault)]);
    host.event(0, 2_300, 100, "kvm_entry", &[]);
    assert_eq!(windows(&host.exits()), [(1_000, Some(1_100)), (2_000, Some(2_300))]);
    assert_eq!(codes(&host), [interrupt, fault]);
    assert_eq!(host.exits()[0].span.guest_pc, 0x8000_0000);
}

#[test]
fn arm64() {
    let mut host = Host::new(KernelFormats::new(Machine::Arm64, LITTLE_64));
    host.event(
        0,
        1_000,
        100,
        "kvm_exit",
        &[("ret", 2), ("esr_ec", 0x24), ("vcpu_pc", 0xffff_8000_1000)],
    );
    host.user_exit(0, 1_100, 100).event(0, 1_400, 100, "kvm_timer_restore_state", &[]);
    host.event(0, 1_450, 100, "kvm_timer_restore_state", &[]);
    host.event(0, 1_500, 100, "kvm_entry", &[]).event(0, 2_000, 100, "kvm_exit", &[("ret", 0)]);
    let exits = host.exits();
    assert_eq!(windows(&exits), [(1_000, Some(1_500)), (2_000, None)]);
    assert_eq!(codes(&host), [2 << 32 | 0x24, 0]);
    assert_eq!(exits[0].span.parts.user_ns, 300);
    assert_eq!(exits[0].span.guest_pc, 0xffff_8000_1000);
}

/// The fault has the page only; a later event elsewhere is none of its own.
#[test]
fn arm64_addresses_of_devices_are_whole() {
    let mut host = Host::new(KernelFormats::new(Machine::Arm64, LITTLE_64));
    host.event(0, 900, 100, "kvm_entry", &[]);
    for (ns, register) in [(1_000, 0x0a00_3e50), (2_000, 0x0a00_4e50), (3_000, 0x0a00_3000)] {
        host.event(0, ns, 100, "kvm_exit", &[("ret", 2), ("esr_ec", 0x24)]);
        host.event(0, ns + 10, 100, "kvm_guest_fault", &[("ipa", 0x0a00_3000)]);
        host.event(0, ns + 20, 100, "kvm_mmio", &[("type", 2), ("gpa", register)]);
        host.event(0, ns + 30, 100, "kvm_mmio", &[("type", 2), ("gpa", 0x0a00_3f00)]);
        host.event(0, ns + 500, 100, "kvm_entry", &[]);
    }
    let details: Vec<_> = host.exits().iter().map(|exit| exit.span.detail).collect();
    let gpa = |address| Some((Detail::Gpa, address));
    assert_eq!(details, [gpa(0x0a00_3e50), gpa(0x0a00_3f00), gpa(0x0a00_3f00)]);
}

#[test]
fn powerpc() {
    let mut host = Host::new(KernelFormats::new(Machine::Powerpc, BIG_64));
    let (hypercall, storage) = (0xc00, 0xe00);
    host.event(0, 1_000, 100, "kvm_guest_enter", &[("vcpu_id", 2), ("pc", 0x10_0000)]);
    let exit = [("vcpu_id", 2), ("trap", storage), ("pc", 0xc000_1234)];
    host.event(0, 1_400, 100, "kvm_guest_exit", &exit);
    host.event(0, 1_500, 100, "kvm_guest_enter", &[("vcpu_id", 2)]);
    let exit = [("vcpu_id", 2), ("trap", hypercall), ("ceded", 1)];
    host.event(0, 1_700, 100, "kvm_guest_exit", &exit);
    host.event(0, 1_710, 100, "kvm_hcall_enter", &[("vcpu_id", 2), ("req", 0xe0)]);
    host.event(0, 2_000, 100, "kvm_guest_enter", &[("vcpu_id", 2)]);
    let found = host.read();
    assert_eq!(windows(&found.exits), [(1_400, Some(1_500)), (1_700, Some(2_000))]);
    assert_eq!(codes(&host), [storage, 1 << 32 | hypercall]);
    assert_eq!(found.exits[0].span.guest_ns, 400);
    assert_eq!(found.exits[0].span.guest_pc, 0xc000_1234);
    assert_eq!(found.exits[1].span.detail, Some((Detail::Hypercall, 0xe0)));
    assert_eq!(found.pass.vcpus[0].vcpu_id, Some(2));
}

#[test]
fn loongarch() {
    let mut host = Host::new(KernelFormats::new(Machine::Loongarch, LITTLE_64));
    let (interrupt, privileged, idle) = (0, 22, 64);
    host.event(0, 1_000, 100, "kvm_enter", &[("pc", 0x9000_0000)]);
    host.event(0, 1_400, 100, "kvm_exit", &[("reason", privileged), ("pc", 0x9000_0040)]);
    host.event(0, 1_450, 100, "kvm_exit_idle", &[("reason", idle)]);
    host.event(0, 1_900, 100, "kvm_reenter", &[]);
    host.event(0, 2_000, 100, "kvm_exit", &[("reason", interrupt)]);
    // The thread leaves KVM's loop, and comes back to it.
    host.event(0, 2_050, 100, "kvm_out", &[]);
    host.event(0, 2_300, 100, "kvm_enter", &[]);
    let exits = host.exits();
    assert_eq!(windows(&exits), [(1_400, Some(1_900)), (2_000, Some(2_300))]);
    assert_eq!(codes(&host), [idle, interrupt]);
    assert_eq!((exits[0].span.guest_ns, exits[0].span.guest_pc), (400, 0x9000_0040));
}

#[test]
fn the_same_story_in_every_byte_order_and_long_size() {
    for abi in [LITTLE_64, BIG_64, LITTLE_32, BIG_32] {
        let mut host = Host::new(KernelFormats::new(Machine::X86, abi));
        host.entry(0, 1_000, 100, 5).exit(0, 2_000, 100, 0x7b).user_exit(0, 2_100, 100);
        host.switch(0, 2_150, 100, 1, 0).wake(1, 2_300, 7, 100).switch(1, 2_400, 0, 0, 100);
        host.user_return(1, 2_500, 100).entry(1, 2_600, 100, 5);
        let found = host.read();
        assert_eq!(found.recording.abi(), abi);
        assert_eq!(windows(&found.exits), [(2_000, Some(2_600))], "{abi:?}");
        let expected = super::host::parts([200, 150, 100, 150, 0]);
        assert_eq!(found.exits[0].span.parts, expected, "{abi:?}");
        assert_eq!(found.pass.vcpus[0].vcpu_id, Some(5), "{abi:?}");
    }
}

#[test]
fn kernels_without_vcpu_ids() {
    let formats = KernelFormats::new(Machine::X86, LITTLE_64)
        .without("kvm_entry", "vcpu_id")
        .without("kvm_exit", "vcpu_id");
    let mut host = Host::new(formats);
    host.exit(0, 1_000, 100, 1)
        .entry(0, 1_100, 100, 0)
        .exit(1, 1_000, 101, 1)
        .entry(1, 1_200, 101, 0);
    let found = host.read();
    assert_eq!(windows(&found.exits), [(1_000, Some(1_100)), (1_000, Some(1_200))]);
    assert!(found.pass.vcpus.iter().all(|vcpu| vcpu.vcpu_id.is_none()));
}

#[test]
fn kernels_without_scheduler_events() {
    let formats = KernelFormats::new(Machine::X86, LITTLE_64).without_event("sched_switch");
    let mut host = Host::new(formats);
    host.exit(0, 1_000, 100, 1).wake(1, 1_050, 7, 100).entry(0, 1_100, 100, 0);
    assert_eq!(host.exits()[0].span.parts.kernel_ns, 100);
}
