//! Exchanges control messages with an agent during a recording, in a separate thread per guest: a slow or silent guest
//! blocks no other.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::{Duration, Instant};

use channel::wire::{Message, Started, Status};
use channel::{Control, Received};
use os::confine::Confined;
use os::folder::Folder;
use os::waits::{Deadline, Wait};
use parking_lot::Mutex;

use crate::ending::{Ending, STOP_MESSAGE};
use crate::guest::{AgentReport, GuestFiles, GuestStatus, GuestTexts};
use crate::hyperscope_agent::samples::GuestSamples;
use crate::task::Task;

/// Interval of keepalive messages to the agent.
const ALIVE: Duration = Duration::from_secs(5);
/// Max time without a message from a recording agent, which sends its status every second. It equals the agent's own
/// limit: neither side knows how little CPU time the other gets on a busy machine.
const SILENCE: Duration = Duration::from_secs(30);
/// The error of a guest that did not begin in time.
pub(crate) const LATE: &str = "it did not start to record in time; raise --guest-wait";
/// Time without a message after which the VM's existence is checked.
const QUIET: Duration = Duration::from_secs(3);
/// Max wait for a message before due work is checked.
const LOOK: Duration = Duration::from_secs(1);
/// Max time for an agent to accept a keepalive message.
const TAKES: Duration = Duration::from_secs(10);
/// Max messages per second; a recording guest sends a few.
const MAX_A_SECOND: u32 = 20_000;
/// Max CPUs with end messages.
const MAX_ENDS: usize = 8192;
/// Max faults to keep.
const MAX_FAULTS: usize = 100;

/// Deadlines of a silent guest.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience {
    /// Deadline to begin. It may be silent until then: a slow guest needs long to collect its texts.
    pub(crate) begins_by: Deadline,
    /// Max silence once it records.
    pub(crate) silence: Duration,
}

impl Patience {
    /// For a guest that must begin by this deadline.
    pub(crate) fn begins_by(begins_by: Deadline) -> Self {
        Self { begins_by, silence: SILENCE }
    }
}

/// The destination of a guest's data.
#[derive(Debug)]
pub(crate) struct Destination<'d> {
    /// The folder of its pages.
    pub(crate) folder: Folder,
    pub(crate) files: &'d Arc<GuestFiles>,
    /// Set if samples were requested.
    pub(crate) samples: Option<GuestSamples>,
}

/// A snapshot of a running recording's reports.
fn so_far(report: &AgentReport) -> AgentReport {
    let AgentReport { started, texts, device, devices, faults, .. } = report;
    AgentReport {
        started: started.clone(),
        texts: GuestTexts::complete(texts.texts.clone(), texts.cmdlines.clone()),
        device: device.clone(),
        devices: devices.clone(),
        faults: faults.clone(),
        ..AgentReport::default()
    }
}

/// A running conversation.
#[derive(Debug)]
pub(crate) struct Conversation {
    guest_status: Arc<Mutex<GuestStatus>>,
    snapshots: Arc<Mutex<Snapshots>>,
    task: Task<AgentReport>,
}

/// Requests for snapshots of the reports.
#[derive(Debug, Default)]
struct Snapshots {
    /// A request that the thread has not answered yet.
    request: Option<Sender<AgentReport>>,
    /// The final report, once the thread has ended.
    last: Option<AgentReport>,
}

impl Conversation {
    /// Requests a snapshot, which the thread sends within a second.
    pub(crate) fn snapshot(&self) -> Receiver<AgentReport> {
        let (send, receiver) = mpsc::channel();
        let mut snapshots = self.snapshots.lock();
        match &snapshots.last {
            // The receiver exists: it is in this function.
            Some(report) => drop(send.send(so_far(report))),
            None => snapshots.request = Some(send),
        }
        receiver
    }

    /// Starts receiving from a guest that was asked to record; `vmm` is the process of its VM, if known.
    pub(crate) fn begin(
        control: Control,
        session: u64,
        to: Destination<'_>,
        vmm: Option<u32>,
        ending: &Ending,
        patience: Patience,
    ) -> io::Result<Self> {
        let guest_status = Arc::new(Mutex::new(GuestStatus::default()));
        let Destination { folder, files, samples } = to;
        let snapshots = Arc::<Mutex<Snapshots>>::default();
        let mut control_loop = ControlLoop {
            control,
            session,
            folder,
            files: Arc::clone(files),
            vmm,
            samples,
            ending: ending.clone(),
            patience,
            guest_status: Arc::clone(&guest_status),
            snapshots: Arc::clone(&snapshots),
            report: AgentReport::default(),
            last_heard: Instant::now(),
            last_sent: Instant::now(),
            start: None,
            stopping: None,
            left_first: false,
            messages: (Instant::now(), 0),
        };
        let task = Task::spawn("guest".into(), Confined::Reader, move || {
            control_loop.run();
            control_loop.report()
        })?;
        Ok(Self { guest_status, snapshots, task })
    }

    pub(crate) fn status(&self) -> GuestStatus {
        self.guest_status.lock().clone()
    }

    /// Waits at most `wait` for the end of messages, and returns whether it came.
    pub(crate) fn is_over(&self, wait: Wait<'_>) -> bool {
        self.task.is_over(wait)
    }

    /// The final report, after the end has begun.
    pub(crate) fn end(self, until: Deadline) -> AgentReport {
        AgentReport::of_task(self.task.end(Wait::until(until)))
    }
}

struct ControlLoop {
    control: Control,
    session: u64,
    /// Destination of its pages.
    folder: Folder,
    files: Arc<GuestFiles>,
    samples: Option<GuestSamples>,
    /// Process of its VM.
    vmm: Option<u32>,
    ending: Ending,
    patience: Patience,
    guest_status: Arc<Mutex<GuestStatus>>,
    snapshots: Arc<Mutex<Snapshots>>,
    report: AgentReport,
    last_heard: Instant,
    last_sent: Instant,
    /// When the guest was asked to stop.
    stopping: Option<Instant>,
    /// When it began to record.
    start: Option<Instant>,
    /// It had closed the channel before it was asked to stop.
    left_first: bool,
    /// Begin of the current second, and its number of messages.
    messages: (Instant, u32),
}

impl ControlLoop {
    fn run(&mut self) {
        let why = loop {
            self.send_snapshot();
            if let Err(why) = self.say() {
                break Some(why);
            }
            match self.listen() {
                Ok(Received::Message(session, message)) if session == self.session => {
                    if self.take(message) {
                        break None;
                    }
                }
                Ok(Received::Message(_, Message::GuestHello(_))) => {
                    break Some("its agent was restarted".into());
                }
                // Left unread by an earlier host.
                Ok(Received::Message(..)) => {}
                Ok(Received::Timeout) => {}
                Ok(Received::Closed) => break Some("it closed the channel".into()),
                // A socket returns this error if the agent was killed with unread data.
                Err(error) if error.kind() == io::ErrorKind::ConnectionReset => {
                    break Some("it closed the channel".into());
                }
                Err(error) => break Some(format!("the channel failed: {error}")),
            }
        };
        if let Some(why) = why {
            self.fault(format!("its recording ended early: {why}"));
            self.guest_status.lock().over = Some(why);
        }
    }

    fn recorded(&self) -> Option<Duration> {
        let end = self.stopping.unwrap_or_else(Instant::now);
        self.start.map(|start| end.saturating_duration_since(start))
    }

    /// The final report, once no more messages arrive.
    fn report(mut self) -> AgentReport {
        self.report.recorded = self.recorded();
        if self.files.keeps_segments() {
            self.snapshots.lock().last = Some(so_far(&self.report));
        }
        self.send_snapshot();
        self.report.faults.extend(self.report.texts.fault());
        if let Some(sampled) = self.samples.map(GuestSamples::finish) {
            self.report.sampled = Some(sampled.summary);
            self.report.faults.extend(sampled.faults);
        }
        self.report
    }

    /// Sends a snapshot if one was requested.
    fn send_snapshot(&self) {
        let request = self.snapshots.lock().request.take();
        if let Some(request) = request {
            // The receiver may have given up.
            let _ = request.send(so_far(&self.report));
        }
    }

    /// Waits for a message until the next check for due work.
    fn listen(&mut self) -> io::Result<Received> {
        let mut look = Deadline::after(LOOK);
        if self.report.started.is_none() && self.stopping.is_none() {
            look = look.min(self.patience.begins_by);
        }
        let until = self.ending.until().map_or(look, |until| until.min(look));
        let is_stopping = self.stopping.is_some();
        let early = if is_stopping { self.ending.cut() } else { self.ending.begin_signal() };
        self.control.receive(Wait::until(until).or(&[early.fd()]))
    }

    /// Sends due messages; the error is the reason for the end.
    fn say(&mut self) -> std::result::Result<(), String> {
        let now = Instant::now();
        // Memory does not show that the peer is gone. A guest that still answers has moved to another VMM.
        let is_quiet = now.duration_since(self.last_heard) > QUIET;
        if is_quiet && self.vmm.is_some_and(|pid| !self.is_there(pid)) {
            return Err("its VM has ended".into());
        }
        match self.stopping {
            None if self.ending.begin_signal().is_set() => return self.say_stop(now),
            Some(since) if self.ending.is_over() => {
                let seconds = now.duration_since(since).as_secs_f64();
                return Err(format!(
                    "it did not send the rest within {seconds:.1} s after the end; raise --guest-wait"
                ));
            }
            None => self.has_patience(now)?,
            Some(_) => {}
        }
        if now.duration_since(self.last_sent) > ALIVE {
            self.last_sent = now;
            match self.send(&Message::Alive, TAKES) {
                Err(error) if is_closed(&error) => {}
                // The guest is asked to stop next, and has to receive that.
                result => result
                    .or_else(|error| self.unless_ending(error))
                    .map_err(|error| format!("its agent can't be reached: {error}"))?,
            }
        }
        Ok(())
    }

    /// The error of a guest that has exceeded its time limits.
    fn has_patience(&self, now: Instant) -> std::result::Result<(), String> {
        let silence = self.patience.silence;
        if self.report.started.is_none() {
            return if self.patience.begins_by.has_passed() { Err(LATE.into()) } else { Ok(()) };
        }
        if now.duration_since(self.last_heard) > silence {
            return Err(format!("it has been silent for {} s", silence.as_secs()));
        }
        Ok(())
    }

    /// Ignores an error if the end has begun, which interrupts operations.
    fn unless_ending(&self, error: io::Error) -> io::Result<()> {
        if self.ending.begin_signal().is_set() { Ok(()) } else { Err(error) }
    }

    /// Asks the guest to stop.
    fn say_stop(&mut self, now: Instant) -> std::result::Result<(), String> {
        self.stopping = Some(now);
        match self.send(&Message::Stop, STOP_MESSAGE) {
            Err(error) if is_closed(&error) => {
                self.left_first = true;
                Ok(())
            }
            result => result.map_err(|error| format!("could not ask it to stop: {error}")),
        }
    }

    /// Sends a message within a time, and within the deadline of the end.
    fn send(&mut self, message: &Message, within: Duration) -> io::Result<()> {
        let within = Deadline::after(within);
        let until = self.ending.until().map_or(within, |until| until.min(within));
        let is_stopping = self.stopping.is_some();
        let early = if is_stopping { self.ending.cut() } else { self.ending.begin_signal() };
        self.control.send_within(self.session, message, Wait::until(until).or(&[early.fd()]))
    }

    /// Handles a message; true if it is the last.
    fn take(&mut self, message: Message) -> bool {
        self.last_heard = Instant::now();
        if self.is_flood() {
            self.fault("it sends too many messages".into());
            return true;
        }
        match message {
            Message::Text(text) if !self.report.texts.take(&text, &self.files) => {
                self.fault("it sends more texts than any machine can have".into());
                return true;
            }
            Message::Started(started) if self.report.started.is_none() => self.start(started),
            Message::Status(status) => self.note(status),
            Message::Device(ranges) => self.report.device = ranges,
            Message::Devices(devices) => self.report.devices = devices,
            Message::Samples(part) => {
                if let Some(samples) = &mut self.samples {
                    samples.take(&part, &self.files);
                }
            }
            Message::Code(piece) => {
                if let Some(samples) = &mut self.samples {
                    samples.take_code(&piece, &self.files);
                }
            }
            Message::SamplesEnd(end) => {
                if let Some(samples) = &mut self.samples {
                    samples.end(end);
                }
            }
            Message::EventCost(cost) => self.report.event_cost = Some(cost),
            Message::CpuEnd(end) if self.report.cpus.len() < MAX_ENDS => {
                if let Some(fault) = &end.fault {
                    self.fault(format!("CPU {}: {fault}", end.cpu));
                }
                self.report.cpus.push(end);
            }
            Message::Ended(status) => {
                self.report.status = Some(status);
                if self.stopping.is_none() || self.left_first {
                    let why = "a signal stopped its agent".to_owned();
                    self.guest_status.lock().over = Some(why.clone());
                    self.fault(format!("its recording ended early: {why}"));
                }
                return true;
            }
            Message::Refused(why) => {
                self.guest_status.lock().over = Some(why.clone());
                self.fault(why);
                return true;
            }
            // Ignores messages that only a host sends.
            _ => {}
        }
        false
    }

    /// The guest has begun to record.
    fn start(&mut self, started: Started) {
        // A killed recorder must leave a readable folder; a recording that ends does not need it.
        if self.stopping.is_none()
            && let Err(error) = self.write_texts(started.clock_line.clone())
        {
            self.fault(format!("could not write the formats of its pages: {error}"));
        }
        self.report.started = Some(started);
        self.start = Some(Instant::now());
        self.guest_status.lock().started = true;
    }

    fn write_texts(&mut self, clock_line: String) -> io::Result<()> {
        let (texts, folder) = (std::mem::take(&mut self.report.texts), self.folder.clone());
        let (texts, written) = self.files.opener().run(move || {
            let written = texts.texts.write(&folder, &clock_line);
            (texts, written)
        })?;
        self.files.growing().note_written();
        self.report.texts = texts;
        written.map_err(io::Error::other)
    }

    /// Whether a process exists; assumed if that can't be checked.
    fn is_there(&self, pid: u32) -> bool {
        let looks = move || Path::new(&format!("/proc/{pid}")).exists();
        self.files.opener().run(looks).unwrap_or(true)
    }

    /// Whether the guest sends more messages than a guest ever needs.
    fn is_flood(&mut self) -> bool {
        let (since, count) = &mut self.messages;
        if self.last_heard.duration_since(*since) > Duration::from_secs(1) {
            (*since, *count) = (self.last_heard, 0);
        }
        *count += 1;
        *count > MAX_A_SECOND
    }

    fn note(&mut self, status: Status) {
        let mut guest_status = self.guest_status.lock();
        guest_status.lost = status.cpus.iter().map(|cpu| cpu.lost).fold(0, u64::saturating_add);
        let sent = status.cpus.iter().map(|cpu| cpu.sent_bytes);
        guest_status.sent_bytes = sent.fold(0, u64::saturating_add);
        drop(guest_status);
        self.report.status = Some(status);
    }

    fn fault(&mut self, text: String) {
        if self.report.faults.len() < MAX_FAULTS {
            self.report.faults.push(text);
        }
    }
}

/// Whether a guest has closed the channel; its last messages are still to be read.
fn is_closed(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset)
}
