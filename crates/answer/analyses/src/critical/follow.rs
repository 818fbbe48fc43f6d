//! Updates histories from events, and walks each wait of the analysed threads as soon as it ends.

use ftrace::eventfmt::EventFormat;
use rustc_hash::FxHashMap;
use timeline::arch::FLAG;
use timeline::cycles::exit_code;
use timeline::trace_events::{EventRequest, Gap, TraceEvent, TraceEventSink, WantsTraceEvents};

use super::cause::Cause;
use super::context::{CpuContext, in_interrupt};
use super::disks::{Disk, Disks, Issued};
use super::events::{Events, Meaning};
use super::history::{Activity, History, Mode, Raised};
use super::layers::Layers;
use super::piece::PieceSink;
use super::walk::{Places, Target, Walk};
use crate::path::{Machines, Thread, in_hardirq};

/// Bits of `prev_state` that give the reason for sleeping; higher bits are flags, such as preempted
/// (`TASK_REPORT_MAX`, include/linux/sched.h).
const SLEEPS: u64 = 0xff;
/// `EXIT_DEAD` and `EXIT_ZOMBIE`: the thread has exited.
const GONE: u64 = 0x30;

/// Max threads in [`Follower::works_for`].
const MAX_WORKERS: usize = 1 << 16;

/// Receives the results for the analysed threads.
pub(super) trait WaitSink {
    /// Begins an interval of a thread: the following pieces belong to it. `waited`: the thread had no CPU until
    /// `to_ns`, or the interval is a requested range.
    fn interval(&mut self, target: Thread, from_ns: u64, to_ns: u64, waited: bool);
}

/// Follows the events of all machines.
pub(super) struct Follower<'e, S> {
    events: &'e Events,
    machines: &'e Machines<'e>,
    layers: &'e Layers,
    history: History,
    contexts: FxHashMap<(u16, u16), CpuContext>,
    disks: Disks,
    /// Wake-ups of threads that were still on their way to sleep.
    early: FxHashMap<Thread, Cause>,
    /// VMs by worker thread: a vCPU's thread woke the worker, so it may raise interrupts for that VM.
    works_for: FxHashMap<Thread, u16>,
    /// Analysed threads, and the end of their last walk; `None` before their first event.
    targets: FxHashMap<Thread, Option<u64>>,
    /// A requested range of a thread's time.
    range: Option<(Thread, u64, u64)>,
    /// By recording: end of the latest loss on any CPU.
    lost_until_ns: Vec<u64>,
    pub(super) sink: S,
}

impl<'e, S: WaitSink + PieceSink> Follower<'e, S> {
    pub(super) fn new(
        events: &'e Events,
        (machines, layers): (&'e Machines<'e>, &'e Layers),
        targets: &[Thread],
        range: Option<(Thread, u64, u64)>,
        sink: S,
    ) -> Self {
        Self {
            events,
            machines,
            layers,
            history: History::new(machines.vcpus.len()),
            contexts: FxHashMap::default(),
            disks: Disks::default(),
            early: FxHashMap::default(),
            works_for: FxHashMap::default(),
            targets: targets.iter().map(|thread| (*thread, None)).collect(),
            range,
            lost_until_ns: vec![0; machines.recordings.len()],
            sink,
        }
    }

    /// Ends all recordings; `spans_ns` has their first and last times.
    pub(super) fn finish(mut self, spans_ns: &[Option<(u64, u64)>]) -> S {
        let mut targets: Vec<Thread> = self.targets.keys().copied().collect();
        targets.sort_unstable();
        for target in targets {
            if let Some(Some((_, end_ns))) = spans_ns.get(usize::from(target.0)) {
                self.walk(target, *end_ns, false);
            }
        }
        self.walk_range(u64::MAX);
        self.sink
    }

    fn activity(&self, thread: Thread) -> Option<Activity> {
        self.history.thread(thread)?.last().map(|(_, activity)| activity)
    }

    fn set(&mut self, thread: Thread, now_ns: u64, activity: Activity) {
        // A thread without events may run on a CPU whose events are missing.
        let is_seen = matches!(activity, Activity::Runs { .. } | Activity::Gone);
        let until_ns = self.lost_until_ns.get(usize::from(thread.0)).copied().unwrap_or(0);
        let activity = if !is_seen && now_ns < until_ns { Activity::Lost } else { activity };
        self.catch_up(thread);
        self.history.set_thread(thread, now_ns, activity);
        if let Some(walked) = self.targets.get_mut(&thread) {
            walked.get_or_insert(now_ns);
        }
    }

    /// Applies losses to a thread. A vCPU's mode is unknown from then on.
    fn catch_up(&mut self, thread: Thread) {
        if let Some(lost_ns) = self.history.catch_up(thread)
            && let Some(vcpu) = self.machines.vcpu_of(thread)
        {
            self.history.set_mode(vcpu.index, lost_ns, Mode::Lost);
        }
    }

    /// Walks the time of an analysed thread up to `now_ns`.
    fn walk(&mut self, target: Thread, now_ns: u64, waited: bool) {
        let walked = self.targets.get_mut(&target).and_then(Option::as_mut);
        let Some(walked_ns) = walked.filter(|walked_ns| **walked_ns <= now_ns) else { return };
        let from_ns = std::mem::replace(walked_ns, now_ns);
        self.sink.interval(target, from_ns, now_ns, waited);
        let Self { history, machines, layers, sink, .. } = self;
        let places = Places { history, machines, layers };
        Walk::run(places, Target::Own(target), from_ns..now_ns, sink);
    }

    /// Walks the requested range after its end.
    fn walk_range(&mut self, now_ns: u64) {
        let Some((thread, from_ns, to_ns)) = self.range.filter(|(.., to_ns)| *to_ns < now_ns)
        else {
            return;
        };
        self.range = None;
        self.sink.interval(thread, from_ns, to_ns, true);
        let Self { history, machines, layers, sink, .. } = self;
        let places = Places { history, machines, layers };
        Walk::run(places, Target::Shown(thread), from_ns..to_ns, sink);
    }

    /// The earliest time that a walk can need.
    fn needed_from_ns(&self, now_ns: u64) -> u64 {
        let walked = self.targets.values().flatten().copied();
        let range = self.range.map(|(_, from_ns, _)| from_ns);
        walked.chain(range).min().unwrap_or(now_ns).min(now_ns)
    }

    fn switch(&mut self, event: &TraceEvent) {
        let (recording, now_ns) = (event.recording, event.stamp_ns);
        self.contexts.entry((recording, event.cpu)).or_default().switched();
        let thread_at = |at| event.thread_value(at).filter(|&thread| thread != 0);
        if let Some(prev) = thread_at(0) {
            let prev = (recording, prev);
            let activity = match event.value(1).unwrap_or(0) & SLEEPS {
                0 => Activity::Preempted,
                state if state & GONE != 0 => Activity::Gone,
                _ => Activity::Sleeps,
            };
            self.set(prev, now_ns, activity);
            self.walk(prev, now_ns, false);
            if let Some(walked) = self.targets.get_mut(&prev).filter(|_| activity == Activity::Gone)
            {
                // The id may be reused by another thread.
                *walked = None;
            }
        }
        let next = event.thread_value(2);
        self.history.set_cpu((recording, event.cpu), now_ns, next);
        if let Some(next) = thread_at(2) {
            let next = (recording, next);
            let early = self.early.remove(&next);
            if let Some(cause) = early.filter(|_| self.activity(next) == Some(Activity::Sleeps)) {
                let log = self.history.thread(next).and_then(|log| log.last());
                self.set(
                    next,
                    log.map_or(now_ns, |(since_ns, _)| since_ns),
                    Activity::Woken(cause),
                );
            }
            self.set(next, now_ns, Activity::Runs { cpu: event.cpu });
            self.walk(next, now_ns, true);
        }
    }

    /// Handles `sched_waking`, and `sched_wakeup`, which repeats it after the wake-up (`is_done`).
    fn wake(&mut self, event: &TraceEvent, is_done: bool) {
        let Some(woken) = event.thread_value(0).filter(|&woken| woken != 0) else { return };
        let woken = (event.recording, woken);
        let cause = self.cause(event);
        match self.activity(woken) {
            Some(Activity::Sleeps) | None | Some(Activity::Lost | Activity::Gone) => {
                let cause = self.early.remove(&woken).filter(|_| is_done).unwrap_or(cause);
                self.set(woken, event.stamp_ns, Activity::Woken(cause));
            }
            Some(Activity::Runs { .. }) if is_done => {
                self.early.remove(&woken);
            }
            Some(Activity::Runs { .. }) if cause != Cause::Thread(woken.1) => {
                self.early.insert(woken, cause);
            }
            Some(_) => {}
        }
        let waker = self.machines.vcpu_of((event.recording, event.thread));
        if let Some(vcpu) = waker.filter(|_| self.works_for.len() < MAX_WORKERS) {
            self.works_for.insert(woken, vcpu.vm);
        }
    }

    fn cause(&self, event: &TraceEvent) -> Cause {
        let context = self.contexts.get(&(event.recording, event.cpu)).copied().unwrap_or_default();
        context.cause(event.cpu, event.thread, event.value(1).unwrap_or(0), event.stamp_ns)
    }

    /// A vCPU's interrupt is raised.
    fn inject(&mut self, event: &TraceEvent) {
        if event.value(1) == Some(0) {
            // The interrupt line is lowered.
            return;
        }
        let by = (event.recording, event.thread);
        let own_vm = self.machines.vcpu_of(by).map(|vcpu| vcpu.vm);
        let vm = own_vm.or_else(|| self.works_for.get(&by).copied());
        let Some(vm) = vm.or_else(|| self.machines.only_vm(event.recording)) else { return };
        let Some(vcpu) = self.machines.vcpu_by_id(vm, event.value(0)) else { return };
        let in_interrupt = event.thread == 0 || in_hardirq(event.value(2).unwrap_or(0));
        let vector = event.value(3).and_then(|vector| u8::try_from(vector).ok());
        self.history.raise(vcpu, event.stamp_ns, Raised { by, in_interrupt, vector });
    }

    /// A vCPU's guest receives an interrupt; reinjections are ignored.
    fn injected(&mut self, event: &TraceEvent) {
        let is_again = [1, 2].iter().any(|at| event.value(*at).unwrap_or(0) != 0);
        let vector = event.value(0).and_then(|vector| u8::try_from(vector).ok());
        let vcpu = self.machines.vcpu_of((event.recording, event.thread));
        if let (Some(vector), Some(vcpu), false) = (vector, vcpu, is_again) {
            self.history.inject(vcpu.index, event.stamp_ns, vector);
        }
    }

    /// A vCPU's thread changes between guest, kernel and VMM.
    fn mode(&mut self, event: &TraceEvent, meaning: Meaning) {
        let Some(vcpu) = self.machines.vcpu_of((event.recording, event.thread)) else { return };
        let was = self.history.mode(vcpu.index).and_then(|log| log.last()).map(|(_, mode)| mode);
        let mode = match (meaning, was) {
            (Meaning::Exit, _) => {
                let isa = u8::try_from(event.value(FLAG).unwrap_or(0)).unwrap_or(0);
                Mode::Kernel { isa, code: exit_code(event) }
            }
            (Meaning::ToUser, Some(Mode::Kernel { isa, code })) => Mode::User { isa, code },
            (Meaning::FromUser, Some(Mode::User { isa, code })) => Mode::Kernel { isa, code },
            (Meaning::Entry, _) => Mode::Guest,
            _ => return,
        };
        self.history.set_mode(vcpu.index, event.stamp_ns, mode);
    }

    /// An event proves that its thread is running.
    fn runs(&mut self, event: &TraceEvent) {
        let thread = (event.recording, event.thread);
        self.catch_up(thread);
        if event.thread != 0 && matches!(self.activity(thread), None | Some(Activity::Lost)) {
            self.history.set_cpu((event.recording, event.cpu), event.stamp_ns, Some(event.thread));
            self.set(thread, event.stamp_ns, Activity::Runs { cpu: event.cpu });
        }
    }

    fn issue(&mut self, event: &TraceEvent) {
        let Some((disk, sector)) = request(event) else { return };
        let flags = event.value(2).unwrap_or(0);
        let by = Some(event.thread).filter(|by| *by != 0 && !in_interrupt(flags));
        self.disks.issue(disk, sector, Issued { at_ns: event.stamp_ns, by });
    }

    fn complete(&mut self, event: &TraceEvent) {
        let Some((disk, sector)) = request(event) else { return };
        self.history.complete(disk, event.stamp_ns, self.disks.complete(disk, sector));
        let context = self.contexts.entry((event.recording, event.cpu)).or_default();
        context.disk(disk.1, event.value(2).unwrap_or(0));
    }

    fn context(&mut self, event: &TraceEvent, meaning: Meaning) {
        let now_ns = event.stamp_ns;
        let number = event.value(0).unwrap_or(0);
        let context = self.contexts.entry((event.recording, event.cpu)).or_default();
        match meaning {
            Meaning::Irq => context.irq(number as u32, now_ns),
            Meaning::Vector(at) => context.vector(at, now_ns),
            Meaning::IrqEnds => context.irq_ends(),
            Meaning::Softirq => context.softirq(number, now_ns),
            Meaning::SoftirqEnds => context.softirq_ends(),
            Meaning::Timer => context.timer(now_ns),
            _ => context.timer_ends(),
        }
    }
}

/// Disk and first sector of a request.
fn request(event: &TraceEvent) -> Option<(Disk, u64)> {
    Some(((event.recording, event.value(0)? as u32), event.value(1)?))
}

impl<S: WaitSink + PieceSink + Send> WantsTraceEvents for Follower<'_, S> {
    fn wanted(&self, at: usize, format: &EventFormat) -> Option<EventRequest> {
        self.events.wanted(at, format.id())
    }
}

impl<S: WaitSink + PieceSink + Send> TraceEventSink for Follower<'_, S> {
    fn event(&mut self, event: &TraceEvent) {
        self.walk_range(event.stamp_ns);
        self.runs(event);
        let Some(meaning) = self.events.meaning(event) else { return };
        match meaning {
            Meaning::Switch => {
                self.switch(event);
                if self.history.is_full() {
                    self.history.tidy(self.needed_from_ns(event.stamp_ns), event.stamp_ns);
                }
            }
            Meaning::Waking => self.wake(event, false),
            Meaning::Wakeup | Meaning::Born => self.wake(event, true),
            Meaning::Inject => self.inject(event),
            Meaning::Injected => self.injected(event),
            Meaning::DiskIssue => self.issue(event),
            Meaning::DiskComplete => self.complete(event),
            Meaning::Exit | Meaning::Entry | Meaning::ToUser | Meaning::FromUser => {
                self.mode(event, meaning);
            }
            _ => self.context(event, meaning),
        }
    }

    fn gap(&mut self, gap: &Gap) {
        self.history.lose((gap.recording, gap.cpu), gap.from_ns);
        if let Some(until_ns) = self.lost_until_ns.get_mut(usize::from(gap.recording)) {
            *until_ns = gap.to_ns.max(*until_ns);
        }
        self.contexts.remove(&(gap.recording, gap.cpu));
        self.disks.lose(gap.recording);
        self.early = FxHashMap::default();
    }
}
