//! Walking the records of real pages that lie unpacked in memory: both ways that `ringbuf` has, and
//! the naive decoder as the yardstick. What unpacking costs is measured with them.

use std::error::Error;
use std::hint::black_box;
use std::path::Path;
use std::time::Duration;

use criterion::{Criterion, SamplingMode, Throughput};
use ftrace::ringbuf::{Page, PageLayout};
use sources::{BlockReader, Recording};
use testkit::naive;

const RECORDINGS: [&str; 2] = ["x86-svm/nested.dat", "arm64/A.dat"];

/// Pages the naive decoder is given: it copies every record.
const NAIVE_PAGES: usize = 256;

/// Pages of one recording.
struct Pages {
    layout: PageLayout,
    /// One after the other, as unpacked from blocks.
    blocks: Vec<Vec<u8>>,
}

impl Pages {
    fn read(recording: &Recording) -> Result<Self, Box<dyn Error>> {
        let first = recording.streams().first().ok_or("a recording without pages")?;
        let mut blocks = Vec::new();
        each_block(recording, |pages| blocks.push(pages.to_vec()))?;
        let layout = *first.page_layout().ok_or("a recording without pages")?;
        Ok(Self { layout, blocks })
    }

    fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.blocks.iter().flat_map(|block| block.chunks(self.layout.page_size))
    }

    fn visited(&self) -> u64 {
        let mut events = 0;
        for bytes in self.iter() {
            if let Ok(page) = Page::parse(bytes, &self.layout) {
                let walked = page.for_each(|record| {
                    black_box(record);
                    events += 1;
                });
                black_box(walked.is_ok());
            }
        }
        events
    }

    fn counted(&self) -> u64 {
        let mut events = 0;
        for bytes in self.iter() {
            if let Ok(page) = Page::parse(bytes, &self.layout) {
                black_box(page.for_each(|_| events += 1).is_ok());
            }
        }
        events
    }

    fn iterated(&self) -> u64 {
        let pages = self.iter().filter_map(|bytes| Page::parse(bytes, &self.layout).ok());
        pages.map(|page| page.records().count() as u64).sum()
    }

    fn decoded_naively(&self, recording: &Recording) -> u64 {
        let pages = self.iter().take(NAIVE_PAGES);
        let pages = pages.filter_map(|bytes| naive::decode(recording.abi(), bytes));
        pages.map(|page| black_box(page).records.len() as u64).sum()
    }
}

/// Unpacks every block of every stream.
fn each_block(recording: &Recording, mut visit: impl FnMut(&[u8])) -> Result<(), Box<dyn Error>> {
    let mut reader = BlockReader::default();
    for stream in recording.streams() {
        for index in 0..stream.block_count() {
            let block = recording.block(stream, index, &mut reader);
            let pages = block.map_err(|damage| damage.to_string())?.pages();
            visit(pages.map_or(&[], |pages| pages.bytes));
        }
    }
    Ok(())
}

fn walk(criterion: &mut Criterion, name: &str) -> Result<(), Box<dyn Error>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../fixtures").join(name);
    let recording = sources::open(&path)?;
    let pages = Pages::read(&recording)?;
    let events = pages.counted();
    assert_eq!((pages.visited(), pages.iterated()), (events, events), "{name}: they disagree");

    let mut group = criterion.benchmark_group(name);
    group.sample_size(20).sampling_mode(SamplingMode::Flat);
    group.warm_up_time(Duration::from_millis(500)).measurement_time(Duration::from_secs(3));
    let bytes = pages.iter().map(|page| page.len() as u64).sum();
    group.throughput(Throughput::ElementsAndBytes { elements: events, bytes });
    group.bench_function("unpack all blocks", |bencher| {
        bencher.iter(|| each_block(&recording, |pages| _ = black_box(pages)).is_ok());
    });
    group.bench_function("count records by Page::for_each", |bencher| {
        bencher.iter(|| pages.counted());
    });
    group.bench_function("see stamp and payload by Page::for_each", |bencher| {
        bencher.iter(|| pages.visited());
    });
    group.bench_function("count records by Page::records", |bencher| {
        bencher.iter(|| pages.iterated());
    });

    let bytes = pages.iter().take(NAIVE_PAGES).map(|page| page.len() as u64).sum();
    let elements = pages.decoded_naively(&recording);
    group.throughput(Throughput::ElementsAndBytes { elements, bytes });
    group.bench_function("copy records by the naive decoder", |bencher| {
        bencher.iter(|| pages.decoded_naively(&recording));
    });
    group.finish();
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut criterion = Criterion::default().configure_from_args();
    for name in RECORDINGS {
        walk(&mut criterion, name)?;
    }
    criterion.final_summary();
    Ok(())
}
