//! Real recordings, written again with all their events in two buffers.

use std::fs;
use std::io::Cursor;
use std::path::{Path, PathBuf};

use tracedat::{BufferSpec, ChunkReader, Contents, TraceDat, TraceDatWriter, id};

use super::host::{Found, Seen};

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../fixtures").join(name)
}

/// The recording with its pages in each of `buffers`.
fn in_buffers(input: &[u8], buffers: &[&str]) -> Vec<u8> {
    let original = TraceDat::parse(input).unwrap();
    let top = &original.buffers[0];
    let options =
        original.options.iter().filter(|option| [id::TRACECLOCK, id::UNAME].contains(&option.id));
    let clock = original.clock().unwrap_or("local");
    let spec = |name: &&str| BufferSpec {
        name: (*name).to_owned(),
        clock: clock.to_owned(),
        page_size: top.page_size,
    };
    let contents = Contents {
        header: original.header.clone(),
        formats: original.formats.clone(),
        kallsyms: Vec::new(),
        printk: Vec::new(),
        cmdlines: Vec::new(),
        options: options.map(|option| (option.id, option.data.clone())).collect(),
        cpus: top.cpus.len() as u32,
        buffers: buffers.iter().map(spec).collect(),
    };
    let mut writer = TraceDatWriter::new(Cursor::new(Vec::new()), &contents).unwrap();
    for buffer in buffers {
        for cpu in &top.cpus {
            let (mut reader, mut pages) = (ChunkReader::new(), Vec::new());
            for chunk in &cpu.chunks(input).list {
                pages.extend_from_slice(reader.read(input, chunk).unwrap());
            }
            writer.write_cpu(buffer, cpu.cpu, &pages[..]).unwrap();
        }
    }
    writer.finish().unwrap().into_inner()
}

fn exit_lines(found: &Found) -> Vec<String> {
    let line = |exit: &Seen| format!("{} {:?}", exit.thread, exit.span);
    found.exits.iter().map(line).collect()
}

#[test]
fn a_second_buffer_with_the_same_events_changes_nothing() {
    for name in ["x86-svm/host-guest.dat", "x86-vmx/nested.dat", "arm64/B-vhost-on.dat"] {
        let input = fs::read(fixture(name)).unwrap();
        let expected = exit_lines(&Found::in_file(&in_buffers(&input, &[""])));
        assert!(expected.len() > 100, "{name}");
        for buffers in [["", "instance"], ["one", "two"]] {
            let found = Found::in_file(&in_buffers(&input, &buffers));
            let lines = exit_lines(&found);
            let other = lines.iter().zip(&expected).find(|(line, other)| line != other);
            assert_eq!((lines.len(), other), (expected.len(), None), "{name}");
            assert_eq!(found.pass.repeated_buffers, [buffers[1]], "{name}");
        }
    }
}
