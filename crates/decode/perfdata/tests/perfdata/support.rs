//! Files that several tests read.

use perfdata::{Body, PerfData, Records};
use raw_bytes::ByteOrder;
use testkit::{PerfBytes, PerfDataBuilder, PerfEvent};

pub(crate) const ORDERS: [ByteOrder; 2] = [ByteOrder::Little, ByteOrder::Big];

/// IP, TID, TIME, CPU, PERIOD, RAW, IDENTIFIER.
pub(crate) const TRACEPOINT_SAMPLES: u64 = 1 | 2 | 4 | 1 << 7 | 1 << 8 | 1 << 10 | 1 << 16;
/// IP, TID, TIME, CALLCHAIN, CPU, PERIOD, IDENTIFIER.
pub(crate) const CLOCK_SAMPLES: u64 = 1 | 2 | 4 | 1 << 5 | 1 << 7 | 1 << 8 | 1 << 16;
/// `sample_id_all`, `exclude_guest`.
const FLAGS: [u32; 2] = [18, 20];

/// A tracepoint and a clock, with a record of every kind that is read.
pub(crate) fn builder(order: ByteOrder) -> PerfDataBuilder {
    let mut file = PerfDataBuilder::new(order);
    file.event(PerfEvent {
        kind: 2,
        config: 61,
        sample_type: TRACEPOINT_SAMPLES,
        flags: FLAGS.to_vec(),
        ids: vec![105, 106],
        name: "kvm:kvm_exit".into(),
        ..PerfEvent::default()
    });
    file.event(PerfEvent {
        kind: 1,
        config: 0,
        sample_type: CLOCK_SAMPLES,
        flags: vec![18],
        ids: vec![107, 108],
        name: "cpu-clock".into(),
        ..PerfEvent::default()
    });
    let bytes = || PerfBytes::new(order);
    // Thread 7 is named; what ends a record: pid, tid, time, cpu, id.
    let end = |bytes: PerfBytes, time, cpu, id| {
        bytes.u32s(&[7, 8]).u64s(&[time]).u32s(&[cpu, 0]).u64s(&[id]).bytes
    };
    file.record(3, 1 << 13, &end(bytes().u32s(&[7, 8]).name("qemu"), 900, 1, 105));
    file.record(10, 2, &end(mapping(order), 905, 1, 105));
    let head = bytes().u64s(&[105, 0xffff_0010]).u32s(&[7, 8]).u64s(&[1000]).u32s(&[1, 0]);
    let raw = head.u64s(&[1]).u32s(&[12]).raw(b"a tracepoint").bytes;
    file.record(9, 1, &raw);
    let head = bytes().u64s(&[108, 0x4010]).u32s(&[7, 8]).u64s(&[1010]).u32s(&[0, 0]);
    let chain = head.u64s(&[4, 3, (-2176_i64).cast_unsigned(), 0x4010, 0x4020]).bytes;
    file.record(9, 0x4005, &chain);
    file.record(2, 0, &end(bytes().u64s(&[106, 33]), 1020, 1, 106));
    file.record(13, 0, &end(bytes().u64s(&[5]), 0, 0, 107));
    file.record(5, 0, &end(bytes().u64s(&[1025, 107, 108]), 1025, 0, 107));
    file.record(7, 0, &end(bytes().u32s(&[7, 7, 9, 8]).u64s(&[1030]), 1030, 1, 105));
    file.record(68, 0, &[]);
    file.describe_events();
    file.feature(3, bytes().text("l1").bytes);
    file.feature(4, bytes().text("6.1.0").bytes);
    file.feature(6, bytes().text("aarch64").bytes);
    file.feature(7, bytes().u32s(&[4, 2]).bytes);
    file.feature(1, b"formats!".to_vec());
    file
}

fn mapping(order: ByteOrder) -> PerfBytes {
    let bytes = PerfBytes::new(order).u32s(&[7, 8]).u64s(&[0x4000, 0x1000, 0x200]);
    bytes.u32s(&[8, 1]).u64s(&[99, 0]).u32s(&[5, 2]).name("/usr/bin/qemu")
}

/// All that the records of a file say, and how their walk ended.
pub(crate) fn bodies<'f>(perf: &PerfData, records: Records<'f>) -> (Vec<Body<'f>>, Option<String>) {
    let (mut bodies, mut damage) = (Vec::new(), None);
    for record in records {
        match record {
            Ok(record) => bodies.extend(perf.events.body(&record)),
            Err(bad) => damage = Some(bad.what),
        }
    }
    (bodies, damage)
}
