//! Small files that claim to be large: each verb stays within its memory limit, or reports that it
//! can't.

use std::fs;
use std::io::{Cursor, Read};

use raw_bytes::{Abi, ByteOrder, LongSize};
use tempfile::TempDir;
use testkit::{KernelFormats, Machine, PageBuilder};
use tracedat::{
    BufferSpec, Compression, Contents, EventFormat, Formats, Header, TraceDatWriter, Version,
};

use crate::extent::extent;
use crate::mutated_files::{VERBS, fault, run};

const ABI: Abi = Abi { order: ByteOrder::Little, long: LongSize::Eight };

/// A recording of a synthetic kernel with these pages on each CPU.
fn file(
    formats: &KernelFormats,
    compression: Compression,
    page_size: usize,
    cpus: Vec<Box<dyn Read>>,
) -> Vec<u8> {
    file_with(formats, compression, page_size, cpus, |_| {})
}

/// The same, with other parts than pages changed.
fn file_with(
    formats: &KernelFormats,
    compression: Compression,
    page_size: usize,
    cpus: Vec<Box<dyn Read>>,
    change: impl FnOnce(&mut Contents),
) -> Vec<u8> {
    let events = formats.systems().into_iter().flat_map(|(system, texts)| {
        texts.into_iter().map(move |text| EventFormat { system: system.into(), text })
    });
    let page_size = u32::try_from(page_size).unwrap();
    let mut contents = Contents {
        header: Header {
            version: Version::V7,
            order: ABI.order,
            user_long: ABI.long,
            page_size,
            compression,
            compression_version: String::new(),
        },
        formats: Formats {
            header_page: formats.header_page(page_size as usize),
            header_event: String::new(),
            ftrace: Vec::new(),
            events: events.collect(),
        },
        kallsyms: Vec::new(),
        printk: Vec::new(),
        cmdlines: Vec::new(),
        options: Vec::new(),
        cpus: u32::try_from(cpus.len()).unwrap(),
        buffers: vec![BufferSpec { name: String::new(), clock: "local".to_owned(), page_size }],
    };
    change(&mut contents);
    let mut writer = TraceDatWriter::new(Cursor::new(Vec::new()), &contents).unwrap();
    for (cpu, pages) in (0..).zip(cpus) {
        writer.write_cpu("", cpu, pages).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

/// A page full of one event, all at the same time.
fn full_page(page_size: usize, stamp: u64, event: &[u8]) -> Vec<u8> {
    let mut page = PageBuilder::new(ABI, page_size, stamp);
    while page.room() >= PageBuilder::event_size(event.len()) {
        page.event(0, event);
    }
    page.build().bytes
}

/// The same bytes repeatedly: pages whose times don't decrease.
fn again(page: Vec<u8>, times: u64) -> Box<dyn Read> {
    let len = page.len() as u64 * times;
    struct Again(Vec<u8>, usize);
    impl Read for Again {
        fn read(&mut self, to: &mut [u8]) -> std::io::Result<usize> {
            let from = &self.0[self.1..];
            let count = from.len().min(to.len());
            to[..count].copy_from_slice(&from[..count]);
            self.1 = (self.1 + count) % self.0.len();
            Ok(count)
        }
    }
    Box::new(Again(page, 0).take(len))
}

fn bombs() -> Vec<(&'static str, Vec<u8>)> {
    let formats = KernelFormats::new(Machine::X86, ABI);
    let entry = formats.event("kvm_entry").pid(7).set("vcpu_id", 0).build();
    let exit = formats.event("kvm_exit").pid(7).build();
    let switch = formats.event("sched_switch").pid(7).set("next_pid", 7).build();
    let (pages, cpus) = (extent(1_600, 100_000), extent(60, 8_000));
    let packed = |event: &[u8], size, pages, how| {
        file(&formats, how, size, vec![again(full_page(size, 1000, event), pages)])
    };
    let thin = |cpu: u64| -> Box<dyn Read> {
        let page =
            full_page(65_536, 1000 + cpu, if cpu.is_multiple_of(2) { &exit } else { &switch });
        again(page, 4)
    };
    let with = |how, change: fn(&mut Contents)| {
        let pages = vec![again(full_page(4096, 1000, &exit), 4)];
        file_with(&formats, how, 4096, pages, change)
    };
    let mut bombs = vec![
        ("small chunks, zstd", packed(&entry, 4096, pages, Compression::Zstd)),
        ("large chunks, zstd", packed(&switch, 65_536, pages / 16, Compression::Zstd)),
        ("large chunks, zlib", packed(&exit, 65_536, pages / 16, Compression::Zlib)),
        ("huge chunks, zstd", packed(&switch, 512 << 10, pages / 16, Compression::Zstd)),
        ("symbols, zstd", with(Compression::Zstd, |to| to.kallsyms = lines(extent(40, 200) << 20))),
        ("many CPUs", file(&formats, Compression::Zstd, 65_536, (0..cpus).map(thin).collect())),
    ];
    if extent(false, true) {
        bombs.extend([
            ("chunks of 10 MiB, zstd", packed(&switch, 1 << 20, pages / 200, Compression::Zstd)),
            ("chunks of 40 MiB, zlib", packed(&switch, 4 << 20, pages / 200, Compression::Zlib)),
            ("symbols, zlib", with(Compression::Zlib, |to| to.kallsyms = lines(60 << 20))),
            ("strings, zstd", with(Compression::Zstd, |to| to.printk = lines(200 << 20))),
            (
                "names of threads, zstd",
                with(Compression::Zstd, |to| to.cmdlines = names(3_000_000)),
            ),
            ("formats, zstd", with(Compression::Zstd, |to| many_formats(&mut to.formats))),
            (
                "options",
                with(Compression::Zstd, |to| to.options = vec![(2, vec![b'x'; 24]); 100_000]),
            ),
        ]);
    }
    bombs
}

/// Symbols at one address.
fn lines(bytes: usize) -> Vec<u8> {
    b"ffffffff81000000 t same\n".iter().copied().cycle().take(bytes).collect()
}

/// A name for each of `threads` threads.
fn names(threads: u32) -> Vec<u8> {
    (1..=threads).flat_map(|thread| format!("{thread} thread\n").into_bytes()).collect()
}

/// Twenty thousand events that differ only in their id.
fn many_formats(formats: &mut Formats) {
    let Some(first) = formats.events.first().cloned() else { return };
    let (before, after) = first.text.split_once("ID: ").unwrap();
    let after = after.split_once('\n').unwrap().1;
    formats.events.extend((3000..23_000).map(|id| EventFormat {
        system: first.system.clone(),
        text: format!("{before}ID: {id}\n{after}"),
    }));
}

#[test]
fn small_files_that_grow_stay_within_their_memory() {
    let folder = TempDir::new().unwrap();
    let mut faults = Vec::new();
    let sample =
        ["info {}", "exits {}", "cpu {}", "events --format jsonl {}", "report {} -o {out}"];
    for (name, bytes) in bombs() {
        let path = folder.path().join("bomb.dat");
        fs::write(&path, &bytes).unwrap();
        for verb in extent(&sample[..], &VERBS[..]) {
            let ended = run(verb, &path, folder.path());
            let (peak, took) = (ended.peak_kib >> 10, ended.took.as_secs());
            let code = ended.code;
            println!(
                "{name}, {} KB: {verb}: {peak} MiB, {took} s, code {code:?}",
                bytes.len() >> 10
            );
            faults.extend(fault(&ended).map(|fault| format!("{name}, {verb}: {fault}")));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// A chunk with a high compression ratio is read completely.
#[test]
fn chunks_that_compress_well_are_read() {
    let folder = TempDir::new().unwrap();
    let formats = KernelFormats::new(Machine::X86, ABI);
    let exit = formats.event("kvm_exit").pid(7).build();
    let page = full_page(65_536, 1000, &exit);
    let path = folder.path().join("well.dat");
    for how in [Compression::Zlib, Compression::Zstd] {
        fs::write(&path, file(&formats, how, 65_536, vec![again(page.clone(), 30)])).unwrap();
        let ended = run("info --format json {}", &path, folder.path());
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let info = fs::read_to_string(folder.path().join("table")).unwrap();
        let info: serde_json::Value = serde_json::from_str(&info).unwrap();
        let count = info["files"][0]["events"]["kvm:kvm_exit"].as_u64().unwrap_or(0);
        assert!(count > 20_000, "{count} events: {info}");
        assert_eq!(info["files"][0]["losses"]["pages_damaged"], 0, "{info}");
    }
}

#[test]
fn beyond_its_memory_a_verb_ends_with_a_sentence() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("bomb.dat");
    fs::write(&path, &bombs().remove(0).1).unwrap();
    let ended = run("events --max-memory 16M {}", &path, folder.path());
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stderr.contains("--max-memory 16M"), "{ended:?}");
    assert!(ended.peak_kib <= 16 << 10, "{ended:?}");
}
