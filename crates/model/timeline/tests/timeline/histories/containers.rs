//! The same events however the file holds them.

use raw_bytes::ByteOrder;
use tracedat::{Compression, Tsc2Nsec, Version, id, option};

use super::host::{Host, Seen, Shape, windows};

/// Two vCPUs on three CPUs, a few thousand events.
fn story() -> Host {
    let mut host = Host::x86();
    for round in 0..400_u64 {
        let ns = 10_000 * (round + 1);
        let (here, there) = ((round % 3) as u32, ((round + 1) % 3) as u32);
        host.exit(here, ns, 100, round % 7).user_exit(here, ns + 20, 100);
        host.switch(here, ns + 50, 100, round % 2, 0).wake(there, ns + 60, 101, 100);
        host.exit(there, ns + 100, 101, round % 5);
        host.entry(there, ns + 150 + round, 101, 1);
        host.switch(here, ns + 1_000, 0, 0, 100).user_return(here, ns + 1_100, 100);
        host.entry(here, ns + 1_200 + round, 100, 0);
    }
    host
}

fn exit_lines(host: &Host) -> Vec<String> {
    let line = |exit: &Seen| format!("{} {:?}", exit.thread, exit.span);
    host.exits().iter().map(line).collect()
}

#[test]
fn versions_compression_and_page_sizes() {
    let mut host = story();
    let expected = exit_lines(&host);
    assert_eq!(expected.len(), 800);
    let shapes = [
        (Version::V6, Compression::None, 4096, usize::MAX),
        (Version::V7, Compression::Zstd, 4096, 3),
        (Version::V7, Compression::Zlib, 4096, usize::MAX),
        (Version::V7, Compression::None, 16_384, usize::MAX),
        // Megabytes of nearly empty pages: read in many rounds.
        (Version::V7, Compression::None, 16_384, 1),
        (Version::V7, Compression::None, 65_536, 7),
    ];
    for (version, compression, page_size, events_per_page) in shapes {
        host.shape = Shape { version, compression, page_size, events_per_page };
        assert_eq!(exit_lines(&host), expected, "{:?}", host.shape);
    }
}

#[test]
fn events_of_several_buffers_are_one_history() {
    let mut host = Host::x86();
    host.event_in("kvm", 0, 1_000, 100, "kvm_exit", &[("exit_reason", 0x78), ("isa", 2)]);
    host.event_in("kvm", 0, 1_700, 100, "kvm_entry", &[("vcpu_id", 0)]);
    host.switch(0, 1_100, 100, 1, 0).wake(1, 1_300, 7, 100).switch(0, 1_400, 0, 0, 100);
    let exits = host.exits();
    assert_eq!(windows(&exits), [(1_000, Some(1_700))]);
    assert_eq!(exits[0].span.parts, super::host::parts([400, 0, 100, 200, 0]));
}

#[test]
fn hundreds_of_cpus_of_which_most_are_empty() {
    let mut host = Host::x86();
    host.cpus = 800;
    host.exit(799, 1_000, 100, 1).entry(3, 1_100, 100, 0).exit(511, 1_200, 100, 2);
    host.entry(799, 1_300, 100, 0);
    assert_eq!(windows(&host.exits()), [(1_000, Some(1_100)), (1_200, Some(1_300))]);
}

#[test]
fn tsc_stamps_become_nanoseconds() {
    let mut host = Host::x86();
    host.clock = "x86-tsc";
    // 2 GHz: a tick is half a nanosecond.
    let rate = Tsc2Nsec { mult: 1 << 9, shift: 10, offset: 0 };
    host.options = vec![(id::TSC2NSEC, option::tsc2nsec(ByteOrder::Little, &rate))];
    host.exit(0, 2_000, 100, 0x78).wakeup(0, 2_900, 100, 300, 0).entry(0, 3_000, 100, 0);
    let found = host.read();
    assert!(found.recording.is_nanoseconds());
    assert_eq!(windows(&found.exits), [(1_000, Some(1_500))]);
    assert_eq!(found.exits[0].span.parts, super::host::parts([200, 0, 0, 0, 300]));
}
