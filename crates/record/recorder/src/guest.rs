//! A guest that is recorded together with its host, by the agent in it.

mod conversation;
mod files;
#[cfg(test)]
pub(crate) mod hostile;
mod kernel_code;
#[cfg(test)]
mod patience;
mod quota;
mod receiver;
mod recorded;
mod samples;
mod segments;
mod texts;

use std::io;
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use channel::wire::{GuestHello, Message};
use channel::{Control, HostAddress, HostMemory, PageConsumer, PortSockets, Stream};
use os::confine::{Confined, Unconfined, apart};
use os::folder::Folder;
use os::waits::{Deadline, Wait};
use tracefs::FunctionTracer;
use vms::{GuestAddress, Vm, open_memory};

use crate::ending::{Ending, StartLimit};
use crate::error::{RecordError, Result};
use crate::flusher::Flusher;
use crate::guests::{self, InGuests};

use self::conversation::{Conversation, Destination, Ended, Patience};
pub(crate) use self::conversation::{GuestStatus, LATE};
pub(crate) use self::files::{GuestFiles, PageShape};
pub(crate) use self::quota::Quota;
pub(crate) use self::receiver::Receivers;
pub use self::recorded::{EventCostSummary, GuestCpu, GuestSummary};
pub(crate) use self::recorded::{GuestRecorded, HostClock, Parts, TSC};
use self::samples::GuestSamples;
pub(crate) use self::samples::{forget as forget_samples, forget_code};
pub(crate) use self::segments::Kept;
pub(crate) use self::texts::GuestTexts;

/// How long an agent may take to answer.
pub(crate) const ANSWER: Duration = Duration::from_secs(10);
/// How long connections may take.
const CONNECT: Duration = Duration::from_secs(5);
/// CPUs that a guest may have; Linux stops at 8192.
const MOST_CPUS: u32 = 8192;
/// Page streams that are opened to a guest.
const MOST_STREAMS: u32 = 512;
/// Sizes of pages that a ring buffer may have.
pub(crate) const PAGE_BYTES: std::ops::RangeInclusive<u32> = 4096..=65536;

/// A guest whose agent has answered: it can be recorded.
#[derive(Debug)]
pub(crate) struct Ready {
    address: GuestAddress,
    control: Control,
    session: u64,
    hello: GuestHello,
    streams: Vec<Stream>,
    /// Page rings, where the channel is shared memory.
    rings: Vec<PageConsumer>,
    /// What it may still write; unset: what a guest of a recording may.
    quota: Option<Quota>,
}

/// A guest that is recorded.
#[derive(Debug)]
pub(crate) struct Recorded {
    name: String,
    channel: HostAddress,
    vm: Option<Vm>,
    session: u64,
    hello: GuestHello,
    folder: Folder,
    files: Arc<GuestFiles>,
    receivers: Arc<Receivers>,
    conversation: Conversation,
    flusher: Flusher,
    ending: Ending,
    tracer: Option<FunctionTracer>,
}

/// The folder with the pages of a guest, in the session's, while it is recorded.
pub(crate) fn pages_folder(name: &str) -> String {
    format!("guest-{name}.pages")
}

/// Makes that folder.
pub(crate) fn make_pages_folder(session: &Folder, name: &str) -> Result<Folder> {
    let pages = pages_folder(name);
    session.subfolder(&pages).map_err(RecordError::io("make", &session.path().join(pages)))
}

impl Ready {
    /// Connects to a guest's agent over the first of its channels where one answers.
    ///
    /// # Errors
    /// When nobody answers on any of them: what each of them says.
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
        let whys = format!("no agent answers on any of its channels: {}", whys.join("; "));
        Err(RecordError::Guest { name, source: io::Error::other(whys) })
    }

    /// Connects to a guest's agent and asks who it is, within a limit for all of that.
    ///
    /// # Errors
    /// When nobody answers, or speaks another version of the protocol.
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

    /// A guest whose agent has connected by itself, and makes page streams by itself, too.
    ///
    /// # Errors
    /// When it doesn't answer, or speaks another version of the protocol.
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

    /// The name that the guest is recorded under.
    pub(crate) fn name(&self) -> &str {
        &self.address.name
    }

    /// The same guest under another name.
    pub(crate) fn named(self, name: String) -> Self {
        Self { address: GuestAddress { name, ..self.address }, ..self }
    }

    /// What the guest calls itself.
    pub(crate) fn label(&self) -> String {
        printable::label(&self.hello.host_name)
    }

    /// The same guest, which may write what is left of a quota that it may share.
    pub(crate) fn within(self, quota: Quota) -> Self {
        Self { quota: Some(quota), ..self }
    }

    /// Whether its processor is an x86.
    pub(crate) fn is_x86(&self) -> bool {
        self.hello.uname.split(' ').next_back().is_some_and(|machine| machine == "x86_64")
    }

    /// Has the guest record, by this trace clock or its best one, with its pages in a folder of the
    /// session. It has begun within `limit`, or its recording is over then.
    ///
    /// # Errors
    /// When the guest refuses; the message is the guest's.
    pub(crate) fn begin(
        self,
        what: &InGuests,
        clock: Option<String>,
        session: &Folder,
        limit: &StartLimit,
        ending: &Ending,
    ) -> Result<Recorded> {
        self.begin_with(what, clock, session, limit, ending, |_| {})
    }

    /// The same; `attached` is given what takes page streams, before the guest is asked to make any.
    pub(crate) fn begin_with(
        mut self,
        what: &InGuests,
        clock: Option<String>,
        session: &Folder,
        limit: &StartLimit,
        ending: &Ending,
        attached: impl FnOnce(&Arc<Receivers>),
    ) -> Result<Recorded> {
        let name = self.address.name.clone();
        let failed = |source| RecordError::Guest { name: name.clone(), source };
        let folder = make_pages_folder(session, &name)?;
        let shape = PageShape {
            bytes: self.hello.page_bytes as usize,
            long_bytes: self.hello.long_bytes.into(),
            big_endian: self.hello.big_endian,
        };
        let quota = self.quota.unwrap_or_else(|| Quota::new(what.quota()));
        let opener = Unconfined::start("guest-files").map_err(failed)?;
        let to = (folder.clone(), opener);
        let files = GuestFiles::new(to, self.hello.cpus, shape, quota);
        let files = Arc::new(if what.in_segments { files.in_segments() } else { files });
        let (number, streams) = (self.session, self.hello.streams);
        let receivers = Receivers::new(number, Arc::clone(&files), streams, ending)?;
        let receivers = Arc::new(receivers);
        for stream in self.streams {
            receivers.add(stream).map_err(failed)?;
        }
        receivers.add_rings(self.rings).map_err(failed)?;
        attached(&receivers);
        let samples =
            what.sampling.map(|asked| GuestSamples::new(asked, session, &name, &self.hello));
        let samples = samples.transpose()?;
        for request in samples.iter().flat_map(GuestSamples::requests) {
            limit.wait(|wait| self.control.send_within(number, &request, wait)).map_err(failed)?;
        }
        let start = Message::Start(Box::new(guests::start(what, clock)));
        limit.wait(|wait| self.control.send_within(number, &start, wait)).map_err(failed)?;
        let vmm = self.address.vm.as_ref().map(|vm| vm.pid);
        let patience = Patience::begins_by(limit.until);
        let to = Destination { folder: folder.clone(), files: &files, samples };
        let conversation = Conversation::begin(self.control, number, to, vmm, ending, patience);
        let conversation = conversation.map_err(failed)?;
        let flusher = files.keep_on_disk(session, what.disk_flush).map_err(failed)?;
        Ok(Recorded {
            channel: self.address.channel,
            vm: self.address.vm,
            session: self.session,
            hello: self.hello,
            name,
            folder,
            files,
            receivers,
            conversation,
            flusher,
            ending: ending.clone(),
            tracer: what.tracer.clone(),
        })
    }
}

impl Recorded {
    /// Its status.
    pub(crate) fn status(&self) -> GuestStatus {
        self.conversation.status()
    }

    /// The name that the guest is recorded under.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The channel to its agent.
    pub(crate) fn channel(&self) -> &HostAddress {
        &self.channel
    }

    /// Begins new segments, where those are kept, and removes those that ended before a time.
    pub(crate) fn roll(&self, keep_from: Instant) {
        self.files.roll(keep_from);
    }

    /// Asks what it has said by now.
    pub(crate) fn ask(&self) -> Receiver<Ended> {
        self.conversation.ask()
    }

    /// What is kept of it, with that.
    pub(crate) fn kept(&self, said: Ended) -> io::Result<(Parts, Kept)> {
        let kept = self.files.kept()?;
        let parts = Parts {
            name: self.name.clone(),
            channel: self.channel.to_string(),
            vm: self.vm.clone(),
            trace_id: self.session,
            hello: self.hello.clone(),
            folder: self.folder.clone(),
            received: kept.received.clone(),
            malformed: self.files.malformed(),
            started: said.started,
            texts: said.texts,
            // What its kernel lost in this time nobody has counted.
            cpus: Vec::new(),
            status: None,
            device: said.device,
            devices: said.devices,
            event_cost: None,
            samples: None,
            sampled: None,
            tracer: self.tracer.clone(),
            recorded: None,
            faults: said.faults,
        };
        Ok((parts, kept))
    }

    /// Has the guest stop, and waits until then for what it still has to send.
    pub(crate) fn end_by(self, until: Deadline) -> GuestRecorded {
        self.begin_end(until);
        self.end()
    }

    /// Has the guest stop; it is waited for until then.
    pub(crate) fn begin_end(&self, until: Deadline) {
        self.ending.begin(until);
    }

    /// Whether it has said all that it will, waiting for that as long as `wait` says.
    pub(crate) fn is_over(&self, wait: Wait<'_>) -> bool {
        self.conversation.is_over(wait)
    }

    /// Waits for what the guest still has to send, once the end has begun.
    pub(crate) fn end(self) -> GuestRecorded {
        let ended = self.conversation.end(self.ending.threads_until());
        let mut faults = ended.faults;
        let sampled = ended.sampled.map(|sampled| {
            faults.extend(sampled.faults);
            sampled.summary
        });
        let failed = self.receivers.end(self.ending.threads_until());
        let write_error = |error| format!("its pages were not written to the end: {error}");
        faults.extend(failed.into_iter().map(write_error));
        faults.extend(self.flusher.end(self.ending.threads_until()));
        for cpu in &ended.status.cpus {
            self.files.sent(cpu.cpu, cpu.sent_bytes);
        }
        for end in &ended.cpus {
            self.files.sent(end.cpu, end.sent_bytes);
        }
        GuestRecorded::new(Parts {
            name: self.name,
            channel: self.channel.to_string(),
            vm: self.vm,
            trace_id: self.session,
            hello: self.hello,
            folder: self.folder,
            received: self.files.received(),
            malformed: self.files.malformed(),
            started: ended.started,
            texts: ended.texts,
            cpus: ended.cpus,
            status: Some(ended.status),
            device: ended.device,
            devices: ended.devices,
            event_cost: ended.event_cost,
            samples: None,
            sampled,
            tracer: self.tracer,
            recorded: ended.recorded,
            faults,
        })
    }
}

/// The control stream, and page rings where the channel is shared memory.
fn open(address: &GuestAddress, limit: &StartLimit) -> io::Result<(Control, Vec<PageConsumer>)> {
    let channel = &address.channel;
    if let HostAddress::SharedMemory { path } = channel {
        let memory = open_memory(path, address.vm.as_ref(), true);
        let memory = memory.and_then(HostMemory::of_file).map_err(|error| {
            io::Error::new(error.kind(), format!("cannot use {}: {error}", path.display()))
        })?;
        return Ok((Control::in_memory(memory.control), memory.pages));
    }
    let timeout = limit.at_most(CONNECT).until.left();
    Ok((Control::new(channel.connect_control(timeout)?), Vec::new()))
}

fn connect(channel: &HostAddress, limit: &StartLimit) -> io::Result<Stream> {
    channel.connect(limit.at_most(CONNECT).until.left())
}

/// Asks an agent who it is. What a host that was here before has left unread is left out.
fn ask(control: &mut Control, session: u64, wait: Wait<'_>) -> io::Result<GuestHello> {
    let closed = "it closed the channel without an answer; an agent that has keys wants them (tls:, tls-vsock:)";
    control.ask(session, &Message::HostHello, wait, closed, |message| match message {
        Message::GuestHello(hello) => Some(hello),
        _ => None,
    })
}

/// Whether a guest that says this about itself can be recorded.
fn check(hello: &GuestHello) -> std::result::Result<(), String> {
    if hello.version != channel::wire::VERSION {
        return Err(format!(
            "its agent ({}) speaks version {} of the protocol, this program version {}",
            hello.agent,
            hello.version,
            channel::wire::VERSION
        ));
    }
    let makes_sense = (1..=MOST_CPUS).contains(&hello.cpus)
        && (1..=MOST_STREAMS).contains(&hello.streams)
        && PAGE_BYTES.contains(&hello.page_bytes)
        && hello.page_bytes.is_power_of_two()
        && matches!(hello.long_bytes, 4 | 8);
    if makes_sense {
        return Ok(());
    }
    let GuestHello { cpus, streams, page_bytes, long_bytes, .. } = hello;
    Err(format!(
        "it says that it has {cpus} CPUs, {streams} page streams, pages of {page_bytes} bytes and \
         longs of {long_bytes}, which is not plausible"
    ))
}

fn page_stream(
    channel: &HostAddress,
    session: u64,
    at: u32,
    limit: &StartLimit,
) -> io::Result<Stream> {
    if limit.wait(|wait| wait.is_over()) {
        let text = "its page streams were not connected in time";
        return Err(io::Error::new(io::ErrorKind::TimedOut, text));
    }
    if let HostAddress::VirtioSerial { folder } = channel {
        return PortSockets::new(folder).pages(at);
    }
    let mut control = Control::new(connect(channel, limit)?);
    limit.wait(|wait| control.send_within(session, &Message::Attach(at), wait))?;
    control.into_stream().ok_or_else(|| io::ErrorKind::Unsupported.into())
}
