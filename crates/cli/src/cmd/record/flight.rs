//! A flight recording: keeps only the newest events until a session is requested.

use std::collections::VecDeque;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use httpd::Server;
use live::Changes;
use os::confine::Confined;
use printable::with_causes;
use recorder::flight::{
    Ask, Control, DumpJob, DumpReply, Dumped, Flight, FlightEvent, Trigger, TriggerKind, answer_of,
    trigger_now,
};
use recorder::{RecordPlan, SessionFolder, Stop};
use signal_hook::consts::SIGUSR1;
use signal_hook::iterator::Signals;

use super::watch::Watch;
use super::{alerts, why};
use crate::args::record::RecordArgs;
use command::notice::say;

/// Interval of checks whether segments are long enough; large ones report themselves.
const TICK: Duration = Duration::from_millis(50);
/// How long a session continues after a condition held.
const AFTER: Duration = Duration::from_millis(1200);
/// Max waiting dumps.
const MAX_WAITING: usize = 8;

/// Records until a signal or the end of the time.
pub(super) fn record(
    args: &RecordArgs,
    mut plan: RecordPlan,
    session: &SessionFolder,
    stop: &Stop,
) -> anyhow::Result<()> {
    let (request_sender, asks) = mpsc::channel();
    dump_at_signals(request_sender.clone())?;
    plan.flight = args.flight.plan(request_sender.clone());
    plan.in_guests.in_segments = true;
    let most_bytes = plan.flight.as_ref().map(|flight| flight.most_bytes);
    plan.in_guests.quota_bytes = plan.in_guests.quota_bytes.or(most_bytes);
    // Steps that often fail come first: a started recording leaves files in its folder.
    let (watch, alerts) = make_ready(args, &request_sender).inspect_err(|_| session.abandon())?;
    let flight = Flight::begin(&plan, session, stop).inspect_err(|_| session.abandon())?;
    let control = match listen(args, alerts, request_sender) {
        Ok(control) => control,
        Err(error) => {
            let _ = flight.end();
            session.abandon();
            return Err(error);
        }
    };
    super::report(flight.recording());
    super::kvm_events::warn_of_none(&plan, flight.recording().events());
    if let Some(flight_plan) = &plan.flight {
        say(&format!(
            "keeping the newest {}, at most {} MiB; kill -USR1 {} or hyperscope flight dump saves them as a session in {}",
            seconds(flight_plan.window),
            flight_plan.most_bytes >> 20,
            std::process::id(),
            session.path().display()
        ));
    }
    flight.recording().confine_caller()?;
    super::report_unconfined();
    let mut recorder = Recorder { flight, waiting: VecDeque::new(), running: None, watch };
    let ended = recorder.run(&asks, stop, args.time.map(|time| Instant::now() + time));
    drop(control);
    recorder.end().and(ended)
}

/// Triggers of sessions: conditions on live figures, and a socket for alerts, which nothing reads yet.
fn make_ready(
    args: &RecordArgs,
    request_sender: &Sender<FlightEvent>,
) -> anyhow::Result<(Option<Watch>, Option<Server>)> {
    let alerts = args.flight.alerts.map(alerts::open).transpose()?;
    Ok((watch(args, request_sender)?, alerts))
}

/// Receives alerts, and requests of other processes.
fn listen(
    args: &RecordArgs,
    alerts: Option<Server>,
    request_sender: Sender<FlightEvent>,
) -> anyhow::Result<Control> {
    if let Some(server) = alerts {
        alerts::begin(server, args.flight.flight.unwrap_or_default(), request_sender.clone())?;
    }
    Ok(Control::open(request_sender)?)
}

/// Watches live figures, if a trigger needs them.
fn watch(args: &RecordArgs, request_sender: &Sender<FlightEvent>) -> anyhow::Result<Option<Watch>> {
    let conditions = args.flight.when.clone();
    let (has_conditions, rest) = (!conditions.is_empty(), args.flight.flight.unwrap_or_default());
    if !has_conditions && args.flight.alerts.is_none() {
        return Ok(None);
    }
    match Watch::begin(conditions, rest, request_sender.clone()) {
        Ok(watch) => Ok(Some(watch)),
        Err(error) if has_conditions => Err(error),
        // Alerts make sessions even without figures.
        Err(error) => {
            say(&format!("sessions will have no live figures: {error:#}"));
            Ok(None)
        }
    }
}

/// The state of a flight recorder.
struct Recorder {
    flight: Flight,
    /// Requests, each with the earliest time of its dump.
    waiting: VecDeque<(Instant, Ask)>,
    running: Option<Running>,
    /// Live figures, if they are watched.
    watch: Option<Watch>,
}

/// A session in progress of being written.
struct Running {
    came: Receiver<Result<Dumped, String>>,
    reply: Option<Sender<DumpReply>>,
}

impl Recorder {
    fn run(
        &mut self,
        asks: &Receiver<FlightEvent>,
        stop: &Stop,
        end: Option<Instant>,
    ) -> anyhow::Result<()> {
        while !stop.wait(Duration::ZERO) && end.is_none_or(|end| Instant::now() < end) {
            self.flight.tick()?;
            self.take_done(Duration::ZERO);
            self.begin_next(Instant::now());
            match asks.recv_timeout(TICK) {
                Ok(FlightEvent::Dump(ask)) => self.queue(ask),
                Ok(FlightEvent::Notice(text)) => say(&text),
                Ok(FlightEvent::Full) | Err(_) => {}
            }
        }
        Ok(())
    }

    fn queue(&mut self, ask: Ask) {
        if self.waiting.len() < MAX_WAITING {
            // Figures just after a condition's time are useful too, and guests send their events some time
            // later.
            let is_condition = ask.trigger.kind == TriggerKind::Condition;
            let has_guests = self.flight.recording().guests_asked() > 0;
            let after = if is_condition || has_guests { AFTER } else { Duration::ZERO };
            self.waiting.push_back((Instant::now() + after, ask));
        } else {
            answer(ask.reply, &Err("too many sessions wait to be written".to_owned()));
        }
    }

    /// Begins to write the next due session, unless one is being written.
    fn begin_next(&mut self, now: Instant) {
        let is_due = self.waiting.iter().position(|(due, _)| *due <= now);
        let Some(at) = is_due.filter(|_| self.running.is_none()) else { return };
        let Some((_, Ask { trigger, reply })) = self.waiting.remove(at) else { return };
        let changes = self.watch.as_ref().and_then(Watch::changes);
        let dump = self.flight.dump(trigger.clone()).map_err(|error| with_causes(&error));
        let receiver = dump.and_then(|job| begin(job, trigger, changes));
        match receiver {
            Ok(came) => self.running = Some(Running { came, reply }),
            Err(error) => answer(reply, &Err(error)),
        }
    }

    /// Waits up to `timeout` for the session that is being written, and takes its result.
    fn take_done(&mut self, timeout: Duration) {
        let Some(running) = &self.running else { return };
        let came = match running.came.recv_timeout(timeout) {
            Ok(came) => came,
            Err(mpsc::RecvTimeoutError::Timeout) => return,
            Err(mpsc::RecvTimeoutError::Disconnected) => Err("its thread panicked".to_owned()),
        };
        let reply = self.running.take().and_then(|running| running.reply);
        answer(reply, &came);
    }

    /// Writes the sessions that are still requested.
    fn end(mut self) -> anyhow::Result<()> {
        while self.running.is_some() || !self.waiting.is_empty() {
            self.waiting.iter_mut().for_each(|(due, _)| *due = Instant::now());
            self.begin_next(Instant::now());
            self.take_done(Duration::MAX);
        }
        match self.flight.end() {
            faults if faults.is_empty() => Ok(()),
            faults => bail!("{}", faults.join("; ")),
        }
    }
}

/// Starts a thread that writes a session with its cause.
fn begin(
    job: DumpJob,
    trigger: Trigger,
    changes: Option<Changes>,
) -> Result<Receiver<Result<Dumped, String>>, String> {
    let (done, came) = mpsc::channel();
    let started = thread::Builder::new().name("dump".to_owned()).spawn(move || {
        let dumped = job.run(&|_| {}).and_then(|dumped| {
            for (name, bytes) in why::files(&dumped, &trigger, changes.as_ref()) {
                dumped.add(name, &bytes)?;
            }
            Ok(dumped)
        });
        // There is no receiver if the recorder has ended.
        let _ = done.send(dumped.map_err(|error| with_causes(&error)));
    });
    started.map(|_| came).map_err(|error| format!("cannot start a thread: {error}"))
}

/// Reports the result, also to the client that requested the session.
fn answer(reply: Option<Sender<DumpReply>>, came: &Result<Dumped, String>) {
    match came {
        Ok(dumped) => conclude(dumped),
        Err(error) => say(&format!("no session: {error}")),
    }
    if let Some(reply) = reply {
        // The client may have disconnected.
        let _ = reply.send(answer_of(came.as_ref().map_err(String::as_str)));
    }
}

fn conclude(dumped: &Dumped) {
    let recorded = &dumped.recorded;
    for fault in &recorded.faults {
        say(fault);
    }
    let bytes: u64 = recorded.cpus.iter().map(|cpu| cpu.bytes).sum();
    let lost: u64 = recorded.cpus.iter().map(session_json::CpuLosses::events).sum();
    say(&format!(
        "session: {}: {}, {} KiB of pages, {}",
        dumped.path.display(),
        seconds(Duration::from_nanos(recorded.duration_ns)),
        bytes >> 10,
        super::losses(lost, &recorded.faults)
    ));
}

fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}

/// Dumps at SIGUSR1.
fn dump_at_signals(request_sender: Sender<FlightEvent>) -> anyhow::Result<()> {
    let mut signals = Signals::new([SIGUSR1]).context("cannot handle signals")?;
    thread::spawn(move || {
        Confined::WORKER.enter();
        for _ in signals.forever() {
            let trigger = trigger_now(TriggerKind::Signal, None);
            if request_sender.send(FlightEvent::Dump(Ask { trigger, reply: None })).is_err() {
                break;
            }
        }
    });
    Ok(())
}
