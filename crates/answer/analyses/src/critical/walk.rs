//! Walks backwards through a wait, from its end to its start, along the threads that were waited for.
//!
//! A walk has a current time, which only goes back, and a stack of threads. Each stack entry waits for the entry
//! above it, down to the time at which its wait began. Each step assigns the time just before the current time to
//! one part, so parts neither overlap nor have gaps.

use std::ops::Range;

use super::cause::{Cause, InterruptKind};
use super::disks::Issued;
use super::history::{Activity, At, History, Mode};
use super::layers::Layers;
use super::origin::{Origin, origin};
use super::piece::{Counts, CriticalState as S, End, Piece, PieceSink, Spent, Who, Why};
use crate::path::{Machines, Thread};

/// Max length of a chain of waiting threads.
const MAX_DEPTH: usize = 64;

/// Max steps of one walk: more than a recording of some gigabytes needs.
const MAX_STEPS: usize = 1 << 26;

#[derive(Clone, Copy, Debug)]
enum Follow {
    Thread(Thread),
    Interrupt(Interrupt),
}

/// An interrupt that woke a thread.
#[derive(Clone, Copy, Debug)]
pub(super) struct Interrupt {
    pub(super) recording: u16,
    pub(super) cpu: u16,
    pub(super) kind: InterruptKind,
    since_ns: u64,
    /// For a disk's interrupt, the issue of its request.
    issued: Option<Issued>,
    /// The thread that it woke.
    woken: Thread,
}

/// A stack entry: a thread or interrupt that is waited for, and since when.
#[derive(Clone, Copy, Debug)]
struct Frame {
    follow: Follow,
    floor_ns: u64,
}

/// What the walk follows inside a vCPU; decides how time in the guest is attributed.
#[derive(Clone, Copy, Debug)]
enum Inside {
    /// A running thread of the guest.
    Task(Thread),
    /// A thread of the guest that waits for this guest CPU.
    Queue(Thread, u16, S),
    /// An interrupt of the guest.
    Interrupt(Interrupt),
    /// The thread that runs there.
    Anyone,
}

/// Histories and machines that walks use.
#[derive(Clone, Copy)]
pub(super) struct Places<'w, 'm> {
    pub(super) history: &'w History,
    pub(super) machines: &'w Machines<'m>,
    pub(super) layers: &'w Layers,
}

/// The thread of a walk.
#[derive(Clone, Copy)]
pub(super) enum Target {
    /// The time on its CPU counts as running.
    Own(Thread),
    /// All its time is shown, including its own work.
    Shown(Thread),
}

pub(super) struct Walk<'w, 'm, P> {
    pub(super) history: &'w History,
    pub(super) machines: &'w Machines<'m>,
    pub(super) layers: &'w Layers,
    frames: Vec<Frame>,
    /// The thread whose CPU time counts as running; `None` for [`Target::Shown`].
    own_thread: Option<Thread>,
    now_ns: u64,
    sink: &'w mut P,
}

impl<'w, 'm, P: PieceSink> Walk<'w, 'm, P> {
    /// Gives `sink` all pieces of a thread's time in a range.
    pub(super) fn run(
        places: Places<'w, 'm>,
        target: Target,
        Range { start: from_ns, end: to_ns }: Range<u64>,
        sink: &'w mut P,
    ) {
        let Places { history, machines, layers } = places;
        let (thread, own_thread) = match target {
            Target::Own(thread) => (thread, Some(thread)),
            Target::Shown(thread) => (thread, None),
        };
        let frames = vec![Frame { follow: Follow::Thread(thread), floor_ns: from_ns }];
        let mut walk = Self { history, machines, layers, frames, own_thread, now_ns: to_ns, sink };
        for _ in 0..MAX_STEPS {
            let Some(&top) = walk.frames.last().filter(|_| walk.now_ns > from_ns) else {
                return;
            };
            if walk.now_ns <= top.floor_ns {
                walk.frames.pop();
                continue;
            }
            match top.follow {
                Follow::Thread(thread) => walk.thread(thread, top.floor_ns),
                Follow::Interrupt(interrupt) => walk.interrupt(interrupt, top.floor_ns),
            }
        }
        walk.frames.truncate(1);
        walk.give(from_ns, Who::Thread(thread), S::Blocked, Why::End(End::Depth));
    }

    /// Assigns the time from `from_ns` to the current time to a part, and moves the current time to `from_ns`.
    fn give(&mut self, from_ns: u64, who: Who, state: S, why: Why) {
        let is_own = self.is_own();
        let counts = match state {
            S::Running if is_own && self.own_thread.map(Who::Thread) == Some(who) => Counts::Ran,
            S::Unknown if is_own => Counts::Unknown,
            _ => Counts::Waited,
        };
        if from_ns < self.now_ns {
            let spent = Spent { who, state, why };
            self.sink.piece(&Piece { from_ns, to_ns: self.now_ns, counts, spent });
            self.now_ns = from_ns;
        }
    }

    /// Whether this is the analysed thread's own time: no other thread is on the stack.
    fn is_own(&self) -> bool {
        self.frames.len() == 1 && self.own_thread.is_some()
    }

    fn unknown(&mut self, from_ns: u64, thread: Thread) {
        let is_forgotten = self.now_ns <= self.history.forgotten_ns;
        let end = if is_forgotten { End::Forgotten } else { End::NotSeen };
        self.give(from_ns, Who::Thread(thread), S::Unknown, Why::End(end));
    }

    /// State of a thread just before the current time.
    fn activity(&self, thread: Thread) -> Option<At<Activity>> {
        self.history.thread(thread)?.before(self.now_ns)
    }

    fn thread(&mut self, thread: Thread, floor_ns: u64) {
        let Some(at) = self.activity(thread) else { return self.unknown(floor_ns, thread) };
        let from_ns = at.from_ns.max(floor_ns);
        let cpu = match (at.state, at.next) {
            (Activity::Runs { cpu }, _) => Some(cpu),
            (Activity::Preempted | Activity::Woken(_), Some((_, Activity::Runs { cpu }))) => {
                Some(cpu)
            }
            _ => None,
        };
        let guest = cpu.and_then(|cpu| Some((cpu, self.layers.vcpu_of_guest(thread.0, cpu)?)));
        match (at.state, guest) {
            (Activity::Runs { .. }, Some((_, vcpu))) => {
                self.vcpu(vcpu, from_ns, Inside::Task(thread));
            }
            (Activity::Preempted, Some((cpu, vcpu))) => {
                self.vcpu(vcpu, from_ns, Inside::Queue(thread, cpu, S::Preempted));
            }
            (Activity::Woken(_), Some((cpu, vcpu))) => {
                self.vcpu(vcpu, from_ns, Inside::Queue(thread, cpu, S::Waiting));
            }
            (Activity::Runs { .. }, None) => match self.machines.vcpu_of(thread) {
                // The analysed thread's own CPU time belongs to it, whatever runs in its guest.
                Some(vcpu) if !self.is_own() => {
                    self.vcpu_runs(vcpu.index, thread, from_ns, Inside::Anyone);
                }
                _ => self.give(from_ns, Who::Thread(thread), S::Running, Why::Nothing),
            },
            (_, None) | (_, Some(_)) => self.waits(thread, at, from_ns, cpu),
        }
    }

    /// A thread that does not run, from its own machine's view; `cpu` is where it runs next.
    fn waits(&mut self, thread: Thread, at: At<Activity>, from_ns: u64, cpu: Option<u16>) {
        let who = Who::Thread(thread);
        match at.state {
            Activity::Preempted => self.queue(thread, from_ns, cpu, S::Preempted),
            Activity::Woken(_) => self.queue(thread, from_ns, cpu, S::Waiting),
            Activity::Sleeps => self.sleeps(thread, at, from_ns),
            Activity::Runs { .. } => self.give(from_ns, who, S::Running, Why::Nothing),
            Activity::Lost => self.give(from_ns, who, S::Unknown, Why::End(End::Lost)),
            Activity::Gone => self.give(from_ns, who, S::Unknown, Why::End(End::NotSeen)),
        }
    }

    /// A thread waits for a CPU that other threads occupy.
    fn queue(&mut self, thread: Thread, from_ns: u64, cpu: Option<u16>, state: S) {
        let log = cpu.and_then(|cpu| self.history.cpu(thread.0, cpu));
        let had = log.and_then(|log| log.before(self.now_ns));
        let (since_ns, why) = match had {
            Some(At { from_ns, state: Some(other), .. }) if other != thread.1 => {
                (from_ns, Why::Behind(other))
            }
            Some(At { from_ns, .. }) => (from_ns, Why::Nothing),
            None => (0, Why::Nothing),
        };
        self.give(from_ns.max(since_ns), Who::Thread(thread), state, why);
    }

    /// A thread sleeps: the walk continues with the thread that woke it.
    fn sleeps(&mut self, thread: Thread, at: At<Activity>, from_ns: u64) {
        let cause = match at.next {
            Some((woken_ns, Activity::Woken(cause))) if woken_ns <= self.now_ns => {
                Ok((cause, woken_ns))
            }
            Some((_, Activity::Woken(_))) => Err(End::AsleepMeanwhile),
            Some((_, Activity::Lost)) => Err(End::Lost),
            Some(_) => Err(End::NoWake),
            None if self.frames.len() > 1 => Err(End::AsleepMeanwhile),
            None => Err(End::StillAsleep),
        };
        let follow = match cause {
            Err(end) => Err(end),
            Ok(_) if self.frames.len() >= MAX_DEPTH => Err(End::Depth),
            Ok((Cause::Thread(waker), _)) if waker == thread.1 => Err(End::NoWake),
            Ok((Cause::Thread(waker), _)) => Ok(Follow::Thread((thread.0, waker))),
            Ok((Cause::Interrupt { cpu, kind, since_ns }, woken_ns)) => {
                let (recording, woken) = (thread.0, thread);
                let issued = match kind {
                    InterruptKind::Disk(dev) => self.history.completed((recording, dev), woken_ns),
                    _ => None,
                };
                let interrupt = Interrupt { recording, cpu, kind, since_ns, issued, woken };
                Ok(Follow::Interrupt(interrupt))
            }
        };
        match follow {
            Ok(follow) => self.frames.push(Frame { follow, floor_ns: from_ns }),
            Err(end) => self.give(from_ns, Who::Thread(thread), S::Blocked, Why::End(end)),
        }
    }

    /// A guest's CPU, as its vCPU thread on the host.
    fn vcpu(&mut self, vcpu: usize, from_ns: u64, inside: Inside) {
        let Some(layer) = self.layers.vcpu(vcpu) else {
            return self.in_guest(vcpu, from_ns, inside);
        };
        let thread = layer.thread;
        let Some(at) = self.activity(thread) else { return self.unknown(from_ns, thread) };
        let from_ns = at.from_ns.max(from_ns);
        match at.state {
            Activity::Runs { .. } => self.vcpu_runs(vcpu, thread, from_ns, inside),
            _ => {
                let next = match at.next {
                    Some((_, Activity::Runs { cpu })) => Some(cpu),
                    _ => None,
                };
                self.waits(thread, at, from_ns, next);
            }
        }
    }

    /// A vCPU's thread runs, in the guest or for an exit.
    fn vcpu_runs(&mut self, vcpu: usize, thread: Thread, from_ns: u64, inside: Inside) {
        let who = Who::Thread(thread);
        let mode = self.history.mode(vcpu).and_then(|log| log.before(self.now_ns));
        let Some(mode) = mode else { return self.give(from_ns, who, S::Running, Why::Nothing) };
        let from_ns = from_ns.max(mode.from_ns);
        let exit = |isa, code| Why::Exit { recording: thread.0, isa, code };
        match mode.state {
            Mode::Kernel { isa, code } => self.give(from_ns, who, S::ExitKernel, exit(isa, code)),
            Mode::User { isa, code } => self.give(from_ns, who, S::ExitUser, exit(isa, code)),
            Mode::Lost => self.give(from_ns, who, S::Unknown, Why::End(End::Lost)),
            Mode::Guest => self.in_guest(vcpu, from_ns, inside),
        }
    }

    fn in_guest(&mut self, vcpu: usize, from_ns: u64, inside: Inside) {
        match inside {
            Inside::Task(thread) => {
                self.give(from_ns, Who::Thread(thread), S::Running, Why::Nothing);
            }
            Inside::Queue(thread, cpu, state) => self.queue(thread, from_ns, Some(cpu), state),
            Inside::Interrupt(Interrupt { recording, kind, .. }) => {
                self.give(from_ns, Who::Interrupt(recording), S::Interrupt, Why::Interrupt(kind));
            }
            Inside::Anyone => self.anyone_in_guest(vcpu, from_ns),
        }
    }

    /// Continues with the guest's thread on a vCPU, if it is known.
    fn anyone_in_guest(&mut self, vcpu: usize, from_ns: u64) {
        let place = self.layers.vcpu(vcpu).and_then(|layer| layer.guest_cpu);
        let log = place.and_then(|(recording, cpu)| self.history.cpu(recording, cpu));
        let had = log.and_then(|log| log.before(self.now_ns));
        let (Some((recording, cpu)), Some(had)) = (place, had) else {
            return self.give(from_ns, Who::Vcpu(vcpu), S::Guest, Why::Nothing);
        };
        let from_ns = from_ns.max(had.from_ns);
        let Some(task) = had.state else {
            return self.give(from_ns, Who::Vcpu(vcpu), S::Guest, Why::Nothing);
        };
        if task == 0 {
            return self.give(from_ns, Who::Vcpu(vcpu), S::GuestIdle, Why::Nothing);
        }
        let runs = self.activity((recording, task)).map(|at| at.state);
        match self.frames.last_mut().filter(|_| runs == Some(Activity::Runs { cpu })) {
            Some(top) => top.follow = Follow::Thread((recording, task)),
            None => {
                let who = Who::Thread((recording, task));
                self.give(from_ns, who, S::Running, Why::Nothing);
            }
        }
    }

    /// An interrupt: its handler, and then its source.
    fn interrupt(&mut self, interrupt: Interrupt, floor_ns: u64) {
        let Interrupt { recording, cpu, kind, since_ns, .. } = interrupt;
        let vcpu = self.layers.vcpu_of_guest(recording, cpu);
        let handler_ns = since_ns.max(floor_ns);
        if self.now_ns > handler_ns {
            return match vcpu {
                Some(vcpu) => self.vcpu(vcpu, handler_ns, Inside::Interrupt(interrupt)),
                None => {
                    let who = Who::Interrupt(recording);
                    self.give(handler_ns, who, S::Interrupt, Why::Interrupt(kind));
                }
            };
        }
        let places = (self.history, self.layers);
        match vcpu.and_then(|vcpu| origin(places, vcpu, kind, self.now_ns)) {
            Some(from) => self.go_on(from, floor_ns),
            None => self.device(interrupt, floor_ns),
        }
    }

    /// The time before a device's interrupt: the disk works on the request, and the issuing thread before that.
    /// Without a known request, the device accounts for all of it.
    fn device(&mut self, interrupt: Interrupt, floor_ns: u64) {
        let Interrupt { recording, kind, issued, woken, .. } = interrupt;
        let issued = issued.filter(|issued| issued.at_ns > floor_ns);
        let issuer = issued.and_then(|issued| issued.by).filter(|by| *by != woken.1);
        let had_it_ns =
            issued.filter(|_| issuer.is_some()).map_or(floor_ns, |request| request.at_ns);
        match (issuer, self.frames.last_mut()) {
            (Some(by), Some(top)) if self.now_ns <= had_it_ns => {
                top.follow = Follow::Thread((recording, by));
            }
            _ => self.give(had_it_ns, Who::Thread(woken), S::Blocked, Why::Interrupt(kind)),
        }
    }

    /// Continues with the source of an interrupt, after the vCPU's own work until it had the interrupt.
    fn go_on(&mut self, from: Origin, floor_ns: u64) {
        if let Some(top) = self.frames.last_mut() {
            top.follow = Follow::Thread(from.raised_by);
        }
        if from.raised_ns < self.now_ns {
            let follow = Follow::Thread(from.vcpu_thread);
            self.frames.push(Frame { follow, floor_ns: from.raised_ns.max(floor_ns) });
        }
    }
}
