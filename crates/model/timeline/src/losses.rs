//! What a recording lost, counted: losses are data and stand next to every result.

use ftrace::ringbuf::Missed;
use sources::{Damage, Damages, Doubt, Recording, Tracer};

/// Losses of one recording.
#[derive(Clone, Debug, Default)]
pub struct Losses {
    /// Events the kernel dropped, as far as it counted them.
    pub events_lost: u64,
    /// Places where it dropped events without a count.
    pub uncounted_losses: u64,
    /// Parts of the container, pages, records or compressed chunks that could not be read.
    pub damage: Damages,
    /// Records read.
    pub records: u64,
    /// Why that is not all there is to know of losses; none: it is.
    pub doubt: Option<Doubt>,
    /// What times are rounded to, in nanoseconds, where the recording is a text that shows no more.
    pub resolution_ns: Option<u64>,
    /// What recorded, and may have dropped, its events.
    pub tracer: Tracer,
    /// Facts that a reader of the recording needs besides.
    pub notes: Vec<String>,
    /// Events that the kernel kept, by its counts of whole CPUs, and that are not in the recording.
    pub events_missing: u64,
    /// Events the kernel dropped by its counts of whole CPUs.
    counted_at_end: u64,
    /// Events that it kept, by CPU and buffer, and those found.
    kept_counts: Vec<BufferCounts>,
}

/// Events of one CPU in one buffer.
#[derive(Clone, Copy, Debug)]
struct BufferCounts {
    cpu: u32,
    buffer: usize,
    /// By the kernel's count.
    counted: u64,
    found: u64,
}

impl BufferCounts {
    /// The counts of all CPUs whose streams are read; none where a part of the recording is.
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

    /// All pages were read. Pages that had no room for a count say only that events were dropped: the
    /// kernel's counts of whole CPUs have those, too.
    pub(crate) fn finish(&mut self) {
        self.events_lost = self.events_lost.max(self.counted_at_end);
        let missing =
            self.kept_counts.iter().map(|count| count.counted.saturating_sub(count.found));
        self.events_missing = missing.fold(0, u64::saturating_add);
    }

    /// Events that are not in the recording, as far as that is known; of places where the kernel dropped an
    /// unknown number, each counts as one.
    #[must_use]
    pub fn events_gone(&self) -> u64 {
        let dropped = self.events_lost.saturating_add(self.uncounted_losses);
        dropped.saturating_add(self.events_missing)
    }

    /// Whether it is known that nothing but this was lost.
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

/// Losses of one block, before it is known where in the recording it is.
#[derive(Debug, Default)]
pub(crate) struct BatchLosses {
    /// Events lost, as far as the kernel counted them.
    pub(crate) events_lost: u64,
    /// Places where an uncounted number of events was lost.
    pub(crate) uncounted_losses: u64,
    pub(crate) damage: Vec<Damage>,
    pub(crate) records: u64,
}

impl BatchLosses {
    /// What a page says was missed before it; whether that is anything.
    pub(crate) fn missed(&mut self, missed: Missed) -> bool {
        match missed {
            Missed::Nothing => return false,
            Missed::Unknown => self.uncounted_losses += 1,
            Missed::Events(count) => self.events_lost = self.events_lost.saturating_add(count),
        }
        true
    }
}
