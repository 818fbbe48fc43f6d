//! Compressed records decompress correctly, however they are split.

use std::io::Read;

use perfdata::{PerfData, Records};
use raw_bytes::ByteOrder;
use testkit::{PerfBytes, PerfDataBuilder};
use zstd::stream::raw::{Encoder, InBuffer, Operation, OutBuffer};

use crate::support::{ORDERS, bodies, builder};

/// Splits records into pieces of `step` bytes, and compresses all pieces as one stream.
fn pieces(records: &[u8], step: usize) -> Vec<Vec<u8>> {
    let mut encoder = Encoder::new(1).unwrap();
    let packed = |piece: &[u8]| {
        let mut out = vec![0; 4096];
        let mut room = OutBuffer::around(&mut out);
        let mut input = InBuffer::around(piece);
        encoder.run(&mut input, &mut room).unwrap();
        assert_eq!(encoder.flush(&mut room).unwrap(), 0);
        room.as_slice().to_vec()
    };
    records.chunks(step).map(packed).collect()
}

/// The file with its records compressed in records of type `kind`, each followed by the end of a
/// round.
fn packed(order: ByteOrder, kind: u32, step: usize) -> (PerfDataBuilder, Vec<u8>) {
    let built = builder(order);
    let mut file = builder_without_records(order);
    for piece in pieces(built.records(), step) {
        if kind == 83 {
            let size = PerfBytes::new(order).u64s(&[piece.len() as u64]);
            file.record(83, 0, &size.raw(&piece).bytes);
        } else {
            let head = PerfBytes::new(order).u32s(&[81]).u16s(&[0, 8 + piece.len() as u16]);
            file.bytes(&head.raw(&piece).bytes);
        }
        file.record(68, 0, &[]);
    }
    file.feature(27, vec![0; 20]);
    let plain_records = built.records().to_vec();
    (file, plain_records)
}

fn builder_without_records(order: ByteOrder) -> PerfDataBuilder {
    builder(order).without_records()
}

fn unpack(file: &[u8]) -> (PerfData, Vec<u8>, Vec<String>) {
    let perf = PerfData::parse(file).unwrap();
    let mut unpacked = perf.unpacked(file).unwrap();
    let mut bytes = Vec::new();
    unpacked.read_to_end(&mut bytes).unwrap();
    let (places, damage) = unpacked.finish();
    assert!(places.is_sorted_by_key(|place| (place.unpacked, place.offset)));
    (perf, bytes, damage.into_iter().map(|bad| bad.what).collect())
}

/// Removes the records that end rounds.
fn without_rounds(bytes: &[u8], order: ByteOrder) -> Vec<u8> {
    let records = Records::new(bytes, order, 0).map(Result::unwrap);
    records.filter(|record| record.kind != 68).flat_map(|record| record.bytes.to_vec()).collect()
}

#[test]
fn records_that_begin_in_one_piece_and_end_in_another_are_whole() {
    for order in ORDERS {
        for kind in [81, 83] {
            for step in [1, 7, 50, 100_000] {
                let (file, plain_records) = packed(order, kind, step);
                for file in [file.file(), file.pipe()] {
                    let (perf, bytes, damage) = unpack(&file);
                    assert!(perf.features.compressed && damage.is_empty(), "{damage:?}");
                    let found = without_rounds(&bytes, order);
                    let found =
                        found.get(found.len() - without_rounds(&plain_records, order).len()..);
                    assert_eq!(found.unwrap(), without_rounds(&plain_records, order));
                    let (all, _) = bodies(&perf, Records::new(&bytes, order, 0));
                    assert!(all.len() >= 9);
                }
            }
        }
    }
}

#[test]
fn a_damaged_piece_loses_the_rest_and_says_how_much() {
    let order = ByteOrder::Little;
    let mut file = builder_without_records(order);
    let pieces = pieces(builder(order).records(), 200);
    for (at, piece) in pieces.iter().enumerate() {
        let bytes = if at == 1 { vec![0xff; piece.len()] } else { piece.clone() };
        file.record(83, 0, &PerfBytes::new(order).u64s(&[bytes.len() as u64]).raw(&bytes).bytes);
    }
    let (perf, bytes, damage) = unpack(&file.file());
    let (all, _) = bodies(&perf, Records::new(&bytes, order, 0));
    assert!(!all.is_empty() && all.len() < 9, "{}", all.len());
    let lost = format!("{} compressed records", pieces.len() - 1);
    assert!(damage.iter().any(|what| what.starts_with(&lost)), "{damage:?}");
}

#[test]
fn what_grows_without_end_is_read_as_far_as_one_wants() {
    // 64 MiB of records of 65,528 bytes each, in a few KiB.
    let mut record = vec![0; 65_528];
    record[0] = 68;
    record[6..8].copy_from_slice(&65_528_u16.to_le_bytes());
    let bomb = zstd::bulk::compress(&record.repeat(1000), 19).unwrap();
    let mut file = builder_without_records(ByteOrder::Little);
    for piece in bomb.chunks(60_000) {
        let size = PerfBytes::new(ByteOrder::Little).u64s(&[piece.len() as u64]);
        file.record(83, 0, &size.raw(piece).bytes);
    }
    let file = file.file();
    let perf = PerfData::parse(&file).unwrap();
    let mut some = Vec::new();
    perf.unpacked(&file).unwrap().take(1 << 20).read_to_end(&mut some).unwrap();
    assert_eq!(some.len(), 1 << 20);
}
