//! The agent's side of a channel: it accepts hosts and finds page streams.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use channel::wire::{DeviceRange, GuestHello, Message};
use channel::{
    AgentAddress, Arrival, Arrivals, Control, GuestMemory, GuestPorts, HostAddress, KeyFiles,
    Listener, PageRing, PageSink, Peer, Received, Stream, StreamSink,
};
use os::waits::{Deadline, Signal, Wait};
use parking_lot::Mutex;
use tracefs::Tracefs;

use crate::admission::{Admission, UNPRIVILEGED, may_connect};
use crate::allowed::{Allowed, check_keys_are_used};
use crate::error::{AgentError, Result};
use crate::probe_sets;
use crate::watchers::Watchers;

/// A channel.
#[derive(Debug)]
pub struct Link {
    address: AgentAddress,
    kind: Kind,
    allowed: Allowed,
    watchers: Watchers,
}

#[derive(Debug)]
enum Kind {
    Ports(GuestPorts),
    Memory(GuestMemory),
    Listener(RefCell<Arrivals>),
    Connect(HostAddress),
}

/// How long a host that has connected may take to ask for a recording: it asks its other guests, and
/// begins its own, before that. One that is gone without a word is not waited for longer.
const START: Duration = Duration::from_secs(60);
/// Time limit for sending a refusal.
const REFUSAL: Duration = Duration::from_millis(100);
/// How long page streams may take to come.
const STREAMS: Duration = Duration::from_secs(10);
/// How long a connection to a host may take, and how long after one was refused another is tried.
const CONNECT: Duration = Duration::from_secs(5);
const BEFORE_NEXT_TRY: Duration = Duration::from_secs(1);
/// The longest wait for messages before new connections are checked.
const LOOK: Duration = Duration::from_millis(200);

impl Link {
    /// Gets a channel ready, for hosts that may do what any may and what is `allowed`.
    ///
    /// # Errors
    /// When this machine does not have it, or has keys that it would not use.
    pub fn open(address: &AgentAddress, allowed: Allowed) -> Result<Self> {
        let failed = |source| AgentError::Channel { address: address.clone(), source };
        check_keys_are_used(address, &KeyFiles::usual()).map_err(failed)?;
        let kind = match address {
            AgentAddress::VirtioSerial => GuestPorts::find().map(Kind::Ports).ok_or_else(|| {
                failed(io::Error::new(
                    io::ErrorKind::NotFound,
                    "this machine has no virtio port hyperscope.control",
                ))
            })?,
            AgentAddress::SharedMemory { at } => {
                Kind::Memory(GuestMemory::open(at.as_deref()).map_err(failed)?)
            }
            AgentAddress::Connect(to) => Kind::Connect(to.clone()),
            listening => match Listener::for_address(listening).map_err(failed)? {
                Some(listener) => {
                    let arrivals = Arrivals::new(listener, may_connect).map_err(failed)?;
                    Kind::Listener(RefCell::new(arrivals))
                }
                None => return Err(failed(io::ErrorKind::Unsupported.into())),
            },
        };
        Ok(Self { address: address.clone(), kind, allowed, watchers: Watchers::default() })
    }

    /// Page streams that this machine has use for: with the number of CPUs that it may have, and of
    /// that it has now.
    pub(crate) fn streams(&self, possible: usize, online: usize) -> u32 {
        let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        match &self.kind {
            Kind::Ports(ports) => ports.page_ports(),
            // A ring has one producer.
            Kind::Memory(_) => number(possible),
            Kind::Listener(_) | Kind::Connect(_) => number(online),
        }
    }

    /// Waits until there is a host. What it is asked later ends early when it is time to leave.
    pub(crate) fn host<'l>(&'l self, hello: &GuestHello, leave: &'l Signal) -> Result<Host<'l>> {
        let greeting = Message::GuestHello(hello.clone());
        let mut rings = Vec::new();
        let mut caller = None;
        let control = match &self.kind {
            Kind::Ports(ports) => {
                let stream = ports.control()?;
                if let Some(bytes) = channel::wire::encode(0, &greeting) {
                    stream.write_when_joined(&bytes)?;
                }
                Control::new(stream)
            }
            Kind::Memory(memory) => {
                let (cpus, page_bytes) = (hello.cpus as usize, hello.page_bytes as usize);
                let (control, pages) = memory.begin(cpus, page_bytes, hello.boot_id)?;
                for ring in pages {
                    rings.push(Arc::new(Mutex::new(PageRing::new(ring, page_bytes)?)));
                }
                Control::in_memory(control)
            }
            Kind::Listener(arrivals) => {
                let (control, first) = self.accept(&mut arrivals.borrow_mut(), leave)?;
                caller = Some(first);
                control
            }
            Kind::Connect(to) => {
                let mut control = Control::new(connect(to));
                control.send(0, &greeting)?;
                control
            }
        };
        Ok(Host {
            link: self,
            leave,
            control,
            session: 0,
            pending: VecDeque::new(),
            caller,
            attached: BTreeMap::new(),
            rings,
        })
    }

    /// The first connection that begins as that of a host which may command this machine. Others are
    /// closed, and get the reason. When it is time to leave, there is none.
    fn accept(&self, arrivals: &mut Arrivals, leave: &Signal) -> Result<(Control, Caller)> {
        while !leave.is_set() {
            let stop = [leave.fd()];
            let Some(arrival) = arrivals.next(Wait::at_most(CONNECT).or(&stop))? else { continue };
            let admission = Admission::of_arrival(&arrival, arrivals.demands_keys(), self.allowed);
            let Arrival { control, first: (session, message), peer, .. } = arrival;
            match (admission, message) {
                (Admission::Command, Message::HostHello) => {
                    let start_by = Some(Deadline::after(START));
                    return Ok((control, Caller { peer, start_by, greeting: Some(session) }));
                }
                (Admission::Command, Message::AskView(_)) => self.watched(control, session),
                (Admission::Command, _) => refuse(control, session, "no host started a session"),
                // There is no session whose pages it could take.
                (Admission::PagesOnly, _) => refuse(control, session, UNPRIVILEGED),
                (Admission::Nothing, _) => {}
            }
        }
        Err(io::Error::from(io::ErrorKind::Interrupted).into())
    }

    /// Lets a host view this machine, regardless of which host records it.
    fn watched(&self, control: Control, session: u64) {
        if let Err(control) = self.watchers.begin(control, session) {
            refuse(control, session, "this machine already has the maximum number of viewers");
        }
    }
}

/// The host at the other end of a connection that it made.
#[derive(Debug)]
struct Caller {
    peer: Peer,
    /// When it has to have asked for a recording; none: one is running.
    start_by: Option<Deadline>,
    /// The session of its first message, which has not been delivered yet.
    greeting: Option<u64>,
}

/// Whoever it is may be gone already.
fn refuse(mut control: Control, session: u64, why: &str) {
    let refused = Message::Refused(why.into());
    let _ = control.send_within(session, &refused, Wait::at_most(REFUSAL));
}

fn connect(to: &HostAddress) -> Stream {
    loop {
        match to.connect_control(CONNECT) {
            Ok(stream) => return stream,
            Err(_) => std::thread::sleep(BEFORE_NEXT_TRY),
        }
    }
}

/// A host at the other end of a channel.
#[derive(Debug)]
pub(crate) struct Host<'l> {
    link: &'l Link,
    /// The agent got a signal to end.
    leave: &'l Signal,
    control: Control,
    /// The session that page streams may belong to: its number, which others can't know.
    session: u64,
    /// Received messages that have not been delivered yet.
    pending: VecDeque<Received>,
    /// Who it is, where hosts connect.
    caller: Option<Caller>,
    /// Connections that are page streams, by session and number.
    attached: BTreeMap<(u64, u32), Stream>,
    /// Page rings in shared memory, one a CPU.
    rings: Vec<Arc<Mutex<PageRing>>>,
}

/// Connections that may wait to be used.
const MAX_ATTACHED: usize = 1024;
/// Messages that may wait: the rest stays in the channel.
const MAX_HEARD: usize = 256;

impl Host<'_> {
    /// Whether the agent got a signal to end.
    pub(crate) fn is_to_leave(&self) -> bool {
        self.leave.is_set()
    }

    /// The probes that the host asks for, as far as it may.
    pub(crate) fn probes(&self, requested: &[String]) -> Result<Vec<String>> {
        if requested.is_empty() {
            return Ok(Vec::new());
        }
        probe_sets::chosen(requested, Tracefs::find()?.root(), self.link.allowed)
    }

    /// Addresses of the device that the channel goes through.
    pub(crate) fn device(&self) -> Vec<DeviceRange> {
        channel::device_ranges(&self.link.address)
    }

    pub(crate) fn send(&mut self, session: u64, message: &Message) -> Result<()> {
        Ok(self.control.send(session, message)?)
    }

    /// Whether its host is one of many that connect here, of which the next may wait already.
    pub(crate) fn is_caller(&self) -> bool {
        self.caller.is_some()
    }

    /// Waits for a message, for at most this time.
    pub(crate) fn receive(&mut self, timeout: Duration) -> Result<Received> {
        if let Some(session) = self.caller.as_mut().and_then(|caller| caller.greeting.take()) {
            self.keep(Received::Message(session, Message::HostHello));
        }
        let end = Instant::now() + timeout;
        loop {
            self.look()?;
            if let Some(received) = self.pending.pop_front() {
                self.note(&received);
                return Ok(received);
            }
            if self.is_late() {
                return Err(AgentError::Refused("a host connected and sent no request".into()));
            }
            let remaining = end.saturating_duration_since(Instant::now());
            let received = self.listen(remaining)?;
            let is_over = Instant::now() >= end || self.leave.is_set();
            if received == Received::Timeout && is_over {
                return Ok(received);
            }
            self.keep(received);
            self.admit();
        }
    }

    /// Hears all that has come, without waiting: of a host that is gone nothing is begun any more.
    fn look(&mut self) -> Result<()> {
        while self.pending.len() < MAX_HEARD && self.pending.back() != Some(&Received::Closed) {
            let Some(received) = self.control.look()? else { break };
            self.keep(received);
        }
        Ok(())
    }

    /// Keeps what was heard. A host that has closed its end, or after which another one greets, wants
    /// nothing any more that it asked for before.
    fn keep(&mut self, received: Received) {
        match received {
            Received::Timeout => return,
            Received::Closed | Received::Message(_, Message::HostHello) => self.pending.clear(),
            Received::Message(..) => {}
        }
        self.pending.push_back(received);
    }

    /// Waits for a message or a connection.
    fn listen(&mut self, timeout: Duration) -> Result<Received> {
        let arrivals = match &self.link.kind {
            Kind::Listener(arrivals) => Some(arrivals.borrow()),
            Kind::Ports(_) | Kind::Memory(_) | Kind::Connect(_) => None,
        };
        let of_arrivals = arrivals.iter().flat_map(|arrivals| arrivals.fds());
        let stop: Vec<_> = std::iter::once(self.leave.fd()).chain(of_arrivals).collect();
        Ok(self.control.receive(Wait::at_most(timeout).or(&stop))?)
    }

    /// Notes what the host has asked for.
    fn note(&mut self, received: &Received) {
        let (Some(caller), Received::Message(session, message)) = (&mut self.caller, received)
        else {
            return;
        };
        match message {
            Message::Start(_) if *session == self.session => caller.start_by = None,
            // It may ask for another, or go.
            Message::Stop => caller.start_by = Some(Deadline::after(START)),
            _ => {}
        }
    }

    /// Whether the host has connected and asked for nothing in time.
    fn is_late(&self) -> bool {
        let start_by = self.caller.as_ref().and_then(|caller| caller.start_by);
        start_by.is_some_and(Deadline::has_passed)
    }

    /// Begins a session: page streams of another are none any more.
    pub(crate) fn begin_session(&mut self, session: u64) {
        self.session = session;
        self.attached.clear();
    }

    /// Takes connections that have said that they are page streams of the session, from whoever began
    /// that; there is one host at a time.
    fn admit(&mut self) {
        let (Kind::Listener(arrivals), Some(caller)) = (&self.link.kind, &self.caller) else {
            return;
        };
        let mut arrivals = arrivals.borrow_mut();
        while let Some(arrival) = arrivals.look() {
            let admission =
                Admission::of_arrival(&arrival, arrivals.demands_keys(), self.link.allowed);
            let Arrival { control, first: (session, message), peer, .. } = arrival;
            match (admission, message) {
                (Admission::Nothing, _) => {}
                (_, Message::Attach(number))
                    if session == self.session
                        && peer == caller.peer
                        && self.attached.len() < MAX_ATTACHED =>
                {
                    let stream = control.into_stream().map(|stream| ((session, number), stream));
                    self.attached.extend(stream);
                }
                (Admission::PagesOnly, _) => refuse(control, session, UNPRIVILEGED),
                (Admission::Command, Message::AskView(_)) => self.link.watched(control, session),
                (Admission::Command, _) => {
                    let text = "another host records this machine; stop that recording first";
                    refuse(control, session, text);
                }
            }
        }
    }

    /// The page streams of a session.
    pub(crate) fn sinks(
        &mut self,
        session: u64,
        count: u32,
        page_size: usize,
    ) -> Result<Vec<PageSink>> {
        if let Kind::Memory(_) = &self.link.kind {
            for ring in &self.rings {
                // No recording runs that would hold it.
                ring.lock().forget();
            }
            return Ok(self.rings.iter().cloned().map(PageSink::Ring).collect());
        }
        let sink = |at| Ok(PageSink::Stream(Box::new(self.sink(session, at, page_size)?)));
        (0..count).map(sink).collect()
    }

    fn sink(&mut self, session: u64, at: u32, page_size: usize) -> Result<StreamSink> {
        let stream = match &self.link.kind {
            Kind::Ports(ports) => {
                let ports = ports.clone();
                let sink = StreamSink::new(ports.pages(at)?, session, page_size)?;
                return Ok(sink.reopened_by(Box::new(move || ports.pages(at))));
            }
            Kind::Connect(to) => {
                let mut control = Control::new(to.connect(CONNECT)?);
                control.send(session, &Message::Attach(at))?;
                control.into_stream()
            }
            Kind::Listener(_) => Some(self.attached_stream(session, at)?),
            Kind::Memory(_) => None,
        };
        let none = || AgentError::Refused("this channel does not have this page stream".into());
        Ok(StreamSink::new(stream.ok_or_else(none)?, session, page_size)?)
    }

    fn attached_stream(&mut self, session: u64, at: u32) -> Result<Stream> {
        let end = Instant::now() + STREAMS;
        loop {
            self.admit();
            if let Some(stream) = self.attached.remove(&(session, at)) {
                return Ok(stream);
            }
            self.look()?;
            let is_gone = |received: &Received| {
                matches!(received, Received::Closed | Received::Message(_, Message::HostHello))
            };
            if self.pending.iter().any(is_gone) {
                return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
            }
            let is_over = Instant::now() >= end || self.pending.len() >= MAX_HEARD;
            if is_over || self.leave.is_set() {
                let text =
                    format!("{}: page stream {at} did not connect in time", self.link.address);
                return Err(AgentError::Refused(text));
            }
            let received = self.listen(LOOK)?;
            self.keep(received);
        }
    }
}

#[cfg(test)]
mod tests;
