//! Files made byte by byte: both byte orders, files and pipes, and what is wrong with them.

#![allow(clippy::unwrap_used)]

use perfdata::{CpuMode, EventType, PerfData, PerfDataError, RecordKind};
use proptest::prelude::*;
use raw_bytes::ByteOrder;

/// Identifier, place, thread, time, CPU, period, raw data: what `perf kvm stat record` asks for.
const SAMPLE_TYPE: u64 = 1 << 16 | 1 | 1 << 1 | 1 << 2 | 1 << 7 | 1 << 8 | 1 << 10;
const IDS: [u64; 2] = [71, 72];

/// Bytes in the making, in one byte order.
struct Bytes {
    big: bool,
    out: Vec<u8>,
}

impl Bytes {
    fn new(big: bool) -> Self {
        Self { big, out: Vec::new() }
    }

    fn u16(&mut self, value: u16) -> &mut Self {
        let bytes = if self.big { value.to_be_bytes() } else { value.to_le_bytes() };
        self.out.extend(bytes);
        self
    }

    fn u32(&mut self, value: u32) -> &mut Self {
        let bytes = if self.big { value.to_be_bytes() } else { value.to_le_bytes() };
        self.out.extend(bytes);
        self
    }

    fn u64(&mut self, value: u64) -> &mut Self {
        let bytes = if self.big { value.to_be_bytes() } else { value.to_le_bytes() };
        self.out.extend(bytes);
        self
    }

    /// A record of this kind.
    fn record(&mut self, kind: u32, misc: u16, body: &[u8]) -> &mut Self {
        self.u32(kind).u16(misc).u16(8 + body.len() as u16);
        self.out.extend(body);
        self
    }
}

/// A tracepoint's attribute, 128 bytes as perf 6.1 writes it.
fn attr(big: bool, config: u64) -> Vec<u8> {
    let mut bytes = Bytes::new(big);
    let sample_id_all = if big { 1 << (63 - 18) } else { 1 << 18 };
    bytes.u32(2).u32(128).u64(config).u64(1).u64(SAMPLE_TYPE).u64(4).u64(sample_id_all);
    bytes.out.resize(128, 0);
    bytes.out
}

fn sample(big: bool, id: u64, time: u64, raw: &[u8]) -> Vec<u8> {
    let mut bytes = Bytes::new(big);
    bytes.u64(id).u64(0xffff_8000_0000_1000).u32(10).u32(11).u64(time).u32(3).u32(0).u64(1);
    bytes.u32(raw.len() as u32).out.extend(raw);
    bytes.out
}

/// Two samples, and a loss of five with whose it is behind.
fn data(big: bool) -> Vec<u8> {
    let mut lost = Bytes::new(big);
    lost.u64(71).u64(5).u32(10).u32(11).u64(150).u32(3).u32(0).u64(71);
    let mut data = Bytes::new(big);
    data.record(9, 1, &sample(big, 71, 100, &[1, 2, 3, 4]));
    data.record(2, 0, &lost.out);
    data.record(9, 4, &sample(big, 72, 200, &[5, 6, 7, 8]));
    data.out
}

fn file(big: bool) -> Vec<u8> {
    let data = data(big);
    // Header, ids, attributes, records, one feature: the name of the machine.
    let (ids_at, attrs_at) = (104, 104 + 16);
    let data_at = attrs_at + 2 * 144;
    let mut bytes = Bytes::new(big);
    bytes.out.extend(if big { b"2ELIFREP" } else { b"PERFILE2" });
    bytes.u64(104).u64(144).u64(attrs_at).u64(2 * 144).u64(data_at).u64(data.len() as u64);
    bytes.u64(0).u64(0).u64(1 << 3).u64(0).u64(0).u64(0);
    bytes.u64(IDS[0]).u64(IDS[1]);
    for (at, config) in [310_u64, 311].into_iter().enumerate() {
        bytes.out.extend(attr(big, config));
        bytes.u64(ids_at + 8 * at as u64).u64(8);
    }
    bytes.out.extend(&data);
    let feature_at = bytes.out.len() as u64 + 16;
    bytes.u64(feature_at).u64(4 + 8).u32(8).out.extend(b"machine\0");
    bytes.out
}

fn pipe(big: bool) -> Vec<u8> {
    let mut bytes = Bytes::new(big);
    bytes.out.extend(if big { b"2ELIFREP" } else { b"PERFILE2" });
    bytes.u64(16);
    for (config, id) in [(310, IDS[0]), (311, IDS[1])] {
        let mut body = attr(big, config);
        body.extend(Bytes::new(big).u64(id).out.clone());
        bytes.record(64, 0, &body);
    }
    // Formats stand behind their record, filled up to eight bytes.
    bytes.record(66, 0, &Bytes::new(big).u32(5).out.clone()).out.extend(b"tdata\0\0\0");
    let data = data(big);
    bytes.out.extend(data);
    bytes.out
}

fn check(bytes: &[u8], big: bool, is_pipe: bool) {
    let perf = PerfData::parse(bytes).unwrap();
    assert_eq!(perf.order == ByteOrder::Big, big);
    assert!(perf.is_pipe == is_pipe && !perf.is_cut && !perf.is_unfinished, "{perf:?}");
    let events: Vec<_> = perf.attrs.iter().map(|attr| (attr.kind, attr.config)).collect();
    assert_eq!(events, [(EventType::Tracepoint, 310), (EventType::Tracepoint, 311)]);
    let (mut samples, mut losses) = (Vec::new(), 0);
    for record in perf.records(bytes) {
        if let Some(sample) = perf.sample(&record) {
            assert_eq!((sample.cpu, sample.thread), (Some(3), Some((10, 11))));
            let attr = perf.attr_of(&record).unwrap();
            samples.push((attr.config, sample.time_ns, sample.mode, sample.raw.unwrap().to_vec()));
        }
        if record.kind == RecordKind::Lost {
            let of = perf.sample_id(&record).unwrap();
            assert_eq!((of.cpu, of.time_ns, of.id), (Some(3), Some(150), Some(71)));
            losses += 1;
        }
    }
    let expected = [
        (310, Some(100), CpuMode::HostKernel, vec![1, 2, 3, 4]),
        (311, Some(200), CpuMode::GuestKernel, vec![5, 6, 7, 8]),
    ];
    assert_eq!((&samples[..], losses), (&expected[..], 1));
}

#[test]
fn files_and_pipes_of_both_byte_orders_are_read() {
    for big in [false, true] {
        check(&file(big), big, false);
        check(&pipe(big), big, true);
        let bytes = file(big);
        let perf = PerfData::parse(&bytes).unwrap();
        assert_eq!(perf.features.hostname.as_deref(), Some("machine"));
        let bytes = pipe(big);
        let range = PerfData::parse(&bytes).unwrap().features.tracing_data.unwrap();
        assert_eq!(&bytes[range.start as usize..range.end as usize], b"tdata");
    }
}

#[test]
fn a_recorder_that_was_killed_has_left_all_records() {
    let mut bytes = file(false);
    bytes[48..56].fill(0);
    let perf = PerfData::parse(&bytes).unwrap();
    assert!(perf.is_unfinished);
    assert_eq!(perf.records(&bytes).filter(|record| perf.sample(record).is_some()).count(), 2);
}

#[test]
fn what_is_no_perf_data_is_refused() {
    assert_eq!(PerfData::parse(b"PERFILE1").unwrap_err(), PerfDataError::NotPerfData);
    let mut bytes = file(false);
    bytes[8] = 105;
    assert_eq!(PerfData::parse(&bytes).unwrap_err(), PerfDataError::Header { size: 105 });
    assert!(matches!(PerfData::parse(&bytes[..12]), Err(PerfDataError::Short(_))));
}

/// Reads all there is; the first samples of a file that is cut are those of the whole one.
fn read(bytes: &[u8]) -> usize {
    let Ok(perf) = PerfData::parse(bytes) else { return 0 };
    let mut records = perf.records(bytes);
    let samples = records.by_ref().filter(|record| {
        let _ = (perf.attr_of(record), perf.sample_id(record));
        perf.sample(record).is_some()
    });
    let found = samples.count();
    assert!(records.offset() <= bytes.len() as u64);
    found
}

#[test]
fn a_file_cut_anywhere_is_read_up_to_there() {
    for bytes in [file(false), file(true), pipe(false), pipe(true)] {
        let mut last = 0;
        for len in 0..=bytes.len() {
            let found = read(&bytes[..len]);
            assert!(found >= last && found <= 2, "{len}");
            last = found;
        }
        assert_eq!(last, 2);
    }
}

proptest! {
    /// No number of a file may be believed: whatever is written anywhere, reading ends.
    #[test]
    fn damage_anywhere_is_survived(
        at in 0_usize..2_000,
        value in prop_oneof![Just(0_u64), Just(u64::MAX), Just(1 << 63), Just(7), any::<u64>()],
        big: bool,
        is_pipe: bool,
    ) {
        let mut bytes = if is_pipe { pipe(big) } else { file(big) };
        let at = at % bytes.len();
        let end = (at + 8).min(bytes.len());
        bytes[at..end].copy_from_slice(&value.to_le_bytes()[..end - at]);
        read(&bytes);
    }
}
