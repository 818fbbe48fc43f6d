//! Guests of a flight recorder, which records for weeks: they are recorded as they come up, and again when they come
//! back. What one sent that is gone stays for as long as the rest is kept.

use std::collections::VecDeque;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use os::confine::Confined;
use os::waits::{Deadline, Signal, Wait};
use printable::{label, with_causes};
use vms::{GuestAddress, NoGuest};

use crate::ending::{STOP_MESSAGE, Stop, stop_signal};
use crate::error::{RecordError, Result};
use crate::flight::Asked;
use crate::guests::{self, CONNECTS, Guests, Ready, SharedGuests};
use crate::plan::RecordPlan;
use crate::session_folder::SessionFolder;
use crate::task::{Outcome, Task};
use crate::trace_cmd;

/// How often a guest that is recorded is looked at.
const LOOK: Duration = Duration::from_millis(500);
/// How long after one try the next is made.
const BETWEEN_TRIES: Duration = Duration::from_secs(5);
/// How long the recorder waits at its begin for guests that are up: as long as connecting and beginning may take.
const FIRST_TRIES: Duration = Duration::from_secs(45);
/// How much longer than everything else what a guest sent is kept that is gone: segments end a twelfth later.
const LONGER: u32 = 12;
/// Of a guest that comes and goes all the time, what this many of its recordings sent is kept.
const MOST_GONE: usize = 8;

/// The guests of a flight recorder, a thread for each.
#[derive(Debug)]
pub(crate) struct ComingGuests {
    stop: Signal,
    tasks: Vec<Task<()>>,
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
}

/// One guest.
struct Coming {
    asked: String,
    around: Surroundings,
    stop: Signal,
    /// It was tried for the first time.
    tried: Signal,
    says: Option<Sender<Asked>>,
    window: Duration,
    /// What is kept of its recordings that are over: their names, and since when.
    gone: VecDeque<(String, Instant)>,
    /// Why it is not recorded, as was said last.
    said: Option<String>,
}

/// Whether guests can be recorded that are named so; those that are not there yet are waited for.
///
/// # Errors
/// When something is no channel and no name, or is recorded by trace-cmd's agent.
pub(crate) fn check(asked: &[String]) -> Result<()> {
    let vms = vms::running();
    for asked in asked {
        if trace_cmd::find(asked, &vms).is_some() {
            return Err(guests::not_in_flight(asked));
        }
        match GuestAddress::find(asked, &vms) {
            // A name of a VM that is not running.
            Err(NoGuest::Address(_)) if !asked.contains(':') => {}
            found => drop(found?),
        }
    }
    Ok(())
}

impl ComingGuests {
    /// Begins to record the guests of a plan, and waits for those that are up.
    pub(crate) fn begin(around: &Surroundings) -> Result<Self> {
        let stop = stop_signal()?;
        let failed = RecordError::io("wait for the guests of", around.folder.path());
        let mut tried = Vec::new();
        let start = |asked: &String| {
            let first = Signal::new()?;
            tried.push(first.clone());
            let flight = around.plan.flight.as_ref();
            let coming = Coming {
                asked: asked.clone(),
                around: around.clone(),
                stop: stop.clone(),
                tried: first,
                says: flight.map(|flight| flight.asked.clone()),
                window: flight.map_or(Duration::ZERO, |flight| flight.window),
                gone: VecDeque::new(),
                said: None,
            };
            Task::spawn("coming".into(), Confined::Worker(CONNECTS), move || coming.run())
        };
        let tasks = around.plan.guests.iter().map(start).collect::<std::io::Result<_>>();
        let own = Self { stop, tasks: tasks.map_err(failed)? };
        let until = Deadline::after(FIRST_TRIES);
        for tried in tried {
            let end = [around.outside.end_signal().fd()];
            tried.wait_within(Wait::until(until).or(&end));
        }
        Ok(own)
    }

    /// Stops waiting for guests, until then; those that are recorded still are.
    pub(crate) fn end(self, until: Deadline) {
        self.stop.give();
        for task in self.tasks {
            // One that is being connected to is left alone: its thread ends by its own deadline.
            let _: Outcome<()> = task.end(Wait::until(until));
        }
    }
}

impl Coming {
    fn run(mut self) {
        while !self.stop.is_given() {
            let name = self.try_once();
            self.tried.give();
            match name {
                Ok(name) => {
                    self.say(&format!("guest {} is recorded", label(&name)));
                    self.said = None;
                    self.follow(name);
                }
                Err(error) => self.say_why(&with_causes(&error)),
            }
            let next = Instant::now() + BETWEEN_TRIES;
            while Instant::now() < next && !self.stop.wait(LOOK) {
                self.forget_old();
            }
        }
    }

    /// Has it record, if it answers; the name that it has here.
    fn try_once(&self) -> Result<String> {
        let Surroundings { plan, folder, host_clock, trace_id, guests, outside } = &self.around;
        let (asked, what) = (std::slice::from_ref(&self.asked), &plan.in_guests);
        let mut ready = guests::connect(asked, what, host_clock, *trace_id, &self.stop)?;
        let Some(Ready::Own(one)) = ready.pop() else {
            return Err(guests::not_in_flight(&self.asked));
        };
        let name = free_name(one.name(), &guests.lock().names());
        let one = Ready::Own(Box::new(one.named(name.clone())));
        let mut begun = Guests::default();
        let ending = outside.ending()?;
        match begun.begin(vec![one], what, host_clock, folder, &self.stop, &ending) {
            Ok(()) => {
                guests.lock().add(begun);
                Ok(name)
            }
            Err(error) => {
                self.remove(begun, &name);
                Err(error)
            }
        }
    }

    /// Waits until it is gone, or nobody records any more.
    fn follow(&mut self, name: String) {
        while !self.stop.wait(LOOK) {
            self.forget_old();
            if let Some(why) = self.around.guests.lock().over(&name) {
                self.say(&format!(
                    "guest {} is gone ({}); what it sent is kept as long as the rest, and it is waited for",
                    label(&name),
                    label(&why)
                ));
                self.gone.push_back((name, Instant::now()));
                return;
            }
        }
    }

    /// Removes what is not kept any more of recordings that are over.
    fn forget_old(&mut self) {
        let keep = self.window + self.window / LONGER;
        while let Some((_, since)) = self.gone.front() {
            if since.elapsed() <= keep && self.gone.len() <= MOST_GONE {
                return;
            }
            let Some((name, _)) = self.gone.pop_front() else { return };
            let taken = self.around.guests.lock().take(&name);
            self.remove(taken, &name);
        }
    }

    fn remove(&self, mut taken: Guests, name: &str) {
        taken.begin_end(Deadline::after(STOP_MESSAGE));
        drop(taken.end());
        guests::forget(&[name.to_owned()], &self.around.folder);
    }

    /// Says why it is not recorded, once.
    fn say_why(&mut self, why: &str) {
        if !self.stop.is_given() && self.said.as_deref() != Some(why) {
            self.say(&format!("{} is not recorded yet, and waited for: {why}", self.asked));
            self.said = Some(why.to_owned());
        }
    }

    fn say(&self, text: &str) {
        // Nobody listens once the recorder has ended.
        self.says.iter().for_each(|to| drop(to.send(Asked::Said(text.to_owned()))));
    }
}

/// The name, or one with a number where what an earlier one sent is still there.
fn free_name(name: &str, taken: &[String]) -> String {
    let numbered = (2..).map(|number: u32| format!("{name}-{number}"));
    let mut names = std::iter::once(name.to_owned()).chain(numbered);
    names.find(|name| !taken.contains(name)).unwrap_or_else(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guest_that_comes_back_has_another_name_while_the_first_is_kept() {
        let taken = ["web", "web-2", "db"].map(str::to_owned);
        assert_eq!(free_name("web", &taken), "web-3");
        assert_eq!(free_name("cache", &taken), "cache");
        assert_eq!(free_name("web", &taken[1..]), "web");
    }

    #[test]
    fn names_of_vms_that_do_not_run_are_waited_for_and_what_is_no_channel_is_refused() {
        let check = |asked: &str| check(&[asked.to_owned()]);
        check("web").unwrap();
        check("web=vsock:3").unwrap();
        check("vsock:3").unwrap();
        assert!(check("vsock:x").is_err());
        assert!(check("tcp:h:1").unwrap_err().to_string().contains("tcp-plain"));
        let refused = check("trace-cmd:vsock:3").unwrap_err().to_string();
        assert!(refused.contains("hyperscope-agent alone"), "{refused}");
    }
}
