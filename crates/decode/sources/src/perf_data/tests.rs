//! Synthetic perf.data files, read as recordings.

#![expect(clippy::indexing_slicing, reason = "a test that is wrong may panic")]

use std::path::Path;

use ftrace::ringbuf::Missed;
use raw_bytes::{Abi, ByteOrder, LongSize};
use testkit::{KernelFormats, Machine, PerfBytes, PerfDataBuilder, PerfEvent};

use crate::{BlockReader, Recording, open_bytes};

const ORDERS: [ByteOrder; 2] = [ByteOrder::Little, ByteOrder::Big];
/// IP, TID, TIME, CPU, PERIOD, RAW, IDENTIFIER; and without RAW.
const TRACEPOINT: u64 = CLOCK | 1 << 10;
const CLOCK: u64 = 1 | 2 | 4 | 1 << 7 | 1 << 8 | 1 << 16;

/// A perf.data under construction: ids 10 and 11 belong to `kvm_exit` on CPUs 0 and 1, 20 to a
/// clock.
struct Made {
    order: ByteOrder,
    formats: KernelFormats,
    file: PerfDataBuilder,
}

impl Made {
    fn new(order: ByteOrder) -> Self {
        Self::asking(order, 0)
    }

    /// A file whose events have this read format.
    fn asking(order: ByteOrder, read_format: u64) -> Self {
        let formats = KernelFormats::new(Machine::X86, Abi { order, long: LongSize::Eight });
        let mut file = PerfDataBuilder::new(order);
        let event = |kind, config, sample_type, ids: &[u64], name: &str| PerfEvent {
            kind,
            config,
            sample_type,
            read_format,
            flags: vec![18],
            ids: ids.to_vec(),
            name: name.to_owned(),
            ..PerfEvent::default()
        };
        let id = u64::from(formats.get("kvm_exit").id);
        file.event(event(2, id, TRACEPOINT, &[10, 11], "kvm:kvm_exit"));
        file.event(event(1, 0, CLOCK, &[20], "cpu-clock"));
        file.describe_events();
        file.feature(1, formats.tracing_data());
        let mut made = Self { order, formats, file };
        let index = made.bytes().u64s(&[3, 10, 0, 0, u64::MAX, 11, 1, 1, u64::MAX, 20, 2, 0, 0]);
        made.file.record(69, 0, &index.bytes);
        made
    }

    fn bytes(&self) -> PerfBytes {
        PerfBytes::new(self.order)
    }

    /// A record that is not a sample, with its sample id fields.
    fn other(&mut self, kind: u32, body: PerfBytes, (time, cpu, id): (u64, u32, u64)) {
        let end = body.u32s(&[7, 8]).u64s(&[time]).u32s(&[cpu, 0]).u64s(&[id]);
        self.file.record(kind, 0, &end.bytes);
    }

    fn exit(&mut self, cpu: u32, time: u64) {
        let raw = self.formats.event("kvm_exit").pid(8).set("exit_reason", time).build();
        let head = self.bytes().u64s(&[10 + u64::from(cpu), 0x10]).u32s(&[7, 8]).u64s(&[time]);
        let body = head.u32s(&[cpu, 0]).u64s(&[1]).u32s(&[raw.len() as u32]).raw(&raw);
        self.file.record(9, 1, &body.bytes);
    }

    fn clock(&mut self, misc: u16) {
        let head = self.bytes().u64s(&[20, 0x10]).u32s(&[7, 8]).u64s(&[5]);
        self.file.record(9, misc, &head.u32s(&[0, 0]).u64s(&[1]).bytes);
    }
}

fn open(file: Vec<u8>) -> Recording {
    open_bytes(Path::new("perf.data"), file).unwrap()
}

/// Losses before records, and the times of those records.
type Packets = Vec<(Missed, Vec<u64>)>;

/// The packets of each CPU.
fn read(recording: &Recording) -> Vec<(u32, Packets)> {
    let reason = recording.formats().by_name("kvm:kvm_exit").unwrap().field("exit_reason").unwrap();
    let (at, order) = (reason.number().unwrap(), recording.abi().order);
    let stream = |stream| {
        let (mut reader, mut packets) = (BlockReader::default(), Vec::new());
        let block = recording.block(stream, 0, &mut reader).unwrap();
        for (_, packet) in block.packets() {
            let packet = packet.unwrap();
            let mut times = Vec::new();
            packet
                .for_each(|record| {
                    let size = usize::from(at.size);
                    let value = order.uint_at(record.payload, at.offset as usize, size);
                    assert_eq!(value, Some(record.stamp));
                    times.push(record.stamp);
                })
                .unwrap();
            packets.push((packet.missed, times));
        }
        (stream.cpu(), packets)
    };
    recording.streams().iter().map(stream).collect()
}

#[test]
fn events_of_a_cpu_are_in_the_order_of_their_times() {
    for order in ORDERS {
        // Buffers of three threads: each is in order, and the threads alternate between two CPUs.
        let mut made = Made::new(order);
        for (cpu, time) in [(0, 10), (1, 20), (0, 50), (0, 11), (1, 12), (0, 60), (1, 5)] {
            made.exit(cpu, time);
        }
        made.file.record(68, 0, &[]);
        made.clock(1);
        made.clock(5);
        made.clock(5);
        for file in [made.file.file(), made.file.pipe()] {
            let recording = open(file);
            assert_eq!(recording.damage(), []);
            let expected = [
                (0, vec![(Missed::Nothing, vec![10, 11, 50, 60])]),
                (1, vec![(Missed::Nothing, vec![5, 12, 20])]),
            ];
            assert_eq!(read(&recording), expected);
            let samples = &recording.info().samples;
            assert_eq!(samples["cpu-clock"], [1, 0, 0, 2, 0, 0]);
            assert_eq!(samples.len(), 1);
        }
    }
}

#[test]
fn a_round_that_is_over_has_no_more_events() {
    let mut made = Made::new(ByteOrder::Little);
    for (time, ends) in [(100, true), (200, true), (150, false), (90, false)] {
        made.exit(0, time);
        if ends {
            made.file.record(68, 0, &[]);
        }
    }
    // 150 is allowed: the second round began at 100. 90 is too early.
    let recording = open(made.file.file());
    let what: Vec<&str> = recording.damage().iter().map(|bad| bad.what.as_str()).collect();
    assert_eq!(what, ["1 samples come later than the file's flush rounds allow"]);
    assert_eq!(read(&recording), [(0, vec![(Missed::Nothing, vec![90, 100, 150, 200])])]);
}

#[test]
fn losses_are_where_they_happened_and_are_counted_once() {
    for order in ORDERS {
        let mut made = Made::new(order);
        made.exit(1, 10);
        let lost = made.bytes().u64s(&[11, 4]);
        made.other(2, lost, (20, 1, 11));
        made.exit(1, 21);
        // perf's own counts at the end: id 11 on CPU 1 (not the 0 of the record), id 10 on CPU 0.
        let lost = made.bytes().u64s(&[9]);
        made.other(13, lost, (0, 0, 11));
        let lost = made.bytes().u64s(&[2]);
        made.other(13, lost, (0, 0, 10));
        let recording = open(made.file.file());
        assert_eq!(recording.damage(), []);
        let (nothing, events) = (Missed::Nothing, Missed::Events);
        let expected = [
            (0, vec![(events(2), vec![])]),
            (1, vec![(nothing, vec![10]), (events(4), vec![21]), (events(5), vec![])]),
        ];
        assert_eq!(read(&recording), expected);
    }
}

#[test]
fn what_perf_has_asked_for_at_the_end_is_known_to_be_all() {
    let command = |argument: &str| {
        let bytes = PerfBytes::new(ByteOrder::Little).u32s(&[2]).text("perf").text(argument);
        bytes.bytes
    };
    for (asks, argument, known) in
        [(true, "record", true), (false, "record", false), (true, "--switch-output=1s", false)]
    {
        let mut made = Made::asking(ByteOrder::Little, if asks { 1 << 4 } else { 0 });
        made.file.feature(11, command(argument));
        made.exit(1, 10);
        let lost = made.bytes().u64s(&[9]);
        made.other(13, lost, (0, 0, 11));
        let ending = open(made.file.file()).ending().clone();
        assert_eq!((ending.doubt.is_none(), ending.lost()), (known, if known { 9 } else { 0 }));
        // A killed recorder has not read the counts.
        assert!(open(made.file.killed()).ending().doubt.is_some());
    }
}

#[test]
fn a_tracepoint_that_is_held_back_is_a_loss_and_a_clock_is_none() {
    let mut made = Made::new(ByteOrder::Little);
    made.exit(1, 10);
    for (kind, time, id) in [(5, 20, 11), (5, 21, 20), (6, 30, 11), (6, 31, 20)] {
        let body = made.bytes().u64s(&[time, id, id]);
        made.other(kind, body, (time, 1, id));
    }
    made.exit(1, 40);
    let recording = open(made.file.file());
    let packets = &read(&recording)[0].1;
    let expected =
        [(Missed::Nothing, vec![10]), (Missed::Unknown, vec![]), (Missed::Unknown, vec![40])];
    assert_eq!(packets, &expected);
}

#[test]
fn compressed_records_are_read_and_damaged_ones_are_counted() {
    for order in ORDERS {
        let mut made = Made::new(order);
        (1..200).for_each(|time| made.exit(0, time));
        let expected = read(&open(made.file.file()));
        let packed = zstd::bulk::compress(made.file.records(), 3).unwrap();
        let mut file = made.file.clone().without_records();
        for piece in packed.chunks(100) {
            let size = PerfBytes::new(order).u64s(&[piece.len() as u64]);
            file.record(83, 0, &size.raw(piece).bytes);
        }
        let recording = open(file.file());
        assert_eq!((recording.damage(), read(&recording)), (&[][..], expected));
        let mut damaged = file.file();
        // After damage to the frame header of the stream, the rest cannot be read.
        let at = damaged.windows(8).position(|bytes| bytes == &packed[..8]).unwrap();
        damaged[at + 5..at + 100].fill(0xff);
        let recording = open(damaged);
        let lost = |what: &str| what.contains("compressed records (") && what.ends_with("are lost");
        assert!(recording.damage().iter().any(|bad| lost(&bad.what)), "{:?}", recording.damage());
    }
}

#[test]
fn what_has_no_time_or_cpu_is_left_out_and_counted() {
    let mut file = PerfDataBuilder::new(ByteOrder::Little);
    let sample_type = 1 << 10 | 1 << 2;
    file.event(PerfEvent { kind: 2, sample_type, ..PerfEvent::default() });
    file.record(9, 1, &PerfBytes::new(ByteOrder::Little).u64s(&[5]).u32s(&[4, 1]).bytes);
    let recording = open(file.file());
    assert!(recording.streams().is_empty());
    assert!(recording.damage()[0].what.starts_with("1 samples of tracepoints without time or CPU"));
}

#[test]
fn a_folder_that_perf_wrote_is_said_to_be_one() {
    let folder = std::env::temp_dir().join(format!("perf-data-folder-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("data"), Made::new(ByteOrder::Little).file.file()).unwrap();
    let refused = crate::open(&folder);
    std::fs::remove_dir_all(&folder).unwrap();
    let source = std::error::Error::source(&refused.unwrap_err()).map(ToString::to_string);
    assert!(source.is_some_and(|why| why.contains("perf record --threads")));
}
