//! Builds perf.data files byte by byte: both forms, both byte orders.

use raw_bytes::ByteOrder;

use crate::bytes::{long_bytes, uint};
use crate::formats::{HEADER_EVENT, KernelFormats};

/// A byte string of numbers and bytes in a given byte order.
#[derive(Clone, Debug)]
pub struct PerfBytes {
    order: ByteOrder,
    /// The bytes so far.
    pub bytes: Vec<u8>,
}

impl PerfBytes {
    /// An empty byte string.
    #[must_use]
    pub fn new(order: ByteOrder) -> Self {
        Self { order, bytes: Vec::new() }
    }

    /// Adds numbers of eight bytes.
    #[must_use]
    pub fn u64s(mut self, values: &[u64]) -> Self {
        values.iter().for_each(|&value| self.bytes.extend(uint(self.order, value, 8)));
        self
    }

    /// Adds numbers of four bytes.
    #[must_use]
    pub fn u32s(mut self, values: &[u32]) -> Self {
        values.iter().for_each(|&value| self.bytes.extend(uint(self.order, value.into(), 4)));
        self
    }

    /// Adds numbers of two bytes.
    #[must_use]
    pub fn u16s(mut self, values: &[u16]) -> Self {
        values.iter().for_each(|&value| self.bytes.extend(uint(self.order, value.into(), 2)));
        self
    }

    /// Adds bytes.
    #[must_use]
    pub fn raw(mut self, bytes: &[u8]) -> Self {
        self.bytes.extend_from_slice(bytes);
        self
    }

    /// Adds a text, its NUL, and NULs up to a multiple of eight bytes.
    #[must_use]
    pub fn name(mut self, text: &str) -> Self {
        self.bytes.extend_from_slice(text.as_bytes());
        self.bytes.push(0);
        self.bytes.resize(self.bytes.len().next_multiple_of(8), 0);
        self
    }

    /// Adds a text as feature sections store it: its size, then the text padded to a multiple of 64
    /// bytes.
    #[must_use]
    pub fn text(self, text: &str) -> Self {
        let mut bytes = text.as_bytes().to_vec();
        bytes.resize((text.len() + 1).next_multiple_of(64), 0);
        let size = bytes.len() as u32;
        self.u32s(&[size]).raw(&bytes)
    }
}

/// An event of a perf.data.
#[derive(Clone, Debug, Default)]
pub struct PerfEvent {
    /// `perf_event_attr::type`.
    pub kind: u32,
    /// `perf_event_attr::config`.
    pub config: u64,
    /// `perf_event_attr::sample_type`.
    pub sample_type: u64,
    /// `perf_event_attr::read_format`.
    pub read_format: u64,
    /// Numbers of the set bits of the flags bit-field, in order of declaration.
    pub flags: Vec<u32>,
    /// `perf_event_attr::branch_sample_type`.
    pub branch_sample_type: u64,
    /// `perf_event_attr::sample_regs_user` and `sample_regs_intr`.
    pub regs: [u64; 2],
    /// `perf_event_attr::clockid`.
    pub clock_id: i32,
    pub ids: Vec<u64>,
    /// The event's name, for the feature `EVENT_DESC`.
    pub name: String,
}

/// Bytes of `perf_event_attr` in the file.
const ATTR_BYTES: u32 = 112;

impl PerfEvent {
    fn attr(&self, order: ByteOrder) -> Vec<u8> {
        let bit = |flag: &u32| match order {
            ByteOrder::Little => 1_u64 << flag,
            ByteOrder::Big => 1_u64 << (63 - flag),
        };
        let flags = self.flags.iter().map(bit).fold(0, |all, bit| all | bit);
        let head = PerfBytes::new(order)
            .u32s(&[self.kind, ATTR_BYTES])
            .u64s(&[self.config, 1, self.sample_type, self.read_format, flags])
            .u32s(&[0, 0])
            .u64s(&[0, 0, self.branch_sample_type, self.regs[0]])
            .u32s(&[0, self.clock_id.cast_unsigned()])
            .u64s(&[self.regs[1], 0]);
        assert_eq!(head.bytes.len(), ATTR_BYTES as usize);
        head.bytes
    }
}

/// A perf.data file under construction.
#[derive(Clone, Debug)]
pub struct PerfDataBuilder {
    order: ByteOrder,
    events: Vec<PerfEvent>,
    records: Vec<u8>,
    features: Vec<(u32, Vec<u8>)>,
}

impl PerfDataBuilder {
    /// A file without events and records.
    #[must_use]
    pub fn new(order: ByteOrder) -> Self {
        Self { order, events: Vec::new(), records: Vec::new(), features: Vec::new() }
    }

    /// Adds an event.
    pub fn event(&mut self, event: PerfEvent) {
        self.events.push(event);
    }

    /// Adds a record; its body is padded with zeros to a multiple of eight bytes.
    pub fn record(&mut self, kind: u32, misc: u16, body: &[u8]) {
        let record = self.framed(kind, misc, body);
        self.records.extend(record);
    }

    /// Adds raw bytes between records.
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.records.extend_from_slice(bytes);
    }

    /// A record with its header.
    #[must_use]
    pub fn framed(&self, kind: u32, misc: u16, body: &[u8]) -> Vec<u8> {
        let size = (8 + body.len()).next_multiple_of(8);
        let mut record =
            PerfBytes::new(self.order).u32s(&[kind]).u16s(&[misc, size as u16]).raw(body);
        assert!(size < 1 << 16, "a record of {size} bytes is too long");
        record.bytes.resize(size, 0);
        record.bytes
    }

    /// Adds a feature; features are written in the order of their numbers.
    pub fn feature(&mut self, number: u32, bytes: Vec<u8>) {
        self.features.push((number, bytes));
        self.features.sort_by_key(|(number, _)| *number);
    }

    /// Adds the feature `EVENT_DESC`: attributes, ids and names of events.
    pub fn describe_events(&mut self) {
        let count = self.events.len() as u32;
        let mut all = PerfBytes::new(self.order).u32s(&[count, ATTR_BYTES]);
        for event in &self.events {
            let ids = event.ids.len() as u32;
            all = all.raw(&event.attr(self.order)).u32s(&[ids]).text(&event.name).u64s(&event.ids);
        }
        self.feature(12, all.bytes);
    }

    #[must_use]
    pub fn without_records(self) -> Self {
        Self { records: Vec::new(), ..self }
    }

    /// The records so far.
    #[must_use]
    pub fn records(&self) -> &[u8] {
        &self.records
    }

    fn magic(&self) -> &'static [u8; 8] {
        match self.order {
            ByteOrder::Little => b"PERFILE2",
            ByteOrder::Big => b"2ELIFREP",
        }
    }

    /// The file in its file form.
    #[must_use]
    pub fn file(&self) -> Vec<u8> {
        let (mut ids, mut attrs) = (PerfBytes::new(self.order), PerfBytes::new(self.order));
        for event in &self.events {
            let at = 104 + ids.bytes.len() as u64;
            ids = ids.u64s(&event.ids);
            let size = event.ids.len() as u64 * 8;
            attrs = attrs.raw(&event.attr(self.order)).u64s(&[at, size]);
        }
        let (ids, attrs) = (ids.bytes, attrs.bytes);
        let attrs_at = 104 + ids.len() as u64;
        let data_at = attrs_at + attrs.len() as u64;
        let end = data_at + self.records.len() as u64;
        let mut bits = [0_u64; 4];
        for (number, _) in &self.features {
            bits[*number as usize / 64] |= 1 << (number % 64);
        }
        let mut file = PerfBytes::new(self.order)
            .raw(self.magic())
            .u64s(&[104, u64::from(ATTR_BYTES) + 16, attrs_at, attrs.len() as u64])
            .u64s(&[data_at, self.records.len() as u64, 0, 0])
            .u64s(&bits)
            .raw(&ids)
            .raw(&attrs)
            .raw(&self.records);
        let mut at = end + self.features.len() as u64 * 16;
        for (_, bytes) in &self.features {
            file = file.u64s(&[at, bytes.len() as u64]);
            at += bytes.len() as u64;
        }
        self.features.iter().for_each(|(_, bytes)| file.bytes.extend_from_slice(bytes));
        file.bytes
    }

    /// The file form after a recorder was killed: the header has no size of the data section, and
    /// there are no features.
    #[must_use]
    pub fn killed(&self) -> Vec<u8> {
        let mut file = self.file();
        let features: usize = self.features.iter().map(|(_, bytes)| 16 + bytes.len()).sum();
        file.truncate(file.len() - features);
        file[48..56].fill(0);
        file
    }

    /// The pipe form: records describe events, features and tracepoint formats ahead of all other
    /// records.
    #[must_use]
    pub fn pipe(&self) -> Vec<u8> {
        let mut all = PerfBytes::new(self.order).raw(self.magic()).u64s(&[16]);
        for event in &self.events {
            let ids = PerfBytes::new(self.order).u64s(&event.ids);
            let body = [event.attr(self.order), ids.bytes].concat();
            all = all.raw(&self.framed(64, 0, &body));
            let first = event.ids.first().copied().unwrap_or(0);
            let name = PerfBytes::new(self.order).u64s(&[2, first]).name(&event.name);
            all = all.raw(&self.framed(78, 0, &name.bytes));
        }
        for (number, bytes) in &self.features {
            match number {
                1 => {
                    let size = bytes.len() as u32;
                    // The record's size covers only these 12 bytes; the data follows with padding
                    // of its own.
                    let head = PerfBytes::new(self.order).u32s(&[66]).u16s(&[0, 12]).u32s(&[size]);
                    all = all.raw(&head.bytes).raw(bytes);
                    let fill = bytes.len().next_multiple_of(8) - bytes.len();
                    all = all.raw(&vec![0; fill]);
                }
                12 => {}
                number => {
                    let head = PerfBytes::new(self.order).u64s(&[u64::from(*number)]);
                    all = all.raw(&self.framed(80, 0, &head.raw(bytes).bytes));
                }
            }
        }
        all.raw(&self.records).bytes
    }
}

impl KernelFormats {
    /// The parts of tracefs that perf copies, according to `record_data` in
    /// `tools/perf/util/trace-event-info.c`.
    #[must_use]
    pub fn tracing_data(&self) -> Vec<u8> {
        let abi = self.abi();
        let text = |to: PerfBytes, text: &str| to.u64s(&[text.len() as u64]).raw(text.as_bytes());
        let (big, long) = (u8::from(abi.order == ByteOrder::Big), long_bytes(abi) as u8);
        let head = PerfBytes::new(abi.order).raw(b"\x17\x08\x44tracing0.6\0");
        let head = head.raw(&[big, long]).u32s(&[4096]).raw(b"header_page\0");
        let head = text(head, &self.header_page(4096)).raw(b"header_event\0");
        let systems = self.systems();
        let mut all = text(head, HEADER_EVENT).u32s(&[0, systems.len() as u32]);
        for (system, events) in systems {
            all = all.raw(system.as_bytes()).raw(&[0]).u32s(&[events.len() as u32]);
            all = events.iter().fold(all, |all, event| text(all, event));
        }
        // No symbols, no printk formats, no thread names.
        all.u32s(&[0, 0]).u64s(&[0]).bytes
    }
}
