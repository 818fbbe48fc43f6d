//! Spans to a file, and back to events.

use std::sync::Arc;

use ftrace::ringbuf::{Missed, Page, PageLayout};
use shmring::SharedMap;
use shmring::spans::{Activity, By, SpanWriter};
use tracedat::TraceDat;

use super::*;

/// Event ids and names in the formats.
fn names(dat: &TraceDat) -> Vec<(u16, String)> {
    let name = |text: &str| {
        let after = |key: &str| text.split(key).nth(1).unwrap().lines().next().unwrap().to_owned();
        (after("ID: ").parse().unwrap(), after("name: "))
    };
    dat.formats.events.iter().map(|format| name(&format.text)).collect()
}

#[test]
fn a_recording_has_the_events_that_spans_are_made_of() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("steal.dat");
    let map = Arc::new(SharedMap::of_bytes(&vec![0; 1 << 20]).unwrap());
    let _writer = SpanWriter::lay_out(Arc::clone(&map), &[0, 2], 1_000_000_000, 0).unwrap();
    let reader = SpanReader::attach(map, false).unwrap();
    let rate = Rate::new(Some(1_000_000_000)).unwrap();
    let mut recording = Recording::begin(&path, &reader, rate).unwrap();
    let exit = |start_tsc, end, activity, begins_exit| Span {
        start_tsc,
        ticks: end - start_tsc,
        activity,
        by: By::Others,
        begins_exit,
        code: Some(0x60),
        isa: 2,
        level: 1,
    };
    let spans = [
        exit(200, 210, Activity::Kernel, true),
        exit(210, 400, Activity::Preempted, false),
        exit(400, 420, Activity::Kernel, false),
        exit(500, 510, Activity::Kernel, true),
        exit(510, 600, Activity::User, false),
        exit(600, 650, Activity::Kernel, false),
        // Another exit follows at once, and is cut where its activity is unknown.
        exit(650, 660, Activity::Kernel, true),
        Span { code: None, ..exit(660, 800, Activity::Unknown, false) },
        // The host's work begins before the exit.
        Span { code: None, ..exit(840, 850, Activity::Kernel, false) },
        exit(850, 860, Activity::Kernel, true),
        exit(860, 900, Activity::Asleep, false),
        exit(900, 910, Activity::Waiting, false),
        exit(910, 920, Activity::Kernel, false),
    ];
    for span in &spans {
        recording.span(1, span).unwrap();
    }
    recording.known([(0, 0), (2, 1000)].into_iter()).unwrap();
    recording.end(&Names::from([((2, 0x60), "interrupt".to_owned())])).unwrap();
    let entries: Vec<_> = fs::read_dir(folder.path()).unwrap().collect();
    assert_eq!(entries.len(), 1, "{entries:?}");

    let file = fs::read(&path).unwrap();
    let dat = TraceDat::parse(&file).unwrap();
    assert!(dat.damage.is_empty(), "{:?}", dat.damage);
    let names = names(&dat);
    let cpu = dat.buffers[0].cpus.iter().find(|cpu| cpu.cpu == 2).unwrap();
    let layout = PageLayout {
        order: ByteOrder::Little,
        commit: LongSize::Eight,
        page_size: PAGE_BYTES as usize,
    };
    let range = cpu.data.offset as usize..(cpu.data.offset + cpu.data.len) as usize;
    let (mut events, mut missed) = (Vec::new(), Vec::new());
    for page in file[range].chunks(PAGE_BYTES as usize) {
        let page = Page::parse(page, &layout).unwrap();
        missed.push(page.missed);
        page.for_each(|record| {
            let id = u16::from_le_bytes(record.payload[..2].try_into().unwrap());
            let (_, name) = names.iter().find(|(event_id, _)| *event_id == id).unwrap();
            events.push((record.stamp, name.trim_start_matches("kvm_").to_owned()));
        })
        .unwrap();
    }
    let events: Vec<(u64, &str)> = events.iter().map(|(at, name)| (*at, name.as_str())).collect();
    assert_eq!(
        events,
        [
            (200, "exit"),
            (210, "sched_switch"),
            (400, "sched_switch"),
            (420, "entry"),
            (500, "exit"),
            (510, "userspace_exit"),
            (600, "fpu"),
            (650, "entry"),
            (650, "exit"),
            (850, "exit"),
            (860, "sched_switch"),
            (900, "sched_waking"),
            (910, "sched_switch"),
            (920, "entry"),
        ]
    );
    assert_eq!(missed, [Missed::Nothing, Missed::Unknown]);
}
