//! Reads the records of one stream, all or some, as pages.

use std::collections::HashSet;
use std::io::{self, Read};

use ftrace::ringbuf::{Missed, Page, PageLayout, PageWriter, Record};
use sources::{BlockReader, Packet, Recording, Stream};
use timeline::event_filter::Filter;

/// Page size for records that were not read from pages: records of text recordings may exceed the
/// page size of most kernels.
pub(crate) const PAGE_SIZE: usize = 8192;

/// The part of a stream to read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part<'a> {
    pub(crate) recording: &'a Recording,
    pub(crate) stream: &'a Stream,
    /// Event ids to include; `None`: all, including events without a format.
    pub(crate) ids: Option<&'a HashSet<u16>>,
    pub(crate) filter: &'a Filter,
    /// Write corrected times instead of recorded ones.
    pub(crate) corrected: bool,
}

impl Part<'_> {
    /// The page layout: the original one, or the default of the recorded kernel.
    fn layout(&self) -> PageLayout {
        let abi = self.recording.abi();
        let default = PageLayout { order: abi.order, commit: abi.long, page_size: PAGE_SIZE };
        self.stream.page_layout().copied().unwrap_or(default)
    }

    /// Whether pages can be copied unchanged.
    fn is_whole(&self) -> bool {
        let all_times = self.filter.from_ns.is_none() && self.filter.to_ns.is_none();
        self.ids.is_none() && all_times && !self.corrected
    }
}

/// The result of reading a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct StreamOutcome {
    /// Events written; for pages copied unchanged, all readable events.
    pub(crate) events: u64,
    /// Pages, records and blocks that could not be read.
    pub(crate) damaged: u64,
    /// Whether events were lost after the last one written.
    pub(crate) lost_at_end: bool,
}

/// Reads a part of a stream as pages.
#[derive(Debug)]
pub(crate) struct Pages<'a> {
    part: Part<'a>,
    blocks: BlockReader,
    next_block: usize,
    writer: PageWriter,
    /// Pages to be read, from `given` on.
    pages: Vec<u8>,
    given: usize,
    done: bool,
    pub(crate) outcome: StreamOutcome,
}

impl<'a> Pages<'a> {
    pub(crate) fn new(part: Part<'a>) -> Self {
        Self {
            writer: PageWriter::new(part.layout()),
            part,
            blocks: BlockReader::default(),
            next_block: 0,
            pages: Vec::new(),
            given: 0,
            done: false,
            outcome: StreamOutcome::default(),
        }
    }

    /// Processes the next block.
    fn advance(&mut self) {
        self.pages.clear();
        self.given = 0;
        let Part { recording, stream, .. } = self.part;
        if self.next_block >= stream.block_count() {
            self.writer.flush(&mut self.pages);
            self.outcome.lost_at_end = self.writer.pending_loss() != Missed::Nothing;
            self.done = true;
            return;
        }
        let mut blocks = std::mem::take(&mut self.blocks);
        match recording.block(stream, self.next_block, &mut blocks) {
            Ok(block) => match block.pages().filter(|_| self.part.is_whole()) {
                Some(pages) => pages.bytes.chunks(pages.layout.page_size).for_each(|bytes| {
                    self.page(bytes, pages.layout);
                }),
                None => block.packets().for_each(|(_, packet)| match packet {
                    Ok(packet) => self.part_of(&packet),
                    Err(_) => self.damage(),
                }),
            },
            Err(_) => self.damage(),
        }
        self.next_block += 1;
        self.blocks = blocks;
    }

    fn damage(&mut self) {
        self.outcome.damaged += 1;
        self.writer.missed(Missed::Unknown);
    }

    /// Copies a page unchanged.
    fn page(&mut self, bytes: &[u8], layout: &PageLayout) {
        let Ok(page) = Page::parse(bytes, layout) else { return self.damage() };
        let mut events = 0;
        let sound = page.for_each(|_| events += 1).is_ok();
        self.outcome.events += events;
        self.outcome.damaged += u64::from(!sound);
        self.pages.extend_from_slice(bytes);
        // A file may end after the data of its last page.
        let end = self.pages.len().next_multiple_of(layout.page_size.max(1));
        self.pages.resize(end, 0);
    }

    /// Adds the wanted records.
    fn part_of(&mut self, packet: &Packet<'_>) {
        let Part { recording, stream, ids, filter, corrected } = self.part;
        let (correction, cpu) = (recording.correction(stream), stream.cpu());
        // A loss before the first wanted event does not concern the part.
        if filter.from_ns.is_none_or(|from_ns| correction.ns(packet.stamp, cpu) >= from_ns) {
            self.writer.missed(packet.missed);
        }
        let (order, type_at) = (recording.abi().order, recording.formats().type_at());
        let (writer, pages, outcome) = (&mut self.writer, &mut self.pages, &mut self.outcome);
        let result = packet.for_each(|Record { stamp, payload }| {
            let stamp_ns = correction.ns(stamp, cpu);
            let id = type_at.read(payload, order).unwrap_or(0) as u16;
            if !filter.wants_time(stamp_ns) || ids.is_some_and(|ids| !ids.contains(&id)) {
                return;
            }
            let stamp = if corrected { stamp_ns } else { stamp };
            match writer.push(stamp, payload, pages) {
                Ok(()) => outcome.events += 1,
                // No page of this size can have held it, so its length is damaged.
                Err(_) => outcome.damaged += 1,
            }
        });
        if result.is_err() {
            self.damage();
        }
    }
}

impl Read for Pages<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.given >= self.pages.len() && !self.done {
            self.advance();
        }
        let rest = self.pages.get(self.given..).unwrap_or(&[]);
        let count = rest.len().min(buffer.len());
        if let (Some(to), Some(from)) = (buffer.get_mut(..count), rest.get(..count)) {
            to.copy_from_slice(from);
        }
        self.given += count;
        Ok(count)
    }
}
