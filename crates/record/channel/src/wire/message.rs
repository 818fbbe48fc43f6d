//! The messages between host and agent, and their layout.

use crate::wire::code::{CodePiece, CodeRequest};
use crate::wire::device::{self, DeviceRange, NamedDevice};
use crate::wire::event_cost::{self, EventCost};
use crate::wire::fields::{Fields, Malformed, Payload};
use crate::wire::samples::{SamplePart, SampleRequest, SamplesEnd};
use crate::wire::text::Text;
use crate::wire::view::{GuestView, ViewRequest};

/// A message of a control stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// Host: identify yourself. Ends any earlier recording.
    HostHello,
    /// Guest: the answer. With session 0 it is unsolicited: the other end of the channel was just opened.
    GuestHello(GuestHello),
    /// Connecting side: this connection is the page stream with this number.
    Attach(u32),
    /// Host: start this recording.
    Start(Box<Start>),
    /// Guest: the recording runs.
    Started(Started),
    /// Guest: part of a text that decodes the pages.
    Text(Text),
    /// Guest: progress.
    Status(Status),
    /// Host: stop the recording.
    Stop,
    /// Guest: the kernel's counts of a CPU, and the number of page bytes sent.
    CpuEnd(CpuEnd),
    /// Guest: all pages and texts were sent.
    Ended(Status),
    /// Guest: the request is refused, with the reason.
    Refused(String),
    /// Host: keepalive. A guest that receives nothing for long stops recording.
    Alive,
    /// Host: use these filters from now on.
    Filter(Vec<EventFilter>),
    /// Guest: memory and port ranges of this channel's device.
    Device(Vec<DeviceRange>),
    /// Guest: the cost of an event. Sent after a boot recording ends.
    EventCost(EventCost),
    /// Host: sample the recording that the next [`Message::Start`] begins.
    Sample(SampleRequest),
    /// Guest: part of the samples.
    Samples(SamplePart),
    /// Guest: all samples were sent.
    SamplesEnd(SamplesEnd),
    /// Host: send the kernel code around the samples of [`Message::Sample`] as well.
    KeepCode(CodeRequest),
    /// Guest: a piece of kernel code, before [`Message::SamplesEnd`].
    Code(CodePiece),
    /// Host: how do you see yourself? It is the first message of a connection for views only, and never ends a
    /// recording.
    AskView(ViewRequest),
    /// Guest: the answer.
    View(Box<GuestView>),
    /// Guest: addresses and names of its virtio devices.
    Devices(Vec<NamedDevice>),
}

/// What a guest says about itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GuestHello {
    /// The protocol's version.
    pub version: u16,
    /// The kernel's id of this boot.
    pub boot_id: [u8; 16],
    /// The kernel's release, version and machine, and the host name.
    pub uname: String,
    pub host_name: String,
    /// The agent's version.
    pub agent: String,
    /// Whether the guest is big endian.
    pub big_endian: bool,
    /// Size of the kernel's `long`.
    pub long_bytes: u8,
    /// Size of a ring buffer page.
    pub page_bytes: u32,
    /// Number of possible CPUs.
    pub cpus: u32,
    /// Number of page streams: one per CPU, or fewer.
    pub streams: u32,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventFilter {
    /// `SYSTEM:NAME`, or a pattern.
    pub event: String,
    /// Filter in the kernel's syntax.
    pub filter: String,
}

/// A request to record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Start {
    /// Events, systems and patterns; each must match an event.
    pub events: Vec<String>,
    /// Patterns that may match nothing.
    pub optional: Vec<String>,
    pub filters: Vec<EventFilter>,
    /// Probes, each `FUNCTION [ARGUMENTS]`.
    pub probes: Vec<String>,
    /// The trace clock; `None`: the best one.
    pub clock: Option<String>,
    /// Size of each CPU's buffer in the kernel; `None`: depends on the number of CPUs.
    pub buffer_kib: Option<u32>,
    /// Whether to send symbols.
    pub kallsyms: bool,
    /// Interval of [`Message::Status`]; 0: never.
    pub status_ms: u32,
    /// Max time that events stay in the guest kernel's buffer, including those on partial pages; 0: until the buffer is
    /// half full. Agents of version 1 send partial pages only if it is less than 1000.
    pub flush_ms: u32,
    /// Send the recording that the kernel's command line started at boot, instead of a new one.
    pub boot: bool,
    /// Function tracer, in addition to events.
    pub tracer: Option<TracedFunctions>,
}

/// Functions to trace. Patterns have the kernel's syntax.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TracedFunctions {
    /// Traces returns with times: `function_graph` instead of `function`.
    pub returns: bool,
    /// Functions; empty: all that the kernel can trace.
    pub functions: Vec<String>,
    pub except: Vec<String>,
    /// With returns: trace only these functions and their callees.
    pub within: Vec<String>,
    /// With returns: max depth; 0: no limit.
    pub depth: u32,
}

/// The recording as started.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Started {
    /// Number of enabled events; their formats follow as texts.
    pub events: u32,
    /// The kernel's name of the trace clock.
    pub clock: String,
    /// The text of `trace_clock`, which lists all clocks.
    pub clock_line: String,
    /// Conversion of clock ticks to nanoseconds: multiplier, shift, nanoseconds at tick 0.
    pub conversion: Option<(u32, u32, u64)>,
    /// Size of each CPU's buffer in the kernel.
    pub buffer_kib: u32,
    /// The recorded CPUs.
    pub cpus: Vec<u32>,
    /// Number of traced functions, if a tracer was requested and the kernel lists them.
    pub traced: Option<u32>,
}

/// Progress of a recording in the guest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// CPU time that the agent used.
    pub agent_cpu_ns: u64,
    /// Number of its threads' wake-ups.
    pub wakeups: u64,
    /// The kernel's counts of each CPU.
    pub cpus: Vec<CpuCounts>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuCounts {
    pub cpu: u32,
    /// Lost events.
    pub lost: u64,
    /// Bytes of pages sent.
    pub sent_bytes: u64,
}

/// Totals of a CPU.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CpuEnd {
    pub cpu: u32,
    /// Bytes of pages sent.
    pub sent_bytes: u64,
    /// The kernel's own text of its counts.
    pub stats: String,
    /// Why not everything was sent, if so.
    pub fault: Option<String>,
}

impl Message {
    /// The number of the message's kind.
    pub(crate) fn kind(&self) -> u16 {
        match self {
            Self::HostHello => 1,
            Self::GuestHello(_) => 2,
            Self::Attach(_) => 3,
            Self::Start(_) => 4,
            Self::Started(_) => 5,
            Self::Text(_) => 6,
            Self::Status(_) => 7,
            Self::Stop => 8,
            Self::CpuEnd(_) => 9,
            Self::Ended(_) => 10,
            Self::Refused(_) => 11,
            Self::Alive => 12,
            Self::Filter(_) => 13,
            Self::Device(_) => 14,
            Self::EventCost(_) => 15,
            Self::Sample(_) => 16,
            Self::Samples(_) => 17,
            Self::SamplesEnd(_) => 18,
            Self::KeepCode(_) => 19,
            Self::Code(_) => 20,
            Self::AskView(_) => 21,
            Self::View(_) => 22,
            Self::Devices(_) => 23,
        }
    }

    pub(crate) fn write(&self, to: &mut Payload) {
        match self {
            Self::HostHello | Self::Stop | Self::Alive => {}
            Self::GuestHello(hello) => hello.write(to),
            Self::Attach(stream) => {
                to.u32(*stream);
            }
            Self::Start(start) => start.write(to),
            Self::Started(started) => started.write(to),
            Self::Text(text) => text.write(to),
            Self::Status(status) | Self::Ended(status) => status.write(to),
            Self::CpuEnd(end) => end.write(to),
            Self::Refused(why) => {
                to.text(why);
            }
            Self::Filter(filters) => write_filters(filters, to),
            Self::Device(ranges) => device::write(ranges, to),
            Self::EventCost(cost) => event_cost::write(cost, to),
            Self::Sample(request) => request.write(to),
            Self::Samples(part) => part.write(to),
            Self::SamplesEnd(end) => end.write(to),
            Self::KeepCode(request) => request.write(to),
            Self::Code(piece) => piece.write(to),
            Self::AskView(request) => request.write(to),
            Self::View(view) => view.write(to),
            Self::Devices(devices) => device::write_named(devices, to),
        }
    }

    pub(crate) fn read(kind: u16, payload: &[u8]) -> Result<Self, Malformed> {
        let mut fields = Fields::new(payload);
        let from = &mut fields;
        let message = match kind {
            1 => Self::HostHello,
            2 => Self::GuestHello(GuestHello::read(from)?),
            3 => Self::Attach(from.u32()?),
            4 => Self::Start(Box::new(Start::read(from)?)),
            5 => Self::Started(Started::read(from)?),
            6 => Self::Text(Text::read(from)?),
            7 => Self::Status(Status::read(from)?),
            8 => Self::Stop,
            9 => Self::CpuEnd(CpuEnd::read(from)?),
            10 => Self::Ended(Status::read(from)?),
            11 => Self::Refused(from.text()?),
            12 => Self::Alive,
            13 => Self::Filter(read_filters(from)?),
            14 => Self::Device(device::read(from)?),
            15 => Self::EventCost(event_cost::read(from)?),
            16 => Self::Sample(SampleRequest::read(from)?),
            17 => Self::Samples(SamplePart::read(from)?),
            18 => Self::SamplesEnd(SamplesEnd::read(from)?),
            19 => Self::KeepCode(CodeRequest::read(from)?),
            20 => Self::Code(CodePiece::read(from)?),
            21 => Self::AskView(ViewRequest::read(from)?),
            22 => Self::View(Box::new(GuestView::read(from)?)),
            23 => Self::Devices(device::read_named(from)?),
            _ => return Err(Malformed),
        };
        fields.end()?;
        Ok(message)
    }
}

impl GuestHello {
    fn write(&self, to: &mut Payload) {
        to.u16(self.version).bytes(&self.boot_id);
        to.text(&self.uname).text(&self.host_name).text(&self.agent);
        to.flag(self.big_endian).u8(self.long_bytes);
        to.u32(self.page_bytes).u32(self.cpus).u32(self.streams);
    }

    fn read(from: &mut Fields<'_>) -> Result<Self, Malformed> {
        Ok(Self {
            version: from.u16()?,
            boot_id: from.array()?,
            uname: from.text()?,
            host_name: from.text()?,
            agent: from.text()?,
            big_endian: from.flag()?,
            long_bytes: from.u8()?,
            page_bytes: from.u32()?,
            cpus: from.u32()?,
            streams: from.u32()?,
        })
    }
}

impl Start {
    fn write(&self, to: &mut Payload) {
        for list in [&self.events, &self.optional] {
            to.list(list, |to, event| {
                to.text(event);
            });
        }
        write_filters(&self.filters, to);
        to.list(&self.probes, |to, probe| {
            to.text(probe);
        });
        to.option(self.clock.as_ref(), |to, clock| {
            to.text(clock);
        });
        to.option(self.buffer_kib.as_ref(), |to, kib| {
            to.u32(*kib);
        });
        to.flag(self.kallsyms).u32(self.status_ms).u32(self.flush_ms).flag(self.boot);
        to.option(self.tracer.as_ref(), |to, tracer| tracer.write(to));
    }

    fn read(from: &mut Fields<'_>) -> Result<Self, Malformed> {
        Ok(Self {
            events: from.list(Fields::text)?,
            optional: from.list(Fields::text)?,
            filters: read_filters(from)?,
            probes: from.list(Fields::text)?,
            clock: from.option(Fields::text)?,
            buffer_kib: from.option(Fields::u32)?,
            kallsyms: from.flag()?,
            status_ms: from.u32()?,
            flush_ms: from.u32()?,
            boot: from.flag()?,
            tracer: from.option(TracedFunctions::read)?,
        })
    }
}

impl TracedFunctions {
    fn write(&self, to: &mut Payload) {
        to.flag(self.returns);
        for list in [&self.functions, &self.except, &self.within] {
            to.list(list, |to, pattern| {
                to.text(pattern);
            });
        }
        to.u32(self.depth);
    }

    fn read(from: &mut Fields<'_>) -> Result<Self, Malformed> {
        Ok(Self {
            returns: from.flag()?,
            functions: from.list(Fields::text)?,
            except: from.list(Fields::text)?,
            within: from.list(Fields::text)?,
            depth: from.u32()?,
        })
    }
}

fn write_filters(filters: &[EventFilter], to: &mut Payload) {
    to.list(filters, |to, filter| {
        to.text(&filter.event).text(&filter.filter);
    });
}

fn read_filters(from: &mut Fields<'_>) -> Result<Vec<EventFilter>, Malformed> {
    from.list(|from| Ok(EventFilter { event: from.text()?, filter: from.text()? }))
}

impl Started {
    fn write(&self, to: &mut Payload) {
        to.u32(self.events).text(&self.clock).text(&self.clock_line);
        to.option(self.conversion.as_ref(), |to, (mult, shift, zero_ns)| {
            to.u32(*mult).u32(*shift).u64(*zero_ns);
        });
        to.u32(self.buffer_kib);
        to.list(&self.cpus, |to, cpu| {
            to.u32(*cpu);
        });
        to.option(self.traced.as_ref(), |to, traced| {
            to.u32(*traced);
        });
    }

    fn read(from: &mut Fields<'_>) -> Result<Self, Malformed> {
        Ok(Self {
            events: from.u32()?,
            clock: from.text()?,
            clock_line: from.text()?,
            conversion: from.option(|from| Ok((from.u32()?, from.u32()?, from.u64()?)))?,
            buffer_kib: from.u32()?,
            cpus: from.list(Fields::u32)?,
            traced: from.option(Fields::u32)?,
        })
    }
}

impl Status {
    fn write(&self, to: &mut Payload) {
        to.u64(self.agent_cpu_ns).u64(self.wakeups);
        to.list(&self.cpus, |to, counts| {
            to.u32(counts.cpu).u64(counts.lost).u64(counts.sent_bytes);
        });
    }

    fn read(from: &mut Fields<'_>) -> Result<Self, Malformed> {
        Ok(Self {
            agent_cpu_ns: from.u64()?,
            wakeups: from.u64()?,
            cpus: from.list(|from| {
                Ok(CpuCounts { cpu: from.u32()?, lost: from.u64()?, sent_bytes: from.u64()? })
            })?,
        })
    }
}

impl CpuEnd {
    fn write(&self, to: &mut Payload) {
        to.u32(self.cpu).u64(self.sent_bytes).text(&self.stats);
        to.option(self.fault.as_ref(), |to, fault| {
            to.text(fault);
        });
    }

    fn read(from: &mut Fields<'_>) -> Result<Self, Malformed> {
        Ok(Self {
            cpu: from.u32()?,
            sent_bytes: from.u64()?,
            stats: from.text()?,
            fault: from.option(Fields::text)?,
        })
    }
}
