//! What both versions of the container hold, apart from pages.

use abi::{ByteOrder, LongSize};
use anyhow::{Context, Result};
use tracedat::{EventFormat, Formats, RawOption, Section, TraceDat, id};

/// Options that are kept: those that do not point to a place in the file.
const KEPT: &[u16] = &[
    id::DATE,
    id::TRACECLOCK,
    id::UNAME,
    id::HOOK,
    id::OFFSET,
    id::CPUCOUNT,
    id::VERSION,
    id::PROCMAPS,
    id::TRACEID,
    id::TIME_SHIFT,
    id::GUEST,
    id::TSC2NSEC,
];

/// Where a CPU's pages are in the file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Placed {
    pub(super) cpu: u32,
    pub(super) offset: u64,
    pub(super) size: u64,
}

/// The parts of the original, ready to be written.
#[derive(Debug)]
pub(super) struct Container {
    pub(super) order: ByteOrder,
    pub(super) user_long: u8,
    pub(super) page_size: u32,
    pub(super) clock: String,
    pub(super) header_info: Vec<u8>,
    pub(super) ftrace: Vec<u8>,
    pub(super) events: Vec<u8>,
    pub(super) kallsyms: Vec<u8>,
    pub(super) printk: Vec<u8>,
    pub(super) cmdlines: Vec<u8>,
    pub(super) options: Vec<RawOption>,
}

impl Container {
    pub(super) fn new(input: &[u8], recording: &TraceDat) -> Result<Self> {
        let order = recording.header.order;
        let text = |section: &Option<Section>| -> Result<Vec<u8>> {
            let read = section.as_ref().map(|section| section.read(input));
            Ok(read.transpose().context("a section is damaged")?.unwrap_or_default().to_vec())
        };
        let options = recording.options.iter().filter(|option| KEPT.contains(&option.id));
        Ok(Self {
            order,
            user_long: if recording.header.user_long == LongSize::Four { 4 } else { 8 },
            page_size: recording.buffers.first().context("no buffer")?.page_size,
            clock: recording.clock().unwrap_or("local").to_owned(),
            header_info: header_info(order, &recording.formats),
            ftrace: texts(order, recording.formats.ftrace.iter()),
            events: events(order, &recording.formats.events),
            kallsyms: Bytes::new(order).sized4(&text(&recording.kallsyms)?)?.done(),
            printk: Bytes::new(order).sized4(&text(&recording.printk)?)?.done(),
            cmdlines: Bytes::new(order).sized8(&text(&recording.cmdlines)?).done(),
            options: options.cloned().collect(),
        })
    }

    /// What both versions begin with, `version` and all.
    pub(super) fn start(&self, version: &str) -> Bytes {
        let endian = u8::from(self.order == ByteOrder::Big);
        Bytes::new(self.order)
            .raw(b"\x17\x08\x44tracing")
            .text(version)
            .raw(&[endian, self.user_long])
            .u32(self.page_size)
    }
}

/// Gives each CPU its place, page-aligned, from `at` on.
pub(super) fn place(at: u64, page_size: u32, layout: &[(u32, u64)]) -> Vec<Placed> {
    let mut at = at;
    let mut placed = Vec::new();
    for &(cpu, size) in layout {
        at = at.next_multiple_of(page_size.into());
        placed.push(Placed { cpu, offset: at, size });
        at += size;
    }
    placed
}

fn header_info(order: ByteOrder, formats: &Formats) -> Vec<u8> {
    Bytes::new(order)
        .text("header_page")
        .sized8(formats.header_page.as_bytes())
        .text("header_event")
        .sized8(formats.header_event.as_bytes())
        .done()
}

fn texts<'a>(order: ByteOrder, texts: impl ExactSizeIterator<Item = &'a String>) -> Vec<u8> {
    let count = Bytes::new(order).u32(texts.len() as u32);
    texts.fold(count, |bytes, text| bytes.sized8(text.as_bytes())).done()
}

fn events(order: ByteOrder, events: &[EventFormat]) -> Vec<u8> {
    let systems: Vec<_> = events.chunk_by(|a, b| a.system == b.system).collect();
    let mut bytes = Bytes::new(order).u32(systems.len() as u32);
    for system in systems {
        let name = system.first().map_or("", |event| &event.system);
        let formats: Vec<_> = system.iter().map(|event| event.text.clone()).collect();
        bytes = bytes.text(name).raw(&texts(order, formats.iter()));
    }
    bytes.done()
}

/// Bytes that are appended to, in the recording's byte order.
#[derive(Debug)]
pub(super) struct Bytes {
    order: ByteOrder,
    bytes: Vec<u8>,
}

impl Bytes {
    pub(super) fn new(order: ByteOrder) -> Self {
        Self { order, bytes: Vec::new() }
    }

    pub(super) fn raw(mut self, bytes: &[u8]) -> Self {
        self.bytes.extend_from_slice(bytes);
        self
    }

    /// A text and its NUL.
    pub(super) fn text(self, text: &str) -> Self {
        self.raw(text.as_bytes()).raw(&[0])
    }

    pub(super) fn u16(self, value: u16) -> Self {
        let big = self.order == ByteOrder::Big;
        self.raw(&if big { value.to_be_bytes() } else { value.to_le_bytes() })
    }

    pub(super) fn u32(self, value: u32) -> Self {
        let big = self.order == ByteOrder::Big;
        self.raw(&if big { value.to_be_bytes() } else { value.to_le_bytes() })
    }

    pub(super) fn u64(self, value: u64) -> Self {
        let big = self.order == ByteOrder::Big;
        self.raw(&if big { value.to_be_bytes() } else { value.to_le_bytes() })
    }

    pub(super) fn sized4(self, bytes: &[u8]) -> Result<Self> {
        Ok(self.u32(u32::try_from(bytes.len())?).raw(bytes))
    }

    pub(super) fn sized8(self, bytes: &[u8]) -> Self {
        self.u64(bytes.len() as u64).raw(bytes)
    }

    pub(super) fn len(&self) -> u64 {
        self.bytes.len() as u64
    }

    pub(super) fn done(self) -> Vec<u8> {
        self.bytes
    }
}
