//! The samples of tracepoints on one CPU, which are converted to records on demand.

use std::sync::Arc;

use ftrace::ringbuf::Missed;

use super::bytes::Bytes;
use crate::Damage;
use crate::records::{RecordList, RecordSource};

/// Samples per block.
const BLOCK_SAMPLES: usize = 4096;
/// Overhead of a record in a list, in bytes.
const LISTED_BYTES: u64 = 16;

/// A sample, or a loss before the next one.
#[derive(Clone, Copy, Debug)]
struct Place {
    time_ns: u64,
    /// Offset of its bytes in the file, or of the record that reports the loss.
    offset: u64,
    /// Length in bytes; [`LOSS`] marks a loss.
    len: u32,
}

/// Marks a loss in place of a length.
const LOSS: u32 = u32::MAX;

/// Positions of the samples of a CPU in the file.
#[derive(Debug, Default)]
pub(super) struct CpuSamples {
    places: Vec<Place>,
    /// Losses by the offset of the record that reports them.
    losses: Vec<(u64, Missed)>,
    /// Records lost after the last one.
    lost_at_the_end: u64,
}

impl CpuSamples {
    pub(super) fn sample(&mut self, time_ns: u64, offset: u64, len: u32) {
        if len != LOSS {
            self.places.push(Place { time_ns, offset, len });
        }
    }

    /// Records are missing before the next one; `count` is `None` if the number is unknown.
    pub(super) fn lost(&mut self, time_ns: u64, offset: u64, count: Option<u64>) {
        self.places.push(Place { time_ns, offset, len: LOSS });
        self.losses.push((offset, count.map_or(Missed::Unknown, Missed::Events)));
    }

    /// Records are missing after the last one.
    pub(super) fn lost_at_the_end(&mut self, count: u64) {
        self.lost_at_the_end = count;
    }

    /// Sorts all by time; equal times stay in file order. Called after all have been added.
    pub(super) fn sort(&mut self) {
        if !self.places.is_sorted_by_key(|place| place.time_ns) {
            self.places.sort_by_key(|place| place.time_ns);
        }
        if self.lost_at_the_end > 0 {
            let last = self.places.last().map_or(0, |place| place.time_ns);
            // No record reports this loss.
            self.lost(last, u64::MAX, Some(self.lost_at_the_end));
        }
        self.losses.sort_unstable_by_key(|(offset, _)| *offset);
    }
}

/// A CPU of a perf.data.
#[derive(Debug)]
pub(super) struct PerfStream {
    cpu: u32,
    bytes: Arc<Bytes>,
    samples: CpuSamples,
}

impl PerfStream {
    pub(super) fn new(cpu: u32, bytes: Arc<Bytes>, samples: CpuSamples) -> Self {
        Self { cpu, bytes, samples }
    }

    fn block(&self, block: usize) -> &[Place] {
        let places = &self.samples.places;
        let from = block.saturating_mul(BLOCK_SAMPLES).min(places.len());
        let to = from.saturating_add(BLOCK_SAMPLES).min(places.len());
        places.get(from..to).unwrap_or(&[])
    }

    fn missed(&self, place: Place) -> Missed {
        let losses = &self.samples.losses;
        let at = losses.binary_search_by_key(&place.offset, |(offset, _)| *offset);
        at.ok().and_then(|at| losses.get(at)).map_or(Missed::Unknown, |(_, missed)| *missed)
    }

    fn len(&self, block: usize) -> u64 {
        let samples = self.block(block).iter().filter(|place| place.len != LOSS);
        samples.map(|place| u64::from(place.len)).sum()
    }
}

impl RecordSource for PerfStream {
    fn block_count(&self) -> usize {
        self.samples.places.len().div_ceil(BLOCK_SAMPLES)
    }

    fn stored_len(&self, block: usize) -> u64 {
        self.len(block)
    }

    fn unpacked_len(&self, block: usize) -> u64 {
        let places = self.block(block).len() as u64;
        self.len(block).saturating_add(places.saturating_mul(LISTED_BYTES))
    }

    fn read(&self, block: usize, list: &mut RecordList) -> Result<(), Damage> {
        let mut cut = None;
        for &place in self.block(block) {
            let offset = self.bytes.in_file(place.offset);
            if place.len == LOSS {
                list.missed(self.missed(place), place.time_ns, offset);
                continue;
            }
            match self.bytes.get(place.offset, place.len) {
                Some(bytes) => {
                    list.push(place.time_ns, offset, |out| out.extend_from_slice(bytes));
                }
                None => cut = cut.or(Some(offset)),
            }
        }
        let what = || "samples disappeared after the file was opened".to_owned();
        cut.map_or(Ok(()), |offset| Err(Damage::on_cpu(self.cpu, offset, what())))
    }
}
