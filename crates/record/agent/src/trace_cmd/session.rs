//! Serves a host, from its request to the last page.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use channel::wire::trace_cmd::{MAX_DATA_BYTES, Message, ReadError, Request, Response};
use channel::wire::{CpuEnd, Start};
use channel::{Arrival, Listener, PageSink, Peer, StreamSink, TraceCmd};
use os::waits::{Signal, Wait};

use super::arguments::{self, RecordRequest};
use super::time_sync::{Guest, Protocol};
use super::{metadata, ports};
use crate::error::{AgentError, Result};
use crate::recording::{Prepared, Recording};

/// Max time for a host to send a request, or to connect to its ports.
const ANSWER: Duration = Duration::from_secs(20);
/// Max time for the first rounds of time synchronisation.
const FIRST_ROUNDS: Duration = Duration::from_secs(300);
/// Max time of a recording.
const RECORDING: Duration = Duration::from_secs(365 * 24 * 3600);
/// Max time to end time synchronisation after a recording.
const LAST_ROUND: Duration = Duration::from_secs(5);
/// trace-cmd's default clock.
const DEFAULT_CLOCK: &str = "local";

/// Serves a connected host; returns whether it recorded.
pub(super) fn serve(
    arrival: Arrival<TraceCmd>,
    listener: &Listener,
    leave: &Signal,
    report: &dyn Fn(&str),
) -> Result<bool> {
    let Arrival { control: mut host, first, peer, .. } = arrival;
    let peer = &peer;
    let Some(request) = request(&mut host, first)? else { return Ok(false) };
    // A host that has left already must not delay others.
    if channel::is_closed(host.as_fd()) {
        return Ok(false);
    }
    report(&format!("{} asks for: {}", name(peer), request.arguments.join(" ")));
    let session = match Session::prepare(&request, listener) {
        Ok(session) => session,
        Err(error) => {
            // The protocol has no message for the reason.
            let _ = host.send(&Message::NotSupported);
            return Err(error);
        }
    };
    let ends = session.run(&mut host, peer, leave)?;
    for end in ends {
        if let Some(fault) = end.fault {
            report(&format!("CPU {}: sending its pages stopped early: {fault}", end.cpu));
        }
    }
    Ok(true)
}

fn name(peer: &Peer) -> String {
    match peer {
        Peer::Vsock(cid) => format!("the host (CID {cid})"),
        Peer::Tcp(_) | Peer::Tls(_) => peer.to_string(),
        Peer::Unix => "this machine".into(),
    }
}

/// Waits for a request, usually the first message; `None` if the peer has no request.
fn request(host: &mut TraceCmd, first: Message) -> Result<Option<Request>> {
    let mut first = Some(first);
    let end = Instant::now() + ANSWER;
    loop {
        let remaining = end.saturating_duration_since(Instant::now());
        let message = match first.take() {
            Some(first) => Ok(Some(first)),
            None => host.receive(Wait::at_most(remaining)),
        };
        match message {
            Ok(Some(Message::Request(request))) => return Ok(Some(request)),
            Ok(Some(Message::Close)) | Err(ReadError::Closed) => return Ok(None),
            Ok(Some(Message::NotSupported)) => {}
            Ok(Some(_)) => host.send(&Message::NotSupported)?,
            Ok(None) => {
                return Err(AgentError::Refused("a host connected and sent no request".into()));
            }
            Err(error) => return Err(failed(error)),
        }
    }
}

fn failed(error: ReadError) -> AgentError {
    match error {
        ReadError::Io(error) => AgentError::Io(error),
        other => AgentError::Refused(format!("unexpected message from the host: {other}")),
    }
}

/// A recording that is set up, but not on.
struct Session {
    prepared: Prepared,
    trace_id: u64,
    /// The ports of each CPU's pages.
    pages: Vec<(Listener, u32)>,
    sync: Option<Sync>,
}

/// Time synchronisation that has not begun.
struct Sync {
    guest: Guest,
    protocol: Protocol,
    listener: Listener,
    port: u32,
}

impl Session {
    fn prepare(request: &Request, listener: &Listener) -> Result<Self> {
        let wanted = arguments::parse(&request.arguments)?;
        let mut prepared = Prepared::new(&start(&wanted))?;
        prepared.set_options(&wanted.options)?;
        // The number of CPUs that trace-cmd would report: a host that knows the number refuses any other.
        prepared.keep_cpus(configured_cpus(prepared.cpus()));
        let clock = prepared.clock().name.clone();
        let sync = Protocol::choose(&request.time_sync_protocols, &clock).map(|protocol| {
            let (listener, port) = ports::on_same_network(listener)?;
            Ok::<_, AgentError>(Sync {
                guest: Guest::new(protocol, &clock)?,
                protocol,
                listener,
                port,
            })
        });
        let pages = prepared.cpus().iter().map(|_| ports::on_same_network(listener));
        let pages = pages.collect::<io::Result<_>>()?;
        Ok(Self { prepared, trace_id: trace_id(), pages, sync: sync.transpose()? })
    }

    fn response(&self) -> Response {
        Response {
            use_fifos: false,
            page_size: self.prepared.texts().page_size(),
            trace_id: self.trace_id,
            time_sync_protocol: self.sync.as_ref().map_or("", |sync| sync.protocol.name()).into(),
            time_sync_port: self.sync.as_ref().map_or(0, |sync| sync.port),
            ports: self.pages.iter().map(|(_, port)| *port).collect(),
        }
    }

    /// Records until the host ends the recording, or the agent must end.
    fn run(self, host: &mut TraceCmd, peer: &Peer, leave: &Signal) -> Result<Vec<CpuEnd>> {
        host.send(&Message::Response(self.response()))?;
        let sync = self.sync.map(|sync| sync.begin((peer, host.as_fd()))).transpose()?;
        let cpus = u32::try_from(self.pages.len()).unwrap_or(u32::MAX);
        let texts = self.prepared.texts();
        let file = metadata::file(texts, self.prepared.clock(), cpus, self.trace_id)?;
        // The host reads nothing before the first rounds of time synchronisation, one for each CPU.
        host.set_patience(FIRST_ROUNDS);
        for part in file.chunks(MAX_DATA_BYTES) {
            host.send(&Message::Data(part.to_vec()))?;
        }
        // The host gets its next message only after the recording has started.
        self.prepared.begin_early()?;
        host.send(&Message::EndOfData)?;
        let page_size = texts.page_size() as usize;
        let sinks = self.pages.into_iter().map(|(listener, _)| {
            let stream = ports::accept_from(&listener, (peer, host.as_fd()), ANSWER)?;
            Ok(PageSink::Stream(Box::new(StreamSink::bare(stream, page_size)?)))
        });
        let sinks = sinks.collect::<io::Result<Vec<_>>>().map_err(|error| {
            AgentError::Refused(format!("the host did not fetch every CPU's pages: {error}"))
        })?;
        let recording = self.prepared.begin(sinks)?;
        until_closed(host, leave)?;
        let ends = end(recording, host)?;
        if let Some(sync) = sync {
            sync.end();
        }
        Ok(ends)
    }
}

/// Stops the recording; the host waits for the answer, then for the end of each CPU's pages.
fn end(recording: Recording, host: &mut TraceCmd) -> Result<Vec<CpuEnd>> {
    let ends = recording.end()?.cpus;
    host.send(&Message::CloseResponse)?;
    Ok(ends)
}

/// Waits until the host ends the recording, or the agent must end. A host that has disconnected gets no more pages.
fn until_closed(host: &mut TraceCmd, leave: &Signal) -> Result<()> {
    while !leave.is_set() {
        match host.receive(Wait::at_most(RECORDING).or(&[leave.fd()])) {
            Ok(Some(Message::Close)) => return Ok(()),
            Ok(Some(Message::NotSupported) | None) => {}
            Ok(Some(_)) => host.send(&Message::NotSupported)?,
            Err(ReadError::Closed) => {
                return Err(AgentError::Refused(
                    "the host disconnected before it stopped the recording".into(),
                ));
            }
            Err(error) => return Err(failed(error)),
        }
    }
    Ok(())
}

/// Running time synchronisation.
struct Syncing {
    thread: JoinHandle<io::Result<()>>,
    stop: Signal,
}

impl Sync {
    fn begin(self, host: (&Peer, BorrowedFd<'_>)) -> Result<Syncing> {
        let Self { guest, listener, .. } = self;
        let stream = ports::accept_from(&listener, host, ANSWER).map_err(|error| {
            AgentError::Refused(format!("the host did not start time synchronisation: {error}"))
        })?;
        let stop = Signal::new()?;
        let heeded = stop.clone();
        let thread = thread::Builder::new().name("time sync".into());
        let thread = thread.spawn(move || guest.run(stream, &heeded))?;
        Ok(Syncing { thread, stop })
    }
}

impl Syncing {
    /// Waits for the last round, which the host begins when it ends the recording.
    fn end(self) {
        let end = Instant::now() + LAST_ROUND;
        while Instant::now() < end && !self.thread.is_finished() {
            thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Syncing {
    fn drop(&mut self) {
        // It ends after the current round.
        self.stop.set();
    }
}

fn start(wanted: &RecordRequest) -> Start {
    let patterns = wanted.patterns();
    let (events, optional) =
        if wanted.may_miss_events { (Vec::new(), patterns) } else { (patterns, Vec::new()) };
    Start {
        events,
        optional,
        filters: wanted.filters(),
        clock: Some(wanted.clock.clone().unwrap_or_else(|| DEFAULT_CLOCK.into())),
        buffer_kib: wanted.buffer_kib,
        tracer: wanted.tracer.clone(),
        ..Start::default()
    }
}

/// Number of present CPUs, online or not; the kernel has buffers for all possible ones.
fn configured_cpus(possible: &[u32]) -> usize {
    let is_there = |cpu: &&u32| Path::new(&format!("/sys/devices/system/cpu/cpu{cpu}")).exists();
    match possible.iter().take_while(is_there).count() {
        0 => possible.len(),
        count => count,
    }
}

/// A number that is unique to this recording.
fn trace_id() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let ns = u64::try_from(now.as_nanos()).unwrap_or(u64::MAX);
    ns ^ u64::from(std::process::id()).rotate_left(48)
}
