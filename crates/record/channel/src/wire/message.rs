//! What host and agent say to each other, and how it is laid out.

use crate::wire::code::{CodePiece, CodeRequest};
use crate::wire::device::{self, DeviceRange, NamedDevice};
use crate::wire::event_cost::{self, EventCost};
use crate::wire::fields::{Fields, Malformed, Payload};
use crate::wire::samples::{SamplePart, SampleRequest, SamplesEnd};
use crate::wire::text::Text;
use crate::wire::view::{GuestView, ViewRequest};

/// One message of a control stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// Host: identify yourself. Ends any earlier recording.
    HostHello,
    /// Guest: the answer. With session 0 it was not asked for: somebody is at the other end at last.
    GuestHello(GuestHello),
    /// Whoever made this connection: it is page stream number so and so of the session.
    Attach(u32),
    /// Host: record this.
    Start(Box<Start>),
    /// Guest: it is recorded, from now on.
    Started(Started),
    /// Guest: part of a text that pages are read with.
    Text(Text),
    /// Guest: how it is going.
    Status(Status),
    /// Host: that's all.
    Stop,
    /// Guest: what one CPU's kernel counted, and how many bytes of pages were sent.
    CpuEnd(CpuEnd),
    /// Guest: all pages and texts were sent.
    Ended(Status),
    /// Guest: no, because.
    Refused(String),
    /// Host: still here. A guest that hears nothing for long stops recording.
    Alive,
    /// Host: from now on these filters.
    Filter(Vec<EventFilter>),
    /// Guest: where the device behind this channel is in its memory and among its ports.
    Device(Vec<DeviceRange>),
    /// Guest: what an event costs it. After the end of a recording that its kernel had begun by itself.
    EventCost(EventCost),
    /// Host: sample, in the recording that [`Message::Start`] begins next.
    Sample(SampleRequest),
    /// Guest: part of what was sampled.
    Samples(SamplePart),
    /// Guest: that was all of it.
    SamplesEnd(SamplesEnd),
    /// Host: the kernel's code is wanted, too, where the samples of [`Message::Sample`] see it.
    KeepCode(CodeRequest),
    /// Guest: a piece of that, before [`Message::SamplesEnd`].
    Code(CodePiece),
    /// Host: how do you see yourself? The first message of a connection that is for this alone, and never ends a recording.
    AskView(ViewRequest),
    /// Guest: the answer.
    View(Box<GuestView>),
    /// Guest: where its virtio devices are, by their names.
    Devices(Vec<NamedDevice>),
}

/// What a guest says about itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GuestHello {
    /// The protocol's version.
    pub version: u16,
    /// The kernel's id of this boot.
    pub boot_id: [u8; 16],
    /// The kernel's release, version and machine; its host name.
    pub uname: String,
    pub host_name: String,
    /// The agent's version.
    pub agent: String,
    /// Whether its numbers are big endian.
    pub big_endian: bool,
    /// Bytes of a `long` of its kernel.
    pub long_bytes: u8,
    /// Bytes of a page of its ring buffer.
    pub page_bytes: u32,
    /// CPUs that it may have.
    pub cpus: u32,
    /// Page streams that it uses: one a CPU, or fewer.
    pub streams: u32,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventFilter {
    /// `SYSTEM:NAME`, or a pattern of those.
    pub event: String,
    /// As the kernel takes it.
    pub filter: String,
}

/// What is to be recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Start {
    /// Events, systems and patterns; each names one at least.
    pub events: Vec<String>,
    /// Such as need not be there.
    pub optional: Vec<String>,
    pub filters: Vec<EventFilter>,
    /// Probes, each `FUNCTION [ARGUMENTS]`.
    pub probes: Vec<String>,
    /// The trace clock; unset: the best one.
    pub clock: Option<String>,
    /// Size of each CPU's buffer in the kernel; unset: by the number of CPUs.
    pub buffer_kib: Option<u32>,
    /// Whether symbols are wanted.
    pub kallsyms: bool,
    /// How often the guest says how it is going; 0: never.
    pub status_ms: u32,
    /// How long events may stay in the guest's kernel before they are sent, also those on pages that are
    /// not full; 0: until its buffer is half full. Agents of the first version keep pages that are not
    /// full unless it is less than 1000.
    pub flush_ms: u32,
    /// Take what the kernel has recorded since it booted, by its own command line, in place of a new
    /// recording.
    pub boot: bool,
    /// Calls of functions, in addition to events.
    pub tracer: Option<TracedFunctions>,
}

/// Which calls of functions are to be recorded. Patterns are the kernel's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TracedFunctions {
    /// Returns, too, with times: `function_graph`, else `function`.
    pub returns: bool,
    /// Functions; none: all that the kernel can trace.
    pub functions: Vec<String>,
    pub except: Vec<String>,
    /// With returns: only what is called from these, and they themselves.
    pub within: Vec<String>,
    /// With returns: so deep at most; 0: however deep.
    pub depth: u32,
}

/// What is recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Started {
    /// How many events are on; their formats follow as texts.
    pub events: u32,
    /// The kernel's name of the trace clock.
    pub clock: String,
    /// The kernel's line of all clocks.
    pub clock_line: String,
    /// How ticks of the clock become nanoseconds: multiplier, shift, nanoseconds at tick 0.
    pub conversion: Option<(u32, u32, u64)>,
    /// Size of each CPU's buffer in the kernel.
    pub buffer_kib: u32,
    /// CPUs that are recorded.
    pub cpus: Vec<u32>,
    /// Functions that a tracer was put into, where one was asked for and the kernel lists them.
    pub traced: Option<u32>,
}

/// How a recording is going in the guest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// CPU time that the agent used.
    pub agent_cpu_ns: u64,
    /// How often its threads were woken up.
    pub wakeups: u64,
    /// CPUs, with what their kernel counted.
    pub cpus: Vec<CpuCounts>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuCounts {
    pub cpu: u32,
    /// Events that were lost.
    pub lost: u64,
    /// Bytes of pages that were sent.
    pub sent_bytes: u64,
}

/// What was recorded of one CPU.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CpuEnd {
    pub cpu: u32,
    /// Bytes of pages that were sent.
    pub sent_bytes: u64,
    /// The kernel's own text of its counts.
    pub stats: String,
    /// Why not everything was sent, if so.
    pub fault: Option<String>,
}

impl Message {
    /// The number that stands for the kind of message.
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
