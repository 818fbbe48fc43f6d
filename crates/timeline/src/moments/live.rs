//! Moments of a machine that runs: pages as its kernel gives them, put in the order of their times as
//! far as nothing before can follow.

use eventfmt::EventFormat;
use ringbuf::{Missed, Page, PageLayout};
use sources::FormatTable;

use super::decode::{MomentBatch, Reader};
use super::{Gap, Moment, MomentSink, Wanted};

/// What waits for its turn.
#[derive(Clone, Copy, Debug)]
enum Next {
    Gap(Gap),
    Moment(Moment),
}

impl Next {
    const fn stamp(&self) -> u64 {
        match self {
            Self::Gap(gap) => gap.from_ns,
            Self::Moment(moment) => moment.stamp_ns,
        }
    }
}

/// Reads the pages of all CPUs of one machine while it is recorded. Times are those of the machine's
/// trace clock, whatever its unit is.
#[derive(Debug)]
pub struct LiveMoments {
    reader: Reader,
    layout: PageLayout,
    batch: MomentBatch,
    waiting: Vec<Next>,
    /// By CPU: the time of its last event, or of the page that would have held it.
    reached: Vec<u64>,
    given_to: u64,
    late: u64,
    lost: u64,
}

impl LiveMoments {
    /// Begins with a machine's formats; pages of so many CPUs come in this layout.
    #[must_use]
    pub fn new(
        formats: &FormatTable,
        layout: PageLayout,
        cpus: usize,
        wanted: impl Fn(&EventFormat) -> Option<Wanted>,
    ) -> Self {
        Self {
            reader: Reader::new(formats, layout.order, wanted).without_names(),
            layout,
            batch: MomentBatch::default(),
            waiting: Vec::new(),
            reached: vec![0; cpus],
            given_to: 0,
            late: 0,
            lost: 0,
        }
    }

    /// Takes the next page of the CPU at `index`, whose number is `cpu`, full or not.
    pub fn page(&mut self, index: usize, cpu: u16, bytes: &[u8]) {
        let Some(reached) = self.reached.get_mut(index) else { return };
        let gap = |from_ns, to_ns| Next::Gap(Gap { recording: 0, cpu, from_ns, to_ns });
        let Ok(page) = Page::parse(bytes, &self.layout) else {
            // Where it would have ended nobody knows: the next page tells.
            self.lost += 1;
            self.waiting.push(gap(*reached, u64::MAX));
            return;
        };
        let missed = match page.missed {
            Missed::Nothing => 0,
            Missed::Unknown => 1,
            Missed::Events(count) => count.max(1),
        };
        if missed > 0 {
            self.lost = self.lost.saturating_add(missed);
            self.waiting.push(gap(*reached, page.stamp.max(*reached)));
        }
        let mut last = page.stamp;
        let (reader, batch) = (&self.reader, &mut self.batch);
        let read = page.for_each(|record| {
            last = record.stamp;
            reader.record((0, cpu, record.stamp), record.payload, batch);
        });
        self.waiting.extend(self.batch.moments.drain(..).map(Next::Moment));
        *reached = last.max(*reached);
        if read.is_err() {
            self.lost += 1;
            self.waiting.push(gap(*reached, *reached));
        }
    }

    /// Gives `sink` all before a moment, in order. Pages taken later may hold nothing before it: what
    /// does so all the same is given then, and counted.
    pub fn give(&mut self, until: u64, sink: &mut impl MomentSink) {
        // Those of one CPU stay in their order.
        self.waiting.sort_by_key(Next::stamp);
        let ready = self.waiting.partition_point(|next| next.stamp() < until);
        for next in self.waiting.drain(..ready) {
            self.late += u64::from(next.stamp() < self.given_to);
            match next {
                Next::Gap(gap) => sink.gap(&gap),
                Next::Moment(moment) => sink.moment(&moment),
            }
        }
        self.given_to = self.given_to.max(until);
    }

    /// Events that came after what had happened after them was given.
    #[must_use]
    pub fn late(&self) -> u64 {
        self.late
    }

    /// Events that were lost, as far as the kernel counted them; a page that could not be read is one.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.lost
    }
}
