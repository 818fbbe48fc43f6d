//! One CPU's pages of one buffer, in blocks that can be decoded independently.

use ringbuf::{Page, PageDamage, PageLayout};
use sys::FileMap;
use tracedat::{Chunk, ChunkReader};

use crate::Damage;

/// The pages of one CPU in one buffer, in time order.
#[derive(Clone, Debug)]
pub struct Stream {
    pub(crate) cpu: u32,
    pub(crate) buffer: usize,
    pub(crate) file: usize,
    pub(crate) layout: PageLayout,
    pub(crate) chunks: Vec<Chunk>,
    pub(crate) cut: bool,
}

/// Some consecutive pages of a stream.
#[derive(Clone, Copy, Debug)]
pub struct Block<'a> {
    /// Whole pages; the last may be cut short.
    pub bytes: &'a [u8],
    /// Offset in the file of the first page, or of the compressed chunk that holds all of them.
    pub offset: u64,
    /// Whether the pages lie in the file as they are.
    pub stored: bool,
}

impl<'a> Block<'a> {
    /// The pages, laid out as `layout` says, each with its offset in the file: of packed ones that
    /// of the chunk they are in.
    pub fn pages(
        &self,
        layout: &PageLayout,
    ) -> impl Iterator<Item = (u64, Result<Page<'a>, PageDamage>)> {
        let (first, step) = (self.offset, if self.stored { layout.page_size as u64 } else { 0 });
        let pages = self.bytes.chunks(layout.page_size).map(|bytes| Page::parse(bytes, layout));
        (0_u64..).zip(pages).map(move |(at, page)| (first.saturating_add(at * step), page))
    }

    /// [`Block::pages`], each with the stamp of the page behind it where that can be read: by that one
    /// is seen which of two pages has a wrong stamp.
    pub fn pages_and_next(
        &self,
        layout: &PageLayout,
    ) -> impl Iterator<Item = (u64, Result<Page<'a>, PageDamage>, Option<u64>)> {
        let mut pages = self.pages(layout).peekable();
        std::iter::from_fn(move || {
            let (offset, page) = pages.next()?;
            let next = pages.peek().and_then(|(_, next)| Some(next.as_ref().ok()?.stamp));
            Some((offset, page, next))
        })
    }
}

/// Reads blocks; one per worker thread, for the memory compressed chunks are unpacked into.
#[derive(Debug, Default)]
pub struct BlockReader {
    chunks: ChunkReader,
    stored: Vec<u8>,
}

impl BlockReader {
    pub(crate) fn read<'a>(
        &'a mut self,
        file: &'a FileMap,
        stream: &Stream,
        index: usize,
    ) -> Result<Block<'a>, Damage> {
        let missing = || Damage::on_cpu(stream.cpu, 0, format!("no block {index}"));
        let chunk = stream.chunks.get(index).ok_or_else(missing)?;
        let on_cpu = |what| Damage::on_cpu(stream.cpu, chunk.offset, what);
        let stored = chunk.compression == tracedat::Compression::None;
        let bytes = if stored {
            file.read_at(chunk.offset, chunk.stored as usize, &mut self.stored)
                .map_err(|error| on_cpu(error.to_string()))?
        } else {
            self.chunks.read(file, chunk).map_err(|damage| on_cpu(damage.what))?
        };
        Ok(Block { bytes, offset: chunk.offset, stored })
    }
}

impl Stream {
    /// Number of the CPU.
    #[must_use]
    pub fn cpu(&self) -> u32 {
        self.cpu
    }

    /// Index of the buffer (the top one is 0, instances follow).
    #[must_use]
    pub fn buffer(&self) -> usize {
        self.buffer
    }

    /// How its pages are laid out.
    #[must_use]
    pub fn layout(&self) -> &PageLayout {
        &self.layout
    }

    /// Whether pages that the file says it has are missing after the last block.
    #[must_use]
    pub fn is_cut(&self) -> bool {
        self.cut
    }

    /// Number of blocks.
    #[must_use]
    pub fn block_count(&self) -> usize {
        self.chunks.len()
    }

    /// Bytes a block takes in the file; 0 past the last.
    #[must_use]
    pub fn block_len(&self, index: usize) -> u64 {
        self.chunks.get(index).map_or(0, |chunk| u64::from(chunk.stored))
    }

    /// Bytes of the pages that a block says it holds; 0 past the last.
    #[must_use]
    pub fn unpacked_len(&self, index: usize) -> u64 {
        self.chunks.get(index).map_or(0, |chunk| u64::from(chunk.size))
    }

    /// Parts stored pages into blocks of at most `most_bytes`, or of a page.
    pub(crate) fn part(&mut self, most_bytes: u32) {
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

    /// Bytes all blocks take in the file.
    #[must_use]
    pub fn stored_len(&self) -> u64 {
        self.chunks.iter().map(|chunk| u64::from(chunk.stored)).sum()
    }
}
