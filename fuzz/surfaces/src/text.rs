//! Printed traces: any bytes, and lines with valid prefixes.

use std::fmt::Write;
use std::path::Path;

use crate::recording;

/// Events whose lines have a form of their own, and an event without one.
const NAMES: [&str; 16] = [
    "kvm_exit",
    "kvm_entry",
    "kvm:kvm_exit",
    "kvm_nested_vmexit_inject",
    "kvm_userspace_exit",
    "kvm_vcpu_wakeup",
    "kvm_msr",
    "kvm_pio",
    "kvm_mmio",
    "kvm_cpuid",
    "kvm_fpu",
    "sched_switch",
    "sched:sched_switch",
    "sched_waking",
    "irq_handler_entry",
    "own_event",
];

/// Reads `bytes` as text, and as the bodies of event lines.
pub fn run(bytes: &[u8]) {
    recording::run(bytes);
    let (text, events, lost) = printed(bytes);
    let recording = sources::open_bytes(Path::new("text"), text.into_bytes());
    let Ok(recording) = recording else {
        assert_eq!(events + lost, 0, "a sound text is refused");
        return;
    };
    assert_eq!(recording.info().format, "text", "a text is taken for something else");
    let found = recording::account(recording);
    assert_eq!(found.events, events, "events are not those of the lines");
}

/// Lines with valid prefixes. The first byte of each line of `bytes` selects the event, the second
/// the time step; the rest is the event's body. Returns the text, and the number of events and
/// losses.
fn printed(bytes: &[u8]) -> (String, u64, u64) {
    let (mut text, mut events, mut lost, mut micros) = (String::new(), 0, 0, 0_u64);
    for line in bytes.split(|&byte| byte == b'\n') {
        let &[event, step, ref body @ ..] = line else { continue };
        // A file with control characters is not detected as text.
        let body = String::from_utf8_lossy(body).replace(|char: char| char.is_control(), " ");
        let cpu = event >> 6;
        if event & 63 == 63 {
            lost += 1;
            let _ = writeln!(text, "CPU:{cpu} [LOST {step} EVENTS]");
            continue;
        }
        micros += u64::from(step);
        let name = NAMES.get(usize::from(event & 15)).copied().unwrap_or("own_event");
        let (seconds, micros, thread) = (micros / 1_000_000, micros % 1_000_000, 7 + cpu);
        let line = format!("[00{cpu}] {seconds}.{micros:06}: {name}: {body}");
        let _ = writeln!(text, "CPU {cpu}/KVM-{thread} {line}");
        events += 1;
    }
    (text, events, lost)
}

/// Seed texts.
#[must_use]
pub fn texts() -> Vec<(String, Vec<u8>)> {
    let plain = "cpus=2\n\
        CPU 0/KVM-7   [000]     1.000001: kvm_entry:            vcpu 0, rip 0xfff0\n\
        CPU 0/KVM-7   [000]     1.000011: kvm_exit:             vcpu 0 reason HLT rip 0xfff0 info1 0x0\n\
        CPU:0 [12 EVENTS DROPPED]\n\
        CPU 0/KVM-7   [000] d..1. 1.000021: sched_switch: prev_comm=CPU 0/KVM prev_pid=7 prev_prio=120 \
        prev_state=S ==> next_comm=swapper/0 next_pid=0 next_prio=120\n\
        qemu 8 [001] 1.000031: kvm:kvm_exit: TRAP: HSR_EC: 0x0024 (DABT_LOW), PC: 0xffff\n";
    let bodies = b"\x00\x09vcpu 0 reason EPT_VIOLATION rip 0x10 info1 0x1\n\x01\x05vcpu 0, rip 0x10\n\
        \x3f\x03\n\x0b\x02a:7 [120] S ==> swapper/0:0 [120]\n\x0d\x01comm=CPU 0/KVM pid=7 prio=120\n\
        \x04\x01reason KVM_EXIT_IO (2)\n\x09\x01func 1 idx 0 rax 1\n\x0f\x01a=1 b=0x2 c=text d= =\n";
    let kernel = "# entries-in-buffer/entries-written: 4/904   #P:2\n##### CPU 1 buffer started ####\n\
        CPU 0/KVM-7 (   5) [001] d.... 81234567890123: sys_ioctl(fd: d, cmd: ae80, arg: 0)\n\
        CPU 0/KVM-7 (-----) [001] d.... 81234567890124: sys_ioctl -> 0x0\n\
        CPU 0/KVM-7 [001] d.... 81234567890125: <stack trace>\n => vcpu_run\n\
        CPU 0/KVM-7 [001] d.... 81234567890126: vcpu_run <-vcpu_ioctl\n";
    let dump = "[   71.000004] ---------------------------------\n\
        [   71.000005] CPU 0/KV-7      1d..1. 12345678us : kvm_entry: vcpu 0, rip 0x100\n\
        [   71.000006][    C1] CPU 0/KV-7      1d..1. 12345778us!: kvm_exit: vcpu 0 reason HLT\n\
        CPU 0/KVM    7   1 1 00000001 00000002 [4ed97162] 576.379ms (+0.000ms): kvm_entry: vcpu 0\n\
        sleep 7   1   795.830023: (+36) 1 sched:sched_switch: a:7 [120] S ==> b:8 [120] [12:0x44:36]\n";
    let machines = "      host.dat: cpus=2\n      host.dat:        CPU 0/KVM-7   [000]  1.0001: kvm_entry: vcpu 0\n\
        \x20    guest.dat: CPU:0 [7 EVENTS DROPPED]\n            make-558   [000]  1.0002: kvm_cpuid: function=1f\n";
    let texts = [("plain", plain), ("kernel", kernel), ("dump", dump), ("machines", machines)];
    let texts = texts.map(|(name, text)| (name.to_owned(), text.into()));
    texts.into_iter().chain([("bodies".to_owned(), bodies.to_vec())]).collect()
}
