//! A machine whose events are written down one by one and read back as exits.

use std::collections::BTreeMap;
use std::io::Cursor;

use raw_bytes::{Abi, ByteOrder, LongSize};
use sources::Recording;
use testkit::{HEADER_EVENT, KernelFormats, Machine, MissedEvents, StreamBuilder};
use timeline::{ExitPass, ExitSink, ExitSpan, Outcome, Parts, each_exit, find_vcpus};
use tracedat::{
    BufferSpec, Compression, Contents, EventFormat, Formats, Header, TraceDatWriter, Version, id,
};

pub(crate) const LITTLE_64: Abi = Abi { order: ByteOrder::Little, long: LongSize::Eight };

/// How a recording is written; what it says does not depend on it.
#[derive(Clone, Debug)]
pub(crate) struct Shape {
    pub(crate) version: Version,
    pub(crate) compression: Compression,
    pub(crate) page_size: usize,
    /// A page ends after this many events, full or not.
    pub(crate) events_per_page: usize,
}

impl Default for Shape {
    fn default() -> Self {
        let (version, compression) = (Version::V7, Compression::None);
        Self { version, compression, page_size: 4096, events_per_page: usize::MAX }
    }
}

/// What is in one CPU's part of a buffer.
#[derive(Clone, Debug)]
enum Item {
    Event(u64, Vec<u8>),
    Loss(MissedEvents),
}

/// The machine, and what has happened on it so far.
#[derive(Debug)]
pub(crate) struct Host {
    pub(crate) formats: KernelFormats,
    pub(crate) shape: Shape,
    pub(crate) clock: &'static str,
    pub(crate) cpus: u32,
    /// Further options of the file.
    pub(crate) options: Vec<(u16, Vec<u8>)>,
    /// By buffer (the top one has the empty name) and CPU.
    items: BTreeMap<(&'static str, u32), Vec<Item>>,
}

impl Host {
    pub(crate) fn new(formats: KernelFormats) -> Self {
        Self {
            formats,
            shape: Shape::default(),
            clock: "local",
            cpus: 4,
            options: Vec::new(),
            items: BTreeMap::new(),
        }
    }

    pub(crate) fn x86() -> Self {
        Self::new(KernelFormats::new(Machine::X86, LITTLE_64))
    }

    /// An event of the top buffer, in the context of `thread`.
    pub(crate) fn event(
        &mut self,
        cpu: u32,
        ns: u64,
        thread: i32,
        name: &str,
        fields: &[(&str, u64)],
    ) -> &mut Self {
        self.event_in("", cpu, ns, thread, name, fields)
    }

    pub(crate) fn event_in(
        &mut self,
        buffer: &'static str,
        cpu: u32,
        ns: u64,
        thread: i32,
        name: &str,
        fields: &[(&str, u64)],
    ) -> &mut Self {
        let event = self.formats.event(name).pid(thread);
        let payload =
            fields.iter().fold(event, |event, (name, value)| event.set(name, *value)).build();
        self.items.entry((buffer, cpu)).or_default().push(Item::Event(ns, payload));
        self
    }

    /// Events are lost on the CPU between what came before and what comes next.
    pub(crate) fn lose(&mut self, cpu: u32) -> &mut Self {
        self.lose_in("", cpu)
    }

    pub(crate) fn lose_in(&mut self, buffer: &'static str, cpu: u32) -> &mut Self {
        let items = self.items.entry((buffer, cpu)).or_default();
        items.push(Item::Loss(MissedEvents::Uncounted));
        self
    }

    pub(crate) fn exit(&mut self, cpu: u32, ns: u64, thread: i32, reason: u64) -> &mut Self {
        self.event(cpu, ns, thread, "kvm_exit", &[("exit_reason", reason), ("isa", 2)])
    }

    pub(crate) fn entry(&mut self, cpu: u32, ns: u64, thread: i32, vcpu: u64) -> &mut Self {
        let fields = [("vcpu_id", vcpu)];
        let known = self.formats.get("kvm_entry").field("vcpu_id").is_some();
        self.event(cpu, ns, thread, "kvm_entry", &fields[..usize::from(known)])
    }

    /// `prev` goes, to sleep in state `state` (0: it stays runnable), and `next` comes.
    pub(crate) fn switch(
        &mut self,
        cpu: u32,
        ns: u64,
        prev: i32,
        state: u64,
        next: i32,
    ) -> &mut Self {
        let fields = [("prev_pid", prev as u64), ("prev_state", state), ("next_pid", next as u64)];
        self.event(cpu, ns, prev, "sched_switch", &fields)
    }

    /// `waker` wakes `woken`.
    pub(crate) fn wake(&mut self, cpu: u32, ns: u64, waker: i32, woken: i32) -> &mut Self {
        self.event(cpu, ns, waker, "sched_waking", &[("pid", woken as u64)])
    }

    pub(crate) fn user_exit(&mut self, cpu: u32, ns: u64, thread: i32) -> &mut Self {
        self.event(cpu, ns, thread, "kvm_userspace_exit", &[("reason", 2)])
    }

    pub(crate) fn user_return(&mut self, cpu: u32, ns: u64, thread: i32) -> &mut Self {
        self.event(cpu, ns, thread, "kvm_fpu", &[("load", 1)])
    }

    pub(crate) fn wakeup(
        &mut self,
        cpu: u32,
        at: u64,
        thread: i32,
        ns: u64,
        waited: u64,
    ) -> &mut Self {
        self.event(cpu, at, thread, "kvm_vcpu_wakeup", &[("ns", ns), ("waited", waited)])
    }

    /// The bytes of a trace.dat.
    pub(crate) fn file(&self) -> Vec<u8> {
        let abi = self.formats.abi();
        let page_size = self.shape.page_size as u32;
        let mut names: Vec<&str> = self.items.keys().map(|(buffer, _)| *buffer).collect();
        names.insert(0, "");
        names.dedup();
        let buffer = |name: &&str| BufferSpec {
            name: (*name).to_owned(),
            clock: self.clock.to_owned(),
            page_size,
        };
        let clock = format!("[{}]\0", self.clock).into_bytes();
        let mut options = vec![(id::TRACECLOCK, clock)];
        options.extend(self.options.iter().cloned());
        let contents = Contents {
            header: Header {
                version: self.shape.version,
                order: abi.order,
                user_long: abi.long,
                page_size,
                compression: self.shape.compression.clone(),
                compression_version: String::new(),
            },
            formats: self.format_texts(),
            kallsyms: Vec::new(),
            printk: Vec::new(),
            cmdlines: Vec::new(),
            options,
            cpus: self.cpus,
            buffers: names.iter().map(buffer).collect(),
        };
        let mut writer = TraceDatWriter::new(Cursor::new(Vec::new()), &contents).unwrap();
        for ((buffer, cpu), items) in &self.items {
            writer.write_cpu(buffer, *cpu, &self.pages(items)[..]).unwrap();
        }
        writer.finish().unwrap().into_inner()
    }

    fn format_texts(&self) -> Formats {
        let events = self.formats.systems().into_iter().flat_map(|(system, texts)| {
            texts.into_iter().map(move |text| EventFormat { system: system.into(), text })
        });
        Formats {
            header_page: self.formats.header_page(self.shape.page_size),
            header_event: HEADER_EVENT.to_owned(),
            ftrace: Vec::new(),
            events: events.collect(),
        }
    }

    fn pages(&self, items: &[Item]) -> Vec<u8> {
        let mut stream = StreamBuilder::new(self.formats.abi(), self.shape.page_size);
        let mut on_page = 0;
        for item in items {
            match item {
                Item::Event(ns, payload) => {
                    if on_page == self.shape.events_per_page {
                        stream.end_page();
                        on_page = 0;
                    }
                    stream.event(*ns, payload);
                    on_page += 1;
                }
                Item::Loss(missed) => {
                    stream.lose(*missed);
                    on_page = 0;
                }
            }
        }
        stream.bytes()
    }

    /// Reads the recording back.
    pub(crate) fn read(&self) -> Found {
        Found::in_file(&self.file())
    }

    /// The exits in the order of their start.
    pub(crate) fn exits(&self) -> Vec<Seen> {
        self.read().exits
    }
}

/// What `each_exit` gave.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) recording: Recording,
    pub(crate) pass: ExitPass<Collect>,
    /// In the order of their start.
    pub(crate) exits: Vec<Seen>,
}

impl Found {
    pub(crate) fn in_file(bytes: &[u8]) -> Self {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), bytes).unwrap();
        let recording = sources::open(file.path()).unwrap();
        let pass = each_exit(&recording, true, Collect::default(), &|_| ());
        assert_eq!(find_vcpus(&recording, &|_| ()), pass.vcpus);
        let thread = |vcpu: usize| pass.vcpus[vcpu].thread;
        let seen = |(vcpu, span): &(usize, ExitSpan)| Seen {
            thread: thread(*vcpu),
            vcpu: *vcpu,
            span: *span,
        };
        let mut exits: Vec<Seen> = pass.sink.exits.iter().map(seen).collect();
        exits.sort_by_key(|seen| (seen.span.start_ns, seen.thread));
        Self { recording, pass, exits }
    }
}

/// Keeps every exit.
#[derive(Debug, Default)]
pub(crate) struct Collect {
    exits: Vec<(usize, ExitSpan)>,
}

impl ExitSink for Collect {
    fn exit(&mut self, vcpu: usize, span: &ExitSpan) {
        self.exits.push((vcpu, *span));
    }
}

/// An exit as it was given.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) thread: u32,
    pub(crate) vcpu: usize,
    pub(crate) span: ExitSpan,
}

impl Seen {
    pub(crate) fn is_paired(&self) -> bool {
        self.span.outcome == Outcome::Paired
    }

    /// Start and end of a paired exit, start and nothing otherwise.
    pub(crate) fn window(&self) -> (u64, Option<u64>) {
        (self.span.start_ns, self.is_paired().then_some(self.span.end_ns))
    }
}

/// The windows of all exits.
pub(crate) fn windows(exits: &[Seen]) -> Vec<(u64, Option<u64>)> {
    exits.iter().map(Seen::window).collect()
}

/// Parts in the order kernel, user space, runnable, blocked, polling.
pub(crate) fn parts(ns: [u64; 5]) -> Parts {
    let [kernel_ns, user_ns, runnable_ns, blocked_ns, halt_poll_ns] = ns;
    Parts { kernel_ns, user_ns, runnable_ns, blocked_ns, halt_poll_ns }
}

/// The parts of the only exit.
pub(crate) fn only_parts(host: &Host) -> Parts {
    let exits = host.exits();
    assert_eq!(exits.len(), 1, "{exits:?}");
    assert!(exits[0].is_paired());
    assert_eq!(exits[0].span.parts.total_ns(), exits[0].span.duration_ns(), "parts add up");
    exits[0].span.parts
}
