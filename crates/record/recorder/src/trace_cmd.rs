//! Records a guest with trace-cmd's agent.
//!
//! The agent is trace-cmd's own (`trace-cmd agent`, version 3 of its protocol, see `channel::wire::trace_cmd`). It gets
//! the same request as from `trace-cmd record -A`, and its data becomes the same file as that of a guest with
//! hyperscope-agent. All data is bounded, and each guest has its own receiving threads: a guest blocks no other.

mod address;
mod arguments;
mod control_loop;
#[cfg(test)]
mod hostile;
mod metadata;
mod pages;
mod ptp;
mod time_sync;

use std::io;
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::Duration;

use channel::wire::trace_cmd::{Message, ReadError, Request, Response};
use channel::wire::{CpuEnd, Started};
use channel::{HostAddress, TraceCmd};
use os::confine::{Confined, Unconfined, apart};
use os::folder::Folder;
use os::waits::{Signal, Wait};
use vms::GuestAddress;

use crate::ending::{Ending, StartLimit, stop_signal};
use crate::error::{RecordError, Result};
use crate::guest::{
    Agent, AgentReport, GuestFiles, GuestIdentity, GuestPages, GuestRecording, GuestStatus,
    GuestTexts, PageLimits, PageShape, Quota, ReadyGuest,
};
use crate::in_guests::InGuests;

pub(crate) use self::address::find;
use self::control_loop::ControlLoop;
use self::metadata::Metadata;
use self::pages::{PageStream, PageTaker};
use self::time_sync::{Offered, TimeSync};

/// Max time to connect.
const CONNECT: Duration = Duration::from_secs(5);
/// Max time for an agent to answer: it sets up tracing before.
const ANSWER: Duration = Duration::from_secs(if cfg!(test) { 2 } else { 30 });
/// Default max time for a guest to begin: the agent sends all its texts first.
const BEGIN_TIMEOUT: Duration = Duration::from_secs(60);
/// Time for an agent to enable tracing after its page streams are connected. The agent does not report when it has.
const SETTLE: Duration = Duration::from_millis(200);
/// Max CPUs of a guest: each has a thread here. KVM guests have at most 1024 on x86, unless the host's kernel is built
/// for more.
const MAX_CPUS: usize = 1024;

/// A guest whose agent has accepted the request, and waits for its host to begin.
#[derive(Debug)]
pub(crate) struct Ready {
    address: GuestAddress,
    agent: TraceCmd,
    response: Response,
    /// Events named in the request, to compare with those that the agent records.
    events: Vec<String>,
    sync: Option<TimeSync>,
}

/// The agent of a recorded guest.
#[derive(Debug)]
struct TraceCmdAgent {
    started: Started,
    texts: GuestTexts,
    files: Arc<GuestFiles>,
    stop_pages: Signal,
    streams: Vec<PageStream>,
    control_loop: ControlLoop,
    /// Requested events that it does not record.
    faults: Vec<String>,
}

impl Ready {
    /// Connects to a guest's agent, sends the request, and synchronises clocks for the first time. `host` is the host's
    /// trace clock, which the guest must use as well; `trace_id` is that of the host's recording.
    ///
    /// # Errors
    /// When there is no answer, the peer is not such an agent, or it does not support the request.
    pub(crate) fn connect(
        address: GuestAddress,
        what: &InGuests,
        host_clock: &str,
        trace_id: u64,
        limit: &StartLimit,
    ) -> Result<Self> {
        let failed = |source| RecordError::Guest { name: address.name.clone(), source };
        let offered = Offered::new(host_clock, address.vm.as_ref());
        let stream = address.channel.connect(limit.at_most(CONNECT).until.remaining());
        let stream = stream.map_err(|e| nobody(&address.channel, &e)).map_err(failed)?;
        let mut agent = TraceCmd::new(stream);
        let request = Request {
            use_fifos: false,
            trace_id,
            arguments: arguments::arguments(what, host_clock).map_err(RecordError::Usage)?,
            time_sync_protocols: offered.names(),
        };
        let request = Message::Request(request);
        let response = apart(Confined::Reader, "asks", || {
            limit.at_most(ANSWER).wait(|wait| {
                agent.send_within(&request, wait)?;
                response(&mut agent, wait)
            })
        });
        let response = response.map_err(failed)?;
        check(&response).map_err(|text| failed(io::Error::other(text)))?;
        let sync = match offered.chosen(&response.time_sync_protocol).map_err(failed)? {
            Some(protocol) => {
                let port = response.time_sync_port;
                let stream = connect_to_port(&address.channel, port, limit).map_err(failed)?;
                let cpus = response.ports.len();
                let outside = Unconfined::start("guest-clock").map_err(failed)?;
                let sync = apart(Confined::Reader, "guest", || {
                    limit.wait(|wait| TimeSync::begin(protocol, stream, cpus, outside, wait))
                });
                Some(sync.map_err(ended).map_err(failed)?)
            }
            None => None,
        };
        Ok(Self { address, agent, response, events: what.events.clone(), sync })
    }

    /// Starts receiving the pages of each CPU.
    fn streams(&self, taker: &PageTaker, limit: &StartLimit) -> io::Result<Vec<PageStream>> {
        let ports = (0..).zip(&self.response.ports);
        let stream = |(cpu, &port)| {
            let stream = connect_to_port(&self.address.channel, port, limit)?;
            PageStream::start(cpu, stream, taker.clone())
        };
        ports.map(stream).collect()
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

    /// Receives the agent's texts that decode its pages.
    fn begin(
        mut self: Box<Self>,
        what: &InGuests,
        _host_clock: &str,
        session: &Folder,
        limit: &StartLimit,
        ending: &Ending,
    ) -> Result<GuestRecording> {
        let name = self.address.name.clone();
        let failed = |source| RecordError::Guest { name: name.clone(), source };
        let metadata = apart(Confined::Reader, "guest", || {
            limit.wait(|wait| Metadata::receive(&mut self.agent, wait))
        });
        let metadata = metadata.map_err(failed)?;
        let shape = PageShape {
            bytes: metadata.page_bytes as usize,
            long_bytes: metadata.long_bytes.into(),
            big_endian: metadata.big_endian,
        };
        let cpus = self.response.ports.len();
        let limits = PageLimits {
            quota: Quota::new(what.quota()),
            in_segments: false,
            disk_flush: what.disk_flush,
        };
        let cpu_count = u32::try_from(cpus).unwrap_or(u32::MAX);
        let pages = GuestPages::make(session, &name, (cpu_count, shape), limits)?;
        metadata.texts.texts.write(&pages.folder, &metadata.clock_line)?;
        let files = Arc::clone(&pages.files);
        let stop_pages = stop_signal()?;
        let taker = PageTaker {
            files: Arc::clone(&files),
            stop: stop_pages.clone(),
            ending: ending.clone(),
            streams: cpus,
        };
        let streams = self.streams(&taker, limit).map_err(failed)?;
        let faults = metadata.missing(&self.events);
        let control_loop = ControlLoop::begin(self.agent, self.sync, ending).map_err(failed)?;
        std::thread::sleep(SETTLE);
        let identity = GuestIdentity {
            name,
            // trace-cmd has only plain TCP, so the prefix needs no `plain`.
            channel: format!("trace-cmd:{}", self.address.channel).replace("tcp-plain:", "tcp:"),
            vm: self.address.vm,
            trace_id: self.response.trace_id,
            hello: metadata.hello(cpus),
        };
        let started = metadata.started(cpus);
        let texts = metadata.texts;
        let agent = Box::new(TraceCmdAgent {
            started,
            texts,
            files,
            stop_pages,
            streams,
            control_loop,
            faults,
        });
        let tracer = what.tracer.clone();
        Ok(GuestRecording { identity, pages, agent, ending: ending.clone(), tracer })
    }
}

impl Agent for TraceCmdAgent {
    fn status(&self) -> GuestStatus {
        let received = self.files.received();
        GuestStatus {
            started: true,
            over: self.control_loop.over(),
            lost: 0,
            sent_bytes: received.iter().map(|cpu| cpu.written).fold(0, u64::saturating_add),
        }
    }

    fn is_over(&self, wait: Wait<'_>) -> bool {
        self.control_loop.is_over(wait)
    }

    fn snapshot(&self) -> io::Result<Receiver<AgentReport>> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn end(self: Box<Self>, ending: &Ending) -> AgentReport {
        let report = self.control_loop.end(ending.threads_until());
        let mut faults = self.faults;
        faults.extend(report.faults);
        self.stop_pages.set();
        let mut cpus = Vec::new();
        for stream in self.streams {
            let (cpu, ended) = stream.end(ending.threads_until());
            let fault = ended.err().map(|error| error.to_string());
            if let Some(fault) = &fault {
                faults.push(format!("CPU {cpu}: receiving its pages stopped early: {fault}"));
            }
            let sent_bytes = self.files.sent_so_far(cpu);
            cpus.push(CpuEnd { cpu, sent_bytes, stats: String::new(), fault });
        }
        let (started, texts) = (Some(self.started), self.texts);
        AgentReport { started, texts, cpus, faults, ..report }
    }
}

/// Connects to another port of the agent's machine.
fn connect_to_port(
    channel: &HostAddress,
    port: u32,
    limit: &StartLimit,
) -> io::Result<channel::Stream> {
    if limit.wait(|wait| wait.is_over()) {
        let text = "its ports did not connect in time";
        return Err(io::Error::new(io::ErrorKind::TimedOut, text));
    }
    let address = match channel {
        HostAddress::Vsock { cid, .. } => HostAddress::Vsock { cid: *cid, port },
        HostAddress::Tcp { to } => {
            let host = to.rsplit_once(':').map_or(to.as_str(), |(host, _)| host);
            HostAddress::Tcp { to: format!("{host}:{port}") }
        }
        other => other.clone(),
    };
    address.connect(limit.at_most(CONNECT).until.remaining())
}

/// Adds advice if nothing listens there.
fn nobody(channel: &HostAddress, error: &io::Error) -> io::Error {
    let hint = match (error.kind(), channel) {
        // A vsock port without a listener resets the connection.
        (io::ErrorKind::ConnectionRefused | io::ErrorKind::ConnectionReset, _) => {
            "; start `trace-cmd agent` there (or hyperscope-agent --trace-cmd), or give its port"
        }
        (io::ErrorKind::TimedOut, _) => "; check that the guest runs and that this is its address",
        (_, HostAddress::Vsock { .. }) => "; check that a guest with this vsock CID runs",
        _ => "",
    };
    io::Error::new(error.kind(), format!("{error}{hint}"))
}

/// trace-cmd's agent sets up tracing after its answer, and exits if that fails.
fn ended(error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{error}; see the agent's own output"))
}

/// Receives the response to the request.
fn response(agent: &mut TraceCmd, wait: Wait<'_>) -> io::Result<Response> {
    let text = loop {
        break match agent.receive(wait) {
            Ok(Some(Message::Response(response))) => return Ok(response),
            Ok(Some(Message::NotSupported)) => {
                "it refused the request: see the agent's own output".into()
            }
            Ok(Some(Message::Unknown(_))) if !wait.is_over() => {
                agent.send_within(&Message::NotSupported, wait)?;
                continue;
            }
            Ok(Some(_)) => "its answer does not contain the ports of its pages".into(),
            Ok(None) => format!("no answer in {} s: is it trace-cmd's agent?", ANSWER.as_secs()),
            Err(ReadError::Closed) => {
                "it closed the connection without an answer: it can't record these events, or another host uses it; see the agent's own output"
                    .into()
            }
            Err(ReadError::Decode(error)) => format!(
                "{error}; another program may listen there. hyperscope-agent has its own port and needs no `trace-cmd:`"
            ),
            Err(ReadError::Io(error)) => return Err(error),
        };
    };
    Err(io::Error::other(text))
}

fn check(response: &Response) -> std::result::Result<(), String> {
    if response.use_fifos {
        return Err("it wants to send pages through FIFOs, which was not requested".into());
    }
    match response.ports.len() {
        1..=MAX_CPUS => Ok(()),
        count => Err(format!("it claims {count} CPUs, which is not plausible")),
    }
}
