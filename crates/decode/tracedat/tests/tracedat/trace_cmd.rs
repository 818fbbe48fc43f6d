//! trace-cmd reads the writer's files and prints the same as for the originals.

use crate::support::{fixture, header, small, write};
use raw_bytes::ByteOrder;
use std::io::Cursor;
use std::path::Path;
use std::process::Command;
use tracedat::{
    BufferSpec, ChunkReader, Compression, Contents, Metadata, TraceDat, TraceDatWriter, Version, id,
};

/// Output of `trace-cmd`, or `None` (with a message) if it is not installed.
pub(crate) fn trace_cmd(arguments: &[&str], file: &Path) -> Option<String> {
    let output = Command::new("trace-cmd").args(arguments).arg("-i").arg(file).output();
    let Ok(output) = output else {
        testkit::skip!("trace-cmd is not installed (apt install trace-cmd)");
        return None;
    };
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "trace-cmd {arguments:?}: {errors}");
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The metadata of a recording, with another header.
pub(crate) fn contents(file: &[u8], recording: &TraceDat, header: tracedat::Header) -> Contents {
    let text = |section: &Option<tracedat::Section>| {
        section.as_ref().unwrap().read(file).unwrap().into_owned()
    };
    let made_by_writer = [id::BUFFER].into_iter().chain(id::HEADER_INFO..=id::CMDLINES);
    let made_by_writer: Vec<u16> = made_by_writer.collect();
    let options = recording.options.iter().filter(|option| !made_by_writer.contains(&option.id));
    let spec = |buffer: &tracedat::Buffer| BufferSpec {
        name: buffer.name.clone(),
        clock: buffer.clock.clone().unwrap(),
        page_size: buffer.page_size,
    };
    Contents {
        header,
        formats: recording.formats.clone(),
        kallsyms: text(&recording.kallsyms),
        printk: text(&recording.printk),
        cmdlines: text(&recording.cmdlines),
        options: options.map(|option| (option.id, option.data.clone())).collect(),
        cpus: recording.metadata.cpu_count.unwrap_or(2),
        buffers: recording.buffers.iter().map(spec).collect(),
    }
}

fn rewrite(file: &[u8], header: tracedat::Header, instance: bool) -> Vec<u8> {
    let recording = TraceDat::parse(file).unwrap();
    let mut contents = contents(file, &recording, header);
    if instance {
        let top = contents.buffers[0].clone();
        contents.buffers.push(BufferSpec { name: "copy".into(), ..top });
    }
    with_pages_of(file, &recording, &contents)
}

/// Writes `contents` with the pages of the recording's top buffer in each buffer.
pub(crate) fn with_pages_of(file: &[u8], recording: &TraceDat, contents: &Contents) -> Vec<u8> {
    let mut writer = TraceDatWriter::new(Cursor::new(Vec::new()), contents).unwrap();
    let mut reader = ChunkReader::new();
    for BufferSpec { name, .. } in &contents.buffers {
        for cpu in &recording.buffers[0].cpus {
            let chunks = cpu.chunks(file).list;
            let pages = chunks.iter().map(|chunk| reader.read(file, chunk).unwrap().to_vec());
            let pages = pages.collect::<Vec<_>>().concat();
            writer.write_cpu(name, cpu.cpu, &pages[..]).unwrap();
        }
    }
    writer.finish().unwrap().into_inner()
}

fn report(folder: &Path, file: &[u8]) -> Option<String> {
    let path = folder.join("written.dat");
    std::fs::write(&path, file).unwrap();
    trace_cmd(&["report", "-N", "-R", "-t"], &path)
}

#[test]
fn reports_of_rewritten_recordings_are_the_same() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["x86-vmx/smp.dat", "x86-svm/host-guest.guest.dat"] {
        let file = fixture(name);
        let Some(original) = report(folder.path(), &file) else { return };
        assert!(original.lines().count() > 1000);
        for (version, compression) in [
            (Version::V6, Compression::None),
            (Version::V7, Compression::None),
            (Version::V7, Compression::Zstd),
        ] {
            let header = header(version, ByteOrder::Little, compression.clone());
            let written = report(folder.path(), &rewrite(&file, header, false)).unwrap();
            assert!(original == written, "{name} as {version:?} {compression:?}");
        }
    }
}

#[test]
fn instances_are_reported_too() {
    let folder = tempfile::tempdir().unwrap();
    let file = fixture("x86-vmx/smp.dat");
    let Some(original) = report(folder.path(), &file) else { return };
    let count = |report: &str| report.lines().filter(|line| line.contains("kvm_exit")).count();
    for version in [Version::V6, Version::V7] {
        let header = header(version, ByteOrder::Little, Compression::None);
        let written = report(folder.path(), &rewrite(&file, header, true)).unwrap();
        assert_eq!(count(&written), 2 * count(&original), "{version:?}");
    }
}

#[test]
fn every_byte_order_and_compression_is_opened() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("small.dat");
    // Debian builds trace-cmd without zlib, so that is left to the reader's own tests.
    for order in [ByteOrder::Little, ByteOrder::Big] {
        for (version, compression) in [
            (Version::V6, Compression::None),
            (Version::V7, Compression::None),
            (Version::V7, Compression::Zstd),
        ] {
            std::fs::write(&path, write(&small(header(version, order, compression)))).unwrap();
            let options = ["dump", "--all", "--kallsyms", "--cmd-lines"];
            let Some(shown) = trace_cmd(&options, &path) else { return };
            for part in ["Linux test 6.1.0 x86_64", "startup_64", "CPU 0/KVM"] {
                assert!(shown.contains(part), "{version:?} {order:?} {part}");
            }
        }
    }
}

fn all_pages(file: &[u8], recording: &TraceDat) -> Vec<(u32, Vec<u8>)> {
    let mut reader = ChunkReader::new();
    let mut pages = |cpu: &tracedat::CpuData| {
        let chunks = cpu.chunks(file);
        assert_eq!(chunks.damage, []);
        let read = chunks.list.iter().flat_map(|chunk| reader.read(file, chunk).unwrap().to_vec());
        (cpu.cpu, read.collect())
    };
    recording.buffers[0].cpus.iter().map(&mut pages).collect()
}

#[test]
fn what_trace_cmd_converts_is_read_as_the_original() {
    let folder = tempfile::tempdir().unwrap();
    let (from, to) = (folder.path().join("from.dat"), folder.path().join("to.dat"));
    for name in ["x86-vmx/smp.dat", "arm64/A.guest.dat"] {
        let file = fixture(name);
        std::fs::write(&from, &file).unwrap();
        let original = TraceDat::parse(&file).unwrap();
        for kind in [["--file-version", "6"], ["--compression", "none"], ["--compression", "zstd"]]
        {
            let out = to.to_str().unwrap();
            let arguments = ["convert", kind[0], kind[1], "-o", out];
            let Some(_) = trace_cmd(&arguments, &from) else { return };
            let file_after = std::fs::read(&to).unwrap();
            let converted = TraceDat::parse(&file_after).unwrap();
            assert_eq!(converted.damage, [], "{name} {kind:?}");
            assert_eq!(converted.formats, original.formats);
            // Only the count of CPUs, which version 6 needs, is not in every original.
            let cpu_count = converted.metadata.cpu_count;
            assert_eq!(converted.metadata, Metadata { cpu_count, ..original.metadata.clone() });
            let text = |file, section: &Option<tracedat::Section>| {
                section.as_ref().map(|section| section.read(file).unwrap().into_owned())
            };
            let (old, new) =
                (text(&file, &original.kallsyms), text(&file_after, &converted.kallsyms));
            assert!(old == new, "{name} {kind:?}: kallsyms");
            let pages = all_pages(&file_after, &converted);
            assert!(pages == all_pages(&file, &original), "{name} {kind:?}: pages");
            assert_eq!(converted.buffers[0].clock.as_deref(), original.clock());
        }
    }
}
