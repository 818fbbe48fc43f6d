//! Counts what a recording lost: losses are data and accompany every result.

use ftrace::ringbuf::Missed;
use sources::{Damage, Damages, Doubt, Recording, Tracer};

/// Losses of one recording.
#[derive(Clone, Debug, Default)]
pub struct Losses {
    /// Events the kernel dropped, as far as it counted them.
    pub events_lost: u64,
    /// Places where the kernel dropped an unknown number of events.
    pub uncounted_losses: u64,
    /// Parts of the container, pages, records or compressed chunks that could not be read.
    pub damage: Damages,
    /// Records read.
    pub records: u64,
    /// Why the loss counts may be incomplete; `None` if they are complete.
    pub doubt: Option<Doubt>,
    /// The resolution of times in nanoseconds, if the recording is a text with rounded times.
    pub resolution_ns: Option<u64>,
    /// The tracer that recorded, and may have dropped, the events.
    pub tracer: Tracer,
    /// Other facts that readers of a report need.
    pub notes: Vec<String>,
    /// Events that the kernel kept according to its per-CPU counts, but that the recording does not
    /// have.
    pub events_missing: u64,
    /// Events that the kernel dropped according to its per-CPU counts.
    counted_at_end: u64,
    /// Events that the kernel kept and events that were found, by CPU and buffer.
    kept_counts: Vec<BufferCounts>,
}

/// Events of one CPU in one buffer.
#[derive(Clone, Copy, Debug)]
struct BufferCounts {
    cpu: u32,
    buffer: usize,
    /// According to the kernel.
    counted: u64,
    found: u64,
}

impl BufferCounts {
    /// The counts of all CPUs whose streams are read; none if only a part of the recording is read.
    fn for_recording(recording: &Recording) -> Vec<Self> {
        let buffers = &recording.info().buffers;
        let is_elsewhere = |cpu, buffer| {
            let mut streams = recording.streams().iter();
            let stream = streams.find(|stream| stream.cpu() == cpu && stream.buffer() == buffer);
            stream.is_some_and(|stream| !recording.correction(stream).is_on_recording_clock())
        };
        let counts = recording.ending().counts.iter().filter(|_| recording.is_whole());
        let kept_counts = counts.filter_map(|count| {
            let buffer = buffers.iter().position(|buffer| buffer.name == count.buffer)?;
            let (cpu, counted) = (count.cpu, count.events_kept?);
            (!is_elsewhere(cpu, buffer)).then_some(Self { cpu, buffer, counted, found: 0 })
        });
        kept_counts.collect()
    }
}

impl Losses {
    /// A recording's losses according to data outside its pages, before any page is read.
    #[must_use]
    pub fn of_container(recording: &Recording) -> Self {
        let (ending, info) = (recording.ending(), recording.info());
        let mut losses = Self {
            doubt: ending.doubt.clone(),
            counted_at_end: ending.lost(),
            resolution_ns: info.resolution_ns,
            tracer: info.tracer,
            notes: info.notes.clone(),
            kept_counts: BufferCounts::for_recording(recording),
            ..Self::default()
        };
        losses.damage.extend(recording.damage().iter().cloned());
        losses
    }

    /// Called after all pages. Pages without room for a count only say that events were dropped;
    /// the kernel's per-CPU counts include those events.
    pub(crate) fn finish(&mut self) {
        self.events_lost = self.events_lost.max(self.counted_at_end);
        let missing =
            self.kept_counts.iter().map(|count| count.counted.saturating_sub(count.found));
        self.events_missing = missing.fold(0, u64::saturating_add);
    }

    /// Known number of events that are not in the recording; a place where the kernel dropped an
    /// unknown number counts as one.
    #[must_use]
    pub fn events_gone(&self) -> u64 {
        let dropped = self.events_lost.saturating_add(self.uncounted_losses);
        dropped.saturating_add(self.events_missing)
    }

    /// Whether these losses are known to be complete.
    #[must_use]
    pub fn is_known(&self) -> bool {
        self.doubt.is_none() && self.damage.count() == 0
    }

    /// Adds the losses of a block of this CPU and buffer.
    pub(crate) fn merge(&mut self, batch: BatchLosses, cpu: u32, buffer: usize) {
        let mut counts = self.kept_counts.iter_mut();
        if let Some(count) = counts.find(|count| count.cpu == cpu && count.buffer == buffer) {
            count.found = count.found.saturating_add(batch.records);
        }
        self.events_lost = self.events_lost.saturating_add(batch.events_lost);
        self.uncounted_losses += batch.uncounted_losses;
        self.records += batch.records;
        self.damage.extend(batch.damage);
    }

    /// Parts of the container, pages, records and chunks that could not be read.
    #[must_use]
    pub fn pages_damaged(&self) -> u64 {
        self.damage.count()
    }
}

/// Losses of a block, before its position in the recording is known.
#[derive(Debug, Default)]
pub(crate) struct BatchLosses {
    /// Events lost, as far as the kernel counted them.
    pub(crate) events_lost: u64,
    /// Places where an unknown number of events was lost.
    pub(crate) uncounted_losses: u64,
    pub(crate) damage: Vec<Damage>,
    pub(crate) records: u64,
}

impl BatchLosses {
    /// Adds the loss before a page; returns whether there was one.
    pub(crate) fn missed(&mut self, missed: Missed) -> bool {
        match missed {
            Missed::Nothing => return false,
            Missed::Unknown => self.uncounted_losses += 1,
            Missed::Events(count) => self.events_lost = self.events_lost.saturating_add(count),
        }
        true
    }
}
