//! Page streams: unchanged pages of a guest's kernel, with a head before each batch.
//!
//! ```text
//! offset  size
//!      0     4  "HSPG"
//!      4     4  CPU
//!      8     8  session
//!     16     8  bytes of this CPU's pages that were sent before, in this session
//!     24     4  bytes of pages that follow, at most MAX_PAGES_BYTES; 0: the CPU's last
//!     28     4  CRC-32 of the bytes before
//!     32     n  pages
//! ```
//!
//! The head shows where a CPU's pages continue after a port was unplugged, an agent was killed or a guest was reset in
//! the middle of them. Pages have no checksum: the agent forwards them without reading them.

use crate::wire::fields::{Fields, Payload};

/// Magic number of a head.
const MAGIC: [u8; 4] = *b"HSPG";
pub const PAGE_HEAD_BYTES: usize = 32;
/// Max bytes of pages after a head.
pub const MAX_PAGES_BYTES: u32 = 1 << 20;

/// The head of a batch of pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PageHead {
    pub cpu: u32,
    /// The number that the host chose.
    pub session: u64,
    /// Bytes of the CPU's pages sent before.
    pub offset: u64,
    /// Bytes of pages that follow; 0: the CPU has no more.
    pub bytes: u32,
}

impl PageHead {
    #[must_use]
    pub fn encode(&self) -> [u8; PAGE_HEAD_BYTES] {
        let mut head = Payload(Vec::with_capacity(PAGE_HEAD_BYTES));
        head.bytes(&MAGIC).u32(self.cpu).u64(self.session).u64(self.offset).u32(self.bytes);
        let crc = crc32fast::hash(&head.0);
        head.u32(crc);
        let mut bytes = [0; PAGE_HEAD_BYTES];
        bytes.iter_mut().zip(head.0).for_each(|(to, from)| *to = from);
        bytes
    }

    /// Decodes a head; `None` if the bytes are not a head.
    #[must_use]
    pub fn decode(bytes: &[u8; PAGE_HEAD_BYTES]) -> Option<Self> {
        let mut fields = Fields::new(bytes);
        if fields.array().ok()? != MAGIC {
            return None;
        }
        let (cpu, session) = (fields.u32().ok()?, fields.u64().ok()?);
        let (offset, length) = (fields.u64().ok()?, fields.u32().ok()?);
        let sum = crc32fast::hash(bytes.get(..28)?);
        let is_head = fields.u32().ok()? == sum && length <= MAX_PAGES_BYTES;
        is_head.then_some(Self { cpu, session, offset, bytes: length })
    }
}

/// A piece of a page stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece<'a> {
    Head(PageHead),
    /// Bytes of the pages after the last head, in order; not always whole pages.
    Pages(&'a [u8]),
    /// Number of bytes that belong to no page.
    Skipped(u64),
}

/// Finds the heads and pages of a session in a stream. It buffers at most one head.
#[derive(Debug)]
pub struct PageDecoder {
    session: u64,
    /// The beginning of an incomplete head.
    partial_head: Vec<u8>,
    /// Bytes of pages still to come.
    remaining: u32,
}

impl PageDecoder {
    /// A decoder that may start anywhere in a stream. It skips heads of other sessions and ignores their lengths: their
    /// sender may have been killed in the middle.
    #[must_use]
    pub fn new(session: u64) -> Self {
        Self { session, partial_head: Vec::new(), remaining: 0 }
    }

    /// Bytes to come before the next head, or 0.
    #[must_use]
    pub fn remaining(&self) -> u32 {
        self.remaining
    }

    /// Calls `each` with the pieces in the next bytes of the stream.
    ///
    /// # Errors
    /// The first error of `each`; the remaining pieces are not passed on.
    pub fn push<E>(
        &mut self,
        mut bytes: &[u8],
        mut each: impl FnMut(Piece<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        while !bytes.is_empty() {
            if self.remaining > 0 {
                let take = usize::try_from(self.remaining).unwrap_or(usize::MAX).min(bytes.len());
                let (pages, rest) = bytes.split_at_checked(take).unwrap_or((bytes, &[]));
                self.remaining =
                    self.remaining.saturating_sub(u32::try_from(take).unwrap_or(u32::MAX));
                bytes = rest;
                each(Piece::Pages(pages))?;
                continue;
            }
            let wanted = PAGE_HEAD_BYTES.saturating_sub(self.partial_head.len()).min(bytes.len());
            let (more, rest) = bytes.split_at_checked(wanted).unwrap_or((bytes, &[]));
            self.partial_head.extend_from_slice(more);
            bytes = rest;
            let Some(head) = self.partial_head.first_chunk::<PAGE_HEAD_BYTES>() else { continue };
            match PageHead::decode(head).filter(|head| head.session == self.session) {
                Some(head) => {
                    self.remaining = head.bytes;
                    self.partial_head.clear();
                    each(Piece::Head(head))?;
                }
                None => each(Piece::Skipped(self.skip()))?,
            }
        }
        Ok(())
    }

    /// Skips bytes up to the next possible head; returns their number.
    fn skip(&mut self) -> u64 {
        let later = self.partial_head.get(1..).unwrap_or_default();
        let may_begin = |at: usize| {
            let rest = later.get(at..).unwrap_or_default();
            let compared = rest.len().min(MAGIC.len());
            rest.get(..compared) == MAGIC.get(..compared)
        };
        let at = (0..later.len()).find(|&at| may_begin(at)).unwrap_or(later.len());
        let skipped = at.saturating_add(1);
        self.partial_head.drain(..skipped.min(self.partial_head.len()));
        skipped as u64
    }
}
