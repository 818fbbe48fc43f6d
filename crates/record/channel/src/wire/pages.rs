//! Page streams: pages as a guest's kernel made them, with a head before each few of them.
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
//! The head shows where a CPU's pages continue when a port was unplugged, an agent was killed or a
//! guest was reset in the middle of them. Pages have no sum of their own: they pass through without
//! being looked at.

use crate::wire::fields::{Fields, Payload};

/// What a head begins with.
const MAGIC: [u8; 4] = *b"HSPG";
pub const PAGE_HEAD_BYTES: usize = 32;
/// Bytes of pages after one head, at most.
pub const MAX_PAGES_BYTES: u32 = 1 << 20;

/// What stands before pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PageHead {
    pub cpu: u32,
    /// The number that the host chose.
    pub session: u64,
    /// Bytes of the CPU's pages that were sent before.
    pub offset: u64,
    /// Bytes of pages that follow; 0: there are no more.
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

    /// The head in these bytes, if they are one.
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
    /// Bytes of the pages after the last head, in order; not whole pages.
    Pages(&'a [u8]),
    /// Bytes that belong to no page.
    Skipped(u64),
}

/// Finds the heads and pages of one session in a stream. It keeps the bytes of a head at most.
#[derive(Debug)]
pub struct PageDecoder {
    session: u64,
    /// The beginning of a head whose rest has not come.
    partial_head: Vec<u8>,
    /// Bytes of pages that are still to come.
    remaining: u32,
}

impl PageDecoder {
    /// A decoder at the beginning of a stream, or anywhere in it. Heads of other sessions are
    /// skipped, and what follows them is not believed to be as long as they say: whoever sent it
    /// may have been killed on the way.
    #[must_use]
    pub fn new(session: u64) -> Self {
        Self { session, partial_head: Vec::new(), remaining: 0 }
    }

    /// Bytes that are to come before the next head, or 0.
    #[must_use]
    pub fn remaining(&self) -> u32 {
        self.remaining
    }

    /// Calls `each` with the pieces in the next bytes of the stream.
    ///
    /// # Errors
    /// The first that `each` has; the pieces after it in these bytes are not passed on.
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

    /// Leaves out bytes up to where the next head may begin; how many.
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
