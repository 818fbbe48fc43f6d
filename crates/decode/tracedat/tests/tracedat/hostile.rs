//! Damaged and hostile files: no panic, no hang, and intact data remains available.

use crate::support::{fixture, header, read_all, small, write};
use flate2::write::ZlibEncoder;
use raw_bytes::ByteOrder;
use std::io::Write;
use std::time::{Duration, Instant};
use tracedat::{Chunk, ChunkReader, Compression, TraceDat, TraceDatError, Version, id};

/// Reading a small file takes well under a millisecond; this leaves room for a debug build on a
/// busy machine.
const LIMIT: Duration = Duration::from_secs(5);

/// Parses and reads everything; fails if that takes too long. Returns the number of page bytes.
fn survive(file: &[u8], what: &str) -> Option<u64> {
    let start = Instant::now();
    let recording = TraceDat::parse(file).ok();
    let sum = recording.map(|recording| read_all(file, &recording));
    assert!(start.elapsed() < LIMIT, "{what} takes {:?}", start.elapsed());
    sum
}

/// Pseudorandom numbers, the same in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit as u64) as usize
    }
}

fn samples() -> Vec<(String, Vec<u8>)> {
    let kinds = [
        (Version::V6, Compression::None),
        (Version::V7, Compression::None),
        (Version::V7, Compression::Zlib),
        (Version::V7, Compression::Zstd),
    ];
    let write = |(version, compression): (Version, Compression)| {
        let name = format!("{version:?} {compression:?}");
        (name, write(&small(header(version, ByteOrder::Little, compression))))
    };
    kinds.into_iter().map(write).collect()
}

#[test]
fn cuts_are_survived() {
    for (name, file) in samples() {
        let metadata = file.len().min(20_000);
        for len in (0..metadata).step_by(7).chain((metadata..file.len()).step_by(997)) {
            survive(&file[..len], &format!("{name} cut to {len}"));
        }
    }
}

#[test]
fn flips_are_survived() {
    let mut random = Random(0x5EED);
    for (name, mut file) in samples() {
        for round in 0..3000 {
            let flips: Vec<_> = (0..=random.below(4))
                .map(|_| (random.below(file.len()), 1 << random.below(8)))
                .collect();
            flips.iter().for_each(|&(at, bit)| file[at] ^= bit);
            survive(&file, &format!("{name} flip {round} {flips:?}"));
            flips.iter().for_each(|&(at, bit)| file[at] ^= bit);
        }
    }
}

/// Numbers that sizes, counts and offsets must not be believed to be.
#[test]
fn absurd_numbers_are_survived() {
    let values = [0, 1, 0x7FFF_FFFF, 0x8000_0000, u32::MAX - 8, u32::MAX].map(u32::to_le_bytes);
    let mut random = Random(0xBAD);
    for (name, mut file) in samples() {
        let end = file.len() - 8;
        let edges = (0..64).chain(end - 400..end);
        let places: Vec<usize> = edges.chain((0..800).map(|_| random.below(end))).collect();
        for at in places {
            let before: [u8; 8] = file[at..at + 8].try_into().unwrap();
            for value in values {
                file[at..at + 4].copy_from_slice(&value);
                survive(&file, &format!("{name} {value:?} at {at}"));
                file[at + 4..at + 8].copy_from_slice(&value);
                survive(&file, &format!("{name} 8 bytes {value:?} at {at}"));
                file[at..at + 8].copy_from_slice(&before);
            }
        }
    }
}

#[test]
fn a_real_recording_survives_flips_of_its_options() {
    let mut file = fixture("x86-vmx/smp.dat");
    let parsed = TraceDat::parse(&file).unwrap();
    let options = parsed.options.iter();
    let places: Vec<usize> = options
        .flat_map(|option| option.offset as usize - 6..option.offset as usize + option.data.len())
        .chain(0..64)
        .collect();
    for at in places {
        for bit in [0, 6, 7] {
            file[at] ^= 1 << bit;
            let start = Instant::now();
            let _ = TraceDat::parse(&file);
            assert!(start.elapsed() < LIMIT, "flip of bit {bit} at {at}");
            file[at] ^= 1 << bit;
        }
    }
}

#[test]
fn other_files_are_refused_with_a_reason() {
    assert_eq!(TraceDat::parse(b"").unwrap_err(), TraceDatError::NotTraceDat);
    assert_eq!(TraceDat::parse(b"PERFILE2........").unwrap_err(), TraceDatError::NotTraceDat);
    let version = TraceDat::parse(b"\x17\x08\x44tracing8\0\0\x08").unwrap_err();
    assert_eq!(version, TraceDatError::Version { offset: 10, version: "8".into() });
    let order = TraceDat::parse(b"\x17\x08\x44tracing7\0\x02\x08").unwrap_err();
    assert_eq!(order, TraceDatError::ByteOrder { offset: 12, mark: 2 });
    let short = TraceDat::parse(b"\x17\x08\x44tracing7\0\0\x08\0").unwrap_err();
    assert!(short.to_string().contains("cut short"), "{short}");
}

fn v7() -> Vec<u8> {
    write(&small(header(Version::V7, ByteOrder::Little, Compression::None)))
}

fn damage(file: &[u8]) -> String {
    let damage = TraceDat::parse(file).unwrap().damage;
    damage.iter().map(|damage| format!("{damage}\n")).collect()
}

/// Offset of the data of the last option with this id.
fn place(file: &[u8], id: u16) -> usize {
    let recording = TraceDat::parse(file).unwrap();
    recording.options.iter().rfind(|option| option.id == id).unwrap().offset as usize
}

fn put(file: &mut [u8], at: usize, value: u64) {
    file[at..at + 8].copy_from_slice(&value.to_le_bytes());
}

#[test]
fn option_lists_in_a_circle_end() {
    let mut file = v7();
    let first = u64::from_le_bytes(file[24..32].try_into().unwrap());
    // The second list follows the last option before it by its section header.
    let unknown = TraceDat::parse(&file).unwrap().options;
    let last = unknown.iter().find(|option| option.id == 4711).unwrap();
    let done = last.offset as usize + last.data.len() + 6;
    put(&mut file, done, first);
    assert!(damage(&file).contains("circular"));
    assert!(TraceDat::parse(&file).unwrap().buffers.is_empty());
}

#[test]
fn cpus_past_the_end_and_over_each_other_are_clipped() {
    let mut file = v7();
    let end = file.len() as u64;
    // The top buffer's option: 8 bytes offset, "\0", "global\0", page size, count, then CPUs.
    let options = TraceDat::parse(&file).unwrap().options;
    let top = options.iter().find(|option| option.id == id::BUFFER).unwrap();
    let cpu = top.offset as usize + 8 + 1 + 7 + 4 + 4;
    put(&mut file, cpu + 4 + 8, u64::MAX - 8);
    put(&mut file, cpu + 20 + 4 + 8, 1 << 40);
    let text = damage(&file);
    assert!(text.contains("past the end") && text.contains("another CPU too"), "{text}");
    let recording = TraceDat::parse(&file).unwrap();
    let sum: u64 = recording.buffers.iter().flat_map(|b| &b.cpus).map(|cpu| cpu.data.len).sum();
    assert!(sum < end);
    assert_eq!(recording.formats.events.len(), 3, "the rest is there");
}

#[test]
fn damage_in_one_section_leaves_the_others() {
    let mut file = v7();
    let at = place(&file, id::EVENT_FORMATS);
    put(&mut file, at, u64::MAX);
    let recording = TraceDat::parse(&file).unwrap();
    assert_eq!((recording.formats.events.len(), recording.formats.ftrace.len()), (0, 2));
    assert_eq!((recording.damage.len(), recording.buffers.len()), (1, 2));
}

#[test]
fn a_bomb_in_a_chunk_is_not_unpacked() {
    let file = write(&small(header(Version::V7, ByteOrder::Little, Compression::Zstd)));
    let recording = TraceDat::parse(&file).unwrap();
    let cpu = &recording.buffers[0].cpus[0];
    let mut bomb = file.clone();
    let size = cpu.data.offset as usize + 8;
    bomb[size..size + 4].copy_from_slice(&u32::MAX.to_le_bytes());
    let chunks = cpu.chunks(&bomb);
    assert!(chunks.damage[0].what.contains("implausible"));
    assert_eq!(chunks.size(), 0);
    let read = tracedat::ChunkReader::new().read(&bomb, &chunks.list[0]).unwrap_err();
    assert!(read.what.contains("implausible"), "what it held is known to be missing: {read}");
    bomb[size..size + 4].copy_from_slice(&(8_u32 << 20).to_le_bytes());
    let chunks = cpu.chunks(&bomb);
    let read = tracedat::ChunkReader::new().read(&bomb, &chunks.list[0]).unwrap_err();
    assert!(read.what.contains("unpacked 4096 bytes instead of the declared 8388608"), "{read}");
}

/// Lists nested in each other: each has one option that holds all lists after it.
#[test]
fn nested_option_lists_do_not_fill_memory() {
    let mut file = b"\x17\x08\x44tracing7\0\0\x08\0\x10\0\0none\0\0".to_vec();
    let (lists, start) = (20_000_u32, file.len() as u32 + 8);
    file.extend(u64::from(start).to_le_bytes());
    for list in 0..lists {
        let data = (lists - 1 - list) * 22 + (lists - 1 - list) * 14;
        file.extend([0; 16]);
        file.extend(4711_u16.to_le_bytes());
        file.extend(data.to_le_bytes());
    }
    for list in (0..lists).rev() {
        file.extend(id::DONE.to_le_bytes());
        file.extend(8_u32.to_le_bytes());
        file.extend(u64::from(start + (list + 1) * 22).to_le_bytes());
    }
    survive(&file, "nested lists");
    assert!(damage(&file).contains("implausibly much data"));
    let stored_bytes: usize =
        TraceDat::parse(&file).unwrap().options.iter().map(|o| o.data.len()).sum();
    assert!(stored_bytes < 8 * file.len());
}

#[test]
fn a_long_chain_of_lists_ends_with_the_file() {
    let mut file = b"\x17\x08\x44tracing7\0\0\x08\0\x10\0\0none\0\0".to_vec();
    let first = file.len() as u64 + 8;
    file.extend(first.to_le_bytes());
    for list in 1..=100_000 {
        file.extend([0; 16]);
        file.extend(id::DONE.to_le_bytes());
        file.extend(8_u32.to_le_bytes());
        file.extend((first + list * 30).to_le_bytes());
    }
    survive(&file, "a long chain");
    assert!(damage(&file).contains("section header: 2 bytes needed, 0 left"));
}

/// Bytes packed as one chunk that declares `size`.
fn packed(bytes: &[u8], compression: Compression, size: usize) -> (Vec<u8>, Chunk) {
    let file = match compression {
        Compression::Zlib => {
            let mut encoder = ZlibEncoder::new(Vec::new(), flate2::Compression::default());
            encoder.write_all(bytes).unwrap();
            encoder.finish().unwrap()
        }
        _ => zstd::bulk::compress(bytes, 1).unwrap(),
    };
    let (stored, size) = (u32::try_from(file.len()).unwrap(), u32::try_from(size).unwrap());
    (file, Chunk { offset: 0, stored, size, compression })
}

/// Readers are handed from thread to thread: what one has read before must not decide what it
/// makes of a chunk that holds more or less than it says.
#[test]
fn a_reader_keeps_nothing_of_what_it_read_before() {
    let mut random = Random(0x5EED);
    let bytes: Vec<u8> = (0..600_000).map(|_| random.below(256) as u8 & 0x55).collect();
    for compression in [Compression::Zlib, Compression::Zstd] {
        let mut used = ChunkReader::new();
        let (file, chunk) = packed(&bytes, compression.clone(), bytes.len());
        assert!(used.read(&file, &chunk).unwrap() == bytes);
        for held in [0, 1, 4095, 4096, 40_960, 262_144, 262_145, 300_000] {
            for declared in [0, 1, held / 2, held.max(1) - 1, held, held + 1, 2 * held, 600_000] {
                let (file, chunk) = packed(&bytes[..held], compression.clone(), declared);
                let mut fresh = ChunkReader::new();
                let (fresh, used) = (fresh.read(&file, &chunk), used.read(&file, &chunk));
                let what = format!("{compression:?}: {held} bytes, {declared} declared");
                assert!(fresh == used, "{what}: {:?}, {:?}", fresh.err(), used.err());
                assert_eq!(fresh.is_ok(), held == declared, "{what}: {:?}", fresh.err());
                assert!(fresh.is_err() || fresh.is_ok_and(|read| read == &bytes[..held]), "{what}");
            }
        }
    }
}
