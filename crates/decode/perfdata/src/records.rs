//! Records one after the other: an eight-byte head, and what it says follows.

use raw_bytes::{ByteOrder, Cursor, bytes, counted, slice};

use crate::Damage;

/// Types of records.
pub mod kind {
    /// A mapping of a file that is executed.
    pub const MMAP: u32 = 1;
    /// Records that found no room.
    pub const LOST: u32 = 2;
    /// A thread's name.
    pub const COMM: u32 = 3;
    /// The end of a thread.
    pub const EXIT: u32 = 4;
    /// An event is held back, since it came too often.
    pub const THROTTLE: u32 = 5;
    /// It is no longer.
    pub const UNTHROTTLE: u32 = 6;
    /// The beginning of a thread.
    pub const FORK: u32 = 7;
    /// Counts.
    pub const READ: u32 = 8;
    /// An event's occurrence.
    pub const SAMPLE: u32 = 9;
    /// [`MMAP`] with device and inode, or a build id.
    pub const MMAP2: u32 = 10;
    /// Samples that were lost.
    pub const LOST_SAMPLES: u32 = 13;
    /// A thread of the process begins or ends to run.
    pub const SWITCH: u32 = 14;
    /// The same with the other thread.
    pub const SWITCH_CPU_WIDE: u32 = 15;
    /// A symbol that came into being, or went, while it was recorded.
    pub const KSYMBOL: u32 = 17;
    /// The user space's part of call chains that went before.
    pub const CALLCHAIN_DEFERRED: u32 = 22;
    /// The lowest that perf itself writes.
    pub const USER_START: u32 = 64;
    /// An event, in pipes.
    pub const HEADER_ATTR: u32 = 64;
    /// Formats of tracepoints, in pipes; they follow the record.
    pub const TRACING_DATA: u32 = 66;
    /// A build id, in pipes.
    pub const BUILD_ID: u32 = 67;
    /// Later records are not earlier than those before the last of these.
    pub const FINISHED_ROUND: u32 = 68;
    /// Ids of events, with their CPUs.
    pub const ID_INDEX: u32 = 69;
    /// Bytes of a hardware trace; they follow the record.
    pub const AUXTRACE: u32 = 71;
    /// More of an event, in pipes.
    pub const EVENT_UPDATE: u32 = 78;
    /// From time to the processor's counter.
    pub const TIME_CONV: u32 = 79;
    /// A feature, in pipes.
    pub const FEATURE: u32 = 80;
    /// Compressed records.
    pub const COMPRESSED: u32 = 81;
    /// Compressed records, whose size is not that of the record.
    pub const COMPRESSED2: u32 = 83;
}

/// Bits of a record's `misc`; bits 0 to 2 are its [`crate::CpuMode`].
pub mod misc {
    /// Of [`super::kind::COMM`]: by a new program.
    pub const COMM_EXEC: u16 = 1 << 13;
    /// Of [`super::kind::FORK`]: made by perf of a process that was there before, whose program is another.
    pub const FORK_EXEC: u16 = 1 << 13;
    /// Of [`super::kind::SWITCH`]: the thread ends to run.
    pub const SWITCH_OUT: u16 = 1 << 13;
    /// Of [`super::kind::MMAP`]: not executable.
    pub const MMAP_DATA: u16 = 1 << 13;
    /// Of samples: the address is that of the instruction that caused it.
    pub const EXACT_IP: u16 = 1 << 14;
    /// Of [`super::kind::MMAP2`]: a build id in place of device and inode.
    pub const MMAP_BUILD_ID: u16 = 1 << 14;
    /// Of switches: the thread would have gone on.
    pub const SWITCH_OUT_PREEMPT: u16 = 1 << 14;
    /// Of [`super::kind::BUILD_ID`]: the size of the build id follows it.
    pub const BUILD_ID_SIZE: u16 = 1 << 15;
}

/// Bytes before a record's own.
pub(crate) const HEAD_BYTES: u64 = 8;

/// A record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'f> {
    /// Where it begins, in bytes from the beginning of the file.
    pub offset: u64,
    /// Its type: [`kind`].
    pub kind: u32,
    /// Flags whose meaning depends on the type: [`misc`].
    pub misc: u16,
    /// All of it, with its head.
    pub bytes: &'f [u8],
    /// Data after it that its size does not include: formats of tracepoints, a hardware trace.
    pub payload: &'f [u8],
    /// Byte order of its numbers.
    pub order: ByteOrder,
}

impl<'f> Record<'f> {
    /// It without its head.
    #[must_use]
    pub fn body(&self) -> &'f [u8] {
        slice::range(self.bytes, HEAD_BYTES, u64::MAX)
    }

    pub(crate) fn cursor(&self) -> Cursor<'f> {
        Cursor::new(self.body(), self.order, self.offset.saturating_add(HEAD_BYTES))
    }
}

/// The records of a part of a file, in order. After a damage nothing follows: where the next record
/// begins isn't known any more.
#[derive(Clone, Debug)]
pub struct Records<'f> {
    cursor: Cursor<'f>,
    order: ByteOrder,
    ended: bool,
}

impl<'f> Records<'f> {
    /// Those in `bytes`, which begin at `offset` of their file.
    #[must_use]
    pub fn new(bytes: &'f [u8], order: ByteOrder, offset: u64) -> Self {
        Self { cursor: Cursor::new(bytes, order, offset), order, ended: false }
    }

    /// Where the next one begins.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.cursor.offset()
    }

    fn record(&mut self) -> Result<Record<'f>, Damage> {
        let offset = self.cursor.offset();
        let (start, remaining) = (self.cursor.rest(), self.cursor.rest().len());
        let bad = |what: String| Damage::new(offset, format!("{what}; the rest is not read"));
        let short = |_| bad(counted(remaining, "byte is", "bytes are") + " too few for a record");
        let kind = self.cursor.u32().map_err(short)?;
        let misc = self.cursor.u16().map_err(short)?;
        let size = u64::from(self.cursor.u16().map_err(short)?);
        if size < HEAD_BYTES {
            let zeros = start.iter().all(|&byte| byte == 0);
            let what = if zeros { "nothing but zeros" } else { "no record" };
            return Err(bad(format!(
                "{} {what} (a size of {})",
                counted(remaining, "byte from here on is", "bytes from here on are"),
                bytes(size)
            )));
        }
        let cut = |cut| {
            bad(format!("a record of {}, of which only {remaining} are there", bytes(size)))
                .of_cut(cut)
        };
        self.cursor.take(size.saturating_sub(HEAD_BYTES)).map_err(cut)?;
        let bytes = slice::range(start, 0, size);
        let mut record = Record { offset, kind, misc, bytes, payload: &[], order: self.order };
        let follows = payload_len(&record);
        let have = self.cursor.rest().len();
        let cut = |cut| {
            let what = counted(follows, "byte follows", "bytes follow");
            let what = format!("{what} the record, of which only {have} are there");
            bad(what).of_cut(cut)
        };
        record.payload = self.cursor.take(follows).map_err(cut)?;
        Ok(record)
    }
}

/// Bytes that follow a record beyond its size.
fn payload_len(record: &Record<'_>) -> u64 {
    match record.kind {
        kind::AUXTRACE => record.order.u64_at(record.body(), 0).unwrap_or(0),
        kind::TRACING_DATA => {
            let size = record.order.u32_at(record.body(), 0).unwrap_or(0);
            u64::from(size).next_multiple_of(8)
        }
        _ => 0,
    }
}

impl<'f> Iterator for Records<'f> {
    type Item = Result<Record<'f>, Damage>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended || self.cursor.is_empty() {
            return None;
        }
        let record = self.record();
        self.ended = record.is_err();
        Some(record)
    }
}
