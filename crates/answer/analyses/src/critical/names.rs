//! What machines, threads and reasons of parts are called.

use rustc_hash::FxHashMap;
use sources::X86_VECTORS;
use timeline::trace_events::ThreadNames;

use super::context::InterruptKind;
use super::disks::disk_number;
use super::piece::{Spent, Who, Why};
use crate::align::GuestAlignment;
use crate::irqs::softirq_name;
use crate::machine_names::machine_names;
use crate::path::{Actor, Machines, Thread};
use timeline::reasons::ReasonNames;

/// A part's names.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Named {
    pub(super) machine: String,
    pub(super) thread: String,
    pub(super) on: Actor,
    pub(super) reason: Option<String>,
}

/// All names.
pub(super) struct Names<'n> {
    machines: &'n Machines<'n>,
    /// By recording.
    of_machines: Vec<String>,
    threads: &'n [ThreadNames],
    reasons: Vec<ReasonNames>,
    known: FxHashMap<Spent, Named>,
}

impl<'n> Names<'n> {
    pub(super) fn new(
        machines: &'n Machines<'n>,
        guests: &[GuestAlignment],
        threads: &'n [ThreadNames],
    ) -> Self {
        Self {
            machines,
            of_machines: machine_names(machines.recordings, guests),
            threads,
            reasons: machines.recordings.iter().map(ReasonNames::new).collect(),
            known: FxHashMap::default(),
        }
    }

    pub(super) fn machine(&self, recording: u16) -> String {
        self.of_machines.get(usize::from(recording)).cloned().unwrap_or_default()
    }

    /// A thread: by its vCPU if it runs one, else as its kernel calls it.
    pub(super) fn thread(&self, thread: Thread) -> String {
        if thread.1 == 0 {
            return "idle".to_owned();
        }
        if let Some(vcpu) = self.machines.vcpu_of(thread) {
            let id = self.machines.vcpus.get(vcpu.index).map_or(0, |vcpu| vcpu.id);
            return format!("{} vCPU {id}", self.machines.vm_name(vcpu.vm).unwrap_or("?"));
        }
        let of_events = self.threads.get(usize::from(thread.0)).and_then(|all| all.of(thread.1));
        let recording = self.machines.recordings.get(usize::from(thread.0));
        let name = of_events.or_else(|| recording?.comm(thread.1));
        name.map_or_else(|| thread.1.to_string(), str::to_owned)
    }

    pub(super) fn of(&mut self, spent: &Spent) -> Named {
        if let Some(named) = self.known.get(spent) {
            return named.clone();
        }
        let named = self.make(spent);
        self.known.insert(*spent, named.clone());
        named
    }

    /// The thread that a part is about.
    pub(super) fn thread_of(&self, spent: &Spent) -> Option<Thread> {
        match spent.who {
            Who::Thread(thread) => Some(thread),
            Who::Vcpu(index) => self.machines.vcpu_threads().nth(index),
            Who::Interrupt(_) => None,
        }
    }

    fn make(&mut self, spent: &Spent) -> Named {
        let (recording, machine, thread, on) = match spent.who {
            Who::Thread(thread) => {
                let on = self.machines.role(thread);
                (thread.0, self.machine(thread.0), self.thread(thread), on)
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
        };
        let reason = match spent.why {
            Why::Nothing => None,
            Why::Exit { recording, isa, code } => {
                self.reasons.get_mut(usize::from(recording)).map(|names| names.name(isa, code))
            }
            Why::Behind(thread) => Some(self.thread((recording, thread))),
            Why::Interrupt(kind) => Some(interrupt_name(kind)),
            Why::End(end) => Some(end.name().to_owned()),
        };
        Named { machine, thread, on, reason }
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
