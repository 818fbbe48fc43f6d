//! Answers a host: identifies this machine, and records on request.

use std::time::{Duration, Instant};

use channel::Received;
use channel::wire::{CodeRequest, GuestHello, Message, SampleRequest, Start, Status, TextKind};
use os::confine::Unconfined;
use os::waits::Signal;
use printable::with_causes;

use crate::error::{AgentError, Result};
use crate::guard::Guard;
use crate::leave::{Busy, leave_at_signals};
use crate::link::{Host, Link};
use crate::machine::{boot_id, page_bytes, possible_cpus};
use crate::probe_sets;
use crate::recording::{Prepared, Recording};
use crate::samples::{self, Samples};
use crate::texts;

/// Max time without a message from a recording host, which sends one every few seconds. After that it counts as gone.
const SILENCE: Duration = Duration::from_secs(30);
/// Max time of a single wait for messages.
const IDLE: Duration = Duration::from_secs(5);
/// Min time between the starts of two hosts' sessions.
const BETWEEN_HOSTS: Duration = Duration::from_millis(500);
/// Time between a failure of the channel and the next attempt.
const BEFORE_NEXT_TRY: Duration = Duration::from_secs(5);
/// Max CPUs per message.
const CPUS_A_STATUS: usize = 1000;

/// Serves one host after another, forever; `starter` starts sampling on request.
///
/// # Errors
/// When the channel can't be used any more.
pub fn serve(link: &Link, guard: &mut Guard, starter: &Unconfined) -> Result<()> {
    let hello = hello(link)?;
    let (busy, leave) = (Busy::default(), Signal::new()?);
    leave_at_signals(&busy, &leave)?;
    while !leave.is_set() {
        let mut host = match link.host(&hello, &leave) {
            Ok(host) => host,
            // An unplugged port may be plugged in again.
            Err(AgentError::Io(error)) => {
                printable::print_message(format_args!("hyperscope-agent: {error}"));
                std::thread::sleep(BEFORE_NEXT_TRY);
                continue;
            }
            Err(error) => return Err(error),
        };
        busy.set(true);
        let start = Instant::now();
        let mut session = Session {
            host: &mut host,
            hello: &hello,
            number: 0,
            sample: None,
            keep_code: None,
            goes_on: None,
            starter,
            guard,
        };
        // A host that disconnects ends its session, not the agent.
        if let Err(error) = session.run() {
            printable::print_message(format_args!("hyperscope-agent: {error}"));
        }
        session.guard.note(0);
        busy.set(false);
        let is_caller = host.is_caller();
        drop(host);
        // A host that ends all sessions at once must not cause a busy loop. Hosts that connect to the agent are exempt:
        // the next one may wait already, and a host that leaves at once must not delay it.
        if !is_caller {
            std::thread::sleep(BETWEEN_HOSTS.saturating_sub(start.elapsed()));
        }
    }
    Ok(())
}

fn hello(link: &Link) -> Result<GuestHello> {
    let (cpus, page_bytes) = (possible_cpus()?, page_bytes()?);
    let uname = rustix::system::uname();
    let host_name = uname.nodename().to_string_lossy().into_owned();
    let parts =
        [uname.sysname(), uname.nodename(), uname.release(), uname.version(), uname.machine()];
    Ok(GuestHello {
        version: channel::wire::VERSION,
        boot_id: boot_id(),
        uname: parts.map(|part| part.to_string_lossy().into_owned()).join(" "),
        host_name,
        agent: env!("CARGO_PKG_VERSION").into(),
        big_endian: cfg!(target_endian = "big"),
        long_bytes: if cfg!(target_pointer_width = "64") { 8 } else { 4 },
        page_bytes,
        cpus: u32::try_from(cpus).unwrap_or(u32::MAX),
        streams: link.streams(cpus, std::thread::available_parallelism().map_or(1, usize::from)),
    })
}

/// A host's session.
struct Session<'h, 'l> {
    host: &'h mut Host<'l>,
    hello: &'h GuestHello,
    /// The number that the host chose.
    number: u64,
    /// The sampling request for the next recording.
    sample: Option<SampleRequest>,
    /// The kernel code request for the next recording.
    keep_code: Option<CodeRequest>,
    goes_on: Option<GoesOn>,
    starter: &'h Unconfined,
    guard: &'h mut Guard,
}

/// A recording, and the time of its next status message.
struct GoesOn {
    recording: Recording,
    samples: Option<Samples>,
    every: Option<Duration>,
    next: Instant,
    last_heard: Instant,
}

impl Session<'_, '_> {
    /// Answers until the host disconnects.
    fn run(&mut self) -> Result<()> {
        loop {
            let received = self.host.receive(self.patience())?;
            if self.host.is_to_leave() {
                return self.stop(false);
            }
            match received {
                Received::Closed => return Ok(()),
                Received::Timeout => self.look()?,
                Received::Message(number, Message::HostHello) => {
                    (self.goes_on, self.sample, self.keep_code) = (None, None, None);
                    self.number = number;
                    self.host.begin_session(number);
                    self.guard.note(number);
                    self.host.send(number, &Message::GuestHello(self.hello.clone()))?;
                }
                Received::Message(number, message) if number == self.number => {
                    self.answer(message)?;
                    self.look()?;
                }
                // Left unread by an earlier host.
                Received::Message(..) => {}
            }
        }
    }

    fn patience(&self) -> Duration {
        let due =
            self.goes_on.as_ref().and_then(|recording| recording.every.map(|_| recording.next));
        let is_sampled = self.goes_on.as_ref().is_some_and(|recording| recording.samples.is_some());
        let idle = if is_sampled { samples::EVERY } else { IDLE };
        due.map_or(idle, |due| due.saturating_duration_since(Instant::now()).min(idle))
    }

    fn answer(&mut self, message: Message) -> Result<()> {
        if let Some(goes_on) = &mut self.goes_on {
            goes_on.last_heard = Instant::now();
        }
        let result = match message {
            Message::Start(start) => self.start(&start),
            Message::Sample(request) => {
                self.sample = Some(request);
                Ok(())
            }
            Message::KeepCode(request) => {
                self.keep_code = Some(request);
                Ok(())
            }
            Message::Stop => self.stop(true),
            Message::Filter(filters) => match &self.goes_on {
                Some(goes_on) => goes_on.recording.filter(&filters),
                None => Ok(()),
            },
            _ => Ok(()),
        };
        match result {
            // The host's user can fix these errors.
            Err(error @ (AgentError::Tracefs(_) | AgentError::Refused(_))) => {
                self.host.send(self.number, &Message::Refused(with_causes(&error)))
            }
            other => other,
        }
    }

    fn start(&mut self, start: &Start) -> Result<()> {
        self.goes_on = None;
        let mut start = start.clone();
        let events = probe_sets::events(&start.probes);
        start.probes = self.host.probes(&start.probes)?;
        let prepared = Prepared::new_with(&start, events)?;
        let page_size = prepared.texts().page_size() as usize;
        let sinks = self.host.sinks(self.number, self.hello.streams, page_size)?;
        if sinks.is_empty() {
            return Err(AgentError::Refused(
                "this machine has no virtio port for pages; the first one is hyperscope.cpu0"
                    .into(),
            ));
        }
        let device = self.host.device();
        if !device.is_empty() {
            self.host.send(self.number, &Message::Device(device))?;
        }
        let named = channel::named_devices();
        if !named.is_empty() {
            self.host.send(self.number, &Message::Devices(named))?;
        }
        texts::send(self.host, self.number, prepared.texts(), start.kallsyms)?;
        let started = prepared.started();
        let keep_code = self.keep_code.take();
        let samples = self.sample.take().map(|request| {
            let (clock, cpus) = (&prepared.clock().name, prepared.cpus());
            Samples::begin((request, keep_code), clock, self.number, cpus, self.starter)
        });
        let recording = prepared.begin(sinks)?;
        self.host.send(self.number, &Message::Started(started))?;
        let every = (start.status_ms > 0).then(|| Duration::from_millis(start.status_ms.into()));
        let now = Instant::now();
        let next = now + every.unwrap_or(IDLE);
        self.goes_on = Some(GoesOn { recording, samples, every, next, last_heard: now });
        Ok(())
    }

    /// Ends a recording. During a shutdown there is no time to measure the cost of an event (`measured`).
    fn stop(&mut self, measured: bool) -> Result<()> {
        let Some(goes_on) = self.goes_on.take() else { return Ok(()) };
        if let Some(samples) = goes_on.samples {
            samples.end(self.host, self.number)?;
        }
        let ended = goes_on.recording.end()?;
        texts::send_one(self.host, self.number, TextKind::Cmdlines, &ended.names)?;
        for cpu in &ended.cpus {
            self.host.send(self.number, &Message::CpuEnd(cpu.clone()))?;
        }
        if let Some(cost) = measured.then(|| ended.event_cost()).flatten() {
            self.host.send(self.number, &Message::EventCost(cost))?;
        }
        let status = Status { cpus: Vec::new(), ..ended.status };
        self.host.send(self.number, &Message::Ended(status))
    }

    /// Reports progress when due, and ends a recording whose host disconnected.
    fn look(&mut self) -> Result<()> {
        let now = Instant::now();
        let Some(goes_on) = &mut self.goes_on else { return Ok(()) };
        if now.duration_since(goes_on.last_heard) > SILENCE {
            self.goes_on = None;
            return Err(AgentError::Refused(
                "the host stopped answering, so the recording ended".into(),
            ));
        }
        if let Some(samples) = &mut goes_on.samples {
            samples.send(self.host, self.number)?;
        }
        let Some(every) = goes_on.every.filter(|_| now >= goes_on.next) else { return Ok(()) };
        goes_on.next = now + every;
        let status = goes_on.recording.status();
        for cpus in status.cpus.chunks(CPUS_A_STATUS) {
            let status = Status { cpus: cpus.to_vec(), ..status };
            self.host.send(self.number, &Message::Status(status))?;
        }
        Ok(())
    }
}
