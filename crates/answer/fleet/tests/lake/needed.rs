//! A query for a part of the time reads less of a recording.

use std::collections::HashMap;
use std::io::{self, Cursor, Write};
use std::path::Path;

use analyses::view::View;
use fleet::lake::tables::EVENTS;
use fleet::lake::{
    Files, Ids, NeededEvents, Origin, Question, Table, identify, write_needed_events,
};
use report::events::Machine;
use sources::{BlockReader, BufferInfo, Recording, Texts, TimeRange};
use timeline::event_filter::Filter;
use tracedat::{BufferSpec, Compression, Contents, Header, TraceDatWriter};

/// Discards files.
#[derive(Debug, Default)]
struct Nowhere;

impl Files for Nowhere {
    type File = io::Sink;

    fn begin(&mut self, _: &Ids, _: &'static Table) -> io::Result<io::Sink> {
        Ok(io::sink())
    }

    fn end(&mut self, _: &'static Table, mut file: io::Sink, _: u64) -> io::Result<()> {
        file.flush()
    }
}

/// The bundled recording without compression, because compressed blocks must be unpacked to see their
/// start time.
fn unpacked() -> Recording {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let packed = sources::open(&root.join("fixtures/x86-svm/nested.dat")).unwrap();
    let Texts { formats, kallsyms, printk, cmdlines } = packed.texts();
    let (header, _) = packed.trace_dat_head().unwrap();
    let buffer = |buffer: &BufferInfo| BufferSpec {
        name: buffer.name.clone(),
        clock: buffer.clock.clone().unwrap(),
        page_size: header.page_size,
    };
    let contents = Contents {
        header: Header { compression: Compression::None, ..header.clone() },
        formats,
        kallsyms,
        printk,
        cmdlines,
        options: Vec::new(),
        cpus: u32::try_from(packed.streams().len()).unwrap(),
        buffers: packed.info().buffers.iter().map(buffer).collect(),
    };
    let mut writer = TraceDatWriter::new(Cursor::new(Vec::new()), &contents).unwrap();
    let mut reader = BlockReader::default();
    for stream in packed.streams() {
        let mut pages = Vec::new();
        for block in 0..stream.block_count() {
            pages.extend_from_slice(
                packed.block(stream, block, &mut reader).unwrap().pages().unwrap().bytes,
            );
        }
        writer.write_cpu(packed.buffer_name(stream), stream.cpu(), &pages[..]).unwrap();
    }
    sources::open_bytes(Path::new("unpacked"), writer.finish().unwrap().into_inner()).unwrap()
}

/// Bytes of a recording's blocks that are read for events in a range, and the resulting rows.
fn read(times: TimeRange) -> (u64, u64) {
    let mut recordings = vec![unpacked()];
    let machines = [Machine { name: "host".into(), level: 0, threads: None }];
    let (origin, filter) = (Origin::default(), Filter::default());
    let processes = [HashMap::new()];
    let tables = [&EVENTS];
    let question = Question {
        view: View::on_own_clocks(&[]),
        machines: &machines,
        processes: &processes,
        origin: &origin,
        range_ns: None,
        tables: &tables,
        written: &tables,
        events: &filter,
    };
    let ids = identify(&Question { view: View::on_own_clocks(&recordings), ..question });
    recordings.iter_mut().for_each(|recording| recording.set_range(times));
    let question = Question { view: View::on_own_clocks(&recordings), ..question };
    let needed = NeededEvents {
        ids,
        from_ns: Some(times.from_ns),
        to_ns: Some(times.to_ns),
        events: Vec::new(),
        fields: false,
        comm: false,
    };
    let before = recordings[0].bytes_read();
    let written = write_needed_events(question, &needed, &mut Nowhere, &|_| ()).unwrap();
    (recordings[0].bytes_read() - before, written.rows.first().unwrap().1)
}

#[test]
fn blocks_of_other_times_are_not_read() {
    let (all_bytes, all_rows) = read(TimeRange::ALL);
    let recording = unpacked();
    assert_eq!(all_bytes, recording.stored_len());
    let (first, last) = recording.first_and_last_ns().unwrap();
    let from_ns = first + (last - first) / 2;
    let (bytes, rows) = read(TimeRange { from_ns, to_ns: from_ns + (last - first) / 20 });
    assert!(rows > 1_000 && rows * 10 < all_rows, "{rows} of {all_rows} rows");
    assert!(bytes > 0 && bytes * 5 < all_bytes, "{bytes} of {all_bytes} bytes");
}
