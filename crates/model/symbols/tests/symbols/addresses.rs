//! Which file was at an address when, and which kernel's symbols count.

use perfdata::{Body, BuildId, Comm, Mapping, Task, misc};
use symbols::{Kallsyms, Machine, Names, Place, ProcessLog, Processes};

const PID: u32 = 10;

fn map(log: &mut ProcessLog, time_ns: u64, pid: u32, addr: u64, path: &str) {
    let id = Some(BuildId::new(path.as_bytes()));
    let path = path.as_bytes();
    let mapping = Mapping {
        pid,
        tid: pid,
        addr,
        len: 0x1000,
        file_offset: 0x2000,
        build_id: id,
        protection: Some(5),
        path,
    };
    log.body(time_ns, 0, &Body::Mapping(mapping));
}

fn exec(log: &mut ProcessLog, time_ns: u64, pid: u32) {
    log.body(time_ns, misc::COMM_EXEC, &Body::Comm(Comm { pid, tid: pid, name: b"x", exec: true }));
}

fn fork(log: &mut ProcessLog, time_ns: u64, misc: u16, parent_pid: u32, pid: u32) {
    let task = Task { pid, parent_pid, tid: pid, parent_tid: parent_pid, time: time_ns };
    log.body(time_ns, misc, &Body::Fork(task));
}

/// The path at an address, and the offset in it.
fn at(processes: &Processes, pid: u32, time_ns: u64, address: u64) -> Option<(String, u64)> {
    let (file, offset) = processes.find(pid, time_ns, address)?;
    let path = &processes.files().get(file).unwrap().path;
    Some((String::from_utf8(path.to_vec()).unwrap(), offset))
}

fn is(found: Option<(String, u64)>, path: &str, offset: u64) -> bool {
    found == Some((path.to_owned(), offset))
}

#[test]
fn a_mapping_holds_from_its_time_on_and_within_its_length() {
    let mut log = ProcessLog::default();
    map(&mut log, 100, PID, 0x7000, "/lib/new");
    map(&mut log, 50, PID, 0x7000, "/lib/old");
    map(&mut log, 70, PID, 0x9000, "/lib/other");
    let processes = log.finish();
    assert!(is(at(&processes, PID, 60, 0x7010), "/lib/old", 0x2010));
    assert!(is(at(&processes, PID, 100, 0x7010), "/lib/new", 0x2010));
    assert!(is(at(&processes, PID, 100, 0x7fff), "/lib/new", 0x2fff));
    for (time_ns, address) in [(100, 0x6fff), (100, 0x8000), (60, 0x9000), (40, 0x7010)] {
        assert_eq!(at(&processes, PID, time_ns, address), None, "{time_ns} {address:#x}");
    }
    assert_eq!(at(&processes, 11, 100, 0x7010), None);
}

#[test]
fn a_new_program_begins_with_nothing() {
    let mut log = ProcessLog::default();
    map(&mut log, 10, PID, 0x7000, "/bin/sh");
    exec(&mut log, 20, PID);
    map(&mut log, 21, PID, 0x5000, "/bin/dd");
    let processes = log.finish();
    assert!(is(at(&processes, PID, 19, 0x7000), "/bin/sh", 0x2000));
    assert_eq!(at(&processes, PID, 20, 0x7000), None);
    assert!(is(at(&processes, PID, 21, 0x5000), "/bin/dd", 0x2000));
}

#[test]
fn a_fork_has_what_its_parent_had_by_then() {
    let mut log = ProcessLog::default();
    map(&mut log, 10, PID, 0x7000, "/bin/sh");
    fork(&mut log, 20, 0, PID, 11);
    map(&mut log, 30, PID, 0x9000, "/lib/late");
    map(&mut log, 40, 11, 0x5000, "/lib/own");
    fork(&mut log, 50, 0, 11, 12);
    exec(&mut log, 60, PID);
    // A thread of the same process is no fork.
    let thread = Task { pid: 11, parent_pid: 11, tid: 13, parent_tid: 11, time: 55 };
    log.body(55, 0, &Body::Fork(thread));
    let processes = log.finish();
    for pid in [11, 12] {
        assert!(is(at(&processes, pid, 70, 0x7000), "/bin/sh", 0x2000));
        assert!(is(at(&processes, pid, 70, 0x5000), "/lib/own", 0x2000));
        assert_eq!(at(&processes, pid, 70, 0x9000), None);
    }
}

#[test]
fn what_perf_says_of_older_processes_is_no_copy() {
    let mut log = ProcessLog::default();
    map(&mut log, 0, PID, 0x7000, "/bin/sh");
    fork(&mut log, 0, misc::FORK_EXEC, PID, 11);
    map(&mut log, 0, 11, 0x5000, "/bin/dd");
    let processes = log.finish();
    assert_eq!(at(&processes, 11, 10, 0x7000), None);
    assert!(is(at(&processes, 11, 10, 0x5000), "/bin/dd", 0x2000));
}

#[test]
fn data_and_the_kernels_own_mappings_are_no_code() {
    let mut log = ProcessLog::default();
    let mapping = Mapping {
        pid: PID,
        tid: PID,
        addr: 0x7000,
        len: 0x1000,
        file_offset: 0,
        build_id: None,
        protection: None,
        path: b"/lib/data",
    };
    log.body(0, misc::MMAP_DATA, &Body::Mapping(mapping));
    log.body(0, 0, &Body::Mapping(Mapping { pid: u32::MAX, ..mapping }));
    log.body(0, 0, &Body::Mapping(Mapping { len: 0, ..mapping }));
    assert!(log.finish().files().list().is_empty());
}

/// One library at two addresses is one place: graphs merge over what the kernel drew at random.
#[test]
fn a_place_is_the_same_wherever_its_file_was_mapped() {
    let mut log = ProcessLog::default();
    map(&mut log, 0, 1, 0x7f00_1234_5000, "/lib/libc.so.6");
    map(&mut log, 0, 2, 0x7fff_8888_0000, "/lib/libc.so.6");
    let kernel = Kallsyms::default();
    let machine = Machine::elsewhere(&kernel, log.finish());
    let first = machine.user_place(1, 5, 0x7f00_1234_5123);
    assert_eq!(first, machine.user_place(2, 5, 0x7fff_8888_0123));
    let mut names = Names::of_files_here();
    assert_eq!(names.name(&machine, first).to_string(), "libc.so.6+0x2123");
    let unknown = machine.user_place(3, 5, 0x1234);
    assert_eq!(unknown, Place::User(0x1234));
    assert_eq!(names.name(&machine, unknown).to_string(), "0x1234");
}

/// A kernel's list at the place that it drew for itself.
fn kallsyms(slide: u64) -> Kallsyms {
    let symbols = [
        (0xffff_ffff_8100_0000_u64, "T _stext"),
        (0xffff_ffff_8100_0100, "T schedule"),
        (0xffff_ffff_8100_0900, "T vfs_read"),
        (0xffff_ffff_8200_0000, "T _etext"),
        (0xffff_ffff_c000_0000, "t vcpu_run\t[kvm]"),
    ];
    let lines = symbols.map(|(address, rest)| format!("{:x} {rest}\n", address + slide));
    Kallsyms::parse(lines.concat().as_bytes())
}

#[test]
fn two_guests_with_one_kernel_keep_their_own_symbols() {
    // So far apart that an address of one is inside another function of the other.
    let kernels = [kallsyms(0), kallsyms(0x800)];
    let machines =
        kernels.each_ref().map(|kernel| Machine::elsewhere(kernel, Processes::default()));
    let mut names = Names::of_files_here();
    let mut name = |machine: usize, address| {
        let machine = &machines[machine];
        names.name(machine, machine.kernel_place(address)).to_string()
    };
    assert_eq!(name(0, 0xffff_ffff_8100_0910), "vfs_read");
    assert_eq!(name(1, 0xffff_ffff_8100_0910), "schedule");
    assert_eq!(name(0, 0xffff_ffff_8100_0910), "vfs_read");
    assert_eq!(name(0, 0xffff_ffff_c000_0900), "vcpu_run [kvm]");
    assert_eq!(name(1, 0xffff_ffff_c000_0000), "0xffffffffc0000000");
}

#[test]
fn hidden_addresses_and_parts_of_lists_name_nothing() {
    let hidden = Kallsyms::parse(b"0000000000000000 T _stext\n0000000000000000 T schedule\n");
    let part = Kallsyms::parse(b"ffffffff81000100 T schedule\nffffffff81000900 T vfs_read\n");
    let mut names = Names::of_files_here();
    for kernel in [&hidden, &part] {
        let machine = Machine::elsewhere(kernel, Processes::default());
        for address in [0_u64, 0x10, 0xffff_ffff_8100_0110] {
            let name = names.name(&machine, machine.kernel_place(address));
            assert_eq!((name.symbol, name.offset), (None, address));
        }
    }
}

/// Floods of mappings over each other end soon.
#[test]
fn many_mappings_at_one_address_take_no_long_time() {
    let mut log = ProcessLog::default();
    for at in 0..200_000_u64 {
        map(&mut log, at, PID, 0x1000 + at % 4096, "/lib/a");
        fork(&mut log, at, 0, PID, 11);
    }
    let processes = log.finish();
    let begin = std::time::Instant::now();
    for address in 0..2_000 {
        assert!(processes.find(PID, u64::MAX, 0x1fff + address % 4096).is_some());
        assert_eq!(processes.find(11, u64::MAX, 0x9000), None);
    }
    assert!(begin.elapsed().as_secs() < 20);
}
