//! The records of a page: data, time extends, absolute time stamps, discarded events, padding.

use raw_bytes::{ByteOrder, bytes};

use crate::ringbuf::order::StepBack;

/// Largest `type_len` that gives a data record's length as `type_len * 4`
/// (`RINGBUF_TYPE_DATA_TYPE_LEN_MAX`); 0 means that a length word follows.
pub(crate) const DATA_TYPE_LEN_MAX: u32 = 28;
/// Padding, or an event that the kernel discarded (`RINGBUF_TYPE_PADDING`).
const PADDING: u32 = 29;
/// The next word has more bits of the delta (`RINGBUF_TYPE_TIME_EXTEND`).
pub(crate) const TIME_EXTEND: u32 = 30;
/// An absolute time stamp of 59 bits (`RINGBUF_TYPE_TIME_STAMP`).
const TIME_STAMP: u32 = 31;
/// Bits of the delta in the first word of a record.
pub(crate) const DELTA_BITS: u32 = 27;
/// The bits that an absolute time stamp omits.
const STAMP_HIGH_BITS: u64 = 0xf8 << 56;

/// An event as stored in the ring buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// Time of the event on the buffer's clock.
    pub stamp: u64,
    /// The event's bytes, starting with `common_type`; padded to a multiple of four.
    pub payload: &'a [u8],
}

/// A fault in the records of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordDamage {
    /// A record does not fit into its page: the rest of the page cannot be read.
    #[error("the record at byte {at} of the page's data needs {}, but {have} are left", bytes(*wanted))]
    TooLong {
        /// Offset of the record in the page's data.
        at: usize,
        /// Claimed size in bytes.
        wanted: usize,
        /// Remaining bytes.
        have: usize,
    },
    /// The clock runs back between two records. All records were read; their times are invalid.
    #[error("{0} within a page")]
    RunsBack(StepBack),
}

/// The result of a step over the data.
enum Step<'a> {
    Event(&'a [u8]),
    TimeOnly,
}

/// A position in the data of a page.
#[derive(Clone, Debug)]
struct Position<'a> {
    /// Unread data: a shrinking slice needs fewer checks than a growing offset.
    rest: &'a [u8],
    /// Bytes of data on the page.
    len: usize,
    stamp: u64,
    /// Time of the page.
    begin: u64,
    /// The first step back of the clock.
    back: Option<StepBack>,
}

#[inline(always)]
fn word<const BIG: bool>(bytes: [u8; 4]) -> u32 {
    if BIG { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) }
}

impl<'a> Position<'a> {
    fn new(data: &'a [u8], stamp: u64) -> Self {
        Self { rest: data, len: data.len(), stamp, begin: stamp, back: None }
    }

    #[cold]
    fn damage(&self, wanted: usize) -> RecordDamage {
        let have = self.rest.len();
        RecordDamage::TooLong { at: self.len.saturating_sub(have), wanted, have }
    }

    /// Sets the time. The kernel never sets it back: only damage does.
    #[inline]
    fn set_stamp(&mut self, stamp: u64) {
        self.check_wrapped();
        if stamp < self.stamp {
            self.back.get_or_insert(StepBack { from: self.stamp, to: stamp });
        }
        self.stamp = stamp;
    }

    /// Deltas of data records since the last check may have wrapped the stamp; they are too small
    /// to pass the page's time again.
    fn check_wrapped(&mut self) {
        if self.stamp < self.begin {
            self.back.get_or_insert(StepBack { from: self.begin, to: self.stamp });
        }
    }

    /// The fault in the page's times, after the page has been read.
    fn end(&mut self) -> Result<(), RecordDamage> {
        self.check_wrapped();
        self.back.map_or(Ok(()), |step| Err(RecordDamage::RunsBack(step)))
    }

    /// Reads the record at the position and advances; `None` at the end of the data.
    #[inline(always)]
    fn step<const BIG: bool>(&mut self) -> Result<Option<Step<'a>>, RecordDamage> {
        let Some((head, body)) = self.rest.split_first_chunk() else {
            // Fewer than four bytes cannot hold a record; the kernel never leaves such a rest.
            return if self.rest.is_empty() { Ok(None) } else { Err(self.damage(4)) };
        };
        let head = word::<BIG>(*head);
        let (type_len, delta) = if BIG {
            (head >> DELTA_BITS, head & ((1 << DELTA_BITS) - 1))
        } else {
            (head & 31, head >> 5)
        };
        if (1..=DATA_TYPE_LEN_MAX).contains(&type_len) {
            self.stamp = self.stamp.wrapping_add(u64::from(delta));
            return self.event(body, (type_len as usize).saturating_mul(4)).map(Some);
        }
        self.special::<BIG>(type_len, delta, body)
    }

    /// A record with more than a first word and its data.
    #[inline]
    fn special<const BIG: bool>(
        &mut self,
        type_len: u32,
        delta: u32,
        body: &'a [u8],
    ) -> Result<Option<Step<'a>>, RecordDamage> {
        if type_len == PADDING && delta == 0 {
            self.rest = &[];
            return Ok(None);
        }
        let (second, behind) = body.split_first_chunk().ok_or_else(|| self.damage(8))?;
        let second = word::<BIG>(*second);
        let long_delta = (u64::from(second) << DELTA_BITS).wrapping_add(u64::from(delta));
        match type_len {
            TIME_EXTEND => {
                self.set_stamp(self.stamp.wrapping_add(long_delta));
                self.rest = behind;
            }
            TIME_STAMP => {
                let stamp = (self.stamp & STAMP_HIGH_BITS) | (long_delta & !STAMP_HIGH_BITS);
                self.set_stamp(stamp);
                self.rest = behind;
            }
            PADDING => {
                // A discarded event: its delta counts, its data does not. The length word includes
                // itself, as in a long data record.
                self.stamp = self.stamp.wrapping_add(u64::from(delta));
                self.event(body, (second as usize).max(4))?;
            }
            _ => {
                self.stamp = self.stamp.wrapping_add(u64::from(delta));
                let len = (second as usize).saturating_sub(4).checked_next_multiple_of(4);
                return self.event(behind, len.unwrap_or(usize::MAX)).map(Some);
            }
        }
        Ok(Some(Step::TimeOnly))
    }

    /// Consumes the first `len` bytes of `body`, which extends to the end of the data.
    #[inline(always)]
    fn event(&mut self, body: &'a [u8], len: usize) -> Result<Step<'a>, RecordDamage> {
        let Some((payload, behind)) = body.split_at_checked(len) else {
            let head = self.rest.len().saturating_sub(body.len());
            return Err(self.damage(head.saturating_add(len)));
        };
        self.rest = behind;
        Ok(Step::Event(payload))
    }
}

/// Visits every record of `data`, from a page with the time `stamp`.
#[inline(always)]
pub(crate) fn walk<'a, const BIG: bool>(
    data: &'a [u8],
    stamp: u64,
    mut visit: impl FnMut(Record<'a>),
) -> Result<(), RecordDamage> {
    let mut position = Position::new(data, stamp);
    while let Some(step) = position.step::<BIG>()? {
        if let Step::Event(payload) = step {
            visit(Record { stamp: position.stamp, payload });
        }
    }
    position.end()
}

/// Iterates over the records of a page; ends at the page's end or at the first damage.
#[derive(Clone, Debug)]
pub struct Records<'a> {
    position: Position<'a>,
    order: ByteOrder,
    damage: Option<RecordDamage>,
}

impl<'a> Records<'a> {
    pub(crate) fn new(data: &'a [u8], order: ByteOrder, stamp: u64) -> Self {
        Self { position: Position::new(data, stamp), order, damage: None }
    }

    /// The damage in the records, after iteration.
    #[must_use]
    pub fn damage(&self) -> Option<RecordDamage> {
        self.damage
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = Record<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        while self.damage.is_none() {
            let step = match self.order {
                ByteOrder::Little => self.position.step::<false>(),
                ByteOrder::Big => self.position.step::<true>(),
            };
            match step {
                Ok(Some(Step::Event(payload))) => {
                    return Some(Record { stamp: self.position.stamp, payload });
                }
                Ok(Some(Step::TimeOnly)) => {}
                Ok(None) => {
                    self.damage = self.position.end().err();
                    return None;
                }
                Err(damage) => self.damage = Some(damage),
            }
        }
        None
    }
}
