//! What was asked of the kernel for one event: `struct perf_event_attr`.

use raw_bytes::{ByteOrder, Cursor, Truncated};

/// What kind of event it is (`perf_type_id`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventType {
    /// Counted by the processor.
    Hardware,
    /// Counted by the kernel.
    Software,
    /// A tracepoint of the kernel.
    Tracepoint,
    /// Another, by its number.
    Other(u32),
}

/// Bits of `sample_type` (`PERF_SAMPLE_*`) that are read here.
pub(crate) mod bit {
    pub(crate) const IP: u64 = 1 << 0;
    pub(crate) const TID: u64 = 1 << 1;
    pub(crate) const TIME: u64 = 1 << 2;
    pub(crate) const ADDR: u64 = 1 << 3;
    pub(crate) const READ: u64 = 1 << 4;
    pub(crate) const CALLCHAIN: u64 = 1 << 5;
    pub(crate) const ID: u64 = 1 << 6;
    pub(crate) const CPU: u64 = 1 << 7;
    pub(crate) const PERIOD: u64 = 1 << 8;
    pub(crate) const STREAM_ID: u64 = 1 << 9;
    pub(crate) const RAW: u64 = 1 << 10;
    pub(crate) const IDENTIFIER: u64 = 1 << 16;
}

/// `sample_id_all` of the flags, from the bit that is first in memory.
const SAMPLE_ID_ALL: u32 = 18;

/// Ids of one event, at most: one for each CPU and thread.
const MOST_IDS: usize = 1 << 20;

/// An event that was recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventAttr {
    /// Its kind.
    pub kind: EventType,
    /// Which of its kind; of a tracepoint its id in the recording's formats.
    pub config: u64,
    /// What its samples have (`PERF_SAMPLE_*`).
    pub sample_type: u64,
    /// How values that it counted are written (`PERF_FORMAT_*`).
    pub read_format: u64,
    /// Whether records that are no samples end with what says whose they are.
    pub sample_id_all: bool,
    /// Its name, where the file has it.
    pub name: Option<String>,
    /// What samples name it by.
    pub ids: Vec<u64>,
}

impl EventAttr {
    /// Reads a `perf_event_attr` of the size that it says itself; what follows it in `bytes` is not its.
    pub(crate) fn parse(bytes: &[u8], order: ByteOrder, offset: u64) -> Result<Self, Truncated> {
        let mut cursor = Cursor::new(bytes, order, offset);
        let kind = cursor.u32()?;
        let _size = cursor.u32()?;
        let config = cursor.u64()?;
        let _period = cursor.u64()?;
        let sample_type = cursor.u64()?;
        let read_format = cursor.u64()?;
        let flags = cursor.u64()?;
        // Bit-fields begin at the other end of the word where the byte order is the other one.
        let sample_id_all = match order {
            ByteOrder::Little => flags >> SAMPLE_ID_ALL,
            ByteOrder::Big => flags >> 63_u32.saturating_sub(SAMPLE_ID_ALL),
        };
        let kind = match kind {
            0 => EventType::Hardware,
            1 => EventType::Software,
            2 => EventType::Tracepoint,
            other => EventType::Other(other),
        };
        Ok(Self {
            kind,
            config,
            sample_type,
            read_format,
            sample_id_all: sample_id_all & 1 == 1,
            name: None,
            ids: Vec::new(),
        })
    }

    /// Takes the ids in `bytes`, as many as there are.
    pub(crate) fn take_ids(&mut self, bytes: &[u8], order: ByteOrder) {
        let ids = bytes.as_chunks::<8>().0.iter().map(|bytes| order.u64(*bytes));
        self.ids.extend(ids.take(MOST_IDS.saturating_sub(self.ids.len())));
    }

    /// What people call it: its name, or what it counts.
    #[must_use]
    pub fn title(&self) -> String {
        let own = || match (self.kind, self.config) {
            (EventType::Software, 0) => "cpu-clock".to_owned(),
            (EventType::Software, 1) => "task-clock".to_owned(),
            (EventType::Software, 9) => "dummy".to_owned(),
            (EventType::Hardware, 0) => "cycles".to_owned(),
            (EventType::Hardware, 1) => "instructions".to_owned(),
            (EventType::Tracepoint, config) => format!("tracepoint {config}"),
            (EventType::Hardware, config) => format!("hardware {config:#x}"),
            (EventType::Software, config) => format!("software {config:#x}"),
            (EventType::Other(kind), config) => format!("type {kind} {config:#x}"),
        };
        self.name.clone().unwrap_or_else(own)
    }
}
