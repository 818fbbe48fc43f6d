//! Records a guest with hyperscope-agent: one thread for control messages, and one per page stream.

mod conversation;
#[cfg(test)]
pub(crate) mod hostile;
mod kernel_code;
#[cfg(test)]
mod patience;
mod receiver;
mod samples;

use std::io;
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::Duration;

use channel::wire::{EventFilter, GuestHello, Message, Start};
use channel::{Control, HostAddress, HostMemory, PageConsumer, PortSockets, Stream};
use os::confine::{Confined, apart};
use os::folder::Folder;
use os::waits::Wait;
use tracefs::Profile;
use vms::{GuestAddress, open_memory};

use crate::ending::{Ending, StartLimit};
use crate::error::{RecordError, Result};
use crate::guest::{
    Agent, AgentReport, GuestFiles, GuestIdentity, GuestPages, GuestRecording, GuestStatus,
    PAGE_BYTES, PageLimits, PageShape, Quota, ReadyGuest, TSC,
};
use crate::in_guests::InGuests;
use crate::tracer;

pub(crate) use self::conversation::LATE;
use self::conversation::{Conversation, Destination, Patience};
pub(crate) use self::receiver::Receivers;
use self::samples::GuestSamples;
pub(crate) use self::samples::{forget as forget_samples, forget_code};

/// Max time for an agent to answer.
pub(crate) const ANSWER: Duration = Duration::from_secs(10);
/// Max time to connect.
const CONNECT: Duration = Duration::from_secs(5);
/// Max CPUs of a guest; Linux stops at 8192.
const MAX_CPUS: u32 = 8192;
/// Max page streams of a guest.
const MAX_STREAMS: u32 = 512;
/// Default max time for a guest to begin.
pub(crate) const BEGIN_TIMEOUT: Duration = Duration::from_secs(30);
/// Interval of status messages.
const STATUS_MS: u32 = 1000;
/// Max time that events stay in a guest, which a crash would lose. Slightly less than a second: agents of the first
/// version send partial pages only then.
const FLUSH_MS: u32 = 999;

/// A guest whose agent has answered.
#[derive(Debug)]
pub(crate) struct Ready {
    address: GuestAddress,
    control: Control,
    session: u64,
    hello: GuestHello,
    streams: Vec<Stream>,
    /// Page rings of a shared-memory channel.
    rings: Vec<PageConsumer>,
    /// Bytes that it may still write; `None`: the default of a recording.
    quota: Option<Quota>,
}

/// The agent of a recorded guest.
#[derive(Debug)]
struct HyperscopeAgent {
    files: Arc<GuestFiles>,
    receivers: Arc<Receivers>,
    conversation: Conversation,
}

impl Ready {
    /// Connects to a guest's agent over its first channel that answers.
    ///
    /// # Errors
    /// When no channel answers: the error of each.
    pub(crate) fn connect_over(
        first: GuestAddress,
        others: Vec<HostAddress>,
        session: u64,
        limit: &StartLimit,
    ) -> Result<Self> {
        let several = !others.is_empty();
        let name = first.name.clone();
        let mut whys = Vec::new();
        for channel in std::iter::once(first.channel.clone()).chain(others) {
            let address = GuestAddress { channel: channel.clone(), ..first.clone() };
            match Self::connect(address, session, limit) {
                Err(RecordError::Guest { source, .. }) if several => {
                    whys.push(format!("{channel}: {source}"));
                }
                other => return other,
            }
        }
        let whys = format!("no agent answers on the guest's channels: {}", whys.join("; "));
        Err(RecordError::Guest { name, source: io::Error::other(whys) })
    }

    /// Connects to a guest's agent and identifies it, within one time limit.
    ///
    /// # Errors
    /// When there is no answer, or the agent has another protocol version.
    pub(crate) fn connect(address: GuestAddress, session: u64, limit: &StartLimit) -> Result<Self> {
        let failed = |source| RecordError::Guest { name: address.name.clone(), source };
        let (mut control, mut rings) = open(&address, limit).map_err(failed)?;
        let hello = apart(Confined::Reader, "asks", || {
            limit.at_most(ANSWER).wait(|wait| ask(&mut control, session, wait))
        });
        let hello = hello.map_err(failed)?;
        check(&hello).map_err(|text| failed(io::Error::other(text)))?;
        let streams = if rings.is_empty() { hello.streams } else { 0 };
        let streams = (0..streams).map(|at| page_stream(&address.channel, session, at, limit));
        let streams = streams.collect::<io::Result<_>>().map_err(failed)?;
        apart(Confined::Reader, "discards", || {
            receiver::discard(&mut rings, limit);
            Ok(())
        })
        .map_err(failed)?;
        Ok(Self { address, control, session, hello, streams, rings, quota: None })
    }

    /// A guest whose agent has connected to this host, and will open its page streams the same way.
    ///
    /// # Errors
    /// When it does not answer, or has another protocol version.
    pub(crate) fn joined(
        address: GuestAddress,
        mut control: Control,
        session: u64,
        limit: &StartLimit,
    ) -> Result<Self> {
        let failed = |source| RecordError::Guest { name: address.name.clone(), source };
        let hello =
            apart(Confined::Reader, "asks", || limit.wait(|wait| ask(&mut control, session, wait)));
        let hello = hello.map_err(failed)?;
        check(&hello).map_err(|text| failed(io::Error::other(text)))?;
        let (streams, rings) = (Vec::new(), Vec::new());
        Ok(Self { address, control, session, hello, streams, rings, quota: None })
    }

    /// The guest's host name.
    pub(crate) fn label(&self) -> String {
        printable::label(&self.hello.host_name)
    }

    /// This guest, limited to a quota that guests may share.
    pub(crate) fn within(self, quota: Quota) -> Self {
        Self { quota: Some(quota), ..self }
    }

    fn is_x86(&self) -> bool {
        self.hello.uname.split(' ').next_back().is_some_and(|machine| machine == "x86_64")
    }

    /// Starts the guest's recording, with this trace clock or its best one, and with pages in a folder of the session.
    /// It must begin within `limit`, or its recording is over. `attached` gets the receivers of page streams before the
    /// guest is asked to open them.
    ///
    /// # Errors
    /// When the guest refuses; the message is the guest's.
    pub(crate) fn begin_with(
        mut self,
        what: &InGuests,
        clock: Option<String>,
        session: &Folder,
        limit: &StartLimit,
        ending: &Ending,
        attached: impl FnOnce(&Arc<Receivers>),
    ) -> Result<GuestRecording> {
        let name = self.address.name.clone();
        let failed = |source| RecordError::Guest { name: name.clone(), source };
        let pages = self.pages(what, session)?;
        let (number, files) = (self.session, &pages.files);
        let receivers = Receivers::new(number, Arc::clone(files), self.hello.streams, ending)?;
        let receivers = Arc::new(receivers);
        for stream in self.streams {
            receivers.add(stream).map_err(failed)?;
        }
        receivers.add_rings(self.rings).map_err(failed)?;
        attached(&receivers);
        let samples =
            what.sampling.map(|sampling| GuestSamples::new(sampling, session, &name, &self.hello));
        let samples = samples.transpose()?;
        for request in samples.iter().flat_map(GuestSamples::requests) {
            limit.wait(|wait| self.control.send_within(number, &request, wait)).map_err(failed)?;
        }
        let start = Message::Start(Box::new(start(what, clock)));
        limit.wait(|wait| self.control.send_within(number, &start, wait)).map_err(failed)?;
        let vmm = self.address.vm.as_ref().map(|vm| vm.pid);
        let patience = Patience::begins_by(limit.until);
        let to = Destination { folder: pages.folder.clone(), files, samples };
        let conversation = Conversation::begin(self.control, number, to, vmm, ending, patience);
        let conversation = conversation.map_err(failed)?;
        let agent = HyperscopeAgent { files: Arc::clone(files), receivers, conversation };
        let identity = GuestIdentity {
            name,
            channel: self.address.channel.to_string(),
            vm: self.address.vm,
            trace_id: number,
            hello: self.hello,
        };
        let (agent, tracer) = (Box::new(agent), what.tracer.clone());
        Ok(GuestRecording { identity, pages, agent, ending: ending.clone(), tracer })
    }

    fn pages(&self, what: &InGuests, session: &Folder) -> Result<GuestPages> {
        let shape = PageShape {
            bytes: self.hello.page_bytes as usize,
            long_bytes: self.hello.long_bytes.into(),
            big_endian: self.hello.big_endian,
        };
        let limits = PageLimits {
            quota: self.quota.clone().unwrap_or_else(|| Quota::new(what.quota())),
            in_segments: what.in_segments,
            disk_flush: what.disk_flush,
        };
        GuestPages::make(session, &self.address.name, (self.hello.cpus, shape), limits)
    }
}

impl ReadyGuest for Ready {
    fn name(&self) -> &str {
        &self.address.name
    }

    fn rename(&mut self, name: String) {
        self.address.name = name;
    }

    fn begin_timeout(&self) -> Duration {
        BEGIN_TIMEOUT
    }

    fn begin(
        self: Box<Self>,
        what: &InGuests,
        host_clock: &str,
        session: &Folder,
        limit: &StartLimit,
        ending: &Ending,
    ) -> Result<GuestRecording> {
        let has_tsc = host_clock == TSC && self.is_x86();
        let clock = has_tsc.then(|| TSC.to_owned());
        self.begin_with(what, clock, session, limit, ending, |_| {})
    }
}

impl Agent for HyperscopeAgent {
    fn status(&self) -> GuestStatus {
        self.conversation.status()
    }

    fn is_over(&self, wait: Wait<'_>) -> bool {
        self.conversation.is_over(wait)
    }

    fn snapshot(&self) -> io::Result<Receiver<AgentReport>> {
        Ok(self.conversation.snapshot())
    }

    fn end(self: Box<Self>, ending: &Ending) -> AgentReport {
        let mut report = self.conversation.end(ending.threads_until());
        let failed = self.receivers.end(ending.threads_until());
        let unwritten = |error| format!("writing its pages stopped early: {error}");
        report.faults.extend(failed.into_iter().map(unwritten));
        for cpu in report.status.iter().flat_map(|status| &status.cpus) {
            self.files.sent(cpu.cpu, cpu.sent_bytes);
        }
        for end in &report.cpus {
            self.files.sent(end.cpu, end.sent_bytes);
        }
        report
    }
}

/// Parses `EVENT FILTER`.
fn filter(text: &str) -> EventFilter {
    let (event, filter) = text.split_once(' ').unwrap_or((text, ""));
    EventFilter { event: event.to_owned(), filter: filter.trim().to_owned() }
}

/// At least 1, because 0 means no limit. A second is the default.
fn milliseconds(time: Duration) -> u32 {
    match u32::try_from(time.as_millis()).unwrap_or(u32::MAX).max(1) {
        1000 => FLUSH_MS,
        other => other,
    }
}

/// The request to a guest.
pub(crate) fn start(what: &InGuests, clock: Option<String>) -> Start {
    let optional = what.profile.map(Profile::patterns).unwrap_or_default();
    Start {
        events: what.events.clone(),
        optional: optional.into_iter().map(str::to_owned).collect(),
        filters: what.filters.iter().map(|text| filter(text)).collect(),
        probes: what.probes.clone(),
        clock,
        buffer_kib: what.buffer_kib,
        kallsyms: true,
        status_ms: STATUS_MS,
        flush_ms: what.flush.map_or(FLUSH_MS, milliseconds),
        boot: what.boot,
        tracer: what.tracer.as_ref().map(tracer::for_agent),
    }
}

/// Opens the control stream, and the page rings of a shared-memory channel.
fn open(address: &GuestAddress, limit: &StartLimit) -> io::Result<(Control, Vec<PageConsumer>)> {
    let channel = &address.channel;
    if let HostAddress::SharedMemory { path } = channel {
        let memory = open_memory(path, address.vm.as_ref(), true);
        let memory = memory.and_then(HostMemory::of_file).map_err(|error| {
            io::Error::new(error.kind(), format!("cannot use {}: {error}", path.display()))
        })?;
        return Ok((Control::in_memory(memory.control), memory.pages));
    }
    let timeout = limit.at_most(CONNECT).until.remaining();
    Ok((Control::new(channel.connect_control(timeout)?), Vec::new()))
}

fn connect(channel: &HostAddress, limit: &StartLimit) -> io::Result<Stream> {
    channel.connect(limit.at_most(CONNECT).until.remaining())
}

/// Identifies an agent. Skips messages that an earlier host left unread.
fn ask(control: &mut Control, session: u64, wait: Wait<'_>) -> io::Result<GuestHello> {
    let closed =
        "it closed the channel without an answer; an agent with keys requires tls: or tls-vsock:";
    control.ask(session, &Message::HostHello, wait, closed, |message| match message {
        Message::GuestHello(hello) => Some(hello),
        _ => None,
    })
}

/// Checks that a guest with this hello can be recorded.
fn check(hello: &GuestHello) -> std::result::Result<(), String> {
    if hello.version != channel::wire::VERSION {
        return Err(format!(
            "its agent ({}) uses version {} of the protocol, this program uses version {}",
            hello.agent,
            hello.version,
            channel::wire::VERSION
        ));
    }
    let makes_sense = (1..=MAX_CPUS).contains(&hello.cpus)
        && (1..=MAX_STREAMS).contains(&hello.streams)
        && PAGE_BYTES.contains(&hello.page_bytes)
        && hello.page_bytes.is_power_of_two()
        && matches!(hello.long_bytes, 4 | 8);
    if makes_sense {
        return Ok(());
    }
    let GuestHello { cpus, streams, page_bytes, long_bytes, .. } = hello;
    Err(format!(
        "it claims {cpus} CPUs, {streams} page streams, pages of {page_bytes} bytes and longs of {long_bytes} bytes, which is not plausible"
    ))
}

fn page_stream(
    channel: &HostAddress,
    session: u64,
    at: u32,
    limit: &StartLimit,
) -> io::Result<Stream> {
    if limit.wait(|wait| wait.is_over()) {
        let text = "its page streams did not connect in time";
        return Err(io::Error::new(io::ErrorKind::TimedOut, text));
    }
    if let HostAddress::VirtioSerial { folder } = channel {
        return PortSockets::new(folder).pages(at);
    }
    let mut control = Control::new(connect(channel, limit)?);
    limit.wait(|wait| control.send_within(session, &Message::Attach(at), wait))?;
    control.into_stream().ok_or_else(|| io::ErrorKind::Unsupported.into())
}
