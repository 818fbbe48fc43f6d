//! The records of a CPU in a buffer, in blocks that can be decoded independently.

use std::ops::Range;
use std::slice::Chunks;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use ftrace::ringbuf::{Missed, Page, PageDamage, PageLayout};
use sys::FileMap;
use tracedat::{Chunk, ChunkReader};

use crate::Damage;
use crate::part::{InPart, StreamPart};
use crate::records::{ListedPackets, Packet, RecordList, RecordSource};

/// The records of a CPU in a buffer, in time order.
#[derive(Clone, Debug)]
pub struct Stream {
    pub(crate) cpu: u32,
    pub(crate) buffer: usize,
    pub(crate) records: StreamRecords,
    pub(crate) cut: bool,
}

/// The storage of a stream's records.
#[derive(Clone, Debug)]
pub(crate) enum StreamRecords {
    /// On ring-buffer pages.
    Pages(Pages),
    /// In another kind of input.
    Listed(Arc<dyn RecordSource>),
}

/// Pages of a CPU.
#[derive(Clone, Debug)]
pub(crate) struct Pages {
    /// Index in the recording's files.
    pub(crate) file: usize,
    pub(crate) layout: PageLayout,
    pub(crate) chunks: Vec<Chunk>,
}

/// Some consecutive records of a stream.
#[derive(Clone, Copy, Debug)]
pub struct Block<'a> {
    contents: Contents<'a>,
    /// The selected records; `None` selects all.
    part: Option<StreamPart<'a>>,
    /// Set if a packet cannot be read, or if events were lost before a packet.
    gap_seen: Option<&'a AtomicBool>,
}

#[derive(Clone, Copy, Debug)]
enum Contents<'a> {
    Pages(PageBlock<'a>),
    Listed(&'a RecordList),
}

/// Some consecutive pages of a stream.
#[derive(Clone, Copy, Debug)]
pub struct PageBlock<'a> {
    /// Complete pages; the last can be truncated.
    pub bytes: &'a [u8],
    /// Layout of the pages.
    pub layout: &'a PageLayout,
    /// File offset of the first page, or of the compressed chunk with all of them.
    offset: u64,
    /// Whether the pages are stored uncompressed in the file.
    stored: bool,
}

impl<'a> PageBlock<'a> {
    fn packets(&self) -> PagePackets<'a> {
        PagePackets {
            rest: self.bytes.chunks(self.layout.page_size),
            layout: self.layout,
            offset: self.offset,
            step: if self.stored { self.layout.page_size as u64 } else { 0 },
        }
    }
}

/// The pages of a block, each with its offset in the file.
#[derive(Clone, Debug)]
struct PagePackets<'a> {
    rest: Chunks<'a, u8>,
    layout: &'a PageLayout,
    offset: u64,
    step: u64,
}

/// The packets of a block, each with its offset in the file.
#[derive(Clone, Debug)]
enum Packets<'a> {
    Pages(PagePackets<'a>),
    Listed(ListedPackets<'a>),
}

impl<'a> Iterator for Packets<'a> {
    type Item = (u64, Result<Packet<'a>, PageDamage>);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        match self {
            Self::Pages(pages) => {
                let page = Page::parse(pages.rest.next()?, pages.layout);
                let offset = pages.offset;
                pages.offset = offset.saturating_add(pages.step);
                Some((offset, page.map(Packet::from)))
            }
            Self::Listed(listed) => listed.next().map(|(offset, packet)| (offset, Ok(packet))),
        }
    }
}

impl<'a> Block<'a> {
    /// Its packets with their file offsets, or why a packet cannot be read. Packets of compressed
    /// pages have the offset of their chunk.
    pub fn packets(&self) -> impl Iterator<Item = (u64, Result<Packet<'a>, PageDamage>)> + use<'a> {
        let packets = match self.contents {
            Contents::Pages(pages) => Packets::Pages(pages.packets()),
            Contents::Listed(list) => Packets::Listed(ListedPackets::new(list)),
        };
        let gap_seen = self.gap_seen;
        InPart::new(self.part, packets).inspect(move |(_, packet)| {
            let is_whole = packet.as_ref().is_ok_and(|packet| packet.missed == Missed::Nothing);
            if let (false, Some(gap_seen)) = (is_whole, gap_seen) {
                gap_seen.store(true, Relaxed);
            }
        })
    }

    /// [`Block::packets`], each with the time stamp of the following packet if it can be read: this
    /// shows which of two packets has a wrong time stamp.
    pub fn packets_and_next(
        &self,
    ) -> impl Iterator<Item = (u64, Result<Packet<'a>, PageDamage>, Option<u64>)> + use<'a> {
        let mut packets = self.packets().peekable();
        std::iter::from_fn(move || {
            let (offset, packet) = packets.next()?;
            let next = packets.peek().and_then(|(_, next)| Some(next.as_ref().ok()?.stamp));
            Some((offset, packet, next))
        })
    }

    /// Its pages as recorded; `None` if it has no pages, or if some of their records are not
    /// selected.
    #[must_use]
    pub fn pages(&self) -> Option<PageBlock<'a>> {
        match self.contents {
            Contents::Pages(pages) if self.part.is_none() => Some(pages),
            _ => None,
        }
    }

    /// The same block, which records whether events are missing in the data that is read.
    pub(crate) fn noting_gaps(self, gap_seen: &'a AtomicBool) -> Self {
        Self { gap_seen: Some(gap_seen), ..self }
    }

    /// Selects the records in a part of the recording.
    pub(crate) fn within(self, part: Option<StreamPart<'a>>) -> Self {
        Self { part, ..self }
    }
}

/// Reads blocks. Each worker thread has one, for the memory of decompression.
#[derive(Debug, Default)]
pub struct BlockReader {
    chunks: ChunkReader,
    stored: Vec<u8>,
    list: RecordList,
}

impl BlockReader {
    pub(crate) fn read<'a>(
        &'a mut self,
        files: &'a [FileMap],
        stream: &'a Stream,
        index: usize,
    ) -> Result<Block<'a>, Damage> {
        let pages = match &stream.records {
            StreamRecords::Pages(pages) => pages,
            StreamRecords::Listed(source) => {
                self.list.clear();
                source.read(index, &mut self.list)?;
                return Ok(Block {
                    contents: Contents::Listed(&self.list),
                    part: None,
                    gap_seen: None,
                });
            }
        };
        let missing = |what: &str| Damage::on_cpu(stream.cpu, 0, what.to_owned());
        let file = files.get(pages.file).ok_or_else(|| missing("its file is gone"))?;
        let chunk = pages.chunks.get(index).ok_or_else(|| missing("a block is missing"))?;
        let on_cpu = |what| Damage::on_cpu(stream.cpu, chunk.offset, what);
        let stored = chunk.compression == tracedat::Compression::None;
        let bytes = if stored {
            file.read_at(chunk.offset, chunk.stored as usize, &mut self.stored)
                .map_err(|error| on_cpu(error.to_string()))?
        } else {
            self.chunks.read(file, chunk).map_err(|damage| on_cpu(damage.what))?
        };
        let layout = &pages.layout;
        let pages = PageBlock { bytes, layout, offset: chunk.offset, stored };
        Ok(Block { contents: Contents::Pages(pages), part: None, gap_seen: None })
    }
}

impl Stream {
    /// Number of the CPU.
    #[must_use]
    pub fn cpu(&self) -> u32 {
        self.cpu
    }

    /// Index of the buffer (0 is the top-level buffer; instances follow).
    #[must_use]
    pub fn buffer(&self) -> usize {
        self.buffer
    }

    /// Layout of its pages; `None` if its records are not on pages.
    #[must_use]
    pub fn page_layout(&self) -> Option<&PageLayout> {
        match &self.records {
            StreamRecords::Pages(pages) => Some(&pages.layout),
            StreamRecords::Listed(_) => None,
        }
    }

    /// Whether pages that the file should have are missing after the last block.
    #[must_use]
    pub fn is_cut(&self) -> bool {
        self.cut
    }

    /// Number of blocks.
    #[must_use]
    pub fn block_count(&self) -> usize {
        match &self.records {
            StreamRecords::Pages(pages) => pages.chunks.len(),
            StreamRecords::Listed(source) => source.block_count(),
        }
    }

    /// Size of a block in the file in bytes; 0 past the last block.
    #[must_use]
    pub fn block_len(&self, index: usize) -> u64 {
        match &self.records {
            StreamRecords::Pages(pages) => {
                pages.chunks.get(index).map_or(0, |chunk| u64::from(chunk.stored))
            }
            StreamRecords::Listed(source) => source.stored_len(index),
        }
    }

    /// Size of a block's pages after decompression according to the file, or of its records in
    /// memory; 0 past the last block.
    #[must_use]
    pub fn unpacked_len(&self, index: usize) -> u64 {
        match &self.records {
            StreamRecords::Pages(pages) => {
                pages.chunks.get(index).map_or(0, |chunk| u64::from(chunk.size))
            }
            StreamRecords::Listed(source) => source.unpacked_len(index),
        }
    }

    /// Splits stored pages into blocks of at most `most_bytes`, but at least a page.
    pub(crate) fn part(&mut self, most_bytes: u32) {
        if let StreamRecords::Pages(pages) = &mut self.records {
            pages.part(most_bytes);
        }
    }

    /// The first time stamp of a block of stored pages; `None` if it is compressed, or cannot be
    /// read.
    pub(crate) fn first_stamp(&self, files: &[FileMap], index: usize) -> Option<u64> {
        let StreamRecords::Pages(pages) = &self.records else { return None };
        let chunk = pages.chunks.get(index)?;
        if chunk.compression != tracedat::Compression::None {
            return None;
        }
        let len = (chunk.stored as usize).min(pages.layout.page_size);
        let mut buffer = Vec::new();
        let bytes = files.get(pages.file)?.read_at(chunk.offset, len, &mut buffer).ok()?;
        Page::parse(bytes, &pages.layout).ok().map(|page| page.stamp)
    }

    /// Removes all other blocks. If the last block is removed, so is missing data after it.
    pub(crate) fn keep_blocks(&mut self, blocks: Range<usize>) {
        if let StreamRecords::Pages(pages) = &mut self.records {
            self.cut &= blocks.end >= pages.chunks.len();
            pages.chunks.truncate(blocks.end);
            pages.chunks.drain(..blocks.start.min(blocks.end));
        }
    }

    /// Total size of its blocks in the file.
    #[must_use]
    pub fn stored_len(&self) -> u64 {
        (0..self.block_count()).map(|index| self.block_len(index)).sum()
    }
}

impl Pages {
    fn part(&mut self, most_bytes: u32) {
        let page = u32::try_from(self.layout.page_size).unwrap_or(u32::MAX).max(1);
        let step = (most_bytes / page).max(1).saturating_mul(page);
        let chunks = std::mem::take(&mut self.chunks);
        for chunk in chunks {
            if chunk.compression != tracedat::Compression::None || chunk.stored <= step {
                self.chunks.push(chunk);
                continue;
            }
            for from in (0..chunk.stored).step_by(step as usize) {
                let size = step.min(chunk.stored - from);
                let offset = chunk.offset.saturating_add(u64::from(from));
                self.chunks.push(Chunk { offset, stored: size, size, ..chunk.clone() });
            }
        }
    }
}
