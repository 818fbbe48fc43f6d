//! The events of the recording: their formats and their bytes.

use std::fmt::Write;

use shmring::spans::By;
use tracedat::{EventFormat, Formats};

use crate::table::Names;

/// Event ids. The writer may choose them: the formats name them.
const EXIT: u16 = 1;
const ENTRY: u16 = 2;
const USER_EXIT: u16 = 3;
const FPU: u16 = 4;
const SWITCH: u16 = 5;
const WAKING: u16 = 6;

/// Threads that stand for whatever ran instead of a vCPU.
const STAND_INS: [(By, u32, &str); 3] =
    [(By::OwnVcpu, 2, "own-vcpu"), (By::OwnVmm, 3, "own-vmm"), (By::Others, 4, "others")];
/// The thread id of vCPU 0; others follow.
const FIRST_THREAD: u32 = 1000;
/// Size of a thread's name.
const COMM_BYTES: usize = 16;
/// The kernel's number of the default priority.
const DEFAULT_PRIORITY: i32 = 120;

/// The thread id of a vCPU in the recording.
pub(super) fn thread(vcpu: u32) -> u32 {
    FIRST_THREAD.saturating_add(vcpu)
}

fn stand_in(by: By) -> (u32, &'static str) {
    let known = STAND_INS.iter().find(|(other, ..)| *other == by);
    known.map_or((0, "swapper"), |(_, thread, name)| (*thread, name))
}

fn name_of(vcpu: u32) -> String {
    format!("vcpu-{vcpu}")
}

/// `saved_cmdlines`.
pub(super) fn cmdlines(vcpus: &[u32]) -> Vec<u8> {
    let mut text = String::new();
    for vcpu in vcpus {
        let _ = writeln!(text, "{} {}", thread(*vcpu), name_of(*vcpu));
    }
    for (_, thread, name) in STAND_INS {
        let _ = writeln!(text, "{thread} {name}");
    }
    text.into_bytes()
}

/// The first bytes of an event: type, flags and the thread that ran.
fn event(id: u16, thread: u32) -> Vec<u8> {
    let mut bytes = id.to_le_bytes().to_vec();
    bytes.extend([0, 0]);
    bytes.extend(thread.to_le_bytes());
    bytes
}

pub(super) fn exit(vcpu: u32, code: u32, isa: u8) -> Vec<u8> {
    let mut bytes = event(EXIT, thread(vcpu));
    [code, u32::from(isa), vcpu].iter().for_each(|word| bytes.extend(word.to_le_bytes()));
    bytes
}

pub(super) fn entry(vcpu: u32) -> Vec<u8> {
    let mut bytes = event(ENTRY, thread(vcpu));
    bytes.extend(vcpu.to_le_bytes());
    bytes
}

pub(super) fn user_exit(vcpu: u32) -> Vec<u8> {
    let mut bytes = event(USER_EXIT, thread(vcpu));
    bytes.extend(vcpu.to_le_bytes());
    bytes
}

/// The vCPU's registers are loaded: it is back from user space.
pub(super) fn back(vcpu: u32) -> Vec<u8> {
    let mut bytes = event(FPU, thread(vcpu));
    bytes.extend(1_u32.to_le_bytes());
    bytes
}

/// The vCPU's thread is switched out, asleep or not.
pub(super) fn goes(vcpu: u32, by: By, sleeps: bool) -> Vec<u8> {
    let (other, name) = stand_in(by);
    switch((thread(vcpu), &name_of(vcpu)), (other, name), u64::from(sleeps))
}

/// The vCPU's thread is switched in.
pub(super) fn comes(vcpu: u32, by: By) -> Vec<u8> {
    let (other, name) = stand_in(by);
    switch((other, name), (thread(vcpu), &name_of(vcpu)), 0)
}

fn switch(prev: (u32, &str), next: (u32, &str), prev_state: u64) -> Vec<u8> {
    let mut bytes = event(SWITCH, prev.0);
    comm(&mut bytes, prev.1);
    bytes.extend(prev.0.to_le_bytes());
    bytes.extend(DEFAULT_PRIORITY.to_le_bytes());
    bytes.extend(prev_state.to_le_bytes());
    comm(&mut bytes, next.1);
    bytes.extend(next.0.to_le_bytes());
    bytes.extend(DEFAULT_PRIORITY.to_le_bytes());
    bytes
}

/// The vCPU's thread is woken.
pub(super) fn waking(vcpu: u32) -> Vec<u8> {
    let mut bytes = event(WAKING, 0);
    comm(&mut bytes, &name_of(vcpu));
    bytes.extend(thread(vcpu).to_le_bytes());
    bytes.extend(DEFAULT_PRIORITY.to_le_bytes());
    bytes.extend(vcpu.to_le_bytes());
    bytes
}

fn comm(bytes: &mut Vec<u8>, name: &str) {
    let end = bytes.len().saturating_add(COMM_BYTES);
    bytes.extend(name.bytes().take(COMM_BYTES - 1));
    bytes.resize(end, 0);
}

/// A field of a format: its declaration, offset, size and sign.
type Field = (&'static str, u32, u32, bool);

const COMMON: [Field; 4] = [
    ("unsigned short common_type", 0, 2, false),
    ("unsigned char common_flags", 2, 1, false),
    ("unsigned char common_preempt_count", 3, 1, false),
    ("int common_pid", 4, 4, true),
];

fn format(system: &str, name: &str, id: u16, fields: &[Field], print: &str) -> EventFormat {
    let mut text = format!("name: {name}\nID: {id}\nformat:\n");
    let mut lines = |fields: &[Field]| {
        for (declared, offset, size, signed) in fields {
            let signed = u8::from(*signed);
            let _ = writeln!(
                text,
                "\tfield:{declared};\toffset:{offset};\tsize:{size};\tsigned:{signed};"
            );
        }
        text.push('\n');
    };
    lines(&COMMON);
    lines(fields);
    let _ = writeln!(text, "print fmt: {print}");
    EventFormat { system: system.into(), text }
}

/// Formats of all events, with the names of exits that the host published.
pub(super) fn formats(names: &Names) -> Formats {
    let mut symbols = String::new();
    for ((_, code), name) in names {
        let _ = write!(symbols, ", {{ {code:#x}, \"{name}\" }}");
    }
    let reason = if symbols.is_empty() {
        "\"vcpu %u reason %u\", REC->vcpu_id, REC->exit_reason".to_owned()
    } else {
        format!("\"vcpu %u reason %s\", REC->vcpu_id, __print_symbolic(REC->exit_reason{symbols})")
    };
    let exit = [
        ("unsigned int exit_reason", 8, 4, false),
        ("u32 isa", 12, 4, false),
        ("unsigned int vcpu_id", 16, 4, false),
    ];
    let vcpu = [("unsigned int vcpu_id", 8, 4, false)];
    let load = [("u32 load", 8, 4, false)];
    let switch = [
        ("char prev_comm[16]", 8, 16, true),
        ("pid_t prev_pid", 24, 4, true),
        ("int prev_prio", 28, 4, true),
        ("long prev_state", 32, 8, true),
        ("char next_comm[16]", 40, 16, true),
        ("pid_t next_pid", 56, 4, true),
        ("int next_prio", 60, 4, true),
    ];
    let waking = [
        ("char comm[16]", 8, 16, true),
        ("pid_t pid", 24, 4, true),
        ("int prio", 28, 4, true),
        ("int target_cpu", 32, 4, true),
    ];
    let of_vcpu = "\"vcpu %u\", REC->vcpu_id";
    let of_load = "\"%s\", __print_symbolic(REC->load, { 0, \"unload\" }, { 1, \"load\" })";
    let of_switch = "\"prev_comm=%s prev_pid=%d prev_prio=%d prev_state=%s ==> next_comm=%s \
        next_pid=%d next_prio=%d\", REC->prev_comm, REC->prev_pid, REC->prev_prio, \
        REC->prev_state ? __print_flags(REC->prev_state, \"|\", { 0x1, \"S\" }) : \"R\", \
        REC->next_comm, REC->next_pid, REC->next_prio";
    let of_waking = "\"comm=%s pid=%d prio=%d target_cpu=%03d\", REC->comm, REC->pid, REC->prio, \
        REC->target_cpu";
    Formats {
        header_page: HEADER_PAGE.into(),
        header_event: HEADER_EVENT.into(),
        ftrace: Vec::new(),
        events: vec![
            format("kvm", "kvm_exit", EXIT, &exit, &reason),
            format("kvm", "kvm_entry", ENTRY, &vcpu, of_vcpu),
            format("kvm", "kvm_userspace_exit", USER_EXIT, &vcpu, of_vcpu),
            format("kvm", "kvm_fpu", FPU, &load, of_load),
            format("sched", "sched_switch", SWITCH, &switch, of_switch),
            format("sched", "sched_waking", WAKING, &waking, of_waking),
        ],
    }
}

const HEADER_PAGE: &str = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
    \tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n\
    \tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n\
    \tfield: char data;\toffset:16;\tsize:4080;\tsigned:1;\n";

const HEADER_EVENT: &str = "# compressed entry header\n\ttype_len    :    5 bits\n\
    \ttime_delta  :   27 bits\n\tarray       :   32 bits\n\n\
    \tpadding     : type == 29\n\ttime_extend : type == 30\n\
    \ttime_stamp : type == 31\n\tdata max type_len  == 28\n";
