//! The guests of a recording. All are asked in parallel before the host's recording begins. They begin after it, and
//! end before it.

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

/// Max time for all guests to connect and identify themselves: for agents of this project, and for trace-cmd's, which
/// also sets up tracing and synchronises clocks first.
const CONNECTED: Duration = Duration::from_secs(15);
const CONNECTED_BY_TRACE_CMD: Duration = Duration::from_secs(120);
/// Max time for a connecting thread to end after a cancellation.
const LET_GO: Duration = Duration::from_millis(300);
/// Capabilities for connecting if a guest's sockets and memory belong to another user: to find its VM in /proc, to open
/// them, and to bind a privileged vsock port.
pub(crate) const CONNECTS: CapabilitySet = CapabilitySet::DAC_OVERRIDE
    .union(CapabilitySet::DAC_READ_SEARCH)
    .union(CapabilitySet::SYS_PTRACE)
    // For reading the links of /proc/PID/map_files (proc_map_files_get_link, fs/proc/base.c).
    .union(CapabilitySet::CHECKPOINT_RESTORE)
    .union(CapabilitySet::NET_BIND_SERVICE);

/// The type and address of a guest's agent.
enum Route {
    /// hyperscope-agent: at one of these.
    Hyperscope(GuestAddress, Vec<HostAddress>),
    TraceCmd(GuestAddress),
}

impl Route {
    /// The route to the requested guest.
    ///
    /// # Errors
    /// When there is none, or its agent does not support the request.
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

    /// Max time to connect.
    const fn connected(&self) -> Duration {
        match self {
            Self::Hyperscope(..) => CONNECTED,
            Self::TraceCmd(_) => CONNECTED_BY_TRACE_CMD,
        }
    }
}

/// The host's recording that the guests belong to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HostTrace<'h> {
    /// Its trace clock.
    pub(crate) clock: &'h str,
    pub(crate) trace_id: u64,
}

/// Connects to all guests in parallel, before the recording begins. Each gets a random session number, unlike the
/// host's `trace_id`, so that no guest knows another's. Once `stop` is set, nobody is waited for.
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

/// A guest that a thread connects to: looking up names and connecting use system calls without a timeout.
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
        // The thread undoes what it has begun, as far as it can.
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

/// Recorded guests, shared with threads that add more.
#[derive(Clone, Debug, Default)]
pub(crate) struct SharedGuests(Arc<Mutex<Guests>>);

impl SharedGuests {
    pub(crate) fn lock(&self) -> MutexGuard<'_, Guests> {
        self.0.lock()
    }
}

/// Recorded guests.
#[derive(Debug, Default)]
pub(crate) struct Guests {
    recorded: Vec<GuestRecording>,
    /// Names of guests that are about to be recorded.
    reserved: Vec<String>,
}

impl Guests {
    /// Reserves a name for a new guest; `None` if it is taken.
    pub(crate) fn reserve(&mut self, name: &str) -> Option<String> {
        if self.has(name) {
            return None;
        }
        self.reserved.push(name.to_owned());
        Some(name.to_owned())
    }

    /// Reserves the name, or one with a number if an earlier guest of this name has left pages.
    pub(crate) fn reserve_numbered(&mut self, name: &str) -> Option<String> {
        let numbered = (2..).map(|number: u32| format!("{name}-{number}"));
        std::iter::once(name.to_owned()).chain(numbered).find_map(|name| self.reserve(&name))
    }

    /// Adds guests of another list, whose name was reserved.
    pub(crate) fn add_reserved(&mut self, others: Self, name: &str) {
        self.recorded.extend(others.recorded);
        self.release(name);
    }

    /// Releases a reserved name.
    pub(crate) fn release(&mut self, name: &str) {
        self.reserved.retain(|reserved| reserved != name);
    }

    fn has(&self, name: &str) -> bool {
        let recorded = self.recorded.iter().any(|guest| guest.name() == name);
        recorded || self.reserved.iter().any(|reserved| reserved == name)
    }

    /// Removes and returns the guests of this name.
    pub(crate) fn take(&mut self, name: &str) -> Self {
        let recorded = self.recorded.extract_if(.., |guest| guest.name() == name).collect();
        Self { recorded, reserved: Vec::new() }
    }

    /// Why a guest's recording has ended; `None` if it runs.
    pub(crate) fn over(&self, name: &str) -> Option<String> {
        self.recorded.iter().find(|guest| guest.name() == name)?.status().over
    }

    /// Asks all guests to stop, with a deadline.
    pub(crate) fn begin_end(&self, until: Deadline) {
        self.recorded.iter().for_each(|guest| guest.begin_end(until));
    }

    /// Channels of the guests, in the order of [`Guests::names`].
    pub(crate) fn channels(&self) -> Vec<String> {
        self.recorded.iter().map(|guest| guest.identity.channel.clone()).collect()
    }

    /// Names of the guests' recordings.
    pub(crate) fn names(&self) -> Vec<String> {
        self.recorded.iter().map(|guest| guest.name().to_owned()).collect()
    }

    /// Starts the guests' recordings, with pages in folders of the session at `to`. The host records already, so that
    /// its recording covers theirs.
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

    /// Starts new segments of all guests, and removes those that ended before `keep_from`.
    pub(crate) fn roll(&self, keep_from: Instant) {
        self.recorded.iter().for_each(|guest| guest.roll(keep_from));
    }

    /// The kept pages of each guest, or its name and the error. Asks all guests in parallel.
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

    /// Progress of each guest.
    pub(crate) fn status(&self) -> Vec<GuestStatus> {
        self.recorded.iter().map(GuestRecording::status).collect()
    }

    /// Whether all guests' last reports have arrived, after a wait until the deadline.
    pub(crate) fn are_over(&self, until: Deadline, ending: &Ending) -> bool {
        let wait = [ending.cut().fd()];
        self.recorded.iter().all(|guest| guest.is_over(Wait::until(until).or(&wait)))
    }

    /// Waits for the rest of all guests' pages in parallel, after the end has begun.
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

/// Writes a guest's file, and removes its folder of pages. A guest that never sent texts has no file; its folder stays
/// unless it is empty.
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
    // Fails if the folder is not empty.
    let _ = to.remove_empty(&pages);
    Ok(())
}

/// The description of a VM in trace-cmd's format, with the trace id of its recording if there is one.
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
