//! The bundled recordings, truncated, bit-flipped and overwritten in thousands of ways: each must
//! be read, or refused with a reason, soon, and with memory bounded by the file's size.
//!
//! `HYPERSCOPE_DAMAGE_ROUNDS=10` runs ten times as many rounds (`make test-hostile` eight times);
//! the damage is the same in every run.
//!
//! It is a test program of its own because it measures the memory of the whole process.

// Helpers of tests are not `#[test]` functions, which clippy.toml lets unwrap.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::io::Cursor;
use std::ops::Range;
use std::path::Path;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use peak_alloc::PeakAlloc;
use surfaces::recording::{self, Found};
use tracedat::{
    BufferSpec, ChunkReader, Compression, Contents, Formats, TraceDat, TraceDatWriter, Version, id,
};

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

/// Tests measure the memory of the process, so they take turns.
static LOCK: Mutex<()> = Mutex::new(());

fn one_at_a_time() -> MutexGuard<'static, ()> {
    LOCK.lock()
}

/// A small file takes milliseconds; the limit allows for a debug build on a busy machine.
const LIMIT: Duration = Duration::from_secs(5);

/// Memory that a reader can use regardless of the file's size: initial buffers of decompressors,
/// output buffers, formats.
const BASE_MEMORY: usize = 4 << 20;
/// Memory per byte of the file and of unpacked pages: copies of texts, printed lines (three styles;
/// JSON takes about ten times the record), items of a round.
const MEMORY_PER_BYTE: usize = 24;

/// A pseudo-random generator, the same in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit.max(1) as u64) as usize
    }

    fn within(&mut self, range: &Range<usize>) -> usize {
        range.start + self.below(range.len())
    }
}

/// A valid file, and the positions of its structural numbers.
struct Sound {
    name: String,
    file: Vec<u8>,
    /// Header, options, section headers, tables, heads of chunks.
    container: Vec<Range<usize>>,
    /// Headers of pages and of their first records.
    pages: Vec<Range<usize>>,
}

fn rounds(min: usize) -> usize {
    let times = std::env::var("HYPERSCOPE_DAMAGE_ROUNDS").ok().and_then(|text| text.parse().ok());
    min * times.unwrap_or(1_usize)
}

fn fixture(name: &str) -> Vec<u8> {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures");
    fs::read(fixtures.join(name)).unwrap()
}

/// Reads a damaged file; `what` describes the damage.
fn survive(file: &[u8], what: &str) {
    MEMORY.reset_peak_usage();
    let before = MEMORY.current_usage();
    let mut result = Err(String::new());
    let took = surfaces::time(LIMIT, || result = recording::check(file));
    let used_bytes = MEMORY.peak_usage().saturating_sub(before);
    assert!(took < LIMIT, "{what} takes {took:?}");
    let pages = match result {
        Ok(Found { pages, events, exits, .. }) => {
            assert!(
                exits <= events && events <= pages / 8,
                "{what}: {events} events, {exits} exits"
            );
            pages
        }
        Err(reason) => {
            assert!(!reason.trim().is_empty(), "{what} is refused without a reason");
            0
        }
    };
    let limit = BASE_MEMORY + MEMORY_PER_BYTE * (file.len() + pages as usize);
    assert!(used_bytes <= limit, "{what} takes {used_bytes} bytes of memory, {limit} are allowed");
}

/// The first pages of each CPU in a file of another version or compression.
fn rewritten(name: &str, most_pages: usize, version: Version, compression: Compression) -> Sound {
    let real = fixture(name);
    let dat = TraceDat::parse(&real).unwrap();
    let contents = contents(&real, &dat, version, compression);
    let mut writer = TraceDatWriter::new(Cursor::new(Vec::new()), &contents).unwrap();
    let mut reader = ChunkReader::new();
    for buffer in &dat.buffers {
        for cpu in &buffer.cpus {
            let mut pages = Vec::new();
            for chunk in &cpu.chunks(&real).list {
                pages.extend_from_slice(reader.read(&real, chunk).unwrap());
                if pages.len() >= most_pages * buffer.page_size as usize {
                    break;
                }
            }
            pages.truncate(most_pages * buffer.page_size as usize);
            writer.write_cpu(&buffer.name, cpu.cpu, &pages[..]).unwrap();
        }
    }
    let file = writer.finish().unwrap().into_inner();
    let name = format!("{name} as {version:?} {}", contents.header.compression.name());
    sound(name, file)
}

/// The metadata of a recording, reduced to KVM and scheduler events: the texts of the others are
/// long and parsed in the same way.
fn contents(file: &[u8], dat: &TraceDat, version: Version, compression: Compression) -> Contents {
    let text = |section: &Option<tracedat::Section>| {
        let text = section.as_ref().and_then(|section| section.read(file).ok()).unwrap_or_default();
        text.get(..text.len().min(10_000)).unwrap_or_default().to_vec()
    };
    let events = dat.formats.events.iter();
    let events = events.filter(|event| matches!(&*event.system, "kvm" | "sched")).cloned();
    let made = [id::DONE, id::BUFFER, id::BUFFER_TEXT, id::CPUCOUNT];
    let options = dat.options.iter().filter(|option| {
        !made.contains(&option.id) && !(id::STRINGS..=id::CMDLINES).contains(&option.id)
    });
    let buffers = dat.buffers.iter().map(|buffer| BufferSpec {
        name: buffer.name.clone(),
        clock: buffer.clock.clone().unwrap_or_default(),
        page_size: buffer.page_size,
    });
    let cpus = dat.buffers.iter().flat_map(|buffer| &buffer.cpus).map(|cpu| cpu.cpu + 1).max();
    let mut header = dat.header.clone();
    (header.version, header.compression) = (version, compression);
    Contents {
        header,
        formats: Formats { events: events.collect(), ..dat.formats.clone() },
        kallsyms: text(&dat.kallsyms),
        printk: text(&dat.printk),
        cmdlines: text(&dat.cmdlines),
        options: options.map(|option| (option.id, option.data.clone())).collect(),
        cpus: cpus.unwrap_or(1),
        buffers: buffers.collect(),
    }
}

/// Finds the positions in a valid file where damage has most effect.
fn sound(name: String, file: Vec<u8>) -> Sound {
    let dat = TraceDat::parse(&file).unwrap();
    let len = file.len();
    let around = |at: u64, before: usize, after: usize| {
        let at = usize::try_from(at).unwrap();
        at.saturating_sub(before).min(len - 1)..(at + after).min(len)
    };
    let mut container = vec![around(0, 0, 64)];
    container.extend(dat.options.iter().map(|option| around(option.offset, 6, option.data.len())));
    let sections = [&dat.kallsyms, &dat.printk, &dat.cmdlines].into_iter().flatten();
    container.extend(sections.map(|section| around(section.offset, 16, 16)));
    let mut pages = Vec::new();
    for cpu in dat.buffers.iter().flat_map(|buffer| &buffer.cpus) {
        container.push(around(cpu.data.offset, 8, 12));
        for chunk in &cpu.chunks(&file).list {
            container.push(around(chunk.offset, 8, 4));
            if chunk.compression == Compression::None {
                let heads = (0..chunk.size).step_by(4096);
                pages.extend(heads.map(|at| around(chunk.offset + u64::from(at), 0, 96)));
            }
        }
    }
    // In version 6, the event formats in the middle hold no offsets, only lengths.
    container.retain(|range| !range.is_empty());
    Sound { name, file, container, pages }
}

fn small() -> Vec<Sound> {
    vec![
        rewritten("x86-vmx/smp.dat", 3, Version::V7, Compression::None),
        rewritten("x86-vmx/nested.dat", 3, Version::V6, Compression::None),
        rewritten("arm64/A.guest.dat", 3, Version::V7, Compression::None),
        rewritten("x86-svm/host-guest.dat", 2, Version::V7, Compression::Zlib),
        rewritten("arm64/A.dat", 2, Version::V7, Compression::Zstd),
    ]
}

#[test]
fn cuts_are_survived() {
    let _lock = one_at_a_time();
    let mut random = Random(0xC0_FFEE);
    for Sound { name, file, container, pages } in small() {
        let borders = container.iter().chain(&pages).flat_map(|range| [range.start, range.end]);
        let mut cuts: Vec<usize> = borders.collect();
        while cuts.len() > rounds(20) {
            cuts.swap_remove(random.below(cuts.len()));
        }
        cuts.extend((0..rounds(10)).map(|_| random.below(file.len())));
        for cut in cuts {
            survive(&file[..cut], &format!("{name} cut to {cut}"));
        }
    }
}

#[test]
fn flips_are_survived() {
    let _lock = one_at_a_time();
    let mut random = Random(0x5EED);
    for mut sound in small() {
        for round in 0..rounds(25) {
            let flips: Vec<(usize, u8)> = (0..=random.below(3))
                .map(|_| (place(&sound, &mut random), 1 << random.below(8)))
                .collect();
            flips.iter().for_each(|&(at, bit)| sound.file[at] ^= bit);
            survive(&sound.file, &format!("{} flip {round} {flips:?}", sound.name));
            flips.iter().rev().for_each(|&(at, bit)| sound.file[at] ^= bit);
        }
    }
}

#[test]
fn absurd_numbers_are_survived() {
    let _lock = one_at_a_time();
    let values = [0, u32::MAX, 0x7FFF_FFFF, 0x8000_0000, 0xFF].map(u32::to_le_bytes);
    let mut random = Random(0xBAD);
    for mut sound in small() {
        for round in 0..rounds(25) {
            let at = place(&sound, &mut random).min(sound.file.len() - 8);
            let (value, len) = (values[random.below(values.len())], 4 + 4 * random.below(2));
            let before: [u8; 8] = sound.file[at..at + 8].try_into().unwrap();
            sound.file[at..at + len].copy_from_slice(&[value, value].concat()[..len]);
            survive(&sound.file, &format!("{} round {round}: {value:?} at {at}", sound.name));
            sound.file[at..at + 8].copy_from_slice(&before);
        }
    }
}

/// Mostly a position in the container's structure, often a page header, otherwise anywhere.
fn place(sound: &Sound, random: &mut Random) -> usize {
    let ranges = match random.below(8) {
        0 => return random.below(sound.file.len()),
        1..=3 if !sound.pages.is_empty() => &sound.pages,
        _ => &sound.container,
    };
    let range = random.below(ranges.len());
    random.within(&ranges[range])
}

/// The reader does not allocate the declared size before it unpacks that much.
#[test]
fn damaged_chunks_take_no_memory_by_what_they_declare() {
    let _lock = one_at_a_time();
    for compression in [Compression::Zlib, Compression::Zstd] {
        let Sound { name, mut file, .. } =
            rewritten("arm64/A.guest.dat", 3, Version::V7, compression);
        let dat = TraceDat::parse(&file).unwrap();
        let cpus = dat.buffers.iter().flat_map(|buffer| &buffer.cpus);
        let chunks: Vec<_> = cpus.flat_map(|cpu| cpu.chunks(&file).list).collect();
        for chunk in chunks {
            let at = usize::try_from(chunk.offset).unwrap();
            file[at - 4..at].copy_from_slice(&(8_u32 << 20).to_le_bytes());
            file[at + chunk.stored as usize / 2..at + chunk.stored as usize].fill(0xff);
        }
        survive(&file, &name);
    }
}

/// Whole bundled recordings: fewer rounds, because each takes longer.
#[test]
fn bundled_recordings_survive_damage() {
    let _lock = one_at_a_time();
    let mut random = Random(0xF1E1D);
    for name in ["x86-vmx/smp.dat", "arm64/A.guest.dat", "x86-svm/host-guest.guest.dat"] {
        let mut sound = sound(name.to_owned(), fixture(name));
        for round in 0..rounds(1) {
            let (at, bit) = (place(&sound, &mut random), 1 << random.below(8));
            sound.file[at] ^= bit;
            survive(&sound.file, &format!("{name} round {round}: bit {bit:#x} at {at}"));
            sound.file[at] ^= bit;
            let cut = random.below(sound.file.len());
            survive(&sound.file[..cut], &format!("{name} cut to {cut}"));
        }
    }
}

/// Undamaged files are read completely, so the checks above do not pass by reading nothing.
#[test]
fn sound_files_are_read() {
    let _lock = one_at_a_time();
    for Sound { name, file, .. } in small() {
        let found = recording::check(&file).unwrap();
        assert!(found.events > 100 && found.damaged == 0, "{name}: {found:?}");
        survive(&file, &name);
    }
}
