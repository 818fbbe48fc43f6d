//! What host and agent say to each other while a guest is recorded, in a thread of its own: a guest
//! that is slow or silent holds nobody up.

use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use channel::{Control, Heard, Signal, Wait};
use folder::Folder;
use wire::{CpuEnd, DeviceRange, EventCost, Message, Started, Status};

use crate::guest::texts::GuestTexts;

/// How often the agent is told that its host is there.
const ALIVE: Duration = Duration::from_secs(5);
/// How long an agent may be silent that says every second how it is going, and how long it may take to
/// begin. As long as it waits for its host: neither knows how little of a busy processor the other gets.
const SILENCE: Duration = Duration::from_secs(30);
/// How long an agent that lives may say nothing.
const QUIET: Duration = Duration::from_secs(3);
/// How long the rest may take to come after the end, as long as some comes.
const REST: Duration = Duration::from_secs(30);
/// How long the rest may take in all: a guest that sends a byte now and then holds nobody up.
const REST_IN_ALL: Duration = Duration::from_secs(180);
/// Messages that are listened to in a second; a guest that records has a few.
const MOST_A_SECOND: u32 = 20_000;
/// CPUs that ends are kept of.
const MOST_ENDS: usize = 8192;
/// Faults that are kept.
const MOST_FAULTS: usize = 100;

/// How the recording of a guest is going.
#[derive(Clone, Debug, Default)]
pub(crate) struct Going {
    /// It records.
    pub(crate) started: bool,
    /// It does not any more, and why.
    pub(crate) over: Option<String>,
    /// Events that were lost in the guest so far.
    pub(crate) lost: u64,
    /// Bytes of pages that it has sent.
    pub(crate) sent_bytes: u64,
}

/// What came of it.
#[derive(Debug, Default)]
pub(crate) struct Ended {
    pub(crate) started: Option<Started>,
    pub(crate) texts: GuestTexts,
    pub(crate) cpus: Vec<CpuEnd>,
    pub(crate) status: Status,
    /// Where its channel's device is; empty: it does not tell, or has none.
    pub(crate) device: Vec<DeviceRange>,
    /// What an event costs the guest, if it has measured that.
    pub(crate) event_cost: Option<EventCost>,
    pub(crate) faults: Vec<String>,
}

/// A conversation that goes on.
#[derive(Debug)]
pub(crate) struct Conversation {
    stop: Signal,
    going: Arc<Mutex<Going>>,
    thread: JoinHandle<Ended>,
}

impl Conversation {
    /// Begins to listen to a guest that was told to record; `vmm` is the process that it lives in,
    /// where that is known.
    pub(crate) fn begin(
        control: Control,
        session: u64,
        folder: Folder,
        vmm: Option<u32>,
    ) -> io::Result<Self> {
        let stop = Signal::new()?;
        let going = Arc::new(Mutex::new(Going::default()));
        let mut talk = Talk {
            control,
            session,
            folder,
            vmm,
            stop: stop.clone(),
            going: Arc::clone(&going),
            ended: Ended::default(),
            heard: Instant::now(),
            said: Instant::now(),
            stopping: None,
            messages: (Instant::now(), 0),
        };
        let thread = thread::Builder::new().name("guest".into()).spawn(move || {
            talk.run();
            talk.ended
        })?;
        Ok(Self { stop, going, thread })
    }

    pub(crate) fn going(&self) -> Going {
        lock(&self.going).clone()
    }

    pub(crate) fn end(self) -> Ended {
        self.stop.give();
        self.thread.join().unwrap_or_else(|_| Ended {
            faults: vec!["the thread that listened to it panicked".into()],
            ..Ended::default()
        })
    }
}

struct Talk {
    control: Control,
    session: u64,
    /// Where its pages go.
    folder: Folder,
    /// The process that it lives in.
    vmm: Option<u32>,
    stop: Signal,
    going: Arc<Mutex<Going>>,
    ended: Ended,
    heard: Instant,
    said: Instant,
    /// When the guest was told to stop.
    stopping: Option<Instant>,
    /// Messages since the second began.
    messages: (Instant, u32),
}

impl Talk {
    fn run(&mut self) {
        let why = loop {
            if let Err(why) = self.say() {
                break Some(why);
            }
            // Once told to stop, nothing but the guest ends a wait.
            let fds = [self.stop.fd()];
            let stop = if self.stopping.is_none() { fds.as_slice() } else { &[] };
            match self.control.receive(Wait::at_most(Duration::from_secs(1)).or(stop)) {
                Ok(Heard::Message(session, message)) if session == self.session => {
                    if self.take(message) {
                        break None;
                    }
                }
                Ok(Heard::Message(_, Message::GuestHello(_))) => {
                    break Some("its agent was started anew".into());
                }
                // What a host that was here before has left unread.
                Ok(Heard::Message(..)) => {}
                Ok(Heard::Nothing) => {}
                Ok(Heard::End) => break Some("it closed the channel".into()),
                Err(error) => break Some(format!("the channel failed: {error}")),
            }
        };
        if let Some(why) = why {
            self.fault(format!("its recording ended early: {why}"));
            lock(&self.going).over = Some(why);
        }
    }

    /// Says what is due; why it is over, if so.
    fn say(&mut self) -> std::result::Result<(), String> {
        let now = Instant::now();
        let failed = |error: io::Error| format!("the channel failed: {error}");
        // Memory does not tell that the other side is gone. A guest that speaks has moved to another
        // VMM.
        let is_quiet = now.duration_since(self.heard) > QUIET;
        if is_quiet && self.vmm.is_some_and(|pid| !Path::new(&format!("/proc/{pid}")).exists()) {
            return Err("its VM has ended".into());
        }
        match self.stopping {
            None if self.stop.is_given() => {
                self.stopping = Some(now);
                self.control.send(self.session, &Message::Stop).map_err(failed)?;
            }
            Some(since)
                if now.duration_since(since.max(self.heard)) > REST
                    || now.duration_since(since) > REST_IN_ALL =>
            {
                return Err("it did not send the rest in time".into());
            }
            None if now.duration_since(self.heard) > SILENCE => {
                return Err(format!("it has been silent for {} s", SILENCE.as_secs()));
            }
            _ => {}
        }
        if now.duration_since(self.said) > ALIVE {
            self.said = now;
            self.control.send(self.session, &Message::Alive).map_err(failed)?;
        }
        Ok(())
    }

    /// Takes a message; true when it is the last.
    fn take(&mut self, message: Message) -> bool {
        self.heard = Instant::now();
        if self.is_flood() {
            self.fault("it floods the host with messages".into());
            return true;
        }
        match message {
            Message::Text(text) if !self.ended.texts.take(&text) => {
                self.fault("it sends more texts than any machine has".into());
                return true;
            }
            Message::Started(started) => {
                // A recorder that is killed leaves a folder that can be read.
                let written = self.ended.texts.texts.write(&self.folder, &started.clock_line);
                if let Err(error) = written {
                    self.fault(format!("what its pages are read with was not written: {error}"));
                }
                self.ended.started = Some(started);
                lock(&self.going).started = true;
            }
            Message::Status(status) => self.note(status),
            Message::Device(ranges) => self.ended.device = ranges,
            Message::EventCost(cost) => self.ended.event_cost = Some(cost),
            Message::CpuEnd(end) if self.ended.cpus.len() < MOST_ENDS => {
                if let Some(fault) = &end.fault {
                    self.fault(format!("CPU {}: {fault}", end.cpu));
                }
                self.ended.cpus.push(end);
            }
            Message::Ended(status) => {
                self.ended.status = status;
                if self.stopping.is_none() {
                    let why = "its agent was told to go".to_owned();
                    lock(&self.going).over = Some(why.clone());
                    self.fault(format!("its recording ended early: {why}"));
                }
                return true;
            }
            Message::Refused(why) => {
                lock(&self.going).over = Some(why.clone());
                self.fault(why);
                return true;
            }
            // A guest has no business to send others.
            _ => {}
        }
        false
    }

    /// Whether more comes than any guest has to say.
    fn is_flood(&mut self) -> bool {
        let (since, count) = &mut self.messages;
        if self.heard.duration_since(*since) > Duration::from_secs(1) {
            (*since, *count) = (self.heard, 0);
        }
        *count += 1;
        *count > MOST_A_SECOND
    }

    fn note(&mut self, status: Status) {
        let mut going = lock(&self.going);
        going.lost = status.cpus.iter().map(|cpu| cpu.lost).fold(0, u64::saturating_add);
        let sent = status.cpus.iter().map(|cpu| cpu.sent_bytes);
        going.sent_bytes = sent.fold(0, u64::saturating_add);
        drop(going);
        self.ended.status = status;
    }

    fn fault(&mut self, text: String) {
        if self.ended.faults.len() < MOST_FAULTS {
            self.ended.faults.push(text);
        }
    }
}

/// What is said of it is whole whatever happened while the lock was held.
fn lock(going: &Mutex<Going>) -> MutexGuard<'_, Going> {
    going.lock().unwrap_or_else(PoisonError::into_inner)
}
