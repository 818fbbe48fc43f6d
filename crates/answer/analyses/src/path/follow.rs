//! Follows requests from event to event, and the threads that work on them.

use ftrace::eventfmt::EventFormat;
use rustc_hash::{FxHashMap, FxHashSet};
use timeline::Losses;
use timeline::arch::AccessKind;
use timeline::trace_events::{EventRequest, Gap, TraceEvent, TraceEventSink, WantsTraceEvents};

use super::Actor;
use super::chain::{self, Chains, Step};
use super::events::{Event, Events, Meaning};
use super::io::DiskRequests;
use super::labels::{Label, Labels};
use super::machines::{Machines, Thread, VcpuOf};
use super::places::Places;
use super::requests::{RequestPass, RequestSink, Requests};
use super::threads::{ThreadState, Threads};
use super::vcpu_states::VcpuStates;
use super::vcpus::{Reasons, VcpuState};

/// Bits of `common_flags` (`enum trace_flag_type`, include/linux/trace_events.h): the event
/// happened in a hardware interrupt, or in a software interrupt.
const HARDIRQ: u64 = 0x08;
const SOFTIRQ: u64 = 0x10;

/// Whether an event happened in a hardware interrupt.
pub(crate) const fn in_hardirq(flags: u64) -> bool {
    flags & HARDIRQ != 0
}

/// State of a CPU.
#[derive(Debug, Default)]
pub(super) struct CpuState {
    /// The current thread; `None` before the first switch.
    pub(super) running: Option<u32>,
    /// Requests of the interrupt that is being handled.
    pub(super) interrupt: Chains,
}

/// States by recording and CPU, for CPUs with events.
#[derive(Debug, Default)]
pub(super) struct Cpus(Places<(u16, u16), CpuState>);

impl Cpus {
    /// State of an event's CPU.
    #[inline]
    pub(super) fn state_mut(&mut self, event: &TraceEvent) -> &mut CpuState {
        self.0.get_or_insert_with((event.recording, event.cpu), CpuState::default)
    }

    /// The current thread of a CPU; `None` before the first switch.
    pub(super) fn running(&mut self, recording: u16, cpu: u16) -> Option<u32> {
        self.0.get_mut((recording, cpu))?.running
    }
}

/// Follows all requests.
pub(super) struct Follower<'e, S> {
    pub(super) events: &'e Events,
    pub(super) machines: &'e Machines<'e>,
    pub(super) labels: Labels,
    pub(super) names: FixedLabels,
    pub(super) threads: Threads<'e>,
    /// Roles of threads without events of their own.
    roles: FxHashMap<Thread, Actor>,
    pub(super) vcpus: VcpuStates<VcpuState>,
    pub(super) cpus: Cpus,
    /// Worker threads by the access that wakes them.
    pub(super) workers: FxHashMap<Label, Thread>,
    /// VMs by worker thread: the thread was woken for a request of the VM.
    pub(super) works_for: FxHashMap<Thread, u16>,
    pub(super) disk: DiskRequests,
    pub(super) reasons: Vec<Reasons>,
    /// Names by kind, address and direction of an access.
    pub(super) accesses: FxHashMap<(AccessKind, u64, u64), Label>,
    /// Names of steps that include a thread's name.
    pub(super) named: FxHashMap<(Says, Option<Thread>), Label>,
    pub(super) requests: Requests<S>,
}

/// Kinds of steps whose names include a thread's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Says {
    IsWoken,
    Runs,
    /// A thread or an interrupt wakes another thread.
    Wakes(Actor),
}

/// Names of steps without an event.
#[derive(Clone, Copy, Debug)]
pub(super) struct FixedLabels {
    pub(super) wakes: [Label; 7],
    pub(super) runs: [Label; 7],
    pub(super) to_user: Label,
    pub(super) exit: Label,
    pub(super) entry: Label,
}

/// All actors, in the order of [`Actor`].
const ACTORS: [Actor; 7] = [
    Actor::Guest,
    Actor::Vcpu,
    Actor::Iothread,
    Actor::Vhost,
    Actor::Interrupt,
    Actor::Host,
    Actor::Recorder,
];

impl FixedLabels {
    fn new(labels: &mut Labels) -> Self {
        let what = |actor| match actor {
            Actor::Guest => "guest task",
            actor => actor.name(),
        };
        let wakes = ACTORS.map(|actor| labels.intern(&format!("wakes {}", what(actor))));
        let runs = ACTORS.map(|actor| labels.intern(&format!("{} runs", what(actor))));
        Self {
            wakes,
            runs,
            to_user: labels.intern("kvm_userspace_exit"),
            exit: labels.intern("kvm_exit"),
            entry: labels.intern("kvm_entry"),
        }
    }
}

impl<'e, S: RequestSink> Follower<'e, S> {
    pub(super) fn new(events: &'e Events, machines: &'e Machines<'e>, sink: S) -> Self {
        let mut labels = events.labels.clone();
        let names = FixedLabels::new(&mut labels);
        Self {
            events,
            machines,
            labels,
            names,
            threads: Threads::new(machines),
            roles: FxHashMap::default(),
            vcpus: VcpuStates::new(machines.vcpus.len()),
            cpus: Cpus::default(),
            workers: FxHashMap::default(),
            works_for: FxHashMap::default(),
            disk: DiskRequests::default(),
            reasons: machines.recordings.iter().map(Reasons::new).collect(),
            accesses: FxHashMap::default(),
            named: FxHashMap::default(),
            requests: Requests::new(sink),
        }
    }

    /// Results of the pass, with the numbers of unfinished and interrupted requests.
    pub(super) fn finish(self, nanoseconds: bool, losses: Vec<Losses>) -> RequestPass<S> {
        let (sink, unfinished, interrupted) = self.requests.finish();
        RequestPass { sink, unfinished, interrupted, labels: self.labels, nanoseconds, losses }
    }

    /// Role of a thread; a thread without a name at its first event keeps that role.
    pub(super) fn role(&mut self, thread: Thread) -> Actor {
        let machines = self.machines;
        match self.threads.get_mut(thread) {
            Some(state) => state.role(|| machines.role(thread)),
            None => *self.roles.entry(thread).or_insert_with(|| machines.role(thread)),
        }
    }

    /// The vCPU of a thread.
    #[inline]
    pub(super) fn vcpu_of(&mut self, thread: Thread) -> Option<VcpuOf> {
        self.threads.vcpu_of(thread)
    }

    #[inline]
    pub(super) fn thread(&mut self, thread: Thread) -> &mut ThreadState {
        self.threads.get_or_insert(thread)
    }

    /// Whether an event happened in a hardware interrupt: then the current thread is not its cause.
    pub(super) const fn in_hardirq(flags: u64) -> bool {
        in_hardirq(flags)
    }

    /// Whether an event happened in a hardware or soft interrupt.
    pub(super) const fn in_interrupt(flags: u64) -> bool {
        flags & (HARDIRQ | SOFTIRQ) != 0
    }

    /// Begins a request at an event that the user selected.
    fn begin_requested(&mut self, event: &Event, trace_event: &TraceEvent) {
        let thread = (trace_event.recording, trace_event.thread);
        let on = self.role(thread);
        let vm = self.vcpu_of(thread).map(|vcpu| vcpu.vm);
        let vm = vm.or_else(|| self.vm_of_guest(trace_event));
        let chain = chain::begin(vm, None, Step::from_event(event.label, on, trace_event));
        let chains = Chains::single(chain);
        self.requests.began(&chains);
        self.thread(thread).set_current(chains);
    }

    /// Ends requests at an event that the user selected.
    fn end_asked(&mut self, event: &Event, trace_event: &TraceEvent) {
        let thread = (trace_event.recording, trace_event.thread);
        let on = self.role(thread);
        let busy_with = self.thread(thread).take_up().clone();
        let ended = busy_with.stepped(Step::from_event(event.label, on, trace_event));
        ended.iter().for_each(|chain| self.requests.add(chain, &self.labels));
    }

    /// Number of requests in progress.
    fn in_flight(&self) -> u64 {
        let threads = self.threads.iter().flat_map(ThreadState::all);
        let vcpus = self.vcpus.iter().flat_map(|vcpu| [&vcpu.injected, &vcpu.returned]);
        let all = threads.chain(vcpus).chain(self.disk.iter());
        let roots = all.flat_map(Chains::iter).map(|chain| &chain.root);
        let open = roots.filter(|root| root.is_under_way()).map(std::sync::Arc::as_ptr);
        open.collect::<FxHashSet<_>>().len() as u64
    }

    /// A thread drops these requests. A request that was handed on before and that no other thread has is
    /// finished: it needed no response.
    #[inline]
    pub(super) fn let_go(&mut self, chains: Chains) {
        if !chains.is_empty() {
            self.let_all_go(chains);
        }
    }

    fn let_all_go(&mut self, chains: Chains) {
        for chain in chains {
            if !self.events.asked_end && chain.root.is_under_way() {
                self.requests.add_last(&chain, &self.labels);
            }
        }
    }

    /// These requests are back in their guest, where they end by default.
    pub(super) fn finish_all(&mut self, chains: &Chains) {
        if !self.events.asked_end {
            chains.iter().for_each(|chain| self.requests.add(chain, &self.labels));
        }
    }
}

impl<S: RequestSink> WantsTraceEvents for Follower<'_, S> {
    fn wanted(&self, at: usize, format: &EventFormat) -> Option<EventRequest> {
        self.events.wanted(at, format.id())
    }
}

impl<S: RequestSink> TraceEventSink for Follower<'_, S> {
    /// Uses the thread names that the kernel saved.
    const WITH_NAMES: bool = false;

    fn event(&mut self, trace_event: &TraceEvent) {
        let events = self.events;
        let Some(event) = events.by_tag(trace_event.tag) else { return };
        match event.meaning {
            Meaning::Switch => self.switch(trace_event),
            Meaning::Waking => self.waking(trace_event),
            Meaning::Wakeup => self.wakeup(trace_event),
            Meaning::Exit => self.exit(trace_event),
            Meaning::Entry => self.entry(trace_event),
            Meaning::ToUser => self.user_exit(trace_event),
            Meaning::Access(kind) => self.access(kind, trace_event),
            Meaning::Inject => self.inject(event, trace_event),
            Meaning::BlockIssue => self.block_issue(event, trace_event),
            Meaning::BlockComplete => self.block_complete(event, trace_event),
            Meaning::GuestInterrupt => self.guest_interrupt(event, trace_event),
            Meaning::Work => self.work(event, trace_event),
        }
        if event.starts {
            self.begin_requested(event, trace_event);
        }
        if event.ends {
            self.end_asked(event, trace_event);
        }
    }

    fn gap(&mut self, _: &Gap) {
        // A lost event may have been the end or the next step of any request in progress.
        self.requests.interrupt(self.in_flight());
        self.threads.clear();
        self.vcpus.clear();
        self.cpus = Cpus::default();
        self.disk.clear();
        self.requests.interrupt(self.in_flight());
    }
}
