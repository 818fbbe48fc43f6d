//! A recording of which the newest alone is kept, until somebody wants it.

use std::collections::VecDeque;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use confine::Confined;
use printable::with_causes;
use recorder::flight::{
    Answer, Ask, Asked, Control, DumpJob, Dumped, Flight, Trigger, TriggerKind,
};
use recorder::{RecordPlan, SessionFolder, Stop};
use report::plural;
use signal_hook::consts::SIGUSR1;
use signal_hook::iterator::Signals;

use crate::args::record::RecordArgs;
use crate::notice::say;

/// How often it is looked whether segments are long enough; those that are large report it.
const TICK: Duration = Duration::from_millis(50);
/// Dumps that wait for their turn.
const MOST_WAITING: usize = 8;

/// Records until a signal, or the time, ends it.
pub(super) fn record(
    args: &RecordArgs,
    mut plan: RecordPlan,
    session: &SessionFolder,
    stop: &Stop,
) -> anyhow::Result<()> {
    let (asked, asks) = mpsc::channel();
    dump_at_signals(asked.clone())?;
    plan.flight = args.flight.plan(asked.clone());
    let flight = Flight::begin(&plan, session, stop).inspect_err(|_| session.abandon())?;
    super::report(flight.recording());
    let control = Control::open(asked)?;
    if let Some(kept) = &plan.flight {
        say(&format!(
            "the newest {} are kept, in {} MiB at most; kill -USR1 {} or hyperscope flight dump makes a session of them in {}",
            seconds(kept.window),
            kept.most_bytes >> 20,
            std::process::id(),
            session.path().display()
        ));
    }
    flight.recording().confine_caller()?;
    super::report_unconfined();
    let mut recorder = Recorder { flight, waiting: VecDeque::new(), running: None };
    let ended = recorder.run(&asks, stop, args.time.map(|time| Instant::now() + time));
    drop(control);
    recorder.end().and(ended)
}

/// What goes on.
struct Recorder {
    flight: Flight,
    waiting: VecDeque<Ask>,
    running: Option<Running>,
}

/// A session that is being written.
struct Running {
    came: Receiver<Result<Dumped, String>>,
    reply: Option<Sender<Answer>>,
}

impl Recorder {
    fn run(
        &mut self,
        asks: &Receiver<Asked>,
        stop: &Stop,
        end: Option<Instant>,
    ) -> anyhow::Result<()> {
        while !stop.wait(Duration::ZERO) && end.is_none_or(|end| Instant::now() < end) {
            self.flight.tick()?;
            self.take_done(Duration::ZERO);
            self.begin_next();
            match asks.recv_timeout(TICK) {
                Ok(Asked::Dump(ask)) => self.queue(ask),
                Ok(Asked::Full) | Err(_) => {}
            }
        }
        Ok(())
    }

    fn queue(&mut self, ask: Ask) {
        if self.waiting.len() < MOST_WAITING {
            self.waiting.push_back(ask);
        } else {
            answer(ask.reply, &Err("as many sessions wait to be written as may".to_owned()));
        }
    }

    /// Begins to write the next session, unless one is being written.
    fn begin_next(&mut self) {
        if self.running.is_some() {
            return;
        }
        let Some(Ask { trigger, reply }) = self.waiting.pop_front() else { return };
        let begun = self.flight.dump(trigger).map_err(|error| with_causes(&error)).and_then(begin);
        match begun {
            Ok(came) => self.running = Some(Running { came, reply }),
            Err(error) => answer(reply, &Err(error)),
        }
    }

    /// Takes what came of a session that was written, waiting for that so long.
    fn take_done(&mut self, most: Duration) {
        let Some(running) = &self.running else { return };
        let came = match running.came.recv_timeout(most) {
            Ok(came) => came,
            Err(mpsc::RecvTimeoutError::Timeout) => return,
            Err(mpsc::RecvTimeoutError::Disconnected) => Err("its thread panicked".to_owned()),
        };
        let reply = self.running.take().and_then(|running| running.reply);
        answer(reply, &came);
    }

    /// Sessions that are asked for by now are written.
    fn end(mut self) -> anyhow::Result<()> {
        while self.running.is_some() || !self.waiting.is_empty() {
            self.begin_next();
            self.take_done(Duration::MAX);
        }
        match self.flight.end() {
            faults if faults.is_empty() => Ok(()),
            faults => bail!("{}", faults.join("; ")),
        }
    }
}

/// Has a thread write a session.
fn begin(job: DumpJob) -> Result<Receiver<Result<Dumped, String>>, String> {
    let (done, came) = mpsc::channel();
    let started = thread::Builder::new().name("dump".to_owned()).spawn(move || {
        let dumped = job.run(&|_| {});
        // Nobody waits for it where the recorder has ended.
        let _ = done.send(dumped.map_err(|error| with_causes(&error)));
    });
    started.map(|_| came).map_err(|error| format!("no thread can be started: {error}"))
}

/// Says what came of it, to whoever asked, too.
fn answer(reply: Option<Sender<Answer>>, came: &Result<Dumped, String>) {
    match came {
        Ok(dumped) => conclude(dumped),
        Err(error) => say(&format!("no session: {error}")),
    }
    if let Some(reply) = reply {
        // Whoever asked may have gone.
        let _ = reply.send(Answer::of(came.as_ref().map_err(String::as_str)));
    }
}

fn conclude(dumped: &Dumped) {
    let recorded = &dumped.recorded;
    for fault in &recorded.faults {
        say(fault);
    }
    let bytes: u64 = recorded.cpus.iter().map(|cpu| cpu.bytes).sum();
    let lost: u64 = recorded.cpus.iter().map(recorder::CpuLosses::events).sum();
    say(&format!(
        "session: {}: {}, {} KiB of pages, {} lost",
        dumped.path.display(),
        seconds(Duration::from_nanos(recorded.duration_ns)),
        bytes >> 10,
        plural(lost, "event")
    ));
}

fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}

/// Dumps at SIGUSR1.
fn dump_at_signals(asked: Sender<Asked>) -> anyhow::Result<()> {
    let mut signals = Signals::new([SIGUSR1]).context("cannot handle signals")?;
    thread::spawn(move || {
        Confined::WORKER.enter();
        for _ in signals.forever() {
            let trigger = Trigger::now(TriggerKind::Signal, None);
            if asked.send(Asked::Dump(Ask { trigger, reply: None })).is_err() {
                break;
            }
        }
    });
    Ok(())
}
