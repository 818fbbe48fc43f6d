//! Builds a synthetic recording of one machine, event by event.

use std::collections::BTreeMap;
use std::io::Cursor;

use raw_bytes::{Abi, ByteOrder, LongSize};
use sources::Recording;
use testkit::{HEADER_EVENT, KernelFormats, Machine, MissedEvents, StreamBuilder};
use tracedat::{
    BufferSpec, Compression, Contents, EventFormat, Formats, Header, TraceDatWriter, Version, id,
};

const LITTLE_64: Abi = Abi { order: ByteOrder::Little, long: LongSize::Eight };

/// A recording under construction.
pub(crate) struct Machinery {
    formats: KernelFormats,
    pub(crate) clock: &'static str,
    pub(crate) options: Vec<(u16, Vec<u8>)>,
    /// Thread names, in the format of the kernel's `saved_cmdlines`.
    pub(crate) cmdlines: String,
    /// Symbols, in the format of `/proc/kallsyms`.
    pub(crate) kallsyms: String,
    cpus: BTreeMap<u32, StreamBuilder>,
}

impl Machinery {
    pub(crate) fn new(clock: &'static str) -> Self {
        Self::for_machine(Machine::X86, clock)
    }

    /// A machine of this architecture.
    pub(crate) fn for_machine(machine: Machine, clock: &'static str) -> Self {
        Self {
            formats: KernelFormats::new(machine, LITTLE_64),
            clock,
            options: Vec::new(),
            cmdlines: String::new(),
            kallsyms: String::new(),
            cpus: BTreeMap::new(),
        }
    }

    /// Adds the formats of all system calls and of signals.
    pub(crate) fn with_syscalls(mut self) -> Self {
        self.formats = self.formats.with_syscalls();
        self
    }

    /// Adds the formats of x86's interrupt vectors.
    pub(crate) fn with_vectors(mut self) -> Self {
        self.formats = self.formats.with_vectors();
        self
    }

    fn stream(&mut self, cpu: u32) -> &mut StreamBuilder {
        self.cpus.entry(cpu).or_insert_with(|| StreamBuilder::new(LITTLE_64, 4096))
    }

    pub(crate) fn event(
        &mut self,
        cpu: u32,
        stamp: u64,
        thread: i32,
        name: &str,
        fields: &[(&str, u64)],
    ) {
        let mut event = self.formats.event(name).pid(thread);
        for (field, value) in fields {
            event = event.set(field, *value);
        }
        let payload = event.build();
        self.stream(cpu).event(stamp, &payload);
    }

    /// A loss without a count.
    pub(crate) fn lose(&mut self, cpu: u32) {
        self.stream(cpu).lose(MissedEvents::Uncounted);
    }

    pub(crate) fn recording(self) -> Recording {
        let events = self.formats.systems().into_iter().flat_map(|(system, texts)| {
            texts.into_iter().map(move |text| EventFormat { system: system.into(), text })
        });
        let formats = Formats {
            header_page: self.formats.header_page(4096),
            header_event: HEADER_EVENT.to_owned(),
            ftrace: Vec::new(),
            events: events.collect(),
        };
        let mut options = self.options;
        options.push((id::TRACECLOCK, format!("[{}]\0", self.clock).into_bytes()));
        let contents = Contents {
            header: Header {
                version: Version::V7,
                order: ByteOrder::Little,
                user_long: LongSize::Eight,
                page_size: 4096,
                compression: Compression::None,
                compression_version: String::new(),
            },
            formats,
            kallsyms: self.kallsyms.into_bytes(),
            printk: Vec::new(),
            cmdlines: self.cmdlines.into_bytes(),
            options,
            cpus: self.cpus.len() as u32,
            buffers: vec![BufferSpec {
                name: String::new(),
                clock: self.clock.to_owned(),
                page_size: 4096,
            }],
        };
        let mut writer = TraceDatWriter::new(Cursor::new(Vec::new()), &contents).unwrap();
        for (cpu, stream) in self.cpus {
            writer.write_cpu("", cpu, &stream.bytes()[..]).unwrap();
        }
        let bytes = writer.finish().unwrap().into_inner();
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), bytes).unwrap();
        sources::open(file.path()).unwrap()
    }
}
