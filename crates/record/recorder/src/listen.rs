//! Records guests as they connect: each agent that connects is recorded into a separate session until it leaves, or
//! until listening ends.
//!
//! Guests are isolated: each has a random session number, a folder, a quota, and threads. A page stream is accepted
//! only from the peer of the control stream.

mod acceptor;
mod held;
mod identity;
mod slots;
#[cfg(test)]
mod starts;

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use channel::{Arrivals, Control, Listener, Peer};
use os::confine::{CapabilitySet, Confined};
use os::folder::Modes;
use os::waits::{Deadline, Signal};
use parking_lot::Mutex;
use session_json::{GuestSummary, Recorded};

use crate::ending::{Ending, StartLimit, stop_signal};
use crate::error::{RecordError, Result};
use crate::guest::{HostClock, Quota};
use crate::guests;
use crate::hyperscope_agent::{ANSWER, BEGIN_TIMEOUT, Ready, Receivers};
use crate::in_guests::InGuests;
use crate::nanoseconds::{nanoseconds, unix_ns};
use crate::session;
use crate::session_folder::{SessionFolder, invoking_user};

use self::held::held_bytes;
use self::identity::Identity;
use self::slots::GuestSlots;
use crate::session_number;

/// Where to listen for guests, and what to record of them.
#[derive(Clone, Debug)]
pub struct ListenPlan {
    /// Addresses that agents connect to.
    pub at: Vec<channel::AgentAddress>,
    /// What to record.
    pub in_guests: InGuests,
    /// Max guests at a time.
    pub most_guests: usize,
    /// Permissions of the sessions.
    pub modes: Modes,
    /// The folder of the sessions.
    pub to: PathBuf,
}

/// Events for the user.
#[derive(Clone, Debug)]
pub enum ListenEvent {
    /// A guest's recording has begun.
    Joined {
        /// The name of its recording.
        name: String,
        /// Its identity: from the kernel, or from its certificate.
        from: String,
        /// Its own name for itself.
        label: String,
        /// Why it does not get the name of a VM on this host that claims to be this guest.
        doubt: Option<String>,
    },
    /// A guest's recording has ended.
    Left {
        /// The session's folder.
        session: PathBuf,
        /// Its result.
        summary: Box<GuestSummary>,
    },
    /// A peer was refused, or could not be recorded.
    Refused {
        /// The peer's address.
        from: String,
        why: String,
    },
}

/// State shared by the threads.
#[derive(Debug)]
struct Shared {
    plan: ListenPlan,
    stop: Signal,
    events: Mutex<Sender<ListenEvent>>,
    /// Receivers of page streams, by required peer and session number.
    takers: Mutex<HashMap<(Peer, u64), Arc<Receivers>>>,
    guests: Mutex<Vec<JoinHandle<()>>>,
    slots: Mutex<GuestSlots>,
}

/// A running listener.
#[derive(Debug)]
pub struct Listening {
    shared: Arc<Shared>,
    acceptors: Vec<JoinHandle<()>>,
    /// Thread that handles accepted connections.
    admits: JoinHandle<()>,
}

/// Interval of checks whether a guest has left.
const LOOK: Duration = Duration::from_millis(200);

impl Listening {
    /// Starts listening. The receiver gets the events.
    ///
    /// # Errors
    /// When an address can't be listened on.
    pub fn begin(plan: ListenPlan) -> Result<(Self, Receiver<ListenEvent>)> {
        let (events, received) = mpsc::channel();
        let mut listeners = Vec::new();
        for address in &plan.at {
            let failed = |source| RecordError::Listen { address: address.to_string(), source };
            let listener = Listener::for_address(address).map_err(failed)?;
            let cannot =
                || failed(std::io::Error::other("listening on this address is not supported"));
            let listener = listener.ok_or_else(cannot)?;
            listeners.push(Arrivals::new(listener, |_| true).map_err(failed)?);
        }
        fs::create_dir_all(&plan.to).map_err(RecordError::io("make", &plan.to))?;
        let most_guests = plan.most_guests;
        let shared = Arc::new(Shared {
            plan,
            stop: stop_signal()?,
            events: Mutex::new(events),
            takers: Mutex::default(),
            guests: Mutex::default(),
            slots: Mutex::new(GuestSlots::new(most_guests)),
        });
        // Limits the connections that wait for admission: others wait in the kernel's queue.
        let (arrived, arriving) = mpsc::sync_channel(1);
        let for_admission = Arc::clone(&shared);
        let needed = Confined::Worker(needed());
        let failed = || RecordError::io("start a thread for", &shared.plan.to);
        let admits = thread::Builder::new().name("admits".into()).spawn(move || {
            needed.enter();
            arriving.into_iter().for_each(|arrival| acceptor::admit(arrival, &for_admission));
        });
        let admits = admits.map_err(failed())?;
        let acceptor = |arrivals| {
            let (stop, arrived) = (shared.stop.clone(), arrived.clone());
            let acceptor = thread::Builder::new().name("arrivals".into()).spawn(move || {
                Confined::Listener.enter();
                acceptor::watch(arrivals, &stop, &arrived);
            });
            acceptor.map_err(failed())
        };
        let acceptors = listeners.into_iter().map(acceptor).collect::<Result<_>>()?;
        Ok((Self { shared, acceptors, admits }, received))
    }

    /// Drops all capabilities of the calling thread: other threads do the work that needs some.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn confine_caller(&self) -> Result<()> {
        let none = CapabilitySet::empty();
        os::confine::keep_only(none)
            .map_err(RecordError::io("drop capabilities of", Path::new("this")))
    }

    /// Number of guests that are being recorded.
    #[must_use]
    pub fn guests(&self) -> usize {
        self.shared.slots.lock().count()
    }

    /// Ends all recordings; their results are sent before this returns.
    pub fn end(self) {
        self.shared.stop.set();
        for acceptor in self.acceptors {
            let _ = acceptor.join();
        }
        // After the last acceptor has ended, no connection arrives any more.
        let _ = self.admits.join();
        let guests = std::mem::take(&mut *self.shared.guests.lock());
        for guest in guests {
            let _ = guest.join();
        }
    }
}

/// Capabilities for recording guests: the folder of their sessions may belong to another user, sessions are given to
/// the user who ran `sudo`, and guests' VMs are other users' processes.
fn needed() -> CapabilitySet {
    let given = invoking_user().map_or(CapabilitySet::empty(), |_| CapabilitySet::CHOWN);
    given | CapabilitySet::DAC_OVERRIDE | CapabilitySet::DAC_READ_SEARCH | CapabilitySet::SYS_PTRACE
}

impl Shared {
    fn publish(&self, event: ListenEvent) {
        // The receiver may be gone.
        let _ = self.events.lock().send(event);
    }

    /// Reports a refused peer, unless it was reported often enough.
    fn refuse(&self, from: &Peer, why: impl Into<String>) {
        if self.slots.lock().reports_refusal(&from.party()) {
            self.publish(ListenEvent::Refused { from: from.to_string(), why: why.into() });
        }
    }

    /// Records a guest whose agent has connected, until it leaves or listening ends.
    fn record(&self, control: Control, peer: Peer) {
        let party = peer.party();
        let slot = self.slots.lock().take(&party);
        if let Err(why) = slot {
            return self.refuse(&peer, why);
        }
        if let Err(error) = self.try_record(control, &peer) {
            let cause = std::error::Error::source(&error);
            let cause = cause.map(|cause| format!(": {cause}")).unwrap_or_default();
            self.refuse(&peer, format!("{error}{cause}"));
        }
        self.slots.lock().give_back(&party);
    }

    /// The remaining quota of a guest that has a place: its identity's quota minus the size of its sessions. Concurrent
    /// guests of one identity share it.
    fn quota(&self, party: &Peer) -> std::result::Result<Quota, String> {
        self.slots.lock().begin_session(party)?;
        let quota = self.plan.in_guests.quota();
        let shared = self.slots.lock().quota(party);
        let remaining = shared.unwrap_or_else(|| {
            let remaining_bytes = quota.saturating_sub(held_bytes(&self.plan.to, party));
            self.slots.lock().share(party, remaining_bytes)
        });
        if remaining.is_used_up() {
            return Err(format!(
                "its sessions in {} fill its quota of {quota} bytes: remove some, or raise --quota",
                self.plan.to.display()
            ));
        }
        Ok(remaining)
    }

    fn try_record(&self, control: Control, peer: &Peer) -> Result<()> {
        let number = session_number::random()?;
        let limit = StartLimit::within(ANSWER, &self.stop);
        let Identity { party, address, doubt } = Identity::for_peer(peer, &vms::running());
        let name = address.name.clone();
        let ready = Ready::joined(address, control, number, &limit)?;
        let quota = self.quota(&party).map_err(RecordError::Usage)?;
        let folder = new_folder(&self.plan.to, &name, self.plan.modes)?;
        let joined = |label| ListenEvent::Joined { name, from: peer.to_string(), label, doubt };
        let ready = ready.within(quota);
        let recorded = held::note(&folder, &party)
            .and_then(|()| self.record_into(&folder, ready, (peer, number), joined));
        // Gives the folder to the user who ran `sudo`, whatever the result.
        let ended = folder.end();
        let summary = Box::new(recorded?);
        ended?;
        self.publish(ListenEvent::Left { session: folder.path().to_owned(), summary });
        Ok(())
    }

    /// Records a guest into a folder until it leaves; sends `joined` once it has begun.
    fn record_into(
        &self,
        folder: &SessionFolder,
        ready: Ready,
        (peer, number): (&Peer, u64),
        joined: impl FnOnce(String) -> ListenEvent,
    ) -> Result<GuestSummary> {
        let (label, what) = (ready.label(), &self.plan.in_guests);
        let (start, begun_unix_ns) = (Instant::now(), unix_ns());
        let key = (peer.clone(), number);
        let (ending, timeout) = (Ending::of_one()?, what.begins_within(BEGIN_TIMEOUT));
        let limit = StartLimit::within(timeout, &self.stop);
        let recorded = ready.begin_with(what, None, folder, &limit, &ending, |receivers| {
            self.takers.lock().insert(key.clone(), Arc::clone(receivers));
        })?;
        self.publish(joined(label));
        while recorded.status().over.is_none() && !self.stop.is_set() {
            thread::sleep(LOOK);
        }
        self.takers.lock().remove(&key);
        let mut guest = recorded.end_by(Deadline::after(what.wait()));
        let no_clock = HostClock { name: String::new(), tsc_conversion: None, trace_id: 0 };
        guests::write(&mut guest, &no_clock, folder, &|_| Ok(()))?;
        let mut summary = guest.summary().clone();
        summary.identity = Some(peer.to_string());
        let duration_ns = nanoseconds(start.elapsed());
        let recorded = Recorded {
            clock: summary.clock.clone().unwrap_or_default(),
            begun_unix_ns,
            duration_ns,
            guests: vec![summary.clone()],
            ..session::by_this_version()
        };
        session::write(&recorded, folder)?;
        Ok(summary)
    }
}

/// A folder for a session of this name, with a number appended if it is taken.
fn new_folder(to: &Path, name: &str, modes: Modes) -> Result<SessionFolder> {
    for at in 1..10_000 {
        let end = if at == 1 { String::new() } else { format!("-{at}") };
        let folder = to.join(format!("{name}{end}.hscope"));
        match SessionFolder::make(&folder, modes) {
            Err(RecordError::Io { source, .. })
                if source.kind() == std::io::ErrorKind::AlreadyExists => {}
            made => return made,
        }
    }
    Err(RecordError::Usage(format!("{} has too many sessions of {name}", to.display())))
}
