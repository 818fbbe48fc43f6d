//! One recording in every supported container, and ways to damage it.

use std::fs;
use std::io::{Cursor, Write};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use perfdata::PerfData;
use tracedat::{BufferSpec, ChunkReader, Contents, Section, TraceDat, TraceDatWriter, Version, id};

use crate::inputs::write_raw_pages;
use crate::tool::{output_of, repository};

/// A host's recording with exits of two CPUs.
const HOST: &str = "fixtures/x86-vmx/vmm.dat";
const PERF: &str = "fixtures/arm64/D.perf.data";
const CTF: &str = "fixtures/arm64/D.ctf";

/// A kind of damage to a recording's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    Empty,
    Bytes100,
    CutAtOneThird,
    CutInHeader,
    Junk,
}

impl Fault {
    pub(crate) const ALL: [Self; 5] =
        [Self::Empty, Self::Bytes100, Self::CutAtOneThird, Self::CutInHeader, Self::Junk];

    fn apply_to(self, bytes: &[u8]) -> Vec<u8> {
        let cut = |len: usize| bytes[..len.min(bytes.len())].to_vec();
        match self {
            Self::Empty => Vec::new(),
            Self::Bytes100 => cut(100),
            Self::CutAtOneThird => cut(bytes.len() / 3),
            Self::CutInHeader => cut(14),
            Self::Junk => junk(bytes.len()),
        }
    }
}

/// Pseudorandom bytes, always the same.
fn junk(len: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as u8
    };
    (0..len).map(|_| next()).collect()
}

/// A recording, and its files with events.
#[derive(Clone, Debug)]
pub(crate) struct Container {
    pub(crate) name: &'static str,
    /// The argument of a verb.
    pub(crate) path: PathBuf,
    files: Vec<(PathBuf, Vec<u8>)>,
    /// Whether the first third still contains events.
    third_is_readable: bool,
    /// Whether the first 100 bytes do: a line, or the first events of a packet.
    bytes_100_are_readable: bool,
}

impl Container {
    fn file(folder: &Path, name: &'static str, bytes: &[u8], third_is_readable: bool) -> Self {
        let path = folder.join(name);
        let bytes_100_are_readable = name == "text.txt";
        let files = vec![(path.clone(), bytes.to_vec())];
        Self { name, files, path, third_is_readable, bytes_100_are_readable }
    }

    fn folder(
        name: &'static str,
        path: PathBuf,
        files: Vec<(PathBuf, Vec<u8>)>,
        (third_is_readable, bytes_100_are_readable): (bool, bool),
    ) -> Self {
        Self { name, path, files, third_is_readable, bytes_100_are_readable }
    }

    /// Whether events remain under this fault.
    pub(crate) fn is_readable_with(&self, fault: Fault) -> bool {
        match fault {
            Fault::CutAtOneThird => self.third_is_readable,
            Fault::Bytes100 => self.bytes_100_are_readable,
            Fault::Empty | Fault::CutInHeader | Fault::Junk => false,
        }
    }

    /// Writes its files with this fault.
    pub(crate) fn write_with(&self, fault: Fault) {
        for (path, bytes) in &self.files {
            fs::write(path, fault.apply_to(bytes)).unwrap();
        }
    }
}

pub(crate) fn containers(folder: &Path) -> Vec<Container> {
    let host = fs::read(repository().join(HOST)).unwrap();
    let perf = fs::read(repository().join(PERF)).unwrap();
    let text = output_of(&["events", HOST]);
    let file = |name, bytes: &[u8], readable| Container::file(folder, name, bytes, readable);
    vec![
        file("v7.dat", &host, false),
        file("v6.dat", &version_6(&host), false),
        file("file.data", &perf, true),
        file("pipe.data", &pipe(&perf), true),
        file("text.txt", text.as_bytes(), true),
        file("v7.dat.gz", &gzip(&host), false),
        file("v7.dat.zst", &zstd::encode_all(&host[..], 1).unwrap(), false),
        file("text.txt.gz", &gzip(text.as_bytes()), true),
        session(folder, &host),
        ctf(folder, "ctf", false),
        ctf(folder, "ctf-metadata", true),
        pages(folder),
    ]
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
    gzip.write_all(bytes).unwrap();
    gzip.finish().unwrap()
}

fn version_6(file: &[u8]) -> Vec<u8> {
    let recording = TraceDat::parse(file).unwrap();
    let text =
        |section: &Option<Section>| section.as_ref().unwrap().read(file).unwrap().into_owned();
    let is_written = |number: u16| number == id::BUFFER || number >= id::HEADER_INFO;
    let options = recording.options.iter().filter(|option| !is_written(option.id));
    let buffer = &recording.buffers[0];
    let spec = BufferSpec {
        name: buffer.name.clone(),
        clock: buffer.clock.clone().unwrap(),
        page_size: buffer.page_size,
    };
    let mut header = recording.header.clone();
    (header.version, header.compression) = (Version::V6, tracedat::Compression::None);
    let contents = Contents {
        header,
        formats: recording.formats.clone(),
        kallsyms: text(&recording.kallsyms),
        printk: text(&recording.printk),
        cmdlines: text(&recording.cmdlines),
        options: options.map(|option| (option.id, option.data.clone())).collect(),
        cpus: recording.metadata.cpu_count.unwrap(),
        buffers: vec![spec],
    };
    let mut writer = TraceDatWriter::new(Cursor::new(Vec::new()), &contents).unwrap();
    let mut reader = ChunkReader::new();
    for cpu in &buffer.cpus {
        let chunks = cpu.chunks(file).list;
        let pages = chunks.iter().map(|chunk| reader.read(file, chunk).unwrap().to_vec());
        writer.write_cpu("", cpu.cpu, &pages.collect::<Vec<_>>().concat()[..]).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

/// A perf.data in the form of `perf record -o -`: events and formats are records before the others.
fn pipe(file: &[u8]) -> Vec<u8> {
    let perf = PerfData::parse(file).unwrap();
    let word = |at: usize| u64::from_le_bytes(file[at..at + 8].try_into().unwrap()) as usize;
    let (entry, attrs_at, attrs_len) = (word(16), word(24), word(32));
    let mut out = b"PERFILE2".to_vec();
    out.extend(16_u64.to_le_bytes());
    let mut record = |kind: u32, body: &[u8], payload: &[u8]| {
        out.extend(kind.to_le_bytes());
        out.extend(0_u16.to_le_bytes());
        out.extend((body.len() as u16 + 8).to_le_bytes());
        out.extend(body);
        out.extend(payload);
    };
    for at in (attrs_at..attrs_at + attrs_len).step_by(entry) {
        let (ids_at, ids_len) = (word(at + entry - 16), word(at + entry - 8));
        let body = [&file[at..at + entry - 16], &file[ids_at..ids_at + ids_len]].concat();
        record(perfdata::kind::HEADER_ATTR, &body, &[]);
    }
    let mut formats = perf.features.tracing_data.unwrap().bytes_in(file).to_vec();
    let size = formats.len() as u32;
    formats.resize(formats.len().next_multiple_of(8), 0);
    record(perfdata::kind::TRACING_DATA, &size.to_le_bytes(), &formats);
    out.extend(perf.data.bytes_in(file));
    out
}

fn session(folder: &Path, host: &[u8]) -> Container {
    let path = folder.join("web.hscope");
    fs::create_dir(&path).unwrap();
    let files = vec![(path.join("host.dat"), host.to_vec())];
    fs::write(path.join("session.json"), "{}").unwrap();
    Container::folder("web.hscope", path, files, (false, false))
}

/// A trace with damage in its streams or its metadata.
fn ctf(folder: &Path, name: &'static str, in_metadata: bool) -> Container {
    let path = folder.join(name);
    fs::create_dir(&path).unwrap();
    let mut files = Vec::new();
    for entry in fs::read_dir(repository().join(CTF)).unwrap() {
        let entry = entry.unwrap();
        let to = path.join(entry.file_name());
        if (entry.file_name() == "metadata") == in_metadata {
            files.push((to, fs::read(entry.path()).unwrap()))
        } else {
            fs::copy(entry.path(), &to).unwrap();
        }
    }
    Container::folder(name, path, files, (!in_metadata, !in_metadata))
}

fn pages(folder: &Path) -> Container {
    let path = folder.join("pages");
    fs::create_dir(&path).unwrap();
    write_raw_pages(HOST, &path, |cpu| format!("cpu{cpu}"));
    let entries = fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path());
    let is_page = |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().starts_with("cpu");
    let files =
        entries.filter(is_page).map(|path| (path.clone(), fs::read(path).unwrap())).collect();
    Container::folder("pages", path, files, (true, false))
}
