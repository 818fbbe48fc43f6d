//! Iterates over records: each has an eight-byte header with its type and size.

use raw_bytes::{ByteOrder, Cursor, bytes, counted, slice};

use crate::Damage;

/// Types of records.
pub mod kind {
    /// A mapping of a file that is executed.
    pub const MMAP: u32 = 1;
    /// Lost records.
    pub const LOST: u32 = 2;
    /// A thread's name.
    pub const COMM: u32 = 3;
    /// The end of a thread.
    pub const EXIT: u32 = 4;
    /// An event is throttled because it occurred too often.
    pub const THROTTLE: u32 = 5;
    /// An event is no longer throttled.
    pub const UNTHROTTLE: u32 = 6;
    /// The start of a thread.
    pub const FORK: u32 = 7;
    /// Counts.
    pub const READ: u32 = 8;
    /// A sample.
    pub const SAMPLE: u32 = 9;
    /// [`MMAP`] with device and inode, or a build id.
    pub const MMAP2: u32 = 10;
    /// Samples that were lost.
    pub const LOST_SAMPLES: u32 = 13;
    /// A thread of the process is switched in or out.
    pub const SWITCH: u32 = 14;
    /// The same, with the other thread.
    pub const SWITCH_CPU_WIDE: u32 = 15;
    /// A symbol that was registered or unregistered during the recording.
    pub const KSYMBOL: u32 = 17;
    /// The user-space part of earlier call chains.
    pub const CALLCHAIN_DEFERRED: u32 = 22;
    /// The lowest type that perf itself writes.
    pub const USER_START: u32 = 64;
    /// An event; only in the pipe form.
    pub const HEADER_ATTR: u32 = 64;
    /// Tracepoint formats, which follow the record; only in the pipe form.
    pub const TRACING_DATA: u32 = 66;
    /// A build id; only in the pipe form.
    pub const BUILD_ID: u32 = 67;
    /// The end of a round: later records are no earlier than those before the previous round's end.
    pub const FINISHED_ROUND: u32 = 68;
    /// Ids of events, with their CPUs.
    pub const ID_INDEX: u32 = 69;
    /// Bytes of a hardware trace; they follow the record.
    pub const AUXTRACE: u32 = 71;
    /// Further data of an event; only in the pipe form.
    pub const EVENT_UPDATE: u32 = 78;
    /// Conversion from the processor's counter to time.
    pub const TIME_CONV: u32 = 79;
    /// A feature; only in the pipe form.
    pub const FEATURE: u32 = 80;
    /// Compressed records.
    pub const COMPRESSED: u32 = 81;
    /// Compressed records whose size field differs from the record's size.
    pub const COMPRESSED2: u32 = 83;
}

/// Bits of a record's `misc`; bits 0 to 2 are its [`crate::CpuMode`].
pub mod misc {
    /// In [`super::kind::COMM`]: the name comes from exec.
    pub const COMM_EXEC: u16 = 1 << 13;
    /// In [`super::kind::FORK`]: perf synthesized it for an existing process that has executed
    /// another program.
    pub const FORK_EXEC: u16 = 1 << 13;
    /// In [`super::kind::SWITCH`]: the thread is switched out.
    pub const SWITCH_OUT: u16 = 1 << 13;
    /// In [`super::kind::MMAP`]: not executable.
    pub const MMAP_DATA: u16 = 1 << 13;
    /// In samples: the address is exactly that of the instruction that caused the event.
    pub const EXACT_IP: u16 = 1 << 14;
    /// In [`super::kind::MMAP2`]: a build id instead of device and inode.
    pub const MMAP_BUILD_ID: u16 = 1 << 14;
    /// In switches: the thread was preempted.
    pub const SWITCH_OUT_PREEMPT: u16 = 1 << 14;
    /// In [`super::kind::BUILD_ID`]: the build id has its size.
    pub const BUILD_ID_SIZE: u16 = 1 << 15;
}

/// Bytes of a record's header.
pub(crate) const HEAD_BYTES: u64 = 8;

/// A record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'f> {
    /// Offset in the file in bytes.
    pub offset: u64,
    /// Its type: [`kind`].
    pub kind: u32,
    /// Flags whose meaning depends on the type: [`misc`].
    pub misc: u16,
    /// The full record including its header.
    pub bytes: &'f [u8],
    /// Data after the record that its size does not include: tracepoint formats, a hardware trace.
    pub payload: &'f [u8],
    /// Byte order of its numbers.
    pub order: ByteOrder,
}

impl<'f> Record<'f> {
    /// Its content without the header.
    #[must_use]
    pub fn body(&self) -> &'f [u8] {
        slice::range(self.bytes, HEAD_BYTES, u64::MAX)
    }

    pub(crate) fn cursor(&self) -> Cursor<'f> {
        Cursor::new(self.body(), self.order, self.offset.saturating_add(HEAD_BYTES))
    }
}

/// The records of a part of a file, in order. Ends at the first damage, because the position of the
/// next record is unknown.
#[derive(Clone, Debug)]
pub struct Records<'f> {
    cursor: Cursor<'f>,
    order: ByteOrder,
    ended: bool,
}

impl<'f> Records<'f> {
    /// The records in `bytes`, which begin at `offset` of their file.
    #[must_use]
    pub fn new(bytes: &'f [u8], order: ByteOrder, offset: u64) -> Self {
        Self { cursor: Cursor::new(bytes, order, offset), order, ended: false }
    }

    /// Offset of the next record.
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
            let what = if zeros { "nothing but zeros" } else { "not a record" };
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

/// Size of the data that follows a record beyond its size.
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
