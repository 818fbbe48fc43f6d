//! Guests that are not up when their host's recording begins: a thread tries to connect to each until it answers.
//!
//! A recording fetches a guest's boot recording once. A flight recorder runs for weeks: it records guests again when
//! they come back, and keeps the pages of a guest that is gone as long as all others.

use std::collections::VecDeque;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use os::confine::Confined;
use os::waits::{Deadline, Signal, Wait};
use printable::{label, with_causes};
use vms::{GuestAddress, NoGuest};

use crate::ending::{Ending, STOP_MESSAGE, Stop, stop_signal};
use crate::error::{RecordError, Result, same_name};
use crate::flight_plan::{FlightEvent, FlightPlan};
use crate::guest::ReadyGuest;
use crate::guests::{self, CONNECTS, Guests, HostTrace, SharedGuests};
use crate::plan::RecordPlan;
use crate::session_folder::SessionFolder;
use crate::task::{Outcome, Task};
use crate::trace_cmd;

/// Time between two tries: for a guest that is booting, and for one that may come any time.
const BETWEEN_TRIES_AT_BOOT: Duration = Duration::from_millis(500);
const BETWEEN_TRIES: Duration = Duration::from_secs(5);
/// Interval of checks on a recorded guest.
const LOOK: Duration = Duration::from_millis(500);
/// Max time that a flight recorder waits at its start for guests that are up: as long as connecting and beginning may
/// take.
const FIRST_TRIES: Duration = Duration::from_secs(45);
/// Additional time to keep the pages of a guest that is gone, as a fraction: segments end a twelfth later.
const LONGER: u32 = 12;
/// Max ended recordings of a guest that comes and goes all the time.
const MAX_GONE: usize = 8;

/// The pending guests, a thread for each.
#[derive(Debug)]
pub(crate) struct PendingGuests {
    stop: Signal,
    /// The requested name of each, and its thread, which returns why it is not recorded.
    tasks: Vec<(String, Task<Vec<String>>)>,
}

/// What all pending guests share.
#[derive(Clone, Debug)]
pub(crate) struct Surroundings {
    pub(crate) plan: RecordPlan,
    pub(crate) folder: SessionFolder,
    pub(crate) host_clock: String,
    /// Trace id of the host.
    pub(crate) trace_id: u64,
    pub(crate) guests: SharedGuests,
    pub(crate) outside: Stop,
    /// The end of guests that are recorded once.
    pub(crate) ending: Ending,
}

/// Checks that guests can be recorded by a flight recorder; they need not be up.
///
/// # Errors
/// When a text is neither a channel nor a name, or means trace-cmd's agent.
pub(crate) fn check(requested: &[String]) -> Result<()> {
    let vms = vms::running();
    for requested in requested {
        if trace_cmd::find(requested, &vms).is_some() {
            return Err(guests::not_in_flight(requested));
        }
        match GuestAddress::find(requested, &vms) {
            // The name of a VM that is not running.
            Err(NoGuest::Address(_)) if !requested.contains(':') => {}
            found => drop(found?),
        }
    }
    Ok(())
}

impl PendingGuests {
    /// Starts waiting for a plan's guests; a flight recorder first waits for those that are up.
    pub(crate) fn begin(around: &Surroundings) -> Result<Self> {
        let stop = stop_signal()?;
        let failed = RecordError::io("wait for the guests of", around.folder.path());
        let mut tried = Vec::new();
        let start = |requested: &String| {
            let first = Signal::new()?;
            tried.push(first.clone());
            let pending = Pending {
                requested: requested.clone(),
                around: around.clone(),
                stop: stop.clone(),
                tried: first,
            };
            let flight = around.plan.flight.as_ref().map(FlightGuest::new);
            let task =
                Task::spawn("awaits".into(), Confined::Worker(CONNECTS), move || match flight {
                    Some(flight) => pending.run_in(flight),
                    None => pending.run_once(),
                });
            Ok((requested.clone(), task?))
        };
        let tasks = around.plan.guests.iter().map(start).collect::<std::io::Result<_>>();
        let pending = Self { stop, tasks: tasks.map_err(failed)? };
        if around.plan.flight.is_some() {
            let until = Deadline::after(FIRST_TRIES);
            let end = [around.outside.end_signal().fd()];
            for tried in tried {
                tried.wait_within(Wait::until(until).or(&end));
            }
        }
        Ok(pending)
    }

    /// Stops waiting for guests, within the deadline; running recordings continue. Returns why the others are not
    /// recorded, as far as known.
    pub(crate) fn end(self, until: Deadline) -> Vec<String> {
        self.stop.set();
        let mut faults = Vec::new();
        for (requested, task) in self.tasks {
            match task.end(Wait::until(until)) {
                Outcome::Done(why) => faults.extend(why),
                Outcome::Panicked => {
                    faults.push(format!("the thread that waited for {requested} panicked"));
                }
                // A thread that is connecting is not waited for: it ends by its own deadline.
                Outcome::StillBusy => {
                    faults.push(format!("{requested} is not recorded: it has not answered"));
                }
            }
        }
        faults
    }
}

/// A pending guest.
struct Pending {
    requested: String,
    around: Surroundings,
    stop: Signal,
    /// Set after the first try.
    tried: Signal,
}

impl Pending {
    /// Records the guest once it answers; returns why it is not recorded, if so.
    fn run_once(self) -> Vec<String> {
        let mut why = "it was not contacted".to_owned();
        while !self.stop.wait(BETWEEN_TRIES_AT_BOOT) {
            match self.connect() {
                Ok(guest) => return self.begin_once(guest),
                Err(error) => why = with_causes(&error),
            }
        }
        vec![format!("{} is not recorded: {why}", self.requested)]
    }

    fn begin_once(&self, guest: Box<dyn ReadyGuest>) -> Vec<String> {
        let name = guest.name().to_owned();
        if self.around.guests.lock().reserve(&name).is_none() {
            return vec![same_name(&name).to_string()];
        }
        let (began, guests) = self.begin(guest, &self.around.ending);
        // A guest that failed to begin may still have sent something.
        self.around.guests.lock().add_reserved(guests, &name);
        began.err().map(|error| with_causes(&error)).into_iter().collect()
    }

    /// Records the guest whenever it answers.
    fn run_in(self, mut flight: FlightGuest) -> Vec<String> {
        while !self.stop.is_set() {
            let name = self.try_once();
            self.tried.set();
            match name {
                Ok(name) => {
                    flight.say(format!("guest {} is recorded", label(&name)));
                    self.follow(name, &mut flight);
                }
                Err(error) if self.stop.is_set() => drop(error),
                Err(error) => flight.say_why(&self.requested, with_causes(&error)),
            }
            let next = Instant::now() + BETWEEN_TRIES;
            while Instant::now() < next && !self.stop.wait(LOOK) {
                self.forget_old(&mut flight);
            }
        }
        Vec::new()
    }

    /// Starts a recording, if the guest answers; returns its name.
    fn try_once(&self) -> Result<String> {
        let mut guest = self.connect()?;
        let Some(name) = self.around.guests.lock().reserve_numbered(guest.name()) else {
            return Err(same_name(guest.name()));
        };
        guest.rename(name.clone());
        let (began, guests) = self.begin(guest, &self.around.outside.ending()?);
        match began {
            Ok(()) => self.around.guests.lock().add_reserved(guests, &name),
            Err(error) => {
                self.remove(guests, &name);
                return Err(error);
            }
        }
        Ok(name)
    }

    fn connect(&self) -> Result<Box<dyn ReadyGuest>> {
        let Surroundings { plan, host_clock, trace_id, .. } = &self.around;
        let host = HostTrace { clock: host_clock, trace_id: *trace_id };
        let requested = std::slice::from_ref(&self.requested);
        let mut ready = guests::connect(requested, &plan.in_guests, host, &self.stop)?;
        ready.pop().ok_or(RecordError::Interrupted)
    }

    /// Starts a recording. Even if that fails, the guest may have sent something.
    fn begin(&self, guest: Box<dyn ReadyGuest>, ending: &Ending) -> (Result<()>, Guests) {
        let Surroundings { plan, folder, host_clock, .. } = &self.around;
        let mut guests = Guests::default();
        let ready = vec![guest];
        let began = guests.begin(ready, &plan.in_guests, host_clock, folder, &self.stop, ending);
        (began, guests)
    }

    /// Waits until the guest disconnects or the recording ends.
    fn follow(&self, name: String, flight: &mut FlightGuest) {
        while !self.stop.wait(LOOK) {
            self.forget_old(flight);
            if let Some(why) = self.around.guests.lock().over(&name) {
                flight.say(format!(
                    "guest {} disconnected ({}); its data is kept, and the recorder waits for it to return",
                    label(&name),
                    label(&why)
                ));
                flight.gone.push_back((name, Instant::now()));
                return;
            }
        }
    }

    /// Removes ended recordings that need not be kept any more.
    fn forget_old(&self, flight: &mut FlightGuest) {
        while let Some(name) = flight.too_old() {
            let guests = self.around.guests.lock().take(&name);
            self.remove(guests, &name);
        }
    }

    fn remove(&self, mut guests: Guests, name: &str) {
        guests.begin_end(Deadline::after(STOP_MESSAGE));
        drop(guests.end());
        guests::forget(&[name.to_owned()], &self.around.folder);
        self.around.guests.lock().release(name);
    }
}

/// A flight recorder's state of a guest.
struct FlightGuest {
    messages: Sender<FlightEvent>,
    window: Duration,
    /// Its ended recordings that are kept: their names and end times.
    gone: VecDeque<(String, Instant)>,
    /// The last reported reason why it is not recorded.
    last_why: Option<String>,
}

impl FlightGuest {
    fn new(plan: &FlightPlan) -> Self {
        let FlightPlan { asks, window, .. } = plan;
        Self { messages: asks.clone(), window: *window, gone: VecDeque::new(), last_why: None }
    }

    /// Takes out a recording that need not be kept any more.
    fn too_old(&mut self) -> Option<String> {
        let keep = self.window + self.window / LONGER;
        let (_, since) = self.gone.front()?;
        if since.elapsed() <= keep && self.gone.len() <= MAX_GONE {
            return None;
        }
        self.gone.pop_front().map(|(name, _)| name)
    }

    /// Reports why a guest is not recorded, unless it was reported before.
    fn say_why(&mut self, requested: &str, why: String) {
        if self.last_why.as_deref() != Some(&why) {
            self.send(format!("{requested} is not recorded yet; waiting for it: {why}"));
            self.last_why = Some(why);
        }
    }

    fn say(&mut self, text: String) {
        self.last_why = None;
        self.send(text);
    }

    fn send(&self, text: String) {
        // The receiver is gone once the recorder has ended.
        let _ = self.messages.send(FlightEvent::Notice(text));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_vms_that_do_not_run_are_waited_for_and_what_is_no_channel_is_refused() {
        let check = |requested: &str| check(&[requested.to_owned()]);
        check("web").unwrap();
        check("web=vsock:3").unwrap();
        check("vsock:3").unwrap();
        assert!(check("vsock:x").is_err());
        assert!(check("tcp:h:1").unwrap_err().to_string().contains("tcp-plain"));
        let refused = check("trace-cmd:vsock:3").unwrap_err().to_string();
        assert!(refused.contains("needs hyperscope-agent"), "{refused}");
    }
}
