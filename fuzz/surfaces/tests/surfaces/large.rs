//! Files of a megabyte that provoke quadratic time: many items for each of many others.

use std::io::Cursor;
use std::path::Path;
use std::time::Duration;

use analyses::exits::exits;
use analyses::group::By;
use raw_bytes::{Abi, ByteOrder, LongSize};
use testkit::{KernelFormats, Machine, MissedEvents, PageBuilder, StreamBuilder};
use tracedat::{
    BufferSpec, Compression, Contents, EventFormat, Formats, Header, TraceDat, TraceDatWriter,
    Version,
};

const ABI: Abi = Abi { order: ByteOrder::Little, long: LongSize::Eight };
const PAGE_SIZE: u32 = 128;

/// Each takes a second or two in a debug build; quadratic time takes a minute.
const LIMIT: Duration = Duration::from_secs(10);

fn contents(formats: &KernelFormats, cpus: u32) -> Contents {
    let events = formats.systems().into_iter().flat_map(|(system, texts)| {
        texts.into_iter().map(move |text| EventFormat { system: system.into(), text })
    });
    Contents {
        header: Header {
            version: Version::V7,
            order: ABI.order,
            user_long: ABI.long,
            page_size: PAGE_SIZE,
            compression: Compression::None,
            compression_version: String::new(),
        },
        formats: Formats {
            header_page: formats.header_page(PAGE_SIZE as usize),
            header_event: String::new(),
            ftrace: Vec::new(),
            events: events.collect(),
        },
        kallsyms: Vec::new(),
        printk: Vec::new(),
        cmdlines: Vec::new(),
        options: Vec::new(),
        cpus,
        buffers: vec![BufferSpec {
            name: String::new(),
            clock: "local".to_owned(),
            page_size: PAGE_SIZE,
        }],
    }
}

fn file(formats: &KernelFormats, cpus: Vec<Vec<u8>>) -> Vec<u8> {
    let contents = contents(formats, u32::try_from(cpus.len()).unwrap());
    let mut writer = TraceDatWriter::new(Cursor::new(Vec::new()), &contents).unwrap();
    for (cpu, pages) in (0..).zip(cpus) {
        writer.write_cpu("", cpu, &pages[..]).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

fn survive(file: Vec<u8>, what: &str) -> u64 {
    let recording = sources::open_bytes(Path::new("large"), file).unwrap();
    let mut count = 0;
    let took = surfaces::time(LIMIT, || {
        let found = exits(&recording, &By::DEFAULT, &|_| ());
        count = found.rows.iter().map(|row| row.tally.count).sum();
    });
    assert!(took < LIMIT, "{what} take {took:?}");
    count
}

/// Every page has a loss, and an exit on another thread.
#[test]
fn losses_between_exits_of_many_threads() {
    let formats = KernelFormats::new(Machine::Arm64, ABI);
    let mut bytes = Vec::new();
    for at in 1..=12_000_i32 {
        let mut page =
            PageBuilder::new(ABI, PAGE_SIZE as usize, 1000 * u64::from(at.unsigned_abs()));
        page.missed(MissedEvents::Uncounted);
        page.event(5, &formats.event("kvm_entry").pid(at).build());
        page.event(5, &formats.event("kvm_exit").pid(at).build());
        bytes.extend(page.build().bytes);
    }
    assert_eq!(survive(file(&formats, vec![bytes]), "losses and threads"), 12_000);
}

/// Many CPUs with a page each.
#[test]
fn many_cpus() {
    let formats = KernelFormats::new(Machine::Arm64, ABI);
    let page = |cpu: i32| {
        let (mut stream, at_ns) = (StreamBuilder::new(ABI, PAGE_SIZE as usize), cpu.unsigned_abs());
        stream.event(at_ns.into(), &formats.event("kvm_exit").pid(cpu).build());
        stream.event(u64::from(at_ns) + 10_000, &formats.event("kvm_entry").pid(cpu).build());
        stream.bytes()
    };
    assert_eq!(survive(file(&formats, (1..=8_000).map(page).collect()), "CPUs"), 8_000);
}

/// A list of empty chunks.
#[test]
fn empty_chunks() {
    const CHUNKS: u32 = 100_000;
    let formats = KernelFormats::new(Machine::Arm64, ABI);
    let mut contents = contents(&formats, 1);
    contents.header.compression = Compression::Zstd;
    let mut writer = TraceDatWriter::new(Cursor::new(Vec::new()), &contents).unwrap();
    // The incompressible data reserves the space that the list of chunks replaces.
    let mut state = 1_u32;
    let noise = (0..CHUNKS * 9).map(|_| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    });
    let mut noise: Vec<u8> = noise.collect();
    noise.resize(noise.len().next_multiple_of(PAGE_SIZE as usize), 0);
    writer.write_cpu("", 0, &noise[..]).unwrap();
    let mut file = writer.finish().unwrap().into_inner();
    let dat = TraceDat::parse(&file).unwrap();
    let at = usize::try_from(dat.buffers[0].cpus[0].data.offset).unwrap();
    file[at..at + 4].copy_from_slice(&CHUNKS.to_le_bytes());
    file[at + 4..at + 4 + 8 * CHUNKS as usize].fill(0);
    assert_eq!(survive(file, "empty chunks"), 0);
}
