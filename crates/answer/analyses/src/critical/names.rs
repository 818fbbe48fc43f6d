//! Names of machines, threads and reasons of parts.

use rustc_hash::FxHashMap;
use sources::X86_VECTORS;
use timeline::reasons::ReasonNames;
use timeline::trace_events::ThreadNames;

use super::cause::InterruptKind;
use super::disks::disk_number;
use super::piece::{Spent, Who, Why};
use crate::align::GuestAlignment;
use crate::irqs::softirq_name;
use crate::path::{Actor, Machines, Thread};
use crate::recorders::is_recorder;
use crate::view::View;

#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Named {
    pub(super) machine: String,
    pub(super) thread: String,
    pub(super) on: Actor,
    pub(super) reason: Option<String>,
    /// Whether the thread belongs to the recorder.
    pub(super) is_recorder: bool,
}

pub(super) struct Names<'n> {
    machines: &'n Machines<'n>,
    /// Machine names by recording.
    of_machines: Vec<String>,
    threads: &'n [ThreadNames],
    /// All names of each thread in the order of time.
    histories: &'n [ThreadNames],
    reasons: Vec<ReasonNames>,
    known: FxHashMap<(Spent, u64), Named>,
}

impl<'n> Names<'n> {
    pub(super) fn new(
        machines: &'n Machines<'n>,
        guests: &[GuestAlignment],
        (threads, histories): (&'n [ThreadNames], &'n [ThreadNames]),
    ) -> Self {
        Self {
            machines,
            of_machines: View::new(machines.recordings, guests).machine_names(),
            threads,
            histories,
            reasons: machines.recordings.iter().map(ReasonNames::new).collect(),
            known: FxHashMap::default(),
        }
    }

    pub(super) fn machine(&self, recording: u16) -> String {
        self.of_machines.get(usize::from(recording)).cloned().unwrap_or_default()
    }

    /// Name of a thread: its vCPU, or its name at `now_ns`; `None`: its last name.
    pub(super) fn thread(&self, thread: Thread, now_ns: Option<u64>) -> String {
        if thread.1 == 0 {
            return "idle".to_owned();
        }
        if let Some(vcpu) = self.machines.vcpu_of(thread) {
            let id = self.machines.vcpus.get(vcpu.index).map_or(0, |vcpu| vcpu.id);
            return format!("{} vCPU {id}", self.machines.vm_name(vcpu.vm).unwrap_or("?"));
        }
        let history = self.histories.get(usize::from(thread.0));
        let then =
            history.zip(now_ns).filter(|(names, _)| names.history(thread.1).next().is_some());
        let of_then = then.and_then(|(names, now_ns)| names.at(thread.1, now_ns));
        let of_events = self.threads.get(usize::from(thread.0)).and_then(|all| all.get(thread.1));
        let recording = self.machines.recordings.get(usize::from(thread.0));
        let name = of_then.or(of_events).or_else(|| recording?.comm(thread.1));
        name.map_or_else(|| thread.1.to_string(), str::to_owned)
    }

    /// A thread's names before its last one; empty for vCPU threads.
    pub(super) fn earlier(&self, thread: Thread) -> Vec<(u64, String)> {
        let history = self.histories.get(usize::from(thread.0));
        let known = history.filter(|_| self.machines.vcpu_of(thread).is_none());
        let all = known.into_iter().flat_map(|names| names.history(thread.1));
        let mut all: Vec<(u64, String)> =
            all.map(|(at_ns, name)| (at_ns, name.to_owned())).collect();
        all.pop();
        all
    }

    /// Names of a part whose threads have had their names since `since_ns`, by [`Spent::named_since_ns`].
    pub(super) fn name_since(&mut self, spent: &Spent, since_ns: u64) -> Named {
        if let Some(named) = self.known.get(&(*spent, since_ns)) {
            return named.clone();
        }
        let named = self.make(spent, since_ns);
        self.known.insert((*spent, since_ns), named.clone());
        named
    }

    /// Names of a part that begins at `now_ns`.
    pub(super) fn at(&mut self, spent: &Spent, now_ns: u64) -> Named {
        self.name_since(spent, spent.named_since_ns(self.histories, now_ns))
    }

    /// The thread of a part.
    pub(super) fn thread_of(&self, spent: &Spent) -> Option<Thread> {
        match spent.who {
            Who::Thread(thread) => Some(thread),
            Who::Vcpu(index) => self.machines.thread_of(index),
            Who::Interrupt(_) => None,
        }
    }

    fn make(&mut self, spent: &Spent, since_ns: u64) -> Named {
        let (recording, machine, thread, on) = self.who(spent.who, since_ns);
        let reason = match spent.why {
            Why::Nothing => None,
            Why::Exit { recording, isa, code } => {
                self.reasons.get_mut(usize::from(recording)).map(|names| names.name(isa, code))
            }
            Why::Behind(thread) => Some(self.thread((recording, thread), Some(since_ns))),
            Why::Interrupt(kind) => Some(interrupt_name(kind)),
            Why::End(end) => Some(end.name().to_owned()),
        };
        let is_behind = matches!(spent.why, Why::Behind(_));
        let of_reason = reason.as_deref().filter(|_| is_behind);
        let is_recorder = is_recorder(&thread) || of_reason.is_some_and(is_recorder);
        Named { machine, thread, on, reason, is_recorder }
    }

    /// Recording, machine, name and kind of a part's thread.
    fn who(&self, who: Who, since_ns: u64) -> (u16, String, String, Actor) {
        match who {
            Who::Thread(thread) => {
                let name = self.thread(thread, Some(since_ns));
                let on = match self.machines.role(thread) {
                    Actor::Host if is_recorder(&name) => Actor::Recorder,
                    on => on,
                };
                (thread.0, self.machine(thread.0), name, on)
            }
            Who::Vcpu(index) => {
                let vcpu = self.machines.vcpus.get(index);
                let vm = vcpu.and_then(|vcpu| self.machines.vm_name(vcpu.vm)).unwrap_or("?");
                let thread = format!("vCPU {}", vcpu.map_or(0, |vcpu| vcpu.id));
                (0, vm.to_owned(), thread, Actor::Guest)
            }
            Who::Interrupt(recording) => {
                (recording, self.machine(recording), "interrupt".to_owned(), Actor::Interrupt)
            }
        }
    }
}

fn interrupt_name(kind: InterruptKind) -> String {
    match kind {
        InterruptKind::Timer => "timer".to_owned(),
        InterruptKind::Disk(dev) => format!("disk {}", disk_number(dev)),
        InterruptKind::Irq(number) => format!("irq {number}"),
        InterruptKind::Vector(at) => {
            X86_VECTORS.get(usize::from(at)).map_or("interrupt", |name| *name).to_owned()
        }
        InterruptKind::Softirq(number) => match softirq_name(number.into()) {
            Some(name) => format!("softirq {name}"),
            None => format!("softirq {number}"),
        },
        InterruptKind::Unknown => "interrupt".to_owned(),
    }
}
