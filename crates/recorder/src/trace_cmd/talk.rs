//! What host and agent say to each other while a guest is recorded, in a thread of its own: a guest
//! that is slow or silent holds nobody up.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use channel::{Signal, TraceCmd, Wait};
use wire::trace_cmd::{Message, ReadError};

use super::samples::Samples;
use super::time_sync::TimeSync;

/// How long an agent may be silent: it has nothing to say before the end.
const SILENCE: Duration = Duration::from_secs(24 * 3600);
/// How long it may take to send the rest after it was told to stop.
///
/// trace-cmd's agent (3.1.6) takes its filters of functions away before its tracer, so that for a
/// moment all functions are traced: on two emulated CPUs in an emulated host that took over a minute.
const REST: Duration = Duration::from_secs(if cfg!(test) { 3 } else { 180 });
/// Messages that an agent may send unasked; trace-cmd's sends none.
const MOST_UNASKED: u32 = 1000;

/// What came of it.
#[derive(Debug, Default)]
pub(super) struct Talked {
    pub(super) samples: Option<Samples>,
    pub(super) faults: Vec<String>,
}

/// A conversation that goes on.
#[derive(Debug)]
pub(super) struct Talk {
    stop: Signal,
    over: Arc<Mutex<Option<String>>>,
    thread: JoinHandle<Talked>,
}

impl Talk {
    pub(super) fn begin(agent: TraceCmd, sync: Option<TimeSync>) -> io::Result<Self> {
        let stop = Signal::new()?;
        let over = Arc::new(Mutex::new(None));
        let (heeded, told) = (stop.clone(), Arc::clone(&over));
        let run = move || talk(agent, sync, &heeded, &told);
        let thread = thread::Builder::new().name("guest".into()).spawn(run)?;
        Ok(Self { stop, over, thread })
    }

    /// Why the guest is not recorded any more, if so.
    pub(super) fn over(&self) -> Option<String> {
        self.over.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Has the agent stop, and waits until it has.
    pub(super) fn end(self) -> Talked {
        self.stop.give();
        self.thread.join().unwrap_or_else(|_| Talked {
            faults: vec!["the thread that listened to it panicked".into()],
            ..Talked::default()
        })
    }
}

fn talk(
    mut agent: TraceCmd,
    sync: Option<TimeSync>,
    stop: &Signal,
    over: &Mutex<Option<String>>,
) -> Talked {
    let mut talked = Talked::default();
    let gone = until_stopped(&mut agent, stop).err();
    if let Some(why) = &gone {
        talked.faults.push(format!("its recording ended early: {why}"));
        *over.lock().unwrap_or_else(PoisonError::into_inner) = Some(why.clone());
    } else if let Err(error) = agent.send(&Message::Close) {
        talked.faults.push(format!("it could not be told to stop: {error}"));
    }
    // The samples of the first round are good whatever comes of the last.
    if let Some(sync) = sync {
        let (samples, ended) = if gone.is_some() { (sync.abandon(), Ok(())) } else { sync.end() };
        talked.samples = Some(samples);
        if let Err(error) = ended {
            talked
                .faults
                .push(format!("its clock was not related to the host's at the end: {error}"));
        }
    }
    if gone.is_none()
        && let Err(why) = until_closed(&mut agent)
    {
        talked.faults.push(why);
    }
    talked
}

/// Waits until the recording is to end; why the agent is not there any more, if so.
fn until_stopped(agent: &mut TraceCmd, stop: &Signal) -> Result<(), String> {
    let mut unasked = 0;
    while !stop.is_given() {
        match agent.receive(Wait::at_most(SILENCE).or(&[stop.fd()])) {
            Ok(None) => {}
            Ok(Some(Message::Close | Message::CloseResponse)) => {
                return Err("its agent has stopped by itself".into());
            }
            Ok(Some(_)) if unasked < MOST_UNASKED => unasked += 1,
            Ok(Some(_)) => return Err("it floods the host with messages".into()),
            Err(ReadError::Closed) => return Err("its agent, or the guest, is gone".into()),
            Err(error) => return Err(format!("the connection to its agent failed: {error}")),
        }
    }
    Ok(())
}

/// Waits until the agent has sent all of its pages.
fn until_closed(agent: &mut TraceCmd) -> Result<(), String> {
    let end = Instant::now() + REST;
    for _ in 0..MOST_UNASKED {
        let left = end.saturating_duration_since(Instant::now());
        match agent.receive(Wait::at_most(left)) {
            Ok(Some(Message::CloseResponse)) => return Ok(()),
            Ok(Some(_)) => {}
            Ok(None) => break,
            Err(error) => {
                return Err(format!("it did not say that it has sent everything: {error}"));
            }
        }
    }
    Err(format!("it did not say within {} s that it has sent everything", REST.as_secs()))
}
