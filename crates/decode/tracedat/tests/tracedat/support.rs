//! Files to test with: the bundled recordings, and small ones made by the writer.

use raw_bytes::{ByteOrder, LongSize};
use std::io::Cursor;
use std::path::PathBuf;
use tracedat::{
    BufferSpec, ChunkReader, Compression, Contents, Formats, Header, TraceDat, TraceDatWriter,
    Version, id,
};

/// The bundled recordings.
pub(crate) fn recordings() -> Vec<PathBuf> {
    let fixtures = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../fixtures");
    let folders = ["x86-svm", "x86-vmx", "arm64"].map(|name| fixtures.join(name));
    let files = folders.iter().flat_map(|folder| std::fs::read_dir(folder).unwrap());
    let mut files: Vec<_> = files.map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "dat"));
    files.sort();
    assert!(files.len() >= 10, "the recordings in fixtures/ are missing");
    files
}

pub(crate) fn fixture(name: &str) -> Vec<u8> {
    std::fs::read(recordings().into_iter().find(|path| path.ends_with(name)).unwrap()).unwrap()
}

pub(crate) fn header(version: Version, order: ByteOrder, compression: Compression) -> Header {
    Header {
        version,
        order,
        user_long: LongSize::Eight,
        page_size: 4096,
        compression,
        compression_version: String::new(),
    }
}

/// Metadata with texts of a real kernel, but few.
pub(crate) fn small(header: Header) -> Contents {
    let real = TraceDat::parse(&fixture("x86-vmx/smp.dat")).unwrap().formats;
    let events = real.events.into_iter().filter(|event| &*event.system == "kvm").take(3).collect();
    let ftrace = real.ftrace.into_iter().take(2).collect();
    Contents {
        header,
        formats: Formats { events, ftrace, ..real },
        kallsyms: b"ffffffff81000000 T startup_64\n".to_vec(),
        printk: b"0xffffffff82000000 : \"text\"\n".to_vec(),
        cmdlines: b"7 CPU 0/KVM\n".to_vec(),
        options: vec![
            (id::TRACECLOCK, b"local [global] counter\n\0".to_vec()),
            (id::UNAME, b"Linux test 6.1.0 x86_64\0".to_vec()),
            (4711, b"not known to anyone".to_vec()),
        ],
        cpus: 300,
        buffers: vec![spec("", "global"), spec("second", "mono")],
    }
}

fn spec(name: &str, clock: &str) -> BufferSpec {
    BufferSpec { name: name.into(), clock: clock.into(), page_size: 4096 }
}

/// Pages that differ by CPU and position, and have no meaning.
pub(crate) fn pages(cpu: u32, count: usize) -> Vec<u8> {
    (0..count * 4096).map(|at| (at / 64 + at / 4096 + cpu as usize) as u8).collect()
}

/// Pages of the buffers of [`small`]: three CPUs of three hundred have some.
pub(crate) const PAGES: [(&str, u32, usize); 4] =
    [("", 0, 1), ("", 299, 23), ("", 7, 0), ("second", 5, 2)];

pub(crate) fn write(contents: &Contents) -> Vec<u8> {
    let mut writer = TraceDatWriter::new(Cursor::new(Vec::new()), contents).unwrap();
    for (buffer, cpu, count) in PAGES {
        let data = pages(cpu, count);
        assert_eq!(writer.write_cpu(buffer, cpu, &data[..]).unwrap(), data.len() as u64);
    }
    writer.finish().unwrap().into_inner()
}

/// Reads everything a file has, as a report would; returns the bytes of pages that were read.
pub(crate) fn read_all(file: &[u8], recording: &TraceDat) -> u64 {
    let texts = [&recording.kallsyms, &recording.printk, &recording.cmdlines];
    for section in texts.into_iter().chain([&recording.btf, &recording.modules]).flatten() {
        let _ = section.read(file);
    }
    let mut reader = ChunkReader::new();
    let mut sum = 0;
    for buffer in &recording.buffers {
        for cpu in &buffer.cpus {
            for chunk in &cpu.chunks(file).list {
                sum += reader.read(file, chunk).map_or(0, <[u8]>::len) as u64;
            }
        }
    }
    sum
}
