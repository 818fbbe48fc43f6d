//! Truncated or corrupted files: no panic, no invented data, and intact records are read.

use perfdata::PerfData;
use std::io::Read;
use testkit::{PerfBytes, Random};

use crate::support::{ORDERS, bodies, builder};

/// Reads a whole file; returns its number of records.
fn read(file: &[u8]) -> usize {
    let Ok(perf) = PerfData::parse(file) else { return 0 };
    let (all, _) = bodies(&perf, perf.records(file));
    for record in perf.records(file).flatten() {
        let _ = perf.events.sample_id(&record);
        assert!(record.offset as usize + record.bytes.len() <= file.len());
    }
    let mut unpacked = Vec::new();
    perf.unpacked(file).unwrap().take(1 << 20).read_to_end(&mut unpacked).unwrap();
    all.len()
}

#[test]
fn a_file_that_is_cut_at_any_byte_has_what_comes_before() {
    for order in ORDERS {
        let built = builder(order);
        for file in [built.file(), built.pipe()] {
            let total = read(&file);
            let mut last = 0;
            for len in 0..file.len() {
                let found = read(&file[..len]);
                assert!(found <= total, "{found} records of {len} bytes");
                last = last.max(found);
            }
            assert!(last >= total - 1, "{last} of {total}");
        }
    }
}

#[test]
fn any_byte_may_be_anything() {
    let mut random = Random(7);
    for order in ORDERS {
        let built = builder(order);
        for file in [built.file(), built.pipe(), built.killed()] {
            for at in 0..file.len() {
                for value in [0, 0xff, random.below(256) as u8] {
                    let mut bad = file.clone();
                    bad[at] = value;
                    read(&bad);
                }
            }
        }
    }
}

#[test]
fn a_record_without_a_size_ends_the_records() {
    for order in ORDERS {
        let mut built = builder(order);
        built.bytes(&[0; 32]);
        let file = built.file();
        let perf = PerfData::parse(&file).unwrap();
        let (all, damage) = bodies(&perf, perf.records(&file));
        assert_eq!(all.len(), 9);
        assert!(damage.unwrap().contains("32 bytes from here on are nothing but zeros"));
    }
}

#[test]
fn any_number_of_the_file_may_be_huge_or_nothing() {
    for order in ORDERS {
        let built = builder(order);
        for file in [built.file(), built.pipe()] {
            for at in 16..file.len() - 8 {
                for value in [0, 1, 7, 1 << 31, 1 << 63, u64::MAX - 7, u64::MAX] {
                    let mut bad = file.clone();
                    let bytes = PerfBytes::new(order).u64s(&[value]).bytes;
                    bad[at..at + 8].copy_from_slice(&bytes);
                    read(&bad);
                }
            }
        }
    }
}
