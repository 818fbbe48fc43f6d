//! Exits, accesses and entries: requests leave their guest and return.

use sources::Recording;
use timeline::arch::{AccessKind, FLAG};
use timeline::cycles::exit_code;
use timeline::reasons::ReasonNames;
use timeline::trace_events::TraceEvent;

use super::Actor;
use super::chain::{self, At, Chains, Device, Step};
use super::follow::Follower;
use super::labels::{Label, Labels};
use super::machines::{Thread, VcpuOf};
use super::places::Places;
use super::requests::RequestSink;
use super::threads::Beginning;

/// `KVM_TRACE_MMIO_WRITE` (include/trace/events/kvm.h).
const MMIO_WRITE: u64 = 2;

/// Max cached names of accesses and reasons; further names are built each time.
const MAX_ACCESSES: usize = 1 << 14;

/// Instruction set and code of an exit.
type Code = (u8, u64);
/// Whether the exit is a waiting exit, and the label of its step.
type Reason = (bool, Label);

/// Names of exit reasons in one recording.
#[derive(Debug)]
pub(super) struct Reasons {
    names: ReasonNames,
    known: Places<Code, Reason>,
}

impl Reasons {
    pub(super) fn new(recording: &Recording) -> Self {
        Self { names: ReasonNames::new(recording), known: Places::default() }
    }

    #[inline]
    fn reason_of(&mut self, (isa, code): Code, labels: &mut Labels) -> Reason {
        if self.known.len() >= MAX_ACCESSES {
            self.known = Places::default();
        }
        let names = &mut self.names;
        *self.known.get_or_insert_with((isa, code), || {
            let waits = names.isa(isa).waits(code);
            (waits, labels.intern(&format!("exit {}", names.name(isa, code))))
        })
    }
}

/// State of a vCPU.
#[derive(Debug, Default)]
pub(super) struct VcpuState {
    /// Whether it is in its guest.
    pub(super) in_guest: bool,
    /// The access of the current exit.
    pub(super) accessed: Option<Label>,
    /// The current exit went to the VMM.
    asked_user: bool,
    /// The request of the current exit was handed to another thread.
    pub(super) passed_on: bool,
    /// Requests of raised interrupts that the guest has not received yet.
    pub(super) injected: Chains,
    /// Requests that are back in the guest.
    pub(super) returned: Chains,
    /// The guest's last step since the entry.
    pub(super) guest_work: Option<(Label, At)>,
}

impl<S: RequestSink> Follower<'_, S> {
    /// `kvm_exit`.
    pub(super) fn exit(&mut self, trace_event: &TraceEvent) {
        let who = (trace_event.recording, trace_event.thread);
        let Some(vcpu) = self.vcpu_of(who) else { return };
        let Some(reasons) = self.reasons.get_mut(usize::from(trace_event.recording)) else {
            return;
        };
        let (waits, label) = reasons.reason_of(isa_and_code(trace_event), &mut self.labels);
        let step = Step::from_event(self.names.exit, Actor::Vcpu, trace_event);
        let Some(state) = self.vcpus.get_mut(vcpu.index) else { return };
        let was_in_guest = std::mem::take(&mut state.in_guest);
        (state.accessed, state.asked_user) = (None, false);
        state.passed_on = false;
        if was_in_guest {
            state.injected = state.injected.take().stepped(step);
        }
        if waits && !state.returned.is_empty() {
            // The guest goes idle, so its returned requests are finished.
            let returned = state.returned.take();
            self.finish_all(&returned);
        }
        if self.events.asked_start {
            let chains = self.guest_thread_chains(vcpu.index);
            let chains = chains.stepped(Step::from_event(label, Actor::Vcpu, trace_event));
            self.thread(who).set_current(chains);
        } else {
            let thread = self.thread(who);
            let step = Step::from_event(label, Actor::Vcpu, trace_event);
            thread.begin(Beginning { vm: vcpu.vm, device: None, step });
        }
    }

    /// The guest accesses a device, a register, or another vCPU.
    pub(super) fn access(&mut self, kind: AccessKind, trace_event: &TraceEvent) {
        let who = (trace_event.recording, trace_event.thread);
        let Some(vcpu) = self.vcpu_of(who) else { return };
        let Some(state) = self.vcpus.get(vcpu.index) else { return };
        // An access can have two events, one for the request and one for the answer.
        if state.accessed.is_some() || state.in_guest {
            return;
        }
        let label = self.access_label(kind, trace_event);
        let step = Step::from_event(label, Actor::Vcpu, trace_event);
        let device = device(kind, trace_event);
        if let Some(state) = self.vcpus.get_mut(vcpu.index) {
            state.accessed = Some(label);
            if device.is_some() {
                let own_chains = state.returned.take_if(|chain| chain.root.device == device);
                let others = state.returned.take();
                self.finish_all(&own_chains.stepped(step));
                self.finish_all(&others);
            }
        }
        if self.events.asked_start {
            let chains = self.thread(who).current().take().stepped(step);
            self.thread(who).set_current(chains);
            return;
        }
        self.begin_with_access(who, vcpu, device, step);
    }

    fn access_label(&mut self, kind: AccessKind, trace_event: &TraceEvent) -> Label {
        let number = |at| trace_event.value(at).unwrap_or(0);
        let key = (kind, number(0), number(1));
        if let Some(&label) = self.accesses.get(&key) {
            return label;
        }
        let label = self.labels.intern(&access_name(key));
        if self.accesses.len() < MAX_ACCESSES {
            self.accesses.insert(key, label);
        }
        label
    }

    /// Begins a request with an access, or with the guest's last step before it.
    fn begin_with_access(
        &mut self,
        who: Thread,
        vcpu: VcpuOf,
        device: Option<Device>,
        access: Step,
    ) {
        match self.vcpus.get_mut(vcpu.index).and_then(|state| state.guest_work.take()) {
            None => self.thread(who).begin(Beginning { vm: vcpu.vm, device, step: access }),
            Some((label, at)) => {
                let root =
                    chain::begin(Some(vcpu.vm), device, Step { label, on: Actor::Guest, at });
                self.thread(who).begin_own(chain::step(root, access));
            }
        }
    }

    /// `kvm_userspace_exit`.
    pub(super) fn user_exit(&mut self, trace_event: &TraceEvent) {
        let who = (trace_event.recording, trace_event.thread);
        let Some(vcpu) = self.vcpu_of(who) else { return };
        let step = Step::from_event(self.names.to_user, Actor::Vcpu, trace_event);
        let Some(state) = self.vcpus.get_mut(vcpu.index) else { return };
        state.asked_user = true;
        let accessed = state.accessed.is_some();
        let chains = self.thread(who).current().take().stepped(step);
        if accessed {
            self.requests.began(&chains);
        }
        self.thread(who).set_current(chains);
    }

    /// `kvm_entry`.
    pub(super) fn entry(&mut self, trace_event: &TraceEvent) {
        let who = (trace_event.recording, trace_event.thread);
        let Some(vcpu) = self.vcpu_of(who) else { return };
        let Some(state) = self.vcpus.get_mut(vcpu.index) else { return };
        let (accessed, asked_user) = (state.accessed.take(), state.asked_user);
        let left_alone = accessed.filter(|_| !state.passed_on && !asked_user);
        (state.in_guest, state.asked_user, state.guest_work) = (true, false, None);
        let mut back = state.injected.take();
        // The exit's own request is only back if this thread answered it.
        let is_answered = asked_user && accessed.is_some();
        let worker = left_alone.and_then(|access| self.workers.get(&access).copied());
        let matters = is_answered || worker.is_some();
        if !matters && back.is_empty() && self.thread(who).ends_idle_exit() {
            return;
        }
        let (own_chains, others) = self.thread(who).end_exit(matters);
        let step = Step::from_event(self.names.entry, Actor::Vcpu, trace_event);
        back.add(others);
        if !back.is_empty()
            && let Some(state) = self.vcpus.get_mut(vcpu.index)
        {
            state.returned.add(back.stepped(step));
        }
        if is_answered {
            self.finish_all(&own_chains.stepped(step));
        } else if let Some(worker) = worker {
            self.notify_worker(worker, own_chains);
        }
    }

    /// A worker for this access was awake, so no wake-up was recorded: queues the requests for it.
    fn notify_worker(&mut self, worker: Thread, chains: Chains) {
        let thread = self.thread(worker);
        if thread.asleep == Some(false) {
            thread.queued.add(chains.clone());
            self.requests.began(&chains);
        }
    }
}

/// The `isa` field and the code of an exit, as in `timeline`.
fn isa_and_code(trace_event: &TraceEvent) -> Code {
    (trace_event.value(FLAG).unwrap_or(0) as u8, exit_code(trace_event))
}

/// The accessed device; `None` for registers of the vCPU and hypercalls.
fn device(kind: AccessKind, trace_event: &TraceEvent) -> Option<Device> {
    /// The smallest page size of all architectures.
    const PAGE_BITS: u32 = 12;
    const PORT_BITS: u32 = 3;
    match kind {
        AccessKind::Mmio | AccessKind::Pio => {
            let address = trace_event.value(1)?;
            Some(match kind {
                AccessKind::Pio => Device::Ports(address >> PORT_BITS),
                _ => Device::Page(address >> PAGE_BITS),
            })
        }
        AccessKind::FastMmio => Some(Device::Page(trace_event.value(0)? >> PAGE_BITS)),
        _ => None,
    }
}

/// The name of an access, from the first two values of its event.
fn access_name((kind, first, second): (AccessKind, u64, u64)) -> String {
    match kind {
        AccessKind::Mmio if first == MMIO_WRITE => format!("mmio write {second:#x}"),
        AccessKind::Mmio => format!("mmio read {second:#x}"),
        AccessKind::FastMmio => format!("mmio write {first:#x}"),
        // `rw` of `kvm_pio`: 1 is out (`KVM_PIO_OUT`, arch/x86/kvm/trace.h).
        AccessKind::Pio if first == 1 => format!("port out {second:#x}"),
        AccessKind::Pio => format!("port in {second:#x}"),
        AccessKind::Msr if first == 1 => format!("msr write {second:#x}"),
        AccessKind::Msr => format!("msr read {second:#x}"),
        AccessKind::Hypercall => format!("hypercall {first:#x}"),
        AccessKind::Ipi => "interrupt to a vCPU".to_owned(),
    }
}
