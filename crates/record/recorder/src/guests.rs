//! The guests of a recording: all asked at once before it begins, begun after the host, ended at once
//! before it.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use channel::HostAddress;
use os::confine::{CapabilitySet, Confined};
use os::folder::Folder;
use os::waits::{Deadline, Signal, Wait};
use parking_lot::{Mutex, MutexGuard};
use tracedat::{Guest, GuestCpu};
use vms::{GuestAddress, Vm};

use crate::assemble::Tick;
use crate::ending::{Ending, StartLimit};
use crate::error::{RecordError, Result, same_name};
use crate::guest::{
    self, AgentReport, GuestRecorded, GuestRecording, GuestStatus, HostClock, OpenSegments, Parts,
    ReadyGuest,
};
use crate::hyperscope_agent::{self, LATE};
use crate::in_guests::InGuests;
use crate::session_number;
use crate::task::{Outcome, Task};
use crate::trace_cmd;

/// How long all guests may take to be connected to and to say who they are: those with an agent of
/// this project's, and those with trace-cmd's, which sets up tracing and relates clocks before.
const CONNECTED: Duration = Duration::from_secs(15);
const CONNECTED_BY_TRACE_CMD: Duration = Duration::from_secs(120);
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

/// Where a guest's agent listens, and whose agent that is.
enum Route {
    /// hyperscope-agent: at one of these.
    Hyperscope(GuestAddress, Vec<HostAddress>),
    TraceCmd(GuestAddress),
}

impl Route {
    /// The way to the guest that is called `requested`.
    ///
    /// # Errors
    /// When there is none, or its agent can't do what is to be recorded.
    fn find(requested: &str, vms: &[Vm], what: &InGuests) -> Result<Self> {
        let Some(address) = trace_cmd::find(requested, vms).transpose()? else {
            let (address, others) = GuestAddress::find_all(requested, vms)?;
            return Ok(Self::Hyperscope(address, others));
        };
        if what.in_segments {
            return Err(not_in_flight(requested));
        }
        if what.sampling.is_some() {
            return Err(RecordError::Usage(format!(
                "{requested}: trace-cmd's agent can't sample; use hyperscope-agent"
            )));
        }
        Ok(Self::TraceCmd(address))
    }

    fn name(&self) -> &str {
        match self {
            Self::Hyperscope(address, _) | Self::TraceCmd(address) => &address.name,
        }
    }

    /// How long connecting may take.
    const fn connected(&self) -> Duration {
        match self {
            Self::Hyperscope(..) => CONNECTED,
            Self::TraceCmd(_) => CONNECTED_BY_TRACE_CMD,
        }
    }
}

/// A host that guests are recorded along with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HostTrace<'h> {
    /// Its trace clock.
    pub(crate) clock: &'h str,
    pub(crate) trace_id: u64,
}

/// Contacts all guests in parallel, before anything is recorded. Each gets a number of its own, as
/// the host's recording has `trace_id`: no guest knows another's. Given `stop`, nobody is waited
/// for.
pub(crate) fn connect(
    requested: &[String],
    what: &InGuests,
    host: HostTrace<'_>,
    stop: &Signal,
) -> Result<Vec<Box<dyn ReadyGuest>>> {
    if requested.is_empty() {
        return Ok(Vec::new());
    }
    let vms = vms::running();
    let mut connecting = Vec::<Connecting>::new();
    for requested in requested {
        let route = Route::find(requested, &vms, what)?;
        if connecting.iter().any(|earlier| earlier.name == route.name()) {
            return Err(same_name(route.name()));
        }
        connecting.push(Connecting::begin(route, what, host, stop)?);
    }
    connecting.into_iter().map(Connecting::end).collect()
}

/// A guest that is being connected to, by a thread: names are looked up and connections are made by
/// system calls that know no deadline.
struct Connecting {
    name: String,
    limit: StartLimit,
    task: Task<Result<Box<dyn ReadyGuest>>>,
}

impl Connecting {
    fn begin(route: Route, what: &InGuests, host: HostTrace<'_>, stop: &Signal) -> Result<Self> {
        let name = route.name().to_owned();
        let limit = StartLimit::within(route.connected(), stop);
        let (thread_limit, what, clock) = (limit.clone(), what.clone(), host.clock.to_owned());
        let (number, trace_id) = (session_number::random()?, host.trace_id);
        let task = Task::spawn("connects".into(), Confined::Worker(CONNECTS), move || {
            let ready: Box<dyn ReadyGuest> = match route {
                Route::Hyperscope(address, others) => Box::new(
                    hyperscope_agent::Ready::connect_over(address, others, number, &thread_limit)?,
                ),
                Route::TraceCmd(address) => Box::new(trace_cmd::Ready::connect(
                    address,
                    &what,
                    &clock,
                    trace_id,
                    &thread_limit,
                )?),
            };
            Ok(ready)
        });
        let task = task.map_err(|source| RecordError::Guest { name: name.clone(), source })?;
        Ok(Self { name, limit, task })
    }

    fn end(self) -> Result<Box<dyn ReadyGuest>> {
        let Self { name, limit, task } = self;
        // What it has begun it ends by itself, as far as it can.
        if !limit.wait(|wait| task.is_over(wait)) {
            task.is_over(Wait::at_most(LET_GO));
        }
        let why = match task.end(Wait::at_most(Duration::ZERO)) {
            _ if limit.stop.is_set() => return Err(RecordError::Interrupted),
            Outcome::Done(ready) => return ready,
            Outcome::Panicked => "the thread that connects panicked",
            Outcome::StillBusy => "it did not connect in time",
        };
        Err(RecordError::Guest { name, source: io::Error::new(io::ErrorKind::TimedOut, why) })
    }
}

/// A flight recorder can't keep this guest.
pub(crate) fn not_in_flight(requested: &str) -> RecordError {
    RecordError::Usage(format!(
        "{requested}: a flight recorder needs hyperscope-agent in guests; trace-cmd's agent does not work"
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
pub(crate) struct Guests {
    recorded: Vec<GuestRecording>,
    /// Names of guests that are about to be recorded.
    reserved: Vec<String>,
}

impl Guests {
    /// Keeps a name for a guest that is about to begin: `None` where another one has it.
    pub(crate) fn reserve(&mut self, name: &str) -> Option<String> {
        if self.has(name) {
            return None;
        }
        self.reserved.push(name.to_owned());
        Some(name.to_owned())
    }

    /// Keeps that name, or one with a number where what an earlier guest of that name sent is still there.
    pub(crate) fn reserve_numbered(&mut self, name: &str) -> Option<String> {
        let numbered = (2..).map(|number: u32| format!("{name}-{number}"));
        std::iter::once(name.to_owned()).chain(numbered).find_map(|name| self.reserve(&name))
    }

    /// Takes those of another list in, for which a name was kept.
    pub(crate) fn add_reserved(&mut self, others: Self, name: &str) {
        self.recorded.extend(others.recorded);
        self.release(name);
    }

    /// Gives a name back.
    pub(crate) fn release(&mut self, name: &str) {
        self.reserved.retain(|reserved| reserved != name);
    }

    fn has(&self, name: &str) -> bool {
        let recorded = self.recorded.iter().any(|guest| guest.name() == name);
        recorded || self.reserved.iter().any(|reserved| reserved == name)
    }

    /// Takes one out.
    pub(crate) fn take(&mut self, name: &str) -> Self {
        let recorded = self.recorded.extract_if(.., |guest| guest.name() == name).collect();
        Self { recorded, reserved: Vec::new() }
    }

    /// Why one is not recorded any more; none: it is.
    pub(crate) fn over(&self, name: &str) -> Option<String> {
        self.recorded.iter().find(|guest| guest.name() == name)?.status().over
    }

    /// Begins the end of each: they are waited for until then.
    pub(crate) fn begin_end(&self, until: Deadline) {
        self.recorded.iter().for_each(|guest| guest.begin_end(until));
    }

    /// The channels over which they answered, in the order of their names.
    pub(crate) fn channels(&self) -> Vec<String> {
        self.recorded.iter().map(|guest| guest.identity.channel.clone()).collect()
    }

    /// The names that they are recorded under.
    pub(crate) fn names(&self) -> Vec<String> {
        self.recorded.iter().map(|guest| guest.name().to_owned()).collect()
    }

    /// Has guests record, with pages in folders of the session at `to`. The host does by now, so
    /// that its recording holds all of theirs.
    pub(crate) fn begin(
        &mut self,
        ready: Vec<Box<dyn ReadyGuest>>,
        what: &InGuests,
        host_clock: &str,
        to: &Folder,
        stop: &Signal,
        ending: &Ending,
    ) -> Result<()> {
        let default = ready.iter().map(|guest| guest.begin_timeout()).max().unwrap_or_default();
        let limit = StartLimit::within(what.begins_within(default), stop);
        for guest in ready {
            self.recorded.push(guest.begin(what, host_clock, to, &limit, ending)?);
        }
        while !self.have_begun()? {
            if stop.wait(Duration::from_millis(5)) {
                return Err(RecordError::Interrupted);
            }
            if limit.until.has_passed() {
                let late = self.recorded.iter().find(|guest| !guest.status().started);
                let name = late.map(|guest| guest.name().to_owned()).unwrap_or_default();
                return Err(RecordError::Guest { name, source: io::Error::other(LATE) });
            }
        }
        Ok(())
    }

    fn have_begun(&self) -> Result<bool> {
        let mut all = true;
        for guest in &self.recorded {
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
        self.recorded.iter().for_each(|guest| guest.roll(keep_from));
    }

    /// What is kept of each; or its name, and why that can't be had. All are asked at once.
    pub(crate) fn open_segments(
        &self,
        wait: Duration,
    ) -> Vec<std::result::Result<(Parts, OpenSegments), String>> {
        let until = Deadline::after(wait);
        let snapshots: Vec<_> =
            self.recorded.iter().map(|guest| (guest, guest.snapshot())).collect();
        let segments_of =
            |(guest, snapshot): (&GuestRecording, io::Result<Receiver<AgentReport>>)| {
                let report = snapshot.and_then(|snapshot| {
                    snapshot.recv_timeout(until.remaining()).map_err(io::Error::other)
                });
                let result = report.and_then(|report| guest.open_segments(report));
                result.map_err(|error| {
                    format!("guest {}: nothing was recorded: {error}", guest.name())
                })
            };
        snapshots.into_iter().map(segments_of).collect()
    }

    /// How each is going.
    pub(crate) fn status(&self) -> Vec<GuestStatus> {
        self.recorded.iter().map(GuestRecording::status).collect()
    }

    /// Whether all of them have said all that they will, waiting for that until then.
    pub(crate) fn are_over(&self, until: Deadline, ending: &Ending) -> bool {
        let wait = [ending.cut().fd()];
        self.recorded.iter().all(|guest| guest.is_over(Wait::until(until).or(&wait)))
    }

    /// Waits for what they still have to send, once their end has begun: all of them at once.
    pub(crate) fn end(&mut self) -> Vec<GuestRecorded> {
        self.recorded.drain(..).map(GuestRecording::end).collect()
    }
}

/// Removes the folders of guests that did not begin.
pub(crate) fn forget(names: &[String], to: &Folder) {
    for name in names {
        let _ = to.remove_all(&guest::pages_folder(name));
        hyperscope_agent::forget_samples(to, name);
    }
}

/// Writes the file of a guest; its folder goes then. One that never said how its pages are to be
/// read has no file, and keeps its folder if there is something in it.
pub(crate) fn write(
    guest: &mut GuestRecorded,
    host: &HostClock,
    to: &Folder,
    progress: Tick<'_>,
) -> Result<()> {
    let pages = guest::pages_folder(&guest.summary().name);
    if guest.summary().sampler.as_ref().is_some_and(|sampler| sampler.code.is_none()) {
        hyperscope_agent::forget_code(to, &guest.summary().name);
    }
    if guest.is_readable() {
        guest.write(host, to, progress)?;
        let removed = to.remove_all(&pages);
        return removed.map_err(RecordError::io("remove", &to.path().join(pages)));
    }
    // It stays when it is not empty.
    let _ = to.remove_empty(&pages);
    Ok(())
}

/// A VM as trace-cmd describes it, with the id of its own recording if there is one.
pub(crate) fn option(vm: &Vm, guests: &[GuestRecorded]) -> Guest {
    let recorded =
        guests.iter().find(|guest| guest.vm().is_some_and(|its_vm| its_vm.pid == vm.pid));
    Guest {
        name: recorded.map_or(&vm.name, |guest| &guest.summary().name).clone(),
        trace_id: recorded.map_or(u64::from(vm.pid), GuestRecorded::trace_id),
        vcpus: vm.vcpus.iter().map(|vcpu| GuestCpu { cpu: vcpu.vcpu, pid: vcpu.tid }).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guest_that_comes_back_has_another_name_while_the_first_is_kept() {
        let mut guests = Guests::default();
        let mut reserve = |name: &str| guests.reserve_numbered(name).unwrap();
        assert_eq!(
            ["web", "web", "db", "web", "cache"].map(&mut reserve),
            ["web", "web-2", "db", "web-3", "cache"]
        );
        guests.release("web-2");
        assert_eq!(guests.reserve("web"), None);
        assert_eq!(guests.reserve_numbered("web").unwrap(), "web-2");
    }
}
