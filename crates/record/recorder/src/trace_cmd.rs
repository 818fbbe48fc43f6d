//! A guest that is recorded together with its host, by trace-cmd's agent in it.
//!
//! The agent is trace-cmd's own (`trace-cmd agent`, version 3 of its protocol, see
//! `channel::wire::trace_cmd`). It is asked to record as `trace-cmd record -A` asks it, and what it sends
//! becomes the same file as that of a guest with hyperscope-agent. Everything that it sends is
//! bounded, and taken by threads of its own: a guest holds nobody up.

mod address;
mod arguments;
mod control_loop;
#[cfg(test)]
mod hostile;
mod metadata;
mod pages;
mod ptp;
mod samples;
mod time_sync;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use channel::wire::CpuEnd;
use channel::wire::trace_cmd::{Message, ReadError, Request, Response};
use channel::{HostAddress, TraceCmd};
use os::confine::{Confined, Unconfined, apart};
use os::folder::Folder;
use os::waits::{Signal, Wait};
use tracefs::FunctionTracer;
use vms::GuestAddress;

use crate::ending::{Ending, StartLimit, stop_signal};
use crate::error::{RecordError, Result};
use crate::flusher::Flusher;
use crate::guest::{self, GuestFiles, GuestRecorded, GuestStatus, PageShape, Parts};
use crate::guests::InGuests;

pub(crate) use self::address::find;
use self::control_loop::ControlLoop;
use self::metadata::Metadata;
use self::pages::{PageStream, PageTaker};
pub(crate) use self::samples::Samples;
use self::time_sync::{Offered, TimeSync};

/// How long connections may take.
const CONNECT: Duration = Duration::from_secs(5);
/// How long an agent may take to answer: it sets up tracing before it does.
const ANSWER: Duration = Duration::from_secs(if cfg!(test) { 2 } else { 30 });
/// How long an agent is given to switch tracing on once its pages are fetched. It does not say when
/// it has.
const SETTLE: Duration = Duration::from_millis(200);
/// CPUs that a guest may have: each has a thread here. KVM's guests have 1024 at most on x86, unless
/// its kernel is built for more.
const MOST_CPUS: usize = 1024;

/// A guest whose agent has agreed to record, and waits for its host to begin.
#[derive(Debug)]
pub(crate) struct Ready {
    address: GuestAddress,
    agent: TraceCmd,
    response: Response,
    /// Explicit events, to be looked for in what the agent says that it records.
    events: Vec<String>,
    sync: Option<TimeSync>,
    tracer: Option<FunctionTracer>,
}

/// A guest that is recorded.
#[derive(Debug)]
pub(crate) struct Recorded {
    address: GuestAddress,
    response: Response,
    metadata: Metadata,
    folder: Folder,
    files: Arc<GuestFiles>,
    stop_pages: Signal,
    streams: Vec<PageStream>,
    control_loop: ControlLoop,
    flusher: Flusher,
    ending: Ending,
    tracer: Option<FunctionTracer>,
    faults: Vec<String>,
}

impl Ready {
    /// Connects to a guest's agent, has it get ready, and relates the two machines' clocks for the
    /// first time. `host` is the host's trace clock, which the guest has to use, too; `trace_id` that
    /// of the host's recording.
    ///
    /// # Errors
    /// When nobody answers, it is no such agent, or it can't do what it is asked for.
    pub(crate) fn connect(
        address: GuestAddress,
        what: &InGuests,
        host_clock: &str,
        trace_id: u64,
        limit: &StartLimit,
    ) -> Result<Self> {
        let failed = |source| RecordError::Guest { name: address.name.clone(), source };
        let offered = Offered::new(host_clock, address.vm.as_ref());
        let stream = address.channel.connect(limit.at_most(CONNECT).until.left());
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
        let (events, tracer) = (what.events.clone(), what.tracer.clone());
        Ok(Self { address, agent, response, events, sync, tracer })
    }

    /// The name that the guest is recorded under.
    pub(crate) fn name(&self) -> &str {
        &self.address.name
    }

    /// Has the guest record, with its pages in a folder of the session.
    ///
    /// # Errors
    /// When the agent does not say how its pages are to be read.
    pub(crate) fn begin(
        mut self,
        session: &Folder,
        what: &InGuests,
        limit: &StartLimit,
        ending: &Ending,
    ) -> Result<Recorded> {
        let name = self.address.name.clone();
        let failed = |source| RecordError::Guest { name: name.clone(), source };
        let metadata = apart(Confined::Reader, "guest", || {
            limit.wait(|wait| Metadata::receive(&mut self.agent, wait))
        });
        let metadata = metadata.map_err(failed)?;
        let folder = guest::make_pages_folder(session, &name)?;
        metadata.texts.texts.write(&folder, &metadata.clock_line)?;
        let shape = PageShape {
            bytes: metadata.page_bytes as usize,
            long_bytes: metadata.long_bytes.into(),
            big_endian: metadata.big_endian,
        };
        let cpus = u32::try_from(self.response.ports.len()).unwrap_or(u32::MAX);
        let opener = Unconfined::start("guest-files").map_err(failed)?;
        let files = Arc::new(GuestFiles::new((folder.clone(), opener), cpus, shape, what.quota()));
        let flusher = files.keep_on_disk(session, what.disk_flush).map_err(failed)?;
        let stop_pages = stop_signal()?;
        let mut streams = Vec::new();
        for (cpu, &port) in (0..).zip(&self.response.ports) {
            let stream = connect_to_port(&self.address.channel, port, limit).map_err(failed)?;
            let taker = PageTaker {
                files: Arc::clone(&files),
                stop: stop_pages.clone(),
                ending: ending.clone(),
                streams: self.response.ports.len(),
            };
            streams.push(PageStream::start(cpu, stream, taker).map_err(failed)?);
        }
        let faults = metadata.missing(&self.events);
        let control_loop = ControlLoop::begin(self.agent, self.sync, ending).map_err(failed)?;
        std::thread::sleep(SETTLE);
        Ok(Recorded {
            address: self.address,
            response: self.response,
            metadata,
            folder,
            files,
            stop_pages,
            streams,
            control_loop,
            flusher,
            ending: ending.clone(),
            tracer: self.tracer,
            faults,
        })
    }
}

impl Recorded {
    /// Its status.
    pub(crate) fn status(&self) -> GuestStatus {
        let received = self.files.received();
        GuestStatus {
            started: true,
            over: self.control_loop.over(),
            lost: 0,
            sent_bytes: received.iter().map(|cpu| cpu.written).fold(0, u64::saturating_add),
        }
    }

    /// The name that the guest is recorded under.
    pub(crate) fn name(&self) -> &str {
        &self.address.name
    }

    /// Whether it has said all that it will, waiting for that as long as `wait` says.
    pub(crate) fn is_over(&self, wait: Wait<'_>) -> bool {
        self.control_loop.is_over(wait)
    }

    /// Waits for what it still has to send, once the end has begun.
    pub(crate) fn end(mut self) -> GuestRecorded {
        let result = self.control_loop.end(self.ending.threads_until());
        self.faults.extend(result.faults);
        self.stop_pages.give();
        let mut cpus = Vec::new();
        for stream in self.streams {
            let (cpu, ended) = stream.end(self.ending.threads_until());
            let fault = ended.err().map(|error| error.to_string());
            if let Some(fault) = &fault {
                self.faults.push(format!("CPU {cpu}: its pages did not come to the end: {fault}"));
            }
            let sent_bytes = self.files.sent_so_far(cpu);
            cpus.push(CpuEnd { cpu, sent_bytes, stats: String::new(), fault });
        }
        let unwritten = |error| format!("its pages were not written to the end: {error}");
        self.faults.extend(self.files.failure().map(unwritten));
        self.faults.extend(self.flusher.end(self.ending.threads_until()));
        let Self { address, response, metadata, folder, files, tracer, faults, .. } = self;
        let started = metadata.started(response.ports.len());
        GuestRecorded::new(Parts {
            name: address.name,
            // trace-cmd knows no other TCP than the plain one: nobody has to ask for it.
            channel: format!("trace-cmd:{}", address.channel).replace("tcp-plain:", "tcp:"),
            vm: address.vm,
            trace_id: response.trace_id,
            hello: metadata.hello(response.ports.len()),
            folder,
            received: files.received(),
            malformed: files.malformed(),
            started: Some(started),
            texts: metadata.texts,
            cpus,
            status: None,
            device: Vec::new(),
            devices: Vec::new(),
            event_cost: None,
            samples: result.samples,
            sampled: None,
            tracer,
            recorded: None,
            faults,
        })
    }
}

/// Another port of the agent's machine.
fn connect_to_port(
    channel: &HostAddress,
    port: u32,
    limit: &StartLimit,
) -> io::Result<channel::Stream> {
    if limit.wait(|wait| wait.is_over()) {
        let text = "its ports were not connected to in time";
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
    address.connect(limit.at_most(CONNECT).until.left())
}

/// What to do when nobody listens.
fn nobody(channel: &HostAddress, error: &io::Error) -> io::Error {
    let hint = match (error.kind(), channel) {
        // A port of vsock on which nobody listens resets the connection.
        (io::ErrorKind::ConnectionRefused | io::ErrorKind::ConnectionReset, _) => {
            "; start `trace-cmd agent` there (or hyperscope-agent --trace-cmd), or name its port"
        }
        (io::ErrorKind::TimedOut, _) => "; is the guest running, and is this its address?",
        (_, HostAddress::Vsock { .. }) => "; is a guest with this number for vsock running?",
        _ => "",
    };
    io::Error::new(error.kind(), format!("{error}{hint}"))
}

/// trace-cmd's agent sets up tracing once it has answered, and ends where that fails.
fn ended(error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{error}; the agent's own output may say why"))
}

/// The answer to the request.
fn response(agent: &mut TraceCmd, wait: Wait<'_>) -> io::Result<Response> {
    let text = loop {
        break match agent.receive(wait) {
            Ok(Some(Message::Response(response))) => return Ok(response),
            Ok(Some(Message::NotSupported)) => {
                "it refuses what it is asked for: the agent's own output says why".into()
            }
            Ok(Some(Message::Unknown(_))) if !wait.is_over() => {
                agent.send_within(&Message::NotSupported, wait)?;
                continue;
            }
            Ok(Some(_)) => "it answers with something else than where its pages are".into(),
            Ok(None) => format!("no answer in {} s: is it trace-cmd's agent?", ANSWER.as_secs()),
            Err(ReadError::Closed) => {
                "it closed the connection without an answer: it can't record \
                what it is asked for, or records for somebody else; the agent's own output says why"
                    .into()
            }
            Err(ReadError::Decode(error)) => format!(
                "{error}; is another program listening there? hyperscope-agent has a port of its own, \
                 and is reached without `trace-cmd:`"
            ),
            Err(ReadError::Io(error)) => return Err(error),
        };
    };
    Err(io::Error::other(text))
}

fn check(response: &Response) -> std::result::Result<(), String> {
    if response.use_fifos {
        return Err("it wants to send pages through FIFOs, which it was not asked for".into());
    }
    match response.ports.len() {
        1..=MOST_CPUS => Ok(()),
        count => Err(format!("it says that it has {count} CPUs, which is not plausible")),
    }
}
