//! Seed inputs: small and valid, from the bundled recordings and from synthetic pages.

use std::collections::BTreeSet;
use std::io::{self, Cursor};
use std::path::Path;
use std::sync::Arc;

use ftrace::eventfmt::{ElementForm, EventFormat, FieldKind, NumberForm};
use raw_bytes::{Abi, ByteOrder, LongSize};
use shmring::{GuestSide, Mode, RegionPlan, SharedMap};
use testkit::{KernelFormats, Machine, MissedEvents, PageBuilder, StreamBuilder};
use tracedat::{
    BufferSpec, ChunkReader, Compression, Contents, Header, TraceDat, TraceDatWriter, Version, id,
};

use crate::{agent, collected, ctf, perf_data, print_fmt, sections, text, timeline, trace_cmd};

/// A seed input for a surface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seed {
    /// The surface, as in [`crate::ALL`].
    pub surface: &'static str,
    /// Name of its file.
    pub name: String,
    /// The input.
    pub bytes: Vec<u8>,
}

/// Pages to copy per CPU of a real recording, and number of CPUs.
const PAGES: usize = 2;
const CPUS: usize = 3;
/// Number of event formats, and bytes of other texts, to copy from a real recording.
const FORMATS: usize = 12;
const TEXT: usize = 1024;
const PAGE_SIZE: usize = 512;

/// All seeds; `recordings` are the bundled recordings by name.
///
/// # Errors
/// If a recording cannot be rewritten.
pub fn all(recordings: &[(String, Vec<u8>)]) -> io::Result<Vec<Seed>> {
    let mut seeds = made()?;
    let mut known = BTreeSet::new();
    for (name, file) in recordings {
        let Ok(dat) = TraceDat::parse(file) else { continue };
        real(name, file, &dat, &mut seeds)?;
        for event in dat.formats.events.iter().filter(|event| &*event.system == "kvm") {
            texts(&event.text, &mut known, &mut seeds);
        }
    }
    for (name, bytes) in regions()? {
        seeds.push(Seed { surface: "shared_memory", name, bytes });
    }
    for (name, bytes) in trace_cmd::conversations()? {
        seeds.push(Seed { surface: "trace_cmd", name, bytes });
    }
    for (name, bytes) in agent::streams() {
        seeds.push(Seed { surface: "agent", name, bytes });
    }
    for (name, bytes) in sections::inputs() {
        seeds.push(Seed { surface: "sections", name, bytes });
    }
    for (name, bytes) in collected::files() {
        seeds.push(Seed { surface: "collected", name, bytes });
    }
    for (name, bytes) in text::texts() {
        seeds.push(Seed { surface: "text", name, bytes });
    }
    for (name, text) in TEXTS {
        seeds.push(Seed { surface: "symbols", name: name.to_owned(), bytes: text.to_vec() });
    }
    Ok(seeds)
}

/// The bundled recordings of a folder, by name.
///
/// # Errors
/// If a file cannot be read.
pub fn recordings(fixtures: &Path) -> io::Result<Vec<(String, Vec<u8>)>> {
    let mut found = Vec::new();
    for folder in std::fs::read_dir(fixtures)? {
        let folder = folder?;
        if !folder.file_type()?.is_dir() {
            continue;
        }
        for file in std::fs::read_dir(folder.path())? {
            let path = file?.path();
            if path.extension().is_some_and(|extension| extension == "dat") {
                let stem = path.file_stem().unwrap_or_default().to_string_lossy();
                let name = format!("{}-{stem}", folder.file_name().to_string_lossy());
                found.push((name, std::fs::read(path)?));
            }
        }
    }
    found.sort();
    Ok(found)
}

/// A region with pages in both modes, and stories in which agents and hosts start, talk and corrupt
/// memory.
fn regions() -> io::Result<Vec<(String, Vec<u8>)>> {
    let mut seeds = Vec::new();
    for (name, mode) in [("keep", Mode::Keep), ("overwrite", Mode::Overwrite)] {
        let map = Arc::new(SharedMap::of_bytes(&[0; 9 * 4096])?);
        let plan =
            RegionPlan { cpus: 1, page_bytes: 4096, slots_per_cpu: 2, mode, control_bytes: 4096 };
        let mut guest =
            GuestSide::create(Arc::clone(&map), &plan, [2; 16]).map_err(io::Error::other)?;
        for ring in &mut guest.pages {
            for len in [4096, 100, 8] {
                ring.fill(|slot| Ok(slot.copy_from(&vec![7; len])))?;
            }
        }
        guest.to_host.write(b"hello");
        let mut bytes = vec![0; map.len_bytes()];
        map.copy_out(0, &mut bytes);
        bytes.insert(0, 1);
        seeds.push((name.to_owned(), bytes));
        let start = [[5, 0, 0, 2]];
        let fill_and_take = [[0, 0, 0, 9], [0, 1, 0, 200], [2, 0, 0, 0], [4, 0, 0, 5]];
        let scribble = [[6, 0, 3, 60], [6, 4, 40, 150], [7, 3, 0, 17], [5, 0, 0, 0]];
        let steps = [&start[..], &fill_and_take, &scribble, &fill_and_take, &start];
        let steps = steps.concat().repeat(4).concat();
        let flags = if mode == Mode::Keep { 0 } else { 2 };
        seeds.push((format!("story-{name}"), [&[flags], &steps[..]].concat()));
    }
    Ok(seeds)
}

const TEXTS: [(&str, &[u8]); 4] = [
    ("kallsyms", b"ffffffff81000000 T _stext\nffffffff81000100 t vcpu_run\t[kvm]\n0 A x\n"),
    ("printk", b"0xffffffff82000000 : \"text %d\\n\"\n0x1 : \"a\"\n"),
    ("cmdlines", b"7 CPU 0/KVM\n1 init\n"),
    (
        "header_page",
        b"\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
          \tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n\
          \tfield: char data;\toffset:16;\tsize:4080;\tsigned:1;\n",
    ),
];

/// Synthetic pages, recordings and stories.
fn made() -> io::Result<Vec<Seed>> {
    let mut seeds = Vec::new();
    for (order, long, name) in [
        (ByteOrder::Little, LongSize::Eight, "little-64"),
        (ByteOrder::Little, LongSize::Four, "little-32"),
        (ByteOrder::Big, LongSize::Eight, "big-64"),
        (ByteOrder::Big, LongSize::Four, "big-32"),
    ] {
        let (abi, name) = (Abi { order, long }, name.to_owned());
        seeds.push(Seed { surface: "page", name: name.clone(), bytes: page(abi) });
        for (machine, arch) in [(Machine::X86, "x86"), (Machine::Arm64, "arm64")] {
            let bytes = made_recording(abi, machine)?;
            let name = format!("made-{arch}-{name}");
            seeds.push(Seed { surface: "recording", name, bytes });
        }
    }
    for (name, bytes) in ctf::files() {
        seeds.push(Seed { surface: "ctf", name, bytes });
    }
    for (name, bytes) in perf_data::files() {
        seeds.push(Seed { surface: "perf_data", name, bytes });
    }
    // Exit and entry on one thread, with events that can be in between; then two threads on two
    // CPUs.
    for (at, pattern) in
        [&[0, 1][..], &[0, 20, 1, 21, 0], &[2, 3, 1, 0, 4, 22, 255, 254]].into_iter().enumerate()
    {
        for machine in 0..2 {
            let steps = (0..60_u8).flat_map(|step| {
                let what = pattern[usize::from(step) % pattern.len()];
                [2 + (step / 30) * 3, what, step % 20, 10]
            });
            let bytes = std::iter::once(machine).chain(steps).collect();
            seeds.push(Seed { surface: "timeline", name: format!("{at}-{machine}"), bytes });
        }
    }
    Ok(seeds)
}

/// A page with a record of every type.
fn page(abi: Abi) -> Vec<u8> {
    let mut page = PageBuilder::new(abi, PAGE_SIZE, 1 << 40);
    page.missed(MissedEvents::Counted(3));
    page.event(5, &[1; 12]).long_event(6, &[2; 20]).time_extend(1 << 33).discarded(7, 16);
    page.absolute_stamp((1 << 40) + (1 << 35)).event(0, b"").event(1, &[3; 112]);
    page.build().bytes
}

fn made_recording(abi: Abi, machine: Machine) -> io::Result<Vec<u8>> {
    let formats = KernelFormats::new(machine, abi);
    let contents = timeline::contents(&formats, PAGE_SIZE as u32, Version::V7);
    let mut writer = TraceDatWriter::new(Cursor::new(Vec::new()), &contents)?;
    for cpu in 0..2_u32 {
        let mut stream = StreamBuilder::new(abi, PAGE_SIZE);
        let (mut at_ns, thread) = (1000 * u64::from(cpu), 10 + cpu.cast_signed());
        for format in formats.all() {
            for event in ["kvm_entry", format.name, "kvm_exit"] {
                at_ns += 1000;
                stream.event(at_ns, &formats.event(event).pid(thread).build());
            }
        }
        writer.write_cpu("", cpu, &stream.lose(MissedEvents::Uncounted).clone().bytes()[..])?;
    }
    Ok(writer.finish()?.into_inner())
}

/// A small file of each format with the first pages of a real one, and those pages.
fn real(name: &str, file: &[u8], dat: &TraceDat, seeds: &mut Vec<Seed>) -> io::Result<()> {
    let pages = first_pages(file, dat);
    for (cpu, bytes) in &pages {
        let bytes = bytes.get(..4096).unwrap_or(bytes).to_vec();
        seeds.push(Seed { surface: "page", name: format!("{name}-{cpu}"), bytes });
    }
    for (version, compression, kind) in [
        (Version::V6, Compression::None, "v6"),
        (Version::V7, Compression::None, "v7"),
        (Version::V7, Compression::Zlib, "v7-zlib"),
        (Version::V7, Compression::Zstd, "v7-zstd"),
    ] {
        let stored = compression == Compression::None;
        let contents = contents(file, dat, version, compression);
        let mut writer = TraceDatWriter::new(Cursor::new(Vec::new()), &contents)?;
        for (cpu, bytes) in &pages {
            writer.write_cpu("", *cpu, &bytes[..])?;
        }
        let bytes = writer.finish()?.into_inner();
        let name = format!("{name}-{kind}");
        if stored {
            let (name, bytes) = (name.clone(), bytes.clone());
            seeds.push(Seed { surface: "recording", name, bytes });
        }
        seeds.push(Seed { surface: "trace_dat", name, bytes });
    }
    Ok(())
}

/// The first pages of the first CPUs that have pages.
fn first_pages(file: &[u8], dat: &TraceDat) -> Vec<(u32, Vec<u8>)> {
    let mut reader = ChunkReader::new();
    let top = dat.buffers.iter().filter(|buffer| buffer.name.is_empty()).take(1);
    let cpus = top.flat_map(|buffer| buffer.cpus.iter().map(move |cpu| (buffer.page_size, cpu)));
    let pages = cpus.filter_map(|(page_size, cpu)| {
        let chunks = cpu.chunks(file).list;
        let chunk = reader.read(file, chunks.first()?).ok()?;
        Some((cpu.cpu, chunk.get(..PAGES * page_size as usize)?.to_vec()))
    });
    pages.take(CPUS).collect()
}

/// The metadata of a real recording, reduced to a little of each kind.
fn contents(file: &[u8], dat: &TraceDat, version: Version, compression: Compression) -> Contents {
    let text = |section: &Option<tracedat::Section>| {
        let text = section.as_ref().and_then(|section| section.read(file).ok());
        text.map(|text| text.get(..TEXT).unwrap_or(&text).to_vec()).unwrap_or_default()
    };
    let mut formats = dat.formats.clone();
    formats.events.retain(|event| matches!(&*event.system, "kvm" | "sched"));
    formats.events.truncate(FORMATS);
    formats.ftrace.truncate(2);
    let top = dat.buffers.iter().find(|buffer| buffer.name.is_empty());
    let page_size = top.map_or(dat.header.page_size, |top| top.page_size);
    let clock = dat.clock().unwrap_or("local").to_owned();
    let made_by_writer = [id::DONE, id::BUFFER, id::BUFFER_TEXT, id::CPUCOUNT];
    let sections = id::STRINGS..=id::CMDLINES;
    let options = dat.options.iter().filter(|option| {
        !made_by_writer.contains(&option.id)
            && !sections.contains(&option.id)
            && option.data.len() <= TEXT
    });
    Contents {
        header: Header { version, compression, page_size, ..dat.header.clone() },
        formats,
        kallsyms: text(&dat.kallsyms),
        printk: text(&dat.printk),
        cmdlines: text(&dat.cmdlines),
        options: options.take(24).map(|option| (option.id, option.data.clone())).collect(),
        cpus: dat.metadata.cpu_count.unwrap_or(64).max(64),
        buffers: vec![BufferSpec { name: String::new(), clock, page_size }],
    }
}

/// A format text and its print fmt, each with a record, unless the event is already known.
fn texts(text: &str, known: &mut BTreeSet<String>, seeds: &mut Vec<Seed>) {
    let Ok(format) = EventFormat::parse("kvm", text.as_bytes()) else { return };
    if !known.insert(format!("{}{}", format.name(), format.print_fmt())) {
        return;
    }
    let record: Vec<u8> = (0..format.record_size() + 8).map(|at| (at * 37) as u8).collect();
    let name = format!("{}-{}", format.name(), known.len());
    let format_input = [&[0], text.as_bytes(), &[0], &record].concat();
    seeds.push(Seed { surface: "format", name: name.clone(), bytes: format_input });
    let names = print_fmt::names(format.print_fmt());
    let mut kinds: Vec<u8> = names.iter().map(|name| kind(&format, name)).collect();
    kinds.resize(8, 0);
    let print = [&[0], &kinds[..], format.print_fmt().as_bytes(), &[0], &record].concat();
    seeds.push(Seed { surface: "print_fmt", name, bytes: print });
}

/// The type of a field as `print_fmt` names it.
fn kind(format: &EventFormat, name: &str) -> u8 {
    let Some(field) = format.field(name) else { return 0 };
    match field.kind {
        FieldKind::Number(NumberForm::Pointer) => 8,
        FieldKind::Number(NumberForm::Bool) => 5,
        FieldKind::Number(NumberForm::Long) => 7,
        FieldKind::Number(NumberForm::Integer) => match (field.size, field.signed) {
            (8, false) => 0,
            (4, false) => 1,
            (4, true) => 2,
            (2, _) => 3,
            (1, _) => 4,
            _ => 6,
        },
        FieldKind::Dynamic(element) if element.form == ElementForm::Text => 9,
        FieldKind::Dynamic(_) => 10,
        FieldKind::Relative(_) => 11,
        FieldKind::Array(element) if element.form == ElementForm::Text => 12,
        FieldKind::Array(_) => 13,
        FieldKind::Opaque => 15,
    }
}
