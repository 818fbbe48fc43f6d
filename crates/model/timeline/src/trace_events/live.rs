//! Events of a running machine: pages from its kernel, merged in time order as far as no earlier
//! event can follow.

use ftrace::eventfmt::EventFormat;
use ftrace::ringbuf::{Missed, Page, PageLayout};
use sources::FormatTable;

use super::batch::TraceEventBatch;
use super::decode::Reader;
use super::{EventRequest, Gap, TraceEvent, TraceEventSink};

/// An item that waits for output.
#[derive(Clone, Copy, Debug)]
enum Next {
    Gap(Gap),
    Event(TraceEvent),
}

impl Next {
    const fn stamp(&self) -> u64 {
        match self {
            Self::Gap(gap) => gap.from_ns,
            Self::Event(event) => event.stamp_ns,
        }
    }
}

/// Progress of a CPU's pages.
#[derive(Clone, Copy, Debug, Default)]
struct Reached {
    /// Number of the CPU.
    cpu: u16,
    /// The time of its last event, or of the page that would have contained it.
    to: u64,
    /// Events are missing from this time up to the next readable page.
    missing_from: Option<u64>,
}

impl Reached {
    /// The missing part up to a time; it is reported once.
    fn gap_until(&mut self, until: u64) -> Option<Next> {
        let from_ns = self.missing_from.take()?;
        let to_ns = until.max(from_ns);
        Some(Next::Gap(Gap { recording: 0, cpu: self.cpu, from_ns, to_ns }))
    }
}

/// Reads the pages of all CPUs of a machine during recording. Times are on the machine's trace
/// clock, in its unit.
#[derive(Debug)]
pub struct LiveTraceEvents {
    reader: Reader,
    layout: PageLayout,
    batch: TraceEventBatch,
    waiting: Vec<Next>,
    cpus: Vec<Reached>,
    given_to: u64,
    late: u64,
    lost: u64,
}

impl LiveTraceEvents {
    /// Starts with a machine's formats; pages of `cpus` CPUs have this layout.
    #[must_use]
    pub fn new(
        formats: &FormatTable,
        layout: PageLayout,
        cpus: usize,
        wanted: impl Fn(&EventFormat) -> Option<EventRequest>,
    ) -> Self {
        Self {
            reader: Reader::new(formats, layout.order, wanted).without_names(),
            layout,
            batch: TraceEventBatch::default(),
            waiting: Vec::new(),
            cpus: vec![Reached::default(); cpus],
            given_to: 0,
            late: 0,
            lost: 0,
        }
    }

    /// Processes the next page of the CPU at `index`, whose number is `cpu`; the page can be
    /// partial.
    pub fn page(&mut self, index: usize, cpu: u16, bytes: &[u8]) {
        let Some(reached) = self.cpus.get_mut(index) else { return };
        reached.cpu = cpu;
        let Ok(page) = Page::parse(bytes, &self.layout) else {
            // The end time of the page is unknown until the next page arrives.
            self.lost += 1;
            reached.missing_from.get_or_insert(reached.to);
            return;
        };
        let missed = match page.missed {
            Missed::Nothing => 0,
            Missed::Unknown => 1,
            Missed::Events(count) => count.max(1),
        };
        if missed > 0 {
            self.lost = self.lost.saturating_add(missed);
            reached.missing_from.get_or_insert(reached.to);
        }
        self.waiting.extend(reached.gap_until(page.stamp));
        let mut last = page.stamp;
        let (reader, batch) = (&self.reader, &mut self.batch);
        let read = page.for_each(|record| {
            last = record.stamp;
            reader.record((0, cpu, record.stamp), record.payload, batch);
        });
        self.waiting.extend(self.batch.events.drain(..).map(Next::Event));
        reached.to = last.max(reached.to);
        if read.is_err() {
            self.lost += 1;
            reached.missing_from = Some(reached.to);
        }
    }

    /// Emits everything before `until` to `sink`, in order. Later pages should have no earlier
    /// events; earlier ones are emitted with the next call, and counted.
    pub fn give(&mut self, until: u64, sink: &mut impl TraceEventSink) {
        // Missing events may concern what is emitted now, whenever the next page arrives.
        for reached in &mut self.cpus {
            if reached.missing_from.is_some_and(|from| from < until) {
                self.waiting.extend(reached.gap_until(until));
                reached.missing_from = Some(until);
            }
        }
        // A stable sort: events of a CPU keep their order.
        self.waiting.sort_by_key(Next::stamp);
        let ready = self.waiting.partition_point(|next| next.stamp() < until);
        for next in self.waiting.drain(..ready) {
            self.late += u64::from(next.stamp() < self.given_to);
            match next {
                Next::Gap(gap) => sink.gap(&gap),
                Next::Event(event) => sink.event(&event),
            }
        }
        self.given_to = self.given_to.max(until);
    }

    /// Events that arrived after later events had been emitted.
    #[must_use]
    pub fn late(&self) -> u64 {
        self.late
    }

    /// Lost events that the kernel counted; an unreadable page counts as one.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.lost
    }
}

#[cfg(test)]
mod tests {
    use raw_bytes::{Abi, ByteOrder, LongSize};
    use testkit::{KernelFormats, Machine, PageBuilder};

    use super::*;

    const ABI: Abi = Abi { order: ByteOrder::Little, long: LongSize::Eight };
    const PAGE: usize = 4096;

    #[derive(Default)]
    struct Given {
        events: Vec<u64>,
        gaps: Vec<(u64, u64)>,
    }

    impl TraceEventSink for Given {
        fn event(&mut self, event: &TraceEvent) {
            self.events.push(event.stamp_ns);
        }

        fn gap(&mut self, gap: &Gap) {
            self.gaps.push((gap.from_ns, gap.to_ns));
        }
    }

    fn live(formats: &KernelFormats) -> LiveTraceEvents {
        let systems = formats.systems().into_iter();
        let texts =
            systems.flat_map(|(system, texts)| texts.into_iter().map(move |text| (system, text)));
        let table: FormatTable = texts
            .map(|(system, text)| EventFormat::parse(system, text.as_bytes()).unwrap())
            .collect();
        let layout = PageLayout { order: ABI.order, commit: ABI.long, page_size: PAGE };
        LiveTraceEvents::new(&table, layout, 2, |format| {
            (format.name() == "kvm_entry").then_some(EventRequest { tag: 0, fields: &[] })
        })
    }

    fn page(formats: &KernelFormats, at: u64) -> Vec<u8> {
        let mut page = PageBuilder::new(ABI, PAGE, at);
        page.event(5, &formats.event("kvm_entry").pid(7).set("vcpu_id", 0).build());
        page.build().bytes
    }

    /// An unreadable page: its commit is larger than any page.
    fn unreadable() -> Vec<u8> {
        vec![0xff; PAGE]
    }

    #[test]
    fn what_is_missing_ends_where_the_next_page_begins() {
        let formats = KernelFormats::new(Machine::X86, ABI);
        let (mut live, mut given) = (live(&formats), Given::default());
        live.page(0, 0, &page(&formats, 100));
        live.page(0, 0, &unreadable());
        live.page(0, 0, &unreadable());
        live.page(0, 0, &page(&formats, 300));
        live.page(0, 0, &page(&formats, 400));
        live.give(1000, &mut given);
        assert_eq!(given.events, [105, 305, 405]);
        assert_eq!(given.gaps, [(105, 300)]);
        assert_eq!((live.lost(), live.late()), (2, 0));
    }

    #[test]
    fn what_is_missing_is_reported_while_it_continues() {
        let formats = KernelFormats::new(Machine::X86, ABI);
        let (mut live, mut given) = (live(&formats), Given::default());
        live.page(0, 0, &page(&formats, 100));
        live.page(0, 0, &unreadable());
        live.page(1, 1, &page(&formats, 150));
        live.give(200, &mut given);
        live.give(250, &mut given);
        live.page(0, 0, &page(&formats, 300));
        live.give(400, &mut given);
        live.give(500, &mut given);
        assert_eq!(given.events, [105, 155, 305]);
        assert_eq!(given.gaps, [(105, 200), (200, 250), (250, 300)]);
        assert_eq!(live.late(), 0);
    }
}
