//! A perf.data file: any bytes after a valid magic, or any records in a valid file; both forms and
//! byte orders.

use std::io::Read;

use perfdata::{Body, Event, PerfData, Record, Records};
use raw_bytes::{Abi, ByteOrder, LongSize};
use testkit::{KernelFormats, Machine, PerfBytes, PerfDataBuilder, PerfEvent};

use crate::recording;

/// Bits of the first byte: byte order, form, and whether everything but the records is valid.
const BIG: u8 = 1;
const PIPE: u8 = 2;
const SOUND: u8 = 4;
/// Maximum unpacked bytes to read.
const MAX_UNPACKED: u64 = 1 << 20;

/// Reads `bytes` as a perf.data file; the first byte selects form and byte order.
pub fn run(bytes: &[u8]) {
    let Some((&form, rest)) = bytes.split_first() else { return };
    let order = if form & BIG == 0 { ByteOrder::Little } else { ByteOrder::Big };
    let file =
        if form & SOUND == 0 { after_magic(order, form, rest) } else { sound(order, form, rest) };
    container(&file);
    recording::run(&file);
}

fn after_magic(order: ByteOrder, form: u8, rest: &[u8]) -> Vec<u8> {
    let magic: &[u8; 8] = if order == ByteOrder::Little { b"PERFILE2" } else { b"2ELIFREP" };
    let size = if form & PIPE == 0 { 104 } else { 16 };
    PerfBytes::new(order).raw(magic).u64s(&[size]).raw(rest).bytes
}

/// A valid file except for its records, which are `rest`. The first eight bytes decide the sample
/// fields and the read format of one of its events.
fn sound(order: ByteOrder, form: u8, rest: &[u8]) -> Vec<u8> {
    let (head, records) = rest.split_at(rest.len().min(8));
    let mut word = [0; 8];
    word[..head.len()].copy_from_slice(head);
    let word = order.u64(word);
    let mut file = made(order, word & 0x1ff_ffff, word >> 32);
    file.bytes(records);
    if form & PIPE == 0 { file.file() } else { file.pipe() }
}

/// Reads all parts of a file without interpreting the events.
fn container(file: &[u8]) {
    let Ok(perf) = PerfData::parse(file) else { return };
    let ids: usize = perf.events.list().iter().map(|event| event.ids.len()).sum();
    assert!(ids <= file.len() / 8 + 1, "{ids} ids in {} bytes", file.len());
    all(&perf, perf.records(file));
    let Ok(unpacked) = perf.unpacked(file) else { return };
    let mut bytes = Vec::new();
    let mut unpacked = unpacked.take(MAX_UNPACKED);
    assert!(unpacked.read_to_end(&mut bytes).is_ok(), "unpacking has no errors of its own");
    let is_whole = unpacked.limit() > 0;
    let (places, _) = unpacked.into_inner().finish();
    assert!(places.is_sorted_by_key(|place| (place.unpacked, place.offset)));
    let ended = all(&perf, Records::new(&bytes, perf.order, 0));
    assert!(ended || !is_whole, "what was unpacked is no whole records");
}

/// Reads records; returns whether all records up to the end were readable.
fn all(perf: &PerfData, records: Records<'_>) -> bool {
    let mut end = None;
    for record in records {
        let Ok(record) = record else { return false };
        assert!(end.is_none_or(|end| end == record.offset), "records follow each other");
        let len = record.bytes.len() + record.payload.len();
        end = Some(record.offset + len as u64);
        check_record(perf, &record);
    }
    true
}

fn check_record(perf: &PerfData, record: &Record<'_>) {
    let _ = perf.events.sample_id(record);
    let event: Option<&Event> =
        perf.events.index_of(record).and_then(|at| perf.events.list().get(at));
    let Ok(Body::Sample(sample)) = perf.events.body(record) else { return };
    assert!(event.is_some(), "a sample of no event");
    let words = sample.callchain.map_or(0, |chain| chain.iter().count())
        + sample.branches.map_or(0, |branches| branches.iter().count() * 3)
        + sample.read.map_or(0, |read| read.counts().count())
        + sample.regs_user.map_or(0, |registers| registers.values.len());
    let bytes = sample.raw.map_or(0, <[u8]>::len) + sample.stack_user.map_or(0, <[u8]>::len);
    assert!(words * 8 + bytes <= record.bytes.len(), "a sample holds more than its record");
}

/// A file with `kvm_exit`, `kvm_entry` and a clock event with the given `sample_type`, and without
/// records.
fn made(order: ByteOrder, sample_type: u64, read_format: u64) -> PerfDataBuilder {
    let formats = KernelFormats::new(Machine::X86, Abi { order, long: LongSize::Eight });
    let mut file = PerfDataBuilder::new(order);
    for (at, name) in [(0_u64, "kvm_exit"), (1, "kvm_entry")] {
        file.event(PerfEvent {
            kind: 2,
            config: formats.get(name).id.into(),
            sample_type: TRACEPOINT,
            flags: vec![18],
            ids: vec![10 + 2 * at, 11 + 2 * at],
            name: format!("kvm:{name}"),
            ..PerfEvent::default()
        });
    }
    file.event(PerfEvent {
        kind: 1,
        // The id is the first field of all samples, so that a reader can tell samples of the events
        // apart.
        sample_type: sample_type | 1 << 16,
        read_format,
        regs: [0b101, 0b11],
        flags: vec![18],
        ids: vec![20, 21],
        name: "cpu-clock".to_owned(),
        ..PerfEvent::default()
    });
    file.describe_events();
    file.feature(1, formats.tracing_data());
    file
}

/// IP, TID, TIME, CPU, PERIOD, RAW, IDENTIFIER.
const TRACEPOINT: u64 = 1 | 2 | 4 | 1 << 7 | 1 << 8 | 1 << 10 | 1 << 16;

/// Seed files, and records of valid files.
#[must_use]
pub fn files() -> Vec<(String, Vec<u8>)> {
    let mut all = Vec::new();
    for (order, bit, name) in [(ByteOrder::Little, 0, "little"), (ByteOrder::Big, BIG, "big")] {
        let mut file = made(order, CLOCK, 0);
        records(order, &mut file);
        let with = |form: u8, bytes: &[u8]| [&[form | bit], bytes].concat();
        let head = PerfBytes::new(order).u64s(&[CLOCK]).raw(file.records()).bytes;
        all.push((format!("made-{name}-file"), with(0, &file.file()[16..])));
        all.push((format!("made-{name}-pipe"), with(PIPE, &file.pipe()[16..])));
        all.push((format!("made-{name}-records"), with(SOUND, &head)));
    }
    all
}

/// IP, TID, TIME, CALLCHAIN, CPU.
const CLOCK: u64 = 1 | 2 | 4 | 1 << 5 | 1 << 7;

/// A record of each supported type.
fn records(order: ByteOrder, file: &mut PerfDataBuilder) {
    let formats = KernelFormats::new(Machine::X86, Abi { order, long: LongSize::Eight });
    let bytes = || PerfBytes::new(order);
    let end = |bytes: PerfBytes, time, id| {
        bytes.u32s(&[7, 8]).u64s(&[time]).u32s(&[1, 0]).u64s(&[id]).bytes
    };
    file.record(69, 0, &bytes().u64s(&[2, 10, 0, 0, u64::MAX, 11, 1, 1, u64::MAX]).bytes);
    file.record(3, 0, &end(bytes().u32s(&[7, 8]).name("CPU 0/KVM"), 0, 10));
    for time in 1..20_u64 {
        let (name, id) = if time % 2 == 0 { ("kvm_exit", 11) } else { ("kvm_entry", 13) };
        let raw = formats.event(name).pid(8).build();
        let head = bytes().u64s(&[id, 0x10]).u32s(&[7, 8]).u64s(&[time * 1000]).u32s(&[1, 0]);
        let raw = head.u64s(&[1]).u32s(&[raw.len() as u32]).raw(&raw);
        file.record(9, 1, &raw.bytes);
        let head = bytes().u64s(&[20, 0x20]).u32s(&[7, 8]).u64s(&[time * 1000 + 1]).u32s(&[1, 0]);
        file.record(9, 4, &head.u64s(&[2, (-2176_i64).cast_unsigned(), 0x30]).bytes);
    }
    file.record(2, 0, &end(bytes().u64s(&[11, 33]), 21_000, 11));
    file.record(5, 0, &end(bytes().u64s(&[22_000, 11, 11]), 22_000, 11));
    file.record(13, 0, &end(bytes().u64s(&[40]), 0, 11));
    file.record(68, 0, &[]);
}
