//! The reader reads what the writer writes, in both versions, with all byte orders, sizes and
//! compressions.

use crate::support::{PAGES, header, pages, small, write};
use raw_bytes::{ByteOrder, LongSize};
use std::io::Cursor;
use tracedat::{ChunkReader, Compression, Contents, TraceDat, TraceDatWriter, Version};

/// All possible headers of a file.
fn headers() -> Vec<tracedat::Header> {
    let mut all = Vec::new();
    for order in [ByteOrder::Little, ByteOrder::Big] {
        for user_long in [LongSize::Four, LongSize::Eight] {
            all.push(header(Version::V6, order, Compression::None));
            for compression in [Compression::None, Compression::Zlib, Compression::Zstd] {
                let header = header(Version::V7, order, compression);
                all.push(tracedat::Header { user_long, ..header });
            }
        }
    }
    all
}

#[test]
fn metadata_come_back() {
    for header in headers() {
        let contents = small(header.clone());
        let file = write(&contents);
        let recording = TraceDat::parse(&file).unwrap();
        assert_eq!(recording.damage, [], "{header:?}");
        assert_eq!(recording.header, header);
        assert_eq!(recording.formats, contents.formats);
        assert_eq!(recording.abi().long, LongSize::Eight, "the kernel's, not the program's");
        let sections = [&recording.kallsyms, &recording.printk, &recording.cmdlines];
        let texts = [&contents.kallsyms, &contents.printk, &contents.cmdlines];
        for (section, text) in sections.into_iter().zip(texts) {
            assert_eq!(section.as_ref().unwrap().read(&file).unwrap(), &text[..], "{header:?}");
        }
        for (id, data) in &contents.options {
            assert!(recording.options.iter().any(|o| o.id == *id && o.data == *data));
        }
        assert_eq!(recording.metadata.unknown, [4711]);
        assert_eq!(recording.clock(), Some("global"));
    }
}

#[test]
fn pages_come_back() {
    for header in headers() {
        let file = write(&small(header.clone()));
        let recording = TraceDat::parse(&file).unwrap();
        let mut reader = ChunkReader::new();
        for (name, number, count) in PAGES {
            let buffer = recording.buffers.iter().find(|buffer| buffer.name == name).unwrap();
            let cpu = buffer.cpus.iter().find(|cpu| cpu.cpu == number);
            let chunks = cpu.map(|cpu| cpu.chunks(&file)).unwrap_or_default();
            assert_eq!(chunks.damage, []);
            let read = chunks.list.iter().map(|chunk| reader.read(&file, chunk).unwrap().to_vec());
            let read = read.collect::<Vec<_>>().concat();
            assert!(read == pages(number, count), "{header:?}: {name:?} CPU {number}");
        }
        let clocks = recording.buffers.iter().map(|buffer| buffer.clock.as_deref());
        assert_eq!(clocks.collect::<Vec<_>>(), [Some("global"), Some("mono")]);
    }
}

#[test]
fn large_sub_buffers_keep_their_size_in_version_7() {
    let mut contents = small(header(Version::V7, ByteOrder::Little, Compression::Zstd));
    contents.buffers[1].page_size = 65536;
    let mut writer = TraceDatWriter::new(Cursor::new(Vec::new()), &contents).unwrap();
    writer.write_cpu("second", 0, &vec![7; 3 * 65536][..]).unwrap();
    let file = writer.finish().unwrap().into_inner();
    let recording = TraceDat::parse(&file).unwrap();
    assert_eq!(recording.damage, []);
    assert_eq!(recording.buffers[1].page_size, 65536);
    assert_eq!(recording.buffers[1].cpus[0].chunks(&file).size(), 3 * 65536);
}

#[test]
fn options_known_late_are_read_too() {
    let contents = small(header(Version::V7, ByteOrder::Big, Compression::None));
    let mut writer = TraceDatWriter::new(Cursor::new(Vec::new()), &contents).unwrap();
    writer.add_option(tracedat::id::CPUSTAT, b"CPU: 4\noverrun: 9\n\0".to_vec()).unwrap();
    let file = writer.finish().unwrap().into_inner();
    let recording = TraceDat::parse(&file).unwrap();
    assert_eq!(recording.metadata.cpu_stats[0].lost(), Some(9));
    assert_eq!(recording.buffers.len(), 2, "buffers without pages are there");
}

fn refused(contents: &Contents, cpu: u32, buffer: &str, bytes: usize) -> String {
    let attempt = TraceDatWriter::new(Cursor::new(Vec::new()), contents)
        .and_then(|mut writer| writer.write_cpu(buffer, cpu, &vec![0; bytes][..]));
    attempt.unwrap_err().to_string()
}

#[test]
fn what_no_file_can_hold_is_refused() {
    let good = small(header(Version::V7, ByteOrder::Little, Compression::None));
    assert!(refused(&good, 0, "", 100).contains("not whole pages"));
    assert!(refused(&good, 300, "", 0).contains("CPU 300 of 300"));
    assert!(refused(&good, 0, "third", 0).contains("no buffer"));
    let mut writer = TraceDatWriter::new(Cursor::new(Vec::new()), &good).unwrap();
    writer.write_cpu("", 1, &[][..]).unwrap();
    assert!(writer.write_cpu("", 1, &[][..]).unwrap_err().to_string().contains("again"));
    writer.write_cpu("second", 1, &[][..]).unwrap();
    let back = writer.write_cpu("", 2, &[][..]).unwrap_err();
    assert!(back.to_string().contains("no buffer"), "the top buffer is closed");
    let zip = small(header(Version::V6, ByteOrder::Little, Compression::Zstd));
    assert!(refused(&zip, 0, "", 0).contains("no compression"));
    let mut count = small(header(Version::V6, ByteOrder::Little, Compression::None));
    count.options.push((tracedat::id::CPUCOUNT, vec![1, 0, 0, 0]));
    assert!(refused(&count, 0, "", 0).contains("CPUCOUNT"));
    let lzma = Compression::Other("lzma".into());
    let lzma = small(header(Version::V7, ByteOrder::Little, lzma));
    assert!(refused(&lzma, 0, "", 0).contains("lzma"));
}

const LATENCY: &[u8] = b"# tracer: wakeup\n# latency: 13 us\n";

fn latency_text(file: &[u8]) -> Vec<u8> {
    let recording = TraceDat::parse(file).unwrap();
    assert_eq!(recording.damage, []);
    let text = recording.buffers.iter().find_map(|buffer| buffer.latency.as_ref()).unwrap();
    let (chunks, mut reader) = (text.chunks(file), ChunkReader::new());
    assert_eq!(chunks.damage, []);
    chunks.list.iter().flat_map(|chunk| reader.read(file, chunk).unwrap().to_vec()).collect()
}

#[test]
fn latency_text_of_version_6_goes_to_the_end() {
    let mut contents = small(header(Version::V6, ByteOrder::Little, Compression::None));
    contents.buffers.truncate(1);
    let writer = TraceDatWriter::new(Cursor::new(Vec::new()), &contents).unwrap();
    let mut file = writer.finish().unwrap().into_inner();
    let tag = file.windows(10).rposition(|bytes| bytes == b"flyrecord\0").unwrap();
    file.truncate(tag);
    file.extend(b"latency  \0");
    file.extend(LATENCY);
    assert_eq!(latency_text(&file), LATENCY);
}

#[test]
fn latency_text_of_version_7_is_a_section() {
    for compression in [Compression::None, Compression::Zstd] {
        let flags = u16::from(compression != Compression::None);
        let mut contents = small(header(Version::V7, ByteOrder::Little, compression.clone()));
        contents.buffers.clear();
        let mut writer = TraceDatWriter::new(Cursor::new(Vec::new()), &contents).unwrap();
        let text = tracedat::id::BUFFER_TEXT;
        writer.add_option(text, [&[0; 8], &b"\0local\0"[..]].concat()).unwrap();
        let mut file = writer.finish().unwrap().into_inner();
        let data = match compression {
            Compression::Zstd => {
                let packed = zstd::bulk::compress(LATENCY, 3).unwrap();
                let sizes = [1, packed.len() as u32, LATENCY.len() as u32].map(u32::to_le_bytes);
                [sizes.as_flattened(), &packed].concat()
            }
            _ => LATENCY.to_vec(),
        };
        let option = TraceDat::parse(&file).unwrap().options.into_iter().rfind(|o| o.id == text);
        let place = option.unwrap().offset as usize;
        let section = file.len() as u64;
        file[place..place + 8].copy_from_slice(&section.to_le_bytes());
        file.extend([text, flags, 0, 0].map(u16::to_le_bytes).as_flattened());
        file.extend((data.len() as u64).to_le_bytes());
        file.extend(data);
        assert_eq!(latency_text(&file), LATENCY, "{compression:?}");
    }
}
