//! What a task really waited for: each of its waits followed backwards over whoever it waited for, through
//! guest, host, VMM and vhost, as an exact partition of its time.
//!
//! A thread that slept was woken by another: what that one did since is what the sleeper waited for; where it
//! slept itself, its own waker's doings take the place of that, and so on. A thread that could have run waited
//! for whoever had its CPU. A guest's thread runs only while its vCPU's thread does, so the host's exits and
//! run queues are part of it; a guest's interrupt leads to the host's thread that raised it. Nothing is
//! matched by being near in time, and what no event explains is a part with that name.

mod busiest;
mod context;
mod disks;
mod events;
mod follow;
mod history;
mod layers;
mod names;
mod origin;
mod piece;
mod sums;
mod target;
mod walk;

use std::collections::BTreeMap;

use sources::Recording;
use timeline::Losses;
use timeline::reading::each_trace_event;
use timeline::trace_events::TraceEventPass;

use self::events::Events;
use self::follow::Follower;
use self::layers::Layers;
use self::names::{Named, Names};
use self::sums::{Sum, Sums, Wait};
use crate::align::GuestAlignment;
use crate::path::{Actor, ExampleStep};
use crate::path::{Machines, Thread};
use crate::view::View;

pub use self::busiest::{Busiest, BusyThread, busiest};
pub use self::piece::CriticalState;
pub use self::target::CriticalTask;

/// Whose time is asked about.
#[derive(Clone, Debug)]
pub enum CriticalOf {
    /// Every wait of the threads of that name or number.
    Task(CriticalTask),
    /// The time of one request: its first step, and its last.
    Request(ExampleStep, ExampleStep),
}

/// A thread whose waits were followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CriticalThread {
    /// Its machine: `host`, or the name of the VM.
    pub machine: String,
    /// Its id there.
    pub tid: u32,
    /// Its name; of several the last.
    pub thread: String,
    /// Names that it had before, each with the moment from which on it is known to have had it.
    pub earlier_names: Vec<(u64, String)>,
    /// From its first event to its last: the sum of the next three.
    pub wall_ns: u64,
    /// It ran. Of a guest's thread: its guest ran, too.
    pub ran_ns: u64,
    /// It waited: without a CPU of its machine, or while its vCPU was not in the guest.
    pub waited_ns: u64,
    /// What it did is not known: events were lost, or the host was not recorded then.
    pub unknown_ns: u64,
    /// How often it had no CPU of its machine.
    pub waits: u64,
    /// How long it had none. The rest of its waiting are exits and waits of its vCPU.
    pub off_cpu_ns: u64,
}

/// What was waited for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CriticalPart {
    /// The machine on which it was: `host`, or the name of a VM.
    pub machine: String,
    /// The thread; `interrupt` for none.
    pub thread: String,
    pub on: Actor,
    /// What it did.
    pub state: CriticalState,
    /// Of an exit: its reason. Of a wait for a CPU: who had it. Of a part that nothing explains: why not.
    pub reason: Option<String>,
    /// How long.
    pub time_ns: u64,
    /// In how many intervals.
    pub count: u64,
    /// The recording itself caused this wait, which only exists while recording.
    pub is_recorder: bool,
}

/// An interval of one wait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CriticalStep {
    /// Its beginning, on the host's clock.
    pub from_ns: u64,
    /// Its end.
    pub to_ns: u64,
    /// What it was spent on; how long is in it, too.
    pub part: CriticalPart,
    /// Recording and id of the thread that this is about, of a vCPU in its guest the host's; none of an interrupt.
    pub of_thread: Option<(u16, u32)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CriticalWait {
    /// The machine of the thread that waited.
    pub machine: String,
    /// Its id.
    pub tid: u32,
    /// The same, behind its recording.
    pub of_thread: (u16, u32),
    /// When it began to wait.
    pub from_ns: u64,
    /// When it went on.
    pub to_ns: u64,
    /// What it waited for, in order.
    pub steps: Vec<CriticalStep>,
    /// There are more steps, shorter ones: between these are gaps.
    pub is_cut: bool,
}

/// What was waited for.
#[derive(Debug)]
pub struct Critical {
    /// The threads that waited.
    pub threads: Vec<CriticalThread>,
    /// What for; the longest first. They add up to the time waited.
    pub parts: Vec<CriticalPart>,
    pub longest: Vec<CriticalWait>,
    /// Whether times are nanoseconds; else they are ticks.
    pub nanoseconds: bool,
    /// By recording: whether it has the switches and the wake-ups of threads.
    pub has_scheduler: Vec<bool>,
    /// By recording, what was lost.
    pub losses: Vec<Losses>,
}

impl Critical {
    /// The time that was waited: what the parts add up to.
    #[must_use]
    pub fn waited_ns(&self) -> u64 {
        self.threads.iter().map(|thread| thread.waited_ns).sum()
    }
}

/// No thread is called so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoSuchTask {
    /// Threads that there are, the busiest first: machine and name.
    pub known: Vec<(String, String)>,
}

/// What was waited for in `recordings`, of which guests have been aligned as `guests` says; `tick` receives
/// the number of bytes read.
///
/// # Errors
/// When there is no such task.
pub fn critical(
    view: View<'_>,
    subject: &CriticalOf,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<Critical, NoSuchTask> {
    let View { recordings, guests } = view;
    let is_guest = |at| guests.iter().any(|guest| guest.guest == at);
    let machines = Machines::new(view);
    let (layers, events) = (Layers::new(&machines, guests), Events::new(recordings, &is_guest));
    let seen = target::SeenThreads::read(recordings);
    let (targets, range) = match subject {
        CriticalOf::Task(task) => {
            let found = seen.find(view, &machines, task);
            let threads = found.map_err(|known| NoSuchTask { known })?;
            (threads, None)
        }
        CriticalOf::Request(first, last) => {
            let thread = (last.place.recording, last.place.thread);
            (Vec::new(), Some((thread, first.ts_ns, last.ts_ns)))
        }
    };
    let places = (&machines, &layers);
    let mut follower =
        Follower::new(&events, places, &targets, range, Sums::with_names(seen.names));
    let pass = each_trace_event(recordings, &mut follower, progress);
    let mut sums = follower.finish(&pass.spans_ns);
    sums.end_interval();
    Ok(answer(&machines, guests, sums, pass))
}

/// The sums under the names that people know.
fn answer(
    machines: &Machines<'_>,
    guests: &[GuestAlignment],
    mut sums: Sums,
    pass: TraceEventPass,
) -> Critical {
    let TraceEventPass { losses, names: threads, event_ids, .. } = pass;
    let histories = sums.take_names();
    let mut names = Names::new(machines, guests, (&threads, &histories));
    let mut parts: BTreeMap<(Named, CriticalState), Sum> = BTreeMap::new();
    for ((spent, since_ns), sum) in &sums.parts {
        let part = parts.entry((names.name_since(spent, *since_ns), spent.state)).or_default();
        part.time_ns += sum.time_ns;
        part.count += sum.count;
    }
    let mut parts: Vec<CriticalPart> =
        parts.into_iter().map(|((named, state), sum)| part(named, state, sum)).collect();
    if sums.others.time_ns > 0 {
        let [machine, thread] = ["host", "other"].map(str::to_owned);
        let named = Named { machine, thread, on: Actor::Host, reason: None, is_recorder: false };
        parts.push(part(named, CriticalState::Running, sums.others));
    }
    parts.sort_by_key(|part| std::cmp::Reverse(part.time_ns));
    Critical {
        threads: own_times(&sums, &names),
        parts,
        longest: sums.longest.iter().map(|wait| named_wait(wait, &mut names)).collect(),
        nanoseconds: machines.recordings.iter().all(Recording::is_nanoseconds),
        has_scheduler: machines
            .recordings
            .iter()
            .zip(&event_ids)
            .map(|(recording, ids)| target::has_scheduler(recording, ids))
            .collect(),
        losses,
    }
}

fn part(named: Named, state: CriticalState, sum: Sum) -> CriticalPart {
    let Named { machine, thread, on, reason, is_recorder } = named;
    let Sum { time_ns, count } = sum;
    CriticalPart { machine, thread, on, state, reason, time_ns, count, is_recorder }
}

fn own_times(sums: &Sums, names: &Names<'_>) -> Vec<CriticalThread> {
    let mut rows: Vec<_> = sums.own_times.iter().collect();
    rows.sort_by_key(|(thread, times)| (std::cmp::Reverse(times.waited_ns), **thread));
    let thread = |(thread, times): (&Thread, &sums::OwnTime)| CriticalThread {
        machine: names.machine(thread.0),
        tid: thread.1,
        thread: names.thread(*thread, None),
        earlier_names: names.earlier(*thread),
        wall_ns: times.ran_ns + times.waited_ns + times.unknown_ns,
        ran_ns: times.ran_ns,
        waited_ns: times.waited_ns,
        unknown_ns: times.unknown_ns,
        waits: times.waits,
        off_cpu_ns: times.off_cpu_ns,
    };
    rows.into_iter().map(thread).collect()
}

fn named_wait(wait: &Wait, names: &mut Names<'_>) -> CriticalWait {
    let steps = wait.pieces.iter().rev().map(|piece| {
        let sum = Sum { time_ns: piece.to_ns - piece.from_ns, count: 1 };
        let part = part(names.at(&piece.spent, piece.from_ns), piece.spent.state, sum);
        let of_thread = names.thread_of(&piece.spent);
        CriticalStep { from_ns: piece.from_ns, to_ns: piece.to_ns, part, of_thread }
    });
    let steps = steps.collect();
    CriticalWait {
        machine: names.machine(wait.target.0),
        tid: wait.target.1,
        of_thread: wait.target,
        from_ns: wait.from_ns,
        to_ns: wait.to_ns,
        steps,
        is_cut: wait.is_cut,
    }
}
