//! The guests of a recording: all asked at once before it begins, begun after the host, ended at once
//! before it.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use channel::wire::{EventFilter, Start};
use os::confine::{CapabilitySet, Confined};
use os::folder::Folder;
use os::waits::{Deadline, Signal, Wait};
use parking_lot::{Mutex, MutexGuard};
use tracedat::{Guest, GuestCpu};
use tracefs::{FunctionTracer, Profile};
use vms::{GuestAddress, Vm};

use crate::assemble::Tick;
use crate::ending::{Ending, StartLimit, USUAL_GUEST_WAIT};
use crate::error::{RecordError, Result};
use crate::guest::{self, GuestRecorded, GuestStatus, HostClock, Kept, Parts, TSC};
use crate::samples::Sampling;
use crate::session_number;
use crate::task::{Outcome, Task};
use crate::trace_cmd;
use crate::tracer;

/// What is recorded in guests.
#[derive(Clone, Debug, Default)]
pub struct InGuests {
    /// Events, systems and patterns.
    pub events: Vec<String>,
    /// A choice of events in addition to those; a guest need not have all of them.
    pub profile: Option<Profile>,
    /// Probes, each `FUNCTION [ARGUMENTS]`.
    pub probes: Vec<String>,
    /// Calls of functions, in addition to events.
    pub tracer: Option<FunctionTracer>,
    /// Sample what their CPUs run, too.
    pub sampling: Option<Sampling>,
    /// Filters, each `EVENT FILTER` as the kernel takes it.
    pub filters: Vec<String>,
    /// Keep the newest pages alone: see [`crate::flight`].
    pub in_segments: bool,
    /// Take what the guest's kernel has recorded since it booted, in place of a new recording.
    pub boot: bool,
    /// How long events stay in a guest's kernel at most, also on pages that are not full; unset: a
    /// second.
    pub flush: Option<Duration>,
    /// How long pages of guests stay off the host's disk at most; unset: a second.
    pub disk_flush: Option<Duration>,
    /// Size of each CPU's buffer in a guest's kernel; unset: by the number of CPUs.
    pub buffer_kib: Option<u32>,
    /// Bytes of pages that are kept of each guest at most; unset: [`USUAL_QUOTA_BYTES`].
    pub quota_bytes: Option<u64>,
    /// How long guests are waited for after the end; unset: [`USUAL_GUEST_WAIT`].
    pub wait: Option<Duration>,
    /// How long guests may take to begin to record once they are asked; unset: 30 s, by trace-cmd's
    /// agent 60 s, or as long as they are waited for after the end where that is longer.
    pub begins_within: Option<Duration>,
}

impl InGuests {
    /// How long guests are waited for after the end.
    pub(crate) fn wait(&self) -> Duration {
        self.wait.unwrap_or(USUAL_GUEST_WAIT)
    }

    /// How long guests may take to begin to record, by either agent.
    pub(crate) fn begins_within(&self, by_trace_cmd: bool) -> Duration {
        let most = if by_trace_cmd { GUESTS_BEGIN_BY_TRACE_CMD } else { GUESTS_BEGIN };
        // Who waits for slow guests at the end does so at the start, too.
        self.begins_within.unwrap_or_else(|| most.max(self.wait.unwrap_or_default()))
    }

    /// Bytes of pages that are kept of each guest at most.
    pub(crate) fn quota(&self) -> u64 {
        self.quota_bytes.unwrap_or(USUAL_QUOTA_BYTES)
    }
}

/// What a guest may send, when nobody says otherwise.
pub const USUAL_QUOTA_BYTES: u64 = 16 << 30;
/// How long all guests may take to be connected to and to say who they are: those with an agent of
/// this project's, and those with trace-cmd's, which sets up tracing and relates clocks before.
const CONNECTED: Duration = Duration::from_secs(15);
const CONNECTED_BY_TRACE_CMD: Duration = Duration::from_secs(120);
/// How long all guests may take to begin to record; trace-cmd's agent sends all its texts then.
const GUESTS_BEGIN: Duration = Duration::from_secs(30);
const GUESTS_BEGIN_BY_TRACE_CMD: Duration = Duration::from_secs(60);
/// How long a thread that connects may take to end when it need not connect any more.
const LET_GO: Duration = Duration::from_millis(300);
/// What connecting takes where a guest's sockets and memory are another user's: finding its VM in
/// /proc, opening them, and a port of vsock that only root can have.
pub(crate) const CONNECTS: CapabilitySet = CapabilitySet::DAC_OVERRIDE
    .union(CapabilitySet::DAC_READ_SEARCH)
    .union(CapabilitySet::SYS_PTRACE)
    // To look behind the links of /proc/PID/map_files (proc_map_files_get_link, fs/proc/base.c).
    .union(CapabilitySet::CHECKPOINT_RESTORE)
    .union(CapabilitySet::NET_BIND_SERVICE);
/// How often guests send their status.
const STATUS_MS: u32 = 1000;
/// How long events stay in a guest: so much is lost when it crashes. Not quite a second: only then the
/// first agents send pages that are not full, too.
const FLUSH_MS: u32 = 999;

/// A guest that can be recorded, by either agent.
#[derive(Debug)]
pub(crate) enum Ready {
    Own(Box<guest::Ready>),
    TraceCmd(Box<trace_cmd::Ready>),
}

/// A guest that is recorded.
#[derive(Debug)]
enum Recorded {
    Own(Box<guest::Recorded>),
    TraceCmd(Box<trace_cmd::Recorded>),
}

impl Ready {
    /// The name that it is recorded under.
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Own(ready) => ready.name(),
            Self::TraceCmd(ready) => ready.name(),
        }
    }
}

impl Recorded {
    fn name(&self) -> &str {
        match self {
            Self::Own(guest) => guest.name(),
            Self::TraceCmd(guest) => guest.name(),
        }
    }

    fn status(&self) -> GuestStatus {
        match self {
            Self::Own(guest) => guest.status(),
            Self::TraceCmd(guest) => guest.status(),
        }
    }

    fn is_over(&self, wait: Wait<'_>) -> bool {
        match self {
            Self::Own(guest) => guest.is_over(wait),
            Self::TraceCmd(guest) => guest.is_over(wait),
        }
    }

    fn end(self) -> GuestRecorded {
        match self {
            Self::Own(guest) => guest.end(),
            Self::TraceCmd(guest) => guest.end(),
        }
    }
}

/// Asks all guests who they are, all at once, before anything is recorded. Each gets a number of its
/// own, as the host's recording has `trace_id`: no guest knows another's. Given `stop`, nobody is
/// waited for.
pub(crate) fn connect(
    asked: &[String],
    what: &InGuests,
    host_clock: &str,
    trace_id: u64,
    stop: &Signal,
) -> Result<Vec<Ready>> {
    if asked.is_empty() {
        return Ok(Vec::new());
    }
    let vms = vms::running();
    let mut connecting = Vec::<Connecting>::new();
    for asked in asked {
        let by_trace_cmd = trace_cmd::find(asked, &vms).transpose()?;
        let is_own = by_trace_cmd.is_none();
        if !is_own && what.in_segments {
            return Err(not_in_flight(asked));
        }
        if !is_own && what.sampling.is_some() {
            return Err(RecordError::Usage(format!(
                "{asked}: trace-cmd's agent takes no samples; hyperscope-agent does"
            )));
        }
        let (address, others) = match by_trace_cmd {
            Some(address) => (address, Vec::new()),
            None => GuestAddress::find_all(asked, &vms)?,
        };
        if connecting.iter().any(|one| one.name == address.name) {
            return Err(same_name(&address.name));
        }
        let name = address.name.clone();
        let most = if is_own { CONNECTED } else { CONNECTED_BY_TRACE_CMD };
        let limit = StartLimit::within(most, stop);
        let (of_thread, what, clock) = (limit.clone(), what.clone(), host_clock.to_owned());
        let number = session_number::random()?;
        let task = Task::spawn("connects".into(), Confined::Worker(CONNECTS), move || {
            if is_own {
                guest::Ready::connect_over(address, others, number, &of_thread)
                    .map(|ready| Ready::Own(Box::new(ready)))
            } else {
                trace_cmd::Ready::connect(address, &what, &clock, trace_id, &of_thread)
                    .map(|ready| Ready::TraceCmd(Box::new(ready)))
            }
        });
        let task = task.map_err(|source| RecordError::Guest { name: name.clone(), source })?;
        connecting.push(Connecting { name, limit, task });
    }
    connecting.into_iter().map(Connecting::end).collect()
}

/// A guest that is being connected to, by a thread: names are looked up and connections are made by
/// system calls that know no deadline.
struct Connecting {
    name: String,
    limit: StartLimit,
    task: Task<Result<Ready>>,
}

impl Connecting {
    fn end(self) -> Result<Ready> {
        let Self { name, limit, task } = self;
        // What it has begun it ends by itself, as far as it can.
        if !limit.wait(|wait| task.is_over(wait)) {
            task.is_over(Wait::at_most(LET_GO));
        }
        let why = match task.end(Wait::at_most(Duration::ZERO)) {
            _ if limit.stop.is_given() => return Err(RecordError::Interrupted),
            Outcome::Done(ready) => return ready,
            Outcome::Panicked => "the thread that connects panicked",
            Outcome::StillBusy => "it could not be connected to in time",
        };
        Err(RecordError::Guest { name, source: io::Error::new(io::ErrorKind::TimedOut, why) })
    }
}

/// Two guests would be recorded under one name.
pub(crate) fn same_name(name: &str) -> RecordError {
    RecordError::Usage(format!("two guests have the name {name}; write NAME=CHANNEL"))
}

/// A flight recorder can't keep this guest.
pub(crate) fn not_in_flight(asked: &str) -> RecordError {
    RecordError::Usage(format!(
        "{asked}: a flight recorder keeps guests by hyperscope-agent alone, not by trace-cmd's"
    ))
}

/// Guests that are recorded, among threads that add some.
#[derive(Clone, Debug, Default)]
pub(crate) struct SharedGuests(Arc<Mutex<Guests>>);

impl SharedGuests {
    pub(crate) fn lock(&self) -> MutexGuard<'_, Guests> {
        self.0.lock()
    }
}

/// Guests that are recorded.
#[derive(Debug, Default)]
pub(crate) struct Guests(Vec<Recorded>);

impl Guests {
    /// Takes those of another list in.
    pub(crate) fn add(&mut self, others: Self) {
        self.0.extend(others.0);
    }

    /// Takes one out.
    pub(crate) fn take(&mut self, name: &str) -> Self {
        Self(self.0.extract_if(.., |guest| guest.name() == name).collect())
    }

    /// Why one is not recorded any more; none: it is.
    pub(crate) fn over(&self, name: &str) -> Option<String> {
        self.0.iter().find(|guest| guest.name() == name)?.status().over
    }

    /// Begins the end of those that have one of their own: they are waited for until then.
    pub(crate) fn begin_end(&self, until: Deadline) {
        for guest in &self.0 {
            if let Recorded::Own(guest) = guest {
                guest.begin_end(until);
            }
        }
    }

    /// The channels over which they answered, in the order of their names; none: trace-cmd's agent has a network alone.
    pub(crate) fn channels(&self) -> Vec<Option<String>> {
        let of = |guest: &Recorded| match guest {
            Recorded::Own(guest) => Some(guest.channel().to_string()),
            Recorded::TraceCmd(_) => None,
        };
        self.0.iter().map(of).collect()
    }

    /// The names that they are recorded under.
    pub(crate) fn names(&self) -> Vec<String> {
        self.0.iter().map(|guest| guest.name().to_owned()).collect()
    }

    /// Has guests record, with pages in folders of the session at `to`. The host does by now, so
    /// that its recording holds all of theirs.
    pub(crate) fn begin(
        &mut self,
        ready: Vec<Ready>,
        what: &InGuests,
        host_clock: &str,
        to: &Folder,
        stop: &Signal,
        ending: &Ending,
    ) -> Result<()> {
        let by_trace_cmd = ready.iter().any(|ready| matches!(ready, Ready::TraceCmd(_)));
        let limit = StartLimit::within(what.begins_within(by_trace_cmd), stop);
        for ready in ready {
            self.0.push(match ready {
                Ready::Own(ready) => {
                    let has_tsc = host_clock == TSC && ready.is_x86();
                    let clock = has_tsc.then(|| TSC.to_owned());
                    Recorded::Own(Box::new(ready.begin(what, clock, to, &limit, ending)?))
                }
                Ready::TraceCmd(ready) => {
                    let begun = ready.begin(to, what, &limit, ending)?;
                    Recorded::TraceCmd(Box::new(begun))
                }
            });
        }
        while !self.have_begun()? {
            if stop.wait(Duration::from_millis(5)) {
                return Err(RecordError::Interrupted);
            }
            if limit.until.has_passed() {
                let late = self.0.iter().find(|guest| !guest.status().started);
                let name = late.map(|guest| guest.name().to_owned()).unwrap_or_default();
                let source = io::Error::other(guest::LATE);
                return Err(RecordError::Guest { name, source });
            }
        }
        Ok(())
    }

    fn have_begun(&self) -> Result<bool> {
        let mut all = true;
        for guest in &self.0 {
            let status = guest.status();
            if let Some(why) = status.over {
                let source = io::Error::other(why);
                return Err(RecordError::Guest { name: guest.name().to_owned(), source });
            }
            all &= status.started;
        }
        Ok(all)
    }

    /// Begins new segments of each, and removes those that ended before a time.
    pub(crate) fn roll(&self, keep_from: Instant) {
        for guest in &self.0 {
            if let Recorded::Own(guest) = guest {
                guest.roll(keep_from);
            }
        }
    }

    /// What is kept of each; or its name, and why that can't be had. All are asked at once.
    pub(crate) fn kept(&self, wait: Duration) -> Vec<std::result::Result<(Parts, Kept), String>> {
        let until = Deadline::after(wait);
        let own = self.0.iter().filter_map(|guest| match guest {
            Recorded::Own(guest) => Some((&**guest, guest.ask())),
            // None is begun where segments are kept.
            Recorded::TraceCmd(_) => None,
        });
        let of = |(guest, said): (&guest::Recorded, Receiver<_>)| {
            let said = said.recv_timeout(until.left()).map_err(io::Error::other);
            let kept = said.and_then(|said| guest.kept(said));
            kept.map_err(|error| format!("guest {}: nothing of it is here: {error}", guest.name()))
        };
        own.collect::<Vec<_>>().into_iter().map(of).collect()
    }

    /// How each is going.
    pub(crate) fn status(&self) -> Vec<GuestStatus> {
        self.0.iter().map(Recorded::status).collect()
    }

    /// Whether all of them have said all that they will, waiting for that until then.
    pub(crate) fn are_over(&self, until: Deadline, ending: &Ending) -> bool {
        let wait = [ending.cut().fd()];
        self.0.iter().all(|guest| guest.is_over(Wait::until(until).or(&wait)))
    }

    /// Waits for what they still have to send, once their end has begun: all of them at once.
    pub(crate) fn end(&mut self) -> Vec<GuestRecorded> {
        self.0.drain(..).map(Recorded::end).collect()
    }
}

/// Removes the folders of guests that did not begin.
pub(crate) fn forget(names: &[String], to: &Folder) {
    for name in names {
        let _ = to.remove_all(&guest::pages_folder(name));
        guest::forget_samples(to, name);
    }
}

/// Writes the file of a guest; its folder goes then. One that never said how its pages are to be
/// read has no file, and keeps its folder if there is something in it.
pub(crate) fn write(
    guest: &mut GuestRecorded,
    host: &HostClock,
    to: &Folder,
    tick: Tick<'_>,
) -> Result<()> {
    let pages = guest::pages_folder(&guest.summary().name);
    if guest.summary().sampler.as_ref().is_some_and(|one| one.code.is_none()) {
        guest::forget_code(to, &guest.summary().name);
    }
    if guest.is_readable() {
        guest.write(host, to, tick)?;
        let removed = to.remove_all(&pages);
        return removed.map_err(RecordError::io("remove", &to.path().join(pages)));
    }
    // It stays when it is not empty.
    let _ = to.remove_empty(&pages);
    Ok(())
}

/// A VM as trace-cmd describes it, with the id of its own recording if there is one.
pub(crate) fn option(vm: &Vm, guests: &[GuestRecorded]) -> Guest {
    let is_its = |guest: &&GuestRecorded| guest.vm().is_some_and(|of| of.pid == vm.pid);
    let recorded = guests.iter().find(is_its);
    Guest {
        name: recorded.map_or(&vm.name, |guest| &guest.summary().name).clone(),
        trace_id: recorded.map_or(u64::from(vm.pid), GuestRecorded::trace_id),
        vcpus: vm.vcpus.iter().map(|vcpu| GuestCpu { cpu: vcpu.vcpu, pid: vcpu.tid }).collect(),
    }
}

/// `EVENT FILTER`.
fn filter(text: &str) -> EventFilter {
    let (event, filter) = text.split_once(' ').unwrap_or((text, ""));
    EventFilter { event: event.to_owned(), filter: filter.trim().to_owned() }
}

/// At least one: none is no limit. A second is what it is when nobody says otherwise.
fn milliseconds(time: Duration) -> u32 {
    match u32::try_from(time.as_millis()).unwrap_or(u32::MAX).max(1) {
        1000 => FLUSH_MS,
        other => other,
    }
}

/// What a guest is asked for.
pub(crate) fn start(what: &InGuests, clock: Option<String>) -> Start {
    let optional = what.profile.map(Profile::patterns).unwrap_or_default();
    Start {
        events: what.events.clone(),
        optional: optional.into_iter().map(str::to_owned).collect(),
        filters: what.filters.iter().map(|text| filter(text)).collect(),
        probes: what.probes.clone(),
        clock,
        buffer_kib: what.buffer_kib,
        kallsyms: true,
        status_ms: STATUS_MS,
        flush_ms: what.flush.map_or(FLUSH_MS, milliseconds),
        boot: what.boot,
        tracer: what.tracer.as_ref().map(tracer::for_agent),
    }
}
