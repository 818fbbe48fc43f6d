//! Format texts have the kernel's offsets, and records follow them.

use raw_bytes::{Abi, ByteOrder, LongSize};
use testkit::{KernelFormats, Machine};

const LITTLE_64: Abi = Abi { order: ByteOrder::Little, long: LongSize::Eight };
const LITTLE_32: Abi = Abi { order: ByteOrder::Little, long: LongSize::Four };
const BIG_64: Abi = Abi { order: ByteOrder::Big, long: LongSize::Eight };

/// The field lines of a format text: those the 6.1 kernel of the bundled recordings has.
fn assert_fields(formats: &KernelFormats, event: &str, expected: &[&str]) {
    let text = formats.get(event).text();
    let own_fields = text.split("\n\n").nth(1).unwrap_or_default();
    assert_eq!(own_fields.lines().map(str::trim).collect::<Vec<_>>(), expected);
}

#[test]
fn x86_exits_are_laid_out_as_in_the_kernel() {
    let formats = KernelFormats::new(Machine::X86, LITTLE_64);
    assert_fields(
        &formats,
        "kvm_exit",
        &[
            "field:unsigned int exit_reason;\toffset:8;\tsize:4;\tsigned:0;",
            "field:unsigned long guest_rip;\toffset:16;\tsize:8;\tsigned:0;",
            "field:u32 isa;\toffset:24;\tsize:4;\tsigned:0;",
            "field:u64 info1;\toffset:32;\tsize:8;\tsigned:0;",
            "field:u64 info2;\toffset:40;\tsize:8;\tsigned:0;",
            "field:u32 intr_info;\toffset:48;\tsize:4;\tsigned:0;",
            "field:u32 error_code;\toffset:52;\tsize:4;\tsigned:0;",
            "field:unsigned int vcpu_id;\toffset:56;\tsize:4;\tsigned:0;",
        ],
    );
    assert_fields(
        &formats,
        "sched_waking",
        &[
            "field:char comm[16];\toffset:8;\tsize:16;\tsigned:1;",
            "field:pid_t pid;\toffset:24;\tsize:4;\tsigned:1;",
            "field:int prio;\toffset:28;\tsize:4;\tsigned:1;",
            "field:int target_cpu;\toffset:32;\tsize:4;\tsigned:1;",
        ],
    );
}

#[test]
fn longs_shrink_on_a_32_bit_kernel() {
    let formats = KernelFormats::new(Machine::X86, LITTLE_32);
    let exit = formats.get("kvm_exit");
    let offset = |name| exit.field(name).unwrap().offset;
    assert_eq!((offset("guest_rip"), offset("isa"), offset("info1")), (12, 16, 24));
    assert!(formats.header_page(4096).contains("char data;\toffset:12;\tsize:4084;"));
}

#[test]
fn s390_exits_are_big_endian_and_end_in_one_byte() {
    let formats = KernelFormats::new(Machine::S390, BIG_64);
    assert_fields(
        &formats,
        "kvm_s390_sie_exit",
        &[
            "field:int id;\toffset:8;\tsize:4;\tsigned:1;",
            "field:unsigned long pswmask;\toffset:16;\tsize:8;\tsigned:0;",
            "field:unsigned long pswaddr;\toffset:24;\tsize:8;\tsigned:0;",
            "field:u8 icptcode;\toffset:32;\tsize:1;\tsigned:0;",
        ],
    );
    let record =
        formats.event("kvm_s390_sie_exit").pid(300).set("id", 1).set("icptcode", 8).build();
    assert_eq!(record.len(), 40);
    let id = formats.get("kvm_s390_sie_exit").id;
    assert_eq!(record[..2], id.to_be_bytes());
    assert_eq!(record[4..12], [0, 0, 1, 44, 0, 0, 0, 1]);
    assert_eq!(record[32], 8);
}

#[test]
fn dynamic_fields_lie_behind_the_record() {
    let formats = KernelFormats::new(Machine::Arm64, LITTLE_64);
    let record = formats.event("irq_handler_entry").set("irq", 5).set("name", "virtio0").build();
    assert_eq!(record[8..16], [5, 0, 0, 0, 16, 0, 8, 0]);
    assert_eq!(&record[16..], b"virtio0\0");
}

#[test]
fn every_machine_has_an_exit_and_groups_its_systems() {
    for (machine, exit) in [
        (Machine::X86, "kvm_exit"),
        (Machine::Arm64, "kvm_exit"),
        (Machine::S390, "kvm_s390_sie_exit"),
        (Machine::Riscv, "kvm_exit"),
        (Machine::Loongarch, "kvm_exit"),
    ] {
        let formats = KernelFormats::new(machine, LITTLE_64);
        assert_eq!(formats.get(exit).system, "kvm");
        let systems: Vec<_> = formats.systems().into_iter().map(|(name, _)| name).collect();
        assert_eq!(systems, ["kvm", "sched", "irq", "block", "syscalls", "ftrace", "initcall"]);
    }
    let formats = KernelFormats::new(Machine::Powerpc, LITTLE_64);
    assert_eq!(formats.get("kvm_guest_exit").system, "kvm_hv");
}
