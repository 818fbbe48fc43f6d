//! What a thread waits for: each wait is followed backwards from thread to thread, through guest, host, VMM and
//! vhost. The parts of a wait add up to its time.
//!
//! Another thread wakes a sleeping thread: the sleeper waited for the waker's work. If the waker slept meanwhile,
//! its own waker's work replaces that sleep, and so on. A runnable thread waits for the thread on its CPU. A
//! guest's thread runs only while its vCPU's thread does, so the host's exits and run queues are parts too; an
//! interrupt in a guest leads to the host thread that raised it. Nothing is matched by proximity in time, and time
//! without an explaining event is a part of its own.

mod busiest;
mod cause;
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

/// The subject of an analysis.
#[derive(Clone, Debug)]
pub enum CriticalOf {
    /// All waits of the threads with this name or id.
    Task(CriticalTask),
    /// The time of one request, from its first step to its last.
    Request(ExampleStep, ExampleStep),
}

/// A thread with its waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CriticalThread {
    /// `host`, or the name of the VM.
    pub machine: String,
    /// Thread id on that machine.
    pub tid: u32,
    /// Thread name; the last one if it changed.
    pub thread: String,
    /// Earlier names, each with the time of its first use.
    pub earlier_names: Vec<(u64, String)>,
    /// From its first event to its last: the sum of `ran_ns`, `waited_ns` and `unknown_ns`.
    pub wall_ns: u64,
    /// Time on CPU. A guest's thread only runs while its vCPU is in the guest.
    pub ran_ns: u64,
    /// Time without a CPU of its machine, or while its vCPU was not in the guest.
    pub waited_ns: u64,
    /// Time without knowledge: events were lost, or the host was not recorded.
    pub unknown_ns: u64,
    /// Number of waits for a CPU of its machine.
    pub waits: u64,
    /// Time without a CPU of its machine. The rest of `waited_ns` are exits and waits of its vCPU.
    pub off_cpu_ns: u64,
}

/// A part of the wait time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CriticalPart {
    /// The machine of the thread: `host`, or the name of a VM.
    pub machine: String,
    /// The thread's name; `interrupt` if no thread acted.
    pub thread: String,
    pub on: Actor,
    pub state: CriticalState,
    /// An exit's reason, the thread that had the CPU in a run-queue wait, or why a part is unknown.
    pub reason: Option<String>,
    pub time_ns: u64,
    /// Number of intervals.
    pub count: u64,
    /// The recording itself caused this wait.
    pub is_recorder: bool,
}

/// An interval of a wait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CriticalStep {
    /// Start, on the host's clock.
    pub from_ns: u64,
    pub to_ns: u64,
    /// The part of this interval, including its time.
    pub part: CriticalPart,
    /// Recording and id of the acting thread; for a vCPU in its guest, the host's thread. `None` for an interrupt.
    pub of_thread: Option<(u16, u32)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CriticalWait {
    /// The waiting thread's machine.
    pub machine: String,
    /// The waiting thread's id.
    pub tid: u32,
    /// The waiting thread's recording and id.
    pub of_thread: (u16, u32),
    /// Start of the wait.
    pub from_ns: u64,
    /// End of the wait.
    pub to_ns: u64,
    /// Intervals in the order of time.
    pub steps: Vec<CriticalStep>,
    /// Shorter steps were dropped, so there are gaps between steps.
    pub is_cut: bool,
}

/// Waits of some threads.
#[derive(Debug)]
pub struct Critical {
    /// The threads that were analysed.
    pub threads: Vec<CriticalThread>,
    /// Parts by time, descending. They add up to the total wait time.
    pub parts: Vec<CriticalPart>,
    pub longest: Vec<CriticalWait>,
    /// Whether times are nanoseconds; else they are ticks.
    pub nanoseconds: bool,
    /// By recording: whether it has thread switches and wake-ups.
    pub has_scheduler: Vec<bool>,
    /// By recording.
    pub losses: Vec<Losses>,
}

impl Critical {
    /// Total wait time, which is the sum of all parts.
    #[must_use]
    pub fn waited_ns(&self) -> u64 {
        self.threads.iter().map(|thread| thread.waited_ns).sum()
    }
}

/// No thread has this name or id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoSuchTask {
    /// Existing threads by activity, descending: machine and name.
    pub known: Vec<(String, String)>,
}

/// Analyses the waits of `subject`. `view` has the recordings and the applied alignments of guests; `progress`
/// receives the number of bytes read.
///
/// # Errors
///
/// If no thread matches `subject`.
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

/// Converts sums into rows with names.
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
