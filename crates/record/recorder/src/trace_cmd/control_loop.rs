//! Exchanges control messages with an agent during a recording, in a separate thread per guest: a slow or silent guest
//! blocks no other.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use channel::TraceCmd;
use channel::wire::trace_cmd::{Message, ReadError};
use os::confine::Confined;
use os::waits::{Deadline, Wait};
use parking_lot::Mutex;

use super::time_sync::TimeSync;
use crate::ending::{Ending, STOP_MESSAGE};
use crate::guest::AgentReport;
use crate::task::Task;

/// Max silence of an agent: it sends nothing before the end.
const SILENCE: Duration = Duration::from_secs(24 * 3600);
/// Max unexpected messages of an agent; trace-cmd's sends none.
const MAX_UNASKED: u32 = 1000;

/// A running control loop.
#[derive(Debug)]
pub(super) struct ControlLoop {
    over: Arc<Mutex<Option<String>>>,
    task: Task<AgentReport>,
}

impl ControlLoop {
    pub(super) fn begin(
        agent: TraceCmd,
        sync: Option<TimeSync>,
        ending: &Ending,
    ) -> io::Result<Self> {
        let over = Arc::new(Mutex::new(None));
        let (ending, reason) = (ending.clone(), Arc::clone(&over));
        let task = Task::spawn("guest".into(), Confined::Reader, move || {
            run(agent, sync, &ending, &reason)
        })?;
        Ok(Self { over, task })
    }

    /// Why the guest's recording has ended, if so.
    pub(super) fn over(&self) -> Option<String> {
        self.over.lock().clone()
    }

    /// Waits at most `wait` for the end of messages, and returns whether it came.
    pub(super) fn is_over(&self, wait: Wait<'_>) -> bool {
        self.task.is_over(wait)
    }

    /// The final report, after the end has begun.
    pub(super) fn end(self, until: Deadline) -> AgentReport {
        AgentReport::of_task(self.task.end(Wait::until(until)))
    }
}

fn run(
    mut agent: TraceCmd,
    sync: Option<TimeSync>,
    ending: &Ending,
    over: &Mutex<Option<String>>,
) -> AgentReport {
    let mut report = AgentReport::default();
    let gone = until_stopped(&mut agent, ending).err();
    let until = ending.until().unwrap_or_else(|| Deadline::after(STOP_MESSAGE));
    let cut = [ending.cut().fd()];
    let wait = Wait::until(until).or(&cut);
    if let Some(why) = &gone {
        report.faults.push(format!("its recording ended early: {why}"));
        *over.lock() = Some(why.clone());
    } else {
        let send_wait = Wait::until(until.min(Deadline::after(STOP_MESSAGE))).or(&cut);
        if let Err(error) = agent.send_within(&Message::Close, send_wait) {
            report.faults.push(format!("could not ask it to stop: {error}"));
        }
    }
    // The samples of the first round are valid whatever happens in the last.
    if let Some(sync) = sync {
        let (samples, ended) =
            if gone.is_some() { (sync.abandon(), Ok(())) } else { sync.end(wait) };
        report.clock_samples = Some(samples);
        if let Err(error) = ended {
            report
                .faults
                .push(format!("the final synchronisation with the host's clock failed: {error}"));
        }
    }
    if gone.is_none()
        && let Err(why) = until_closed(&mut agent, wait)
    {
        report.faults.push(why);
    }
    report
}

/// Waits until the recording should end; the error is why the agent is gone.
fn until_stopped(agent: &mut TraceCmd, ending: &Ending) -> Result<(), String> {
    let (mut unasked, stop) = (0, ending.begin_signal());
    while !stop.is_set() {
        match agent.receive(Wait::at_most(SILENCE).or(&[stop.fd()])) {
            Ok(None) => {}
            Ok(Some(Message::Close | Message::CloseResponse)) => {
                return Err("its agent stopped by itself".into());
            }
            Ok(Some(_)) if unasked < MAX_UNASKED => unasked += 1,
            Ok(Some(_)) => return Err("it sends too many messages".into()),
            Err(ReadError::Closed) => return Err("its agent or the guest disconnected".into()),
            Err(error) => return Err(format!("the connection to its agent failed: {error}")),
        }
    }
    Ok(())
}

/// Waits until the agent has sent all of its pages.
///
/// trace-cmd's agent (3.1.6) removes its function filters before its tracer, so that for a moment all functions are
/// traced: on two emulated CPUs in an emulated host this took over a minute.
fn until_closed(agent: &mut TraceCmd, wait: Wait<'_>) -> Result<(), String> {
    for _ in 0..MAX_UNASKED {
        match agent.receive(wait) {
            Ok(Some(Message::CloseResponse)) => return Ok(()),
            Ok(Some(_)) if !wait.is_over() => {}
            Ok(Some(_) | None) => break,
            Err(error) => {
                return Err(format!("it did not confirm that it sent everything: {error}"));
            }
        }
    }
    Err("it did not confirm in time that it sent everything; raise --guest-wait".into())
}
