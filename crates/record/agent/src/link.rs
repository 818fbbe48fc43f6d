//! The agent's side of a channel: accepts hosts and page streams.

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

/// Max time between a host's connection and its request to record: before that, the host asks its other guests and
/// starts its own recording. It also bounds the wait for a host that disappeared silently.
const START: Duration = Duration::from_secs(60);
/// Time limit for sending a refusal.
const REFUSAL: Duration = Duration::from_millis(100);
/// Max time for page streams to connect.
const STREAMS: Duration = Duration::from_secs(10);
/// Max time to connect to a host, and the delay after a refused connection.
const CONNECT: Duration = Duration::from_secs(5);
const BEFORE_NEXT_TRY: Duration = Duration::from_secs(1);
/// Max wait for messages before new connections are checked.
const LOOK: Duration = Duration::from_millis(200);

impl Link {
    /// Opens a channel for hosts, with the extra permissions `allowed`.
    ///
    /// # Errors
    /// When this machine lacks the channel, or has keys that the channel would not use.
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

    /// Number of page streams to use, from the number of possible and of online CPUs.
    pub(crate) fn streams(&self, possible: usize, online: usize) -> u32 {
        let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        match &self.kind {
            Kind::Ports(ports) => ports.page_ports(),
            // A ring has one producer.
            Kind::Memory(_) => number(possible),
            Kind::Listener(_) | Kind::Connect(_) => number(online),
        }
    }

    /// Waits for a host. Its later waits end early when the agent must end.
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

    /// The first connection that begins like a host's and may command this machine. Closes others, with the reason.
    /// Fails when the agent must end.
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
                // There is no session whose pages the peer could read.
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

/// A host that connected to the agent.
#[derive(Debug)]
struct Caller {
    peer: Peer,
    /// Deadline of its request to record; `None`: a recording runs.
    start_by: Option<Deadline>,
    /// Session of its first message, which has not been delivered yet.
    greeting: Option<u64>,
}

/// Sends the reason; the peer may be gone already.
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
    /// Set when a signal ends the agent.
    leave: &'l Signal,
    control: Control,
    /// The session of the page streams: a random number that other peers can't know.
    session: u64,
    /// Received messages that have not been delivered yet.
    pending: VecDeque<Received>,
    /// The connected peer, on channels where hosts connect.
    caller: Option<Caller>,
    /// Page stream connections, by session and number.
    attached: BTreeMap<(u64, u32), Stream>,
    /// Page rings in shared memory, one per CPU.
    rings: Vec<Arc<Mutex<PageRing>>>,
}

/// Max connections that wait for their session.
const MAX_ATTACHED: usize = 1024;
/// Max messages that wait: the rest stays in the channel.
const MAX_HEARD: usize = 256;

impl Host<'_> {
    /// Whether a signal ends the agent.
    pub(crate) fn is_to_leave(&self) -> bool {
        self.leave.is_set()
    }

    /// The requested probes that the host is allowed to set.
    pub(crate) fn probes(&self, requested: &[String]) -> Result<Vec<String>> {
        if requested.is_empty() {
            return Ok(Vec::new());
        }
        probe_sets::chosen(requested, Tracefs::find()?.root(), self.link.allowed)
    }

    /// Addresses of the channel's device.
    pub(crate) fn device(&self) -> Vec<DeviceRange> {
        channel::device_ranges(&self.link.address)
    }

    pub(crate) fn send(&mut self, session: u64, message: &Message) -> Result<()> {
        Ok(self.control.send(session, message)?)
    }

    /// Whether hosts connect to the agent, so that the next one may wait already.
    pub(crate) fn is_caller(&self) -> bool {
        self.caller.is_some()
    }

    /// Waits for a message, for at most `timeout`.
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

    /// Receives all messages that have arrived, without waiting: a disconnected host's request must not start anything.
    fn look(&mut self) -> Result<()> {
        while self.pending.len() < MAX_HEARD && self.pending.back() != Some(&Received::Closed) {
            let Some(received) = self.control.look()? else { break };
            self.keep(received);
        }
        Ok(())
    }

    /// Queues a message. If the host has disconnected or another one greets, earlier requests are obsolete and dropped.
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

    /// Updates the deadline from the host's messages.
    fn note(&mut self, received: &Received) {
        let (Some(caller), Received::Message(session, message)) = (&mut self.caller, received)
        else {
            return;
        };
        match message {
            Message::Start(_) if *session == self.session => caller.start_by = None,
            // The host may start another recording, or leave.
            Message::Stop => caller.start_by = Some(Deadline::after(START)),
            _ => {}
        }
    }

    /// Whether the host has missed its deadline to request a recording.
    fn is_late(&self) -> bool {
        let start_by = self.caller.as_ref().and_then(|caller| caller.start_by);
        start_by.is_some_and(Deadline::has_passed)
    }

    /// Begins a session: page streams of other sessions become invalid.
    pub(crate) fn begin_session(&mut self, session: u64) {
        self.session = session;
        self.attached.clear();
    }

    /// Accepts connections that declare themselves page streams of the session, from the peer that began it; there is
    /// one host at a time.
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
                // No recording uses the ring.
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
