//! A query for a part of the time has less of a recording read.

use std::collections::HashMap;
use std::io::{self, Write};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use lake::tables::EVENTS;
use lake::{Files, Ids, NeededEvents, Origin, Question, Table, identify, write_needed_events};
use report::events::Machine;
use sources::TimeRange;
use timeline::event_filter::Filter;

/// Files that nobody looks at.
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

/// Bytes that are read of a recording for events in a range, and rows that come of it.
fn read(times: TimeRange) -> (u64, u64) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let mut recordings = vec![sources::open(&root.join("fixtures/x86-svm/nested.dat")).unwrap()];
    let machines = [Machine { name: "host".into(), level: 0, threads: None }];
    let (origin, filter) = (Origin::default(), Filter::default());
    let processes = [HashMap::new()];
    let tables = [&EVENTS];
    let question = Question {
        recordings: &[],
        guests: &[],
        machines: &machines,
        processes: &processes,
        origin: &origin,
        range_ns: None,
        tables: &tables,
        written: &tables,
        events: &filter,
    };
    let ids = identify(&Question { recordings: &recordings, ..question });
    recordings.iter_mut().for_each(|one| one.set_range(times));
    let question = Question { recordings: &recordings, ..question };
    let needed = NeededEvents {
        ids,
        from_ns: Some(times.from_ns),
        to_ns: Some(times.to_ns),
        events: Vec::new(),
        fields: false,
        comm: false,
    };
    let bytes = AtomicU64::new(0);
    let tick = |done| {
        bytes.fetch_add(done, Ordering::Relaxed);
    };
    let written = write_needed_events(question, &needed, &mut Nowhere, &tick).unwrap();
    (bytes.into_inner(), written.rows.first().unwrap().1)
}

#[test]
fn blocks_of_other_times_are_not_read() {
    let (all_bytes, all_rows) = read(TimeRange::ALL);
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let recording = sources::open(&root.join("fixtures/x86-svm/nested.dat")).unwrap();
    let (first, last) = recording.first_and_last_ns().unwrap();
    let from_ns = first + (last - first) / 2;
    let (bytes, rows) = read(TimeRange { from_ns, to_ns: from_ns + (last - first) / 20 });
    assert!(rows > 1_000 && rows * 10 < all_rows, "{rows} of {all_rows} rows");
    assert!(bytes > 0 && bytes * 5 < all_bytes, "{bytes} of {all_bytes} bytes");
}
