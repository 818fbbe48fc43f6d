//! Time in VMMs: exits that they handle in user space, and their threads that are not vCPUs.
//!
//! ```text
//!  kvm_userspace_exit  sys_exit     sys_enter  sys_exit   sys_enter(KVM_RUN)  kvm_fpu load
//!  ────────┬──────────────┬────────────┬──────────┬──────────────┬─────────────┬────
//!          │    return    │   device   │   call   │    device    │    back     │
//! ```
//! The vCPU state machine, which also computes `user_ns` of `exits`, determines when the VMM handles an exit and
//! whether its thread runs. System calls and signal handlers of the thread split that time, so that parts add up
//! to it exactly.

mod activity;
mod calls;
mod code;
mod devices;
mod events;
mod exits;
mod process_groups;
mod split;
mod sums;
mod threads;

use std::collections::{BTreeMap, HashMap};

use ftrace::eventfmt::EventFormat;
use rustc_hash::{FxHashMap, FxHashSet};
use sources::{Recording, Samples};
use timeline::arch::{self, Isa};
use timeline::cycles::VcpuCycles;
use timeline::reading::each_trace_event;
use timeline::reasons::{Code, ReasonNames};
use timeline::trace_events::{
    EventRequest, Gap, ThreadNames, TraceEvent, TraceEventSink, WantsTraceEvents,
};
use timeline::{Detail, Losses, Vm, group_vms};

use self::activity::Call;
use self::calls::CallNumbers;
use self::events::{VmmEvent, concerns_cycles, is_call, sign, wanted};
use self::exits::{ExitSplitter, GroupKey, GroupSum};
use self::process_groups::ProcessGroups;
use self::sums::{CallKey, LockKey, LockSum};
use self::threads::ThreadClock;
use crate::loss_log::LossLog;
use crate::profile::{StackFunctions, ThreadSamples};
use crate::recorded::{can_split, has_switches};
use crate::vms::VmsByVcpu;

pub use self::code::VmmCode;
pub use self::devices::VmDevices;
pub use self::split::{ExitSplit, ThreadSplit, VmmPart};
pub use self::sums::CallSum;

/// Exits that a VMM handled, by reason and address.
#[derive(Clone, Debug)]
pub struct VmmExits {
    pub vm: String,
    /// 1: a guest of the recorded machine; 2: any nested guest.
    pub level: u8,
    /// Instruction set.
    pub isa: Isa,
    /// The kernel's name of the reason.
    pub reason: String,
    /// Its raw code.
    pub code: Code,
    /// Port, guest physical address, or another detail.
    pub about: Option<(Detail, u64)>,
    /// The guest's name of the device at that address, if its agent reported it.
    pub device: Option<String>,
    pub exits: u64,
    /// Their time in the VMM by part.
    pub split: ExitSplit,
}

/// The caller of system calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CalledBy {
    /// The handling of exits; the index in [`Vmm::exits`].
    Exits(usize),
    /// A thread; the index in [`Vmm::threads`].
    Thread(usize),
}

/// System calls of one kind.
#[derive(Clone, Debug)]
pub struct VmmCalls {
    pub by: CalledBy,
    /// Name of the system call.
    pub name: String,
    /// Number and duration.
    pub sum: CallSum,
}

/// A thread, with its name if it is known.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NamedThread {
    pub tid: u32,
    pub name: Option<String>,
}

/// Waits for a futex, by the thread that ended them.
#[derive(Clone, Debug)]
pub struct VmmLock {
    pub vm: String,
    /// Address of the futex in the VMM.
    pub address: u64,
    /// The thread that released the futex.
    pub holder: Option<NamedThread>,
    /// Number of waits.
    pub waits: u64,
    /// Number of threads that waited.
    pub waiters: u64,
    /// Wait time while exits were handled.
    pub exits_waited_ns: u64,
    /// Wait time of threads that are not vCPUs.
    pub threads_waited_ns: u64,
    pub longest_ns: u64,
}

/// A VMM's thread that is not a vCPU.
#[derive(Clone, Debug)]
pub struct VmmThread {
    pub vm: String,
    pub thread: NamedThread,
    /// Its time by part.
    pub split: ThreadSplit,
}

/// Activity of the VMMs in one recording.
#[derive(Debug)]
pub struct Vmm {
    /// Exits by VM, level, reason and address; the longest time first.
    pub exits: Vec<VmmExits>,
    /// System calls, the longest time first.
    pub calls: Vec<VmmCalls>,
    /// Code that ran while VMMs handled exits, the longest time first; empty without samples of the host.
    pub code: Vec<VmmCode>,
    /// Waits for futexes, the longest first.
    pub locks: Vec<VmmLock>,
    /// Threads of VMMs that are not vCPUs, the busiest first.
    pub threads: Vec<VmmThread>,
    /// Whether kernel, user space and waiting are separate.
    pub is_split: bool,
    /// Whether exits are recorded: a guest's own recording has none.
    pub has_exits: bool,
    /// Whether system calls were recorded.
    pub has_calls: bool,
    /// Whether switches of threads were recorded.
    pub has_switches: bool,
    /// Whether the recorder stored the processes of VMM threads.
    pub has_owners: bool,
    /// Whether the recording has samples of the host.
    pub has_samples: bool,
    /// Whether times are nanoseconds; else they are ticks.
    pub nanoseconds: bool,
    /// From the first event to the last.
    pub span_ns: u64,
    pub losses: Losses,
}

/// Activity of the VMMs in `recording`. `processes` has the processes of vCPU threads as far as the recorder knows
/// them, `devices` the guests' devices, and `samples` at most one set of samples. `progress` receives the number
/// of bytes read.
#[must_use]
pub fn vmm(
    recording: &Recording,
    processes: &HashMap<u32, u32>,
    devices: &VmDevices,
    samples: &[Option<Samples>],
    progress: &(dyn Fn(u64) + Sync),
) -> Vmm {
    let samples = ThreadSamples::new(std::slice::from_ref(recording), samples);
    let has_samples = samples.are_there();
    let mut pass = Pass::new(recording, samples);
    let mut found = each_trace_event(std::slice::from_ref(recording), &mut pass, progress);
    let span_ns = found.spans_ns.pop().flatten();
    let mut event_ids = found.event_ids.pop().unwrap_or_default().into_iter();
    let has_calls = event_ids.any(|id| recording.formats().by_id(id).is_some_and(is_call));
    let end_ns = span_ns.map_or(0, |(_, end_ns)| end_ns);
    for thread in pass.threads.values_mut() {
        thread.catch_up(&pass.losses);
        thread.account(end_ns);
    }
    let mut splitter = pass.exits;
    let vms = group_vms(recording, &pass.cycles.finish(&mut splitter));
    let names = found.names.pop();
    let process_of =
        |vm: &Vm| vm.vcpus.iter().find_map(|vcpu| processes.get(&vcpu.thread).copied());
    let answer = Answer {
        recording,
        vms: &vms,
        processes: vms.iter().map(process_of).collect(),
        devices,
        names: names.as_ref(),
        numbers: pass.numbers,
    };
    let owners = pass.kin.owners(&vms, processes, pass.threads.keys().copied());
    let mut all = Vmm {
        exits: Vec::new(),
        calls: Vec::new(),
        code: Vec::new(),
        locks: Vec::new(),
        threads: Vec::new(),
        is_split: can_split(recording),
        has_exits: !vms.is_empty(),
        has_calls,
        has_switches: has_switches(recording),
        has_owners: !processes.is_empty(),
        has_samples,
        nanoseconds: recording.is_nanoseconds(),
        span_ns: span_ns.map_or(0, |(from_ns, to_ns)| to_ns.saturating_sub(from_ns)),
        losses: found.losses.pop().unwrap_or_default(),
    };
    answer.exits(splitter.groups, &splitter.samples.functions(), &mut all);
    let mut locks = answer.exit_locks(splitter.locks);
    if all.has_calls && all.has_switches {
        answer.threads(pass.threads, &owners, &mut locks, &mut all);
    }
    answer.locks(locks, &mut all);
    all.calls.sort_by_key(|call| std::cmp::Reverse(call.sum.running_ns + call.sum.waited_ns));
    all
}

/// Locks by VM and key.
type Locks = BTreeMap<(usize, LockKey), LockSum>;

/// Receives the events of a recording in order.
struct Pass<'s> {
    recording: &'s Recording,
    cycles: VcpuCycles,
    numbers: CallNumbers,
    exits: ExitSplitter<'s>,
    threads: FxHashMap<u32, ThreadClock>,
    losses: LossLog,
    kin: ProcessGroups,
}

impl<'s> Pass<'s> {
    fn new(recording: &'s Recording, samples: ThreadSamples<'s>) -> Self {
        // Intel and AMD have the same system call numbers.
        let isa =
            arch::exit_event(recording.formats()).map_or(Isa::Unknown, |event| event.arch.isa(1));
        Self {
            recording,
            cycles: VcpuCycles::default(),
            numbers: CallNumbers::for_isa(isa),
            exits: ExitSplitter::new(samples),
            threads: FxHashMap::default(),
            losses: LossLog::default(),
            kin: ProcessGroups::default(),
        }
    }

    fn thread(&mut self, thread: u32, now_ns: u64) -> &mut ThreadClock {
        let losses = &self.losses;
        let new = || ThreadClock::new(now_ns, losses.count());
        let thread = self.threads.entry(thread).or_insert_with(new);
        thread.catch_up(losses);
        thread
    }

    /// The state of a thread that was seen before.
    fn known_thread(&mut self, thread: u32) -> Option<&mut ThreadClock> {
        let thread = self.threads.get_mut(&thread)?;
        thread.catch_up(&self.losses);
        Some(thread)
    }

    /// The running thread changes its activity.
    fn mark(&mut self, event: &TraceEvent, change: impl FnOnce(&mut ThreadClock)) {
        let thread = self.thread(event.thread, event.stamp_ns);
        thread.runs(event.stamp_ns, event.cpu);
        change(thread);
        let activity = thread.progress.activity;
        if self.exits.mark(event.thread, event.stamp_ns, activity) {
            self.cycles.emit_thread(event.thread, event.stamp_ns, &mut self.exits);
            self.exits.forget_marks(event.thread);
        }
    }

    /// The running thread wakes another thread.
    fn wakes(&mut self, woken: u32, event: &TraceEvent) {
        let now_ns = event.stamp_ns;
        let waker = self.known_thread(event.thread).and_then(|thread| thread.progress.futex());
        let thread = self.thread(woken, now_ns);
        let waits = thread.progress.futex();
        let released = waits.zip(waker).filter(|(waits, waker)| waits.futex == waker.futex);
        let holder = released.map(|_| event.thread);
        thread.wake(woken, now_ns, holder);
        if waits.is_some() {
            self.exits.released(woken, now_ns, holder);
        }
        if released.is_some_and(|(waits, waker)| waits.is_private && waker.is_private) {
            self.kin.share(woken, event.thread);
        }
    }

    fn switches(&mut self, event: &TraceEvent, from: u32, sleeps: bool, to: u32) {
        let (now_ns, cpu) = (event.stamp_ns, event.cpu);
        if from != 0 {
            self.thread(from, now_ns).leaves_cpu(now_ns, cpu, sleeps);
        }
        if to != 0 {
            self.thread(to, now_ns).gets_cpu(to, now_ns, cpu);
        }
    }
}

impl WantsTraceEvents for Pass<'_> {
    fn wanted(&self, _: usize, format: &EventFormat) -> Option<EventRequest> {
        wanted(self.recording, format)
    }
}

impl TraceEventSink for Pass<'_> {
    fn event(&mut self, event: &TraceEvent) {
        match sign(event) {
            VmmEvent::Enters(number, arguments) => {
                let call = Call::new(self.numbers, number, arguments);
                self.mark(event, |thread| thread.enters(call));
            }
            VmmEvent::Leaves => self.mark(event, |thread| thread.progress.leaves()),
            VmmEvent::Handler => self.mark(event, |thread| thread.progress.handler()),
            VmmEvent::ReturnToUser => self.mark(event, |thread| thread.progress.returns()),
            VmmEvent::Exits => self.exits.exits(event.thread),
            VmmEvent::About(detail, value) => self.exits.about(event.thread, detail, value),
            VmmEvent::Wakes(woken) => self.wakes(woken, event),
            VmmEvent::Switches { from, sleeps, to } => self.switches(event, from, sleeps, to),
            VmmEvent::Ends(thread) => {
                if let Some(thread) = self.known_thread(thread) {
                    thread.ends(event.stamp_ns);
                }
            }
            VmmEvent::Other => {}
        }
        if concerns_cycles(event.tag) {
            self.cycles.event(event, &mut self.exits);
        }
    }

    fn gap(&mut self, gap: &Gap) {
        self.losses.add(gap.cpu, gap.from_ns);
        self.cycles.gap(gap);
    }
}

/// Converts numbers to names.
struct Answer<'a> {
    recording: &'a Recording,
    vms: &'a [Vm],
    /// By VM: the process of its VMM, as far as the recorder knows it.
    processes: Vec<Option<u32>>,
    devices: &'a VmDevices,
    names: Option<&'a ThreadNames>,
    numbers: CallNumbers,
}

impl Answer<'_> {
    fn exits(
        &self,
        groups: FxHashMap<GroupKey, GroupSum>,
        functions: &StackFunctions,
        all: &mut Vmm,
    ) {
        let mut by_vm: BTreeMap<(usize, GroupKey), GroupSum> = BTreeMap::new();
        let homes = VmsByVcpu::new(self.vms);
        for (key, sum) in groups {
            let Some(vm) = homes.place(key.vcpu) else { continue };
            let vm_sum = by_vm.entry((vm, GroupKey { vcpu: 0, ..key })).or_default();
            vm_sum.exits += sum.exits;
            vm_sum.split += sum.split;
            sum.calls.iter().for_each(|(key, sum)| vm_sum.calls.entry(*key).or_default().add(sum));
            sum.code.iter().for_each(|(key, count)| *vm_sum.code.entry(*key).or_default() += count);
        }
        let mut rows: Vec<((usize, GroupKey), GroupSum)> = by_vm.into_iter().collect();
        rows.sort_by_key(|(_, sum)| {
            std::cmp::Reverse((sum.split.user_ns() + sum.split.waited_ns(), sum.exits))
        });
        let mut reasons = ReasonNames::new(self.recording);
        for (at, ((vm, key), sum)) in rows.into_iter().enumerate() {
            let isa = reasons.isa(key.isa);
            all.exits.push(VmmExits {
                vm: self.vm_name(vm),
                level: key.level,
                isa,
                reason: reasons.name(key.isa, key.code),
                code: Code::new(isa, key.code),
                about: key.about,
                device: self.device(vm, &key),
                exits: sum.exits,
                split: sum.split,
            });
            all.code.extend(code::of_exits(at, &sum.split, &sum.code, functions));
            self.calls(CalledBy::Exits(at), sum.calls, all);
        }
        all.code.sort_by_key(|code| std::cmp::Reverse((code.time_ns, code.samples)));
    }

    /// The device that exits accessed. Nested guests have address spaces of their own.
    fn device(&self, vm: usize, key: &GroupKey) -> Option<String> {
        let about = key.about.filter(|_| key.level == 1)?;
        let process = self.processes.get(vm).copied().flatten()?;
        self.devices.name_at(process, about).map(str::to_owned)
    }

    fn calls(&self, by: CalledBy, calls: FxHashMap<CallKey, CallSum>, all: &mut Vmm) {
        let mut calls: Vec<(CallKey, CallSum)> = calls.into_iter().collect();
        calls.sort_by_key(|(key, _)| *key);
        let named = |(key, sum): (CallKey, CallSum)| VmmCalls {
            by: by.clone(),
            name: self.numbers.name(key.number, key.asks),
            sum,
        };
        all.calls.extend(calls.into_iter().map(named));
    }

    fn exit_locks(&self, locks: FxHashMap<(usize, LockKey), LockSum>) -> Locks {
        let mut by_vm = Locks::new();
        let homes = VmsByVcpu::new(self.vms);
        for ((vcpu, key), sum) in locks {
            if let Some(vm) = homes.place(vcpu) {
                by_vm.entry((vm, key)).or_default().merge(sum);
            }
        }
        by_vm
    }

    fn threads(
        &self,
        threads: FxHashMap<u32, ThreadClock>,
        owners: &FxHashMap<u32, usize>,
        locks: &mut Locks,
        all: &mut Vmm,
    ) {
        let vcpus = self.vms.iter().flat_map(|vm| &vm.vcpus);
        let vcpus: FxHashSet<u32> = vcpus.map(|vcpu| vcpu.thread).collect();
        let mut clocks: Vec<(u32, ThreadClock)> = threads
            .into_iter()
            .filter(|(tid, _)| owners.contains_key(tid) && !vcpus.contains(tid))
            .collect();
        clocks.sort_by_key(|(tid, clock)| (std::cmp::Reverse(clock.split.cpu_ns()), *tid));
        for (tid, clock) in clocks {
            let Some(&vm) = owners.get(&tid) else { continue };
            for (key, sum) in clock.locks {
                locks.entry((vm, key)).or_default().merge(sum);
            }
            self.calls(CalledBy::Thread(all.threads.len()), clock.calls, all);
            let (vm, thread) = (self.vm_name(vm), self.named(tid));
            all.threads.push(VmmThread { vm, thread, split: clock.split });
        }
    }

    fn locks(&self, locks: Locks, all: &mut Vmm) {
        let lock = |((vm, key), sum): ((usize, LockKey), LockSum)| VmmLock {
            vm: self.vm_name(vm),
            address: key.futex,
            holder: key.holder.map(|tid| self.named(tid)),
            waits: sum.waits,
            waiters: sum.waiters.len() as u64,
            exits_waited_ns: sum.exits_waited_ns,
            threads_waited_ns: sum.threads_waited_ns,
            longest_ns: sum.longest_ns,
        };
        all.locks = locks.into_iter().map(lock).collect();
        all.locks.sort_by_key(|lock| {
            std::cmp::Reverse((lock.exits_waited_ns, lock.threads_waited_ns, lock.waits))
        });
    }

    fn vm_name(&self, vm: usize) -> String {
        self.vms.get(vm).map(|vm| vm.name.clone()).unwrap_or_default()
    }

    fn named(&self, tid: u32) -> NamedThread {
        let of_events = self.names.and_then(|names| names.get(tid));
        let name = of_events.or_else(|| self.recording.comm(tid)).map(str::to_owned);
        NamedThread { tid, name }
    }
}
