//! Guests that are waited for while their host is recorded: a thread asks each again and again until it answers.
//!
//! Where guests have recorded since they booted, a recording takes each of them once. A flight recorder, which
//! records for weeks, takes them again when they come back, and keeps what one sent that is gone for as long as the rest.

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

/// How long after one try the next is made, of a guest that boots, and of one that may come some day.
const BETWEEN_TRIES_AT_BOOT: Duration = Duration::from_millis(500);
const BETWEEN_TRIES: Duration = Duration::from_secs(5);
/// How often a guest that is recorded is looked at.
const LOOK: Duration = Duration::from_millis(500);
/// How long a flight recorder waits at its begin for guests that are up: as long as connecting and beginning may take.
const FIRST_TRIES: Duration = Duration::from_secs(45);
/// How much longer than everything else what a guest sent is kept that is gone: segments end a twelfth later.
const LONGER: u32 = 12;
/// Of a guest that comes and goes all the time, what this many of its recordings sent is kept.
const MAX_GONE: usize = 8;

/// The guests that are waited for, a thread for each.
#[derive(Debug)]
pub(crate) struct PendingGuests {
    stop: Signal,
    /// The name that each was asked for by, and its thread: why it is not recorded.
    tasks: Vec<(String, Task<Vec<String>>)>,
}

/// What they have in common.
#[derive(Clone, Debug)]
pub(crate) struct Surroundings {
    pub(crate) plan: RecordPlan,
    pub(crate) folder: SessionFolder,
    pub(crate) host_clock: String,
    /// The host's.
    pub(crate) trace_id: u64,
    pub(crate) guests: SharedGuests,
    pub(crate) outside: Stop,
    /// The end of guests that are recorded once.
    pub(crate) ending: Ending,
}

/// Whether guests can be recorded in a flight that are named so; those that are not there yet are waited for.
///
/// # Errors
/// When something is no channel and no name, or is recorded by trace-cmd's agent.
pub(crate) fn check(requested: &[String]) -> Result<()> {
    let vms = vms::running();
    for requested in requested {
        if trace_cmd::find(requested, &vms).is_some() {
            return Err(guests::not_in_flight(requested));
        }
        match GuestAddress::find(requested, &vms) {
            // A name of a VM that is not running.
            Err(NoGuest::Address(_)) if !requested.contains(':') => {}
            found => drop(found?),
        }
    }
    Ok(())
}

impl PendingGuests {
    /// Begins to record the guests of a plan as they come; a flight recorder waits for those that are up.
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

    /// Stops waiting for guests, until then; those that are recorded still are. Why others are not, as far as that
    /// is known by then.
    pub(crate) fn end(self, until: Deadline) -> Vec<String> {
        self.stop.set();
        let mut faults = Vec::new();
        for (requested, task) in self.tasks {
            match task.end(Wait::until(until)) {
                Outcome::Done(why) => faults.extend(why),
                Outcome::Panicked => {
                    faults.push(format!("the thread that waited for {requested} panicked"));
                }
                // One that is being connected to is left alone: its thread ends by its own deadline.
                Outcome::StillBusy => {
                    faults.push(format!("{requested} is not recorded: it has not answered"));
                }
            }
        }
        faults
    }
}

/// One guest.
struct Pending {
    requested: String,
    around: Surroundings,
    stop: Signal,
    /// It was tried for the first time.
    tried: Signal,
}

impl Pending {
    /// Has the guest recorded once it answers; why it is not, if so.
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
        // One that failed to begin has said why, and may have sent something all the same.
        self.around.guests.lock().add_reserved(guests, &name);
        began.err().map(|error| with_causes(&error)).into_iter().collect()
    }

    /// Has the guest recorded whenever it answers.
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

    /// Has it record, if it answers; the name that it has here.
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

    /// Has it record; what came of that may have sent something even where it failed.
    fn begin(&self, guest: Box<dyn ReadyGuest>, ending: &Ending) -> (Result<()>, Guests) {
        let Surroundings { plan, folder, host_clock, .. } = &self.around;
        let mut guests = Guests::default();
        let ready = vec![guest];
        let began = guests.begin(ready, &plan.in_guests, host_clock, folder, &self.stop, ending);
        (began, guests)
    }

    /// Waits until it disconnects or the recording ends.
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

    /// Removes what is not kept any more of recordings that are over.
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

/// What a flight recorder knows of one of its guests.
struct FlightGuest {
    messages: Sender<FlightEvent>,
    window: Duration,
    /// What is kept of its recordings that are over: their names, and since when.
    gone: VecDeque<(String, Instant)>,
    /// Why it is not recorded, as was said last.
    last_why: Option<String>,
}

impl FlightGuest {
    fn new(plan: &FlightPlan) -> Self {
        let FlightPlan { asks, window, .. } = plan;
        Self { messages: asks.clone(), window: *window, gone: VecDeque::new(), last_why: None }
    }

    /// Takes out a recording that is not kept any more.
    fn too_old(&mut self) -> Option<String> {
        let keep = self.window + self.window / LONGER;
        let (_, since) = self.gone.front()?;
        if since.elapsed() <= keep && self.gone.len() <= MAX_GONE {
            return None;
        }
        self.gone.pop_front().map(|(name, _)| name)
    }

    /// Says why a guest is not recorded, once.
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
