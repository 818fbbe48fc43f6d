//! Benchmarks opening a recording and analysing its exits and contents. The recordings are compressed, so
//! decompression is part of the measured time; `sources/benches/pages.rs` measures it alone.

use std::error::Error;
use std::path::Path;
use std::time::Duration;

use analyses::contents::contents;
use analyses::exits::exits;
use analyses::group::By;
use criterion::{Criterion, SamplingMode, Throughput};

const RECORDINGS: [&str; 2] = ["x86-svm/nested.dat", "arm64/A.dat"];

/// A grouping that needs the events with the details of exits.
const BY_DETAIL: [By; 4] = [By::Reason, By::Msr, By::Port, By::Gpa];

fn ask(criterion: &mut Criterion, name: &str) -> Result<(), Box<dyn Error>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../fixtures").join(name);
    let recording = sources::open(&path)?;
    let found = contents(&recording, &|_| ());
    assert_eq!(found.pages_damaged(), 0, "{name} is damaged");

    let mut group = criterion.benchmark_group(name);
    group.sample_size(15).sampling_mode(SamplingMode::Flat);
    group.warm_up_time(Duration::from_millis(500)).measurement_time(Duration::from_secs(4));
    group.throughput(Throughput::Bytes(path.metadata()?.len()));
    group.bench_function("open", |bencher| bencher.iter(|| sources::open(&path)));

    let first = recording.streams().first().and_then(|stream| stream.page_layout());
    let page_size = first.map_or(0, |layout| layout.page_size);
    let pages: u64 = found.cpus.iter().map(|cpu| cpu.pages).sum();
    let bytes = pages * page_size as u64;
    group.throughput(Throughput::ElementsAndBytes { elements: found.total(), bytes });
    group.bench_function("contents", |bencher| bencher.iter(|| contents(&recording, &|_| ())));
    group.bench_function("exits by vm,level,reason", |bencher| {
        bencher.iter(|| exits(&recording, &By::DEFAULT, &|_| ()));
    });
    group.bench_function("exits by reason,msr,port,gpa", |bencher| {
        bencher.iter(|| exits(&recording, &BY_DETAIL, &|_| ()));
    });
    group.finish();
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut criterion = Criterion::default().configure_from_args();
    for name in RECORDINGS {
        ask(&mut criterion, name)?;
    }
    criterion.final_summary();
    Ok(())
}
