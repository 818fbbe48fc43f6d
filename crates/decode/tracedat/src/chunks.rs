//! Splits trace data into chunks that can be read independently and in parallel.

use crate::Damage;
use crate::buffers::{CpuData, DataRange};
use crate::compression::{Compression, Inflate};
use raw_bytes::{Cursor, bytes, counted, slice};

/// Consecutive pages of a CPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// Offset in the file.
    pub offset: u64,
    /// Size in the file in bytes.
    pub stored: u32,
    /// Decompressed size in bytes: whole pages, unless it is damaged.
    pub size: u32,
    /// Its compression.
    pub compression: Compression,
}

/// The chunks of a CPU in order, and damage in their list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chunks {
    /// Chunks that can be read.
    pub list: Vec<Chunk>,
    /// Chunks of implausible size, and other damage.
    pub damage: Vec<Damage>,
}

impl CpuData {
    /// The index of this CPU's chunks; uncompressed data is split into chunks, too.
    #[must_use]
    pub fn chunks(&self, file: &[u8]) -> Chunks {
        self.data.chunks(file)
    }

    /// This CPU's bytes as stored in the file: pages if not compressed.
    #[must_use]
    pub fn bytes<'a>(&self, file: &'a [u8]) -> &'a [u8] {
        self.data.bytes(file)
    }
}

/// Maximum plausible chunk size; trace-cmd writes chunks of ten pages, at most 64 KiB each on all
/// architectures unless the user enlarged the buffer's pages.
const MAX_IN_CHUNK: u32 = 8 << 20;
/// Chunk size for uncompressed data, unless pages are larger.
const STORED_CHUNK: u32 = 256 << 10;

/// trace-cmd 3.1.6 omits the chunk count from the length of compressed data, so the last chunk of
/// each CPU ends four bytes past it (all recordings in `fixtures/`).
const LENGTH_SHORT: u64 = 4;

impl DataRange {
    /// The bytes as stored in the file.
    #[must_use]
    pub fn bytes<'a>(&self, file: &'a [u8]) -> &'a [u8] {
        slice::range(file, self.offset, self.len)
    }

    /// The index of the range's chunks.
    #[must_use]
    pub fn chunks(&self, file: &[u8]) -> Chunks {
        if self.len == 0 {
            return Chunks::default();
        }
        match self.compression {
            Compression::None => self.stored(),
            _ => self.compressed(file),
        }
    }

    fn stored(&self) -> Chunks {
        let step = STORED_CHUNK.max(self.page_size);
        let pieces = self.len.div_ceil(step.into());
        let piece = |index: u64| {
            let start = index.saturating_mul(step.into());
            let remaining = self.len.saturating_sub(start);
            let size = u32::try_from(remaining).unwrap_or(u32::MAX).min(step);
            let offset = self.offset.saturating_add(start);
            Chunk { offset, stored: size, size, compression: Compression::None }
        };
        let mut chunks = Chunks { list: (0..pieces).map(piece).collect(), damage: vec![] };
        let pages = u64::from(self.page_size.max(1));
        if !self.len.is_multiple_of(pages) {
            chunks.note(
                self.offset,
                counted(self.len, "byte is not a whole page", "bytes are not whole pages"),
            );
        }
        chunks
    }

    fn compressed(&self, file: &[u8]) -> Chunks {
        let bytes = slice::range(file, self.offset, self.len.saturating_add(LENGTH_SHORT));
        let mut cursor = Cursor::new(bytes, self.order, self.offset);
        let mut chunks = Chunks::default();
        if let Err(damage) = self.walk(&mut cursor, &mut chunks) {
            chunks.damage.push(damage);
        }
        chunks
    }

    fn walk(&self, cursor: &mut Cursor<'_>, chunks: &mut Chunks) -> Result<(), Damage> {
        let cut = |cut| Damage::short("chunk cut off", cut);
        // Each chunk takes at least eight bytes, so the loop ends with the available bytes.
        for _ in 0..cursor.u32().map_err(cut)? {
            let (stored, size) = (cursor.u32().map_err(cut)?, cursor.u32().map_err(cut)?);
            let offset = cursor.offset();
            cursor.take(stored.into()).map_err(cut)?;
            // A chunk of implausible size stays in the list: reading it fails, and its content
            // counts as lost between its neighbours.
            if size > MAX_IN_CHUNK {
                chunks.note(offset, format!("a chunk of {} is implausible", bytes(size)));
            } else if !size.is_multiple_of(self.page_size.max(1)) {
                chunks
                    .note(offset, format!("a chunk of {} does not hold whole pages", bytes(size)));
            }
            let compression = self.compression.clone();
            chunks.list.push(Chunk { offset, stored, size, compression });
        }
        let remaining = cursor.rest().len() as u64;
        if remaining > LENGTH_SHORT {
            chunks.note(cursor.offset(), bytes(remaining) + " after the last chunk");
        }
        Ok(())
    }
}

/// Maximum damages per CPU; a hostile file could have one for every eight bytes.
const MAX_DAMAGE: usize = 100;

impl Chunks {
    fn note(&mut self, offset: u64, what: String) {
        if self.damage.len() < MAX_DAMAGE {
            self.damage.push(Damage::new(offset, what));
        }
    }

    /// Total decompressed size of all chunks with plausible size.
    #[must_use]
    pub fn size(&self) -> u64 {
        let plausible = self.list.iter().filter(|chunk| chunk.size <= MAX_IN_CHUNK);
        plausible.map(|chunk| u64::from(chunk.size)).sum()
    }
}

/// Reads chunks; one per thread.
pub struct ChunkReader {
    inflate: Inflate,
    space: Vec<u8>,
}

impl std::fmt::Debug for ChunkReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ChunkReader").field("space", &self.space.len()).finish_non_exhaustive()
    }
}

impl Default for ChunkReader {
    fn default() -> Self {
        Self::new()
    }
}

impl ChunkReader {
    /// A reader that allocates memory on the first compressed chunk.
    #[must_use]
    pub fn new() -> Self {
        Self { inflate: Inflate::new(), space: Vec::new() }
    }

    /// The chunk's pages: a part of `file` if stored, otherwise decompressed into this reader.
    ///
    /// # Errors
    /// If the chunk does not decompress to its declared size.
    pub fn read<'a>(&'a mut self, file: &'a [u8], chunk: &Chunk) -> Result<&'a [u8], Damage> {
        if chunk.compression == Compression::None {
            return Ok(slice::range(file, chunk.offset, chunk.stored.into()));
        }
        chunk.inflate(file, &mut self.inflate, &mut self.space)?;
        Ok(&self.space)
    }

    /// Replaces the content of `out` by the chunk's pages.
    ///
    /// # Errors
    /// If the chunk does not decompress to its declared size.
    pub fn read_into(
        &mut self,
        file: &[u8],
        chunk: &Chunk,
        out: &mut Vec<u8>,
    ) -> Result<(), Damage> {
        if chunk.compression != Compression::None {
            return chunk.inflate(file, &mut self.inflate, out);
        }
        out.clear();
        out.extend_from_slice(slice::range(file, chunk.offset, chunk.stored.into()));
        Ok(())
    }
}

impl Chunk {
    fn inflate(&self, file: &[u8], inflate: &mut Inflate, out: &mut Vec<u8>) -> Result<(), Damage> {
        if self.size > MAX_IN_CHUNK {
            let what = format!("a chunk of {} is implausible", bytes(self.size));
            return Err(Damage::new(self.offset, what));
        }
        let input = slice::range(file, self.offset, self.stored.into());
        let size = usize::try_from(self.size).unwrap_or(usize::MAX);
        inflate
            .run(&self.compression, input, size, out)
            .map_err(|what| Damage::new(self.offset, format!("chunk: {what}")))
    }
}
