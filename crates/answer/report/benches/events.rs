//! Prints every event of a compressed recording in each style, and discards the output.

use std::error::Error;
use std::io;
use std::path::Path;
use std::slice;
use std::time::Duration;

use criterion::{Criterion, SamplingMode, Throughput};
use report::events::{EventsSummary, Machine, Style, write_events};
use sources::Recording;
use timeline::event_filter::Filter;

const RECORDINGS: [&str; 2] = ["x86-svm/host-guest.dat", "arm64/A.dat"];

const STYLES: [(&str, Style<'static>); 4] = [
    ("print text", Style::TraceCmd),
    ("print text by the kernel's formats", Style::Text),
    ("print raw fields", Style::Raw),
    ("print JSON lines", Style::Jsonl),
];

fn print_all(recording: &Recording, style: Style<'_>) -> io::Result<EventsSummary> {
    let machine = Machine { name: "host".to_owned(), level: 0, threads: None };
    let (filter, mut nowhere) = (Filter::default(), io::sink());
    write_events(slice::from_ref(recording), &[machine], &filter, style, &mut nowhere, &|_| ())
}

fn print(criterion: &mut Criterion, name: &str) -> Result<(), Box<dyn Error>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../fixtures").join(name);
    let recording = sources::open(&path)?;
    let first = recording.streams().first().and_then(|stream| stream.page_layout());
    let page_size = first.map_or(0, |layout| layout.page_size);
    let found = analyses::contents::contents(&recording, &|_| ());
    let pages: u64 = found.cpus.iter().map(|cpu| cpu.pages).sum();
    let throughput =
        Throughput::ElementsAndBytes { elements: found.total(), bytes: pages * page_size as u64 };

    let mut group = criterion.benchmark_group(name);
    group.sample_size(15).sampling_mode(SamplingMode::Flat);
    group.warm_up_time(Duration::from_millis(500)).measurement_time(Duration::from_secs(4));
    group.throughput(throughput);
    for (what, style) in STYLES {
        assert_eq!(print_all(&recording, style)?.printed, found.total(), "{name}: {what}");
        group.bench_function(what, |bencher| bencher.iter(|| print_all(&recording, style)));
    }
    group.finish();
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut criterion = Criterion::default().configure_from_args();
    for name in RECORDINGS {
        print(&mut criterion, name)?;
    }
    criterion.final_summary();
    Ok(())
}
