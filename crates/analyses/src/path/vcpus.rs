//! Where requests leave their guest and come back to it: exits, accesses, entries.

use std::sync::Arc;

use timeline::moments::Moment;

use super::Actor;
use super::chain::{self, Chain, Chains, Device, Root};
use super::events::Meaning;
use super::follow::Follower;
use super::labels::Label;
use super::machines::{Thread, VcpuOf};
use crate::reasons::is_waiting;

/// `KVM_TRACE_MMIO_WRITE` (include/trace/events/kvm.h).
const MMIO_WRITE: u64 = 2;

/// What is known of a vCPU.
#[derive(Debug, Default)]
pub(super) struct VcpuState {
    /// Its guest runs: entered, and not yet left.
    pub(super) in_guest: bool,
    /// What was accessed in this exit.
    pub(super) accessed: Option<Label>,
    /// The request that this exit, or its access, began.
    own: Option<Arc<Root>>,
    /// The VMM's user space has been asked in this exit.
    asked_user: bool,
    /// The request of this exit has been handed to another thread.
    pub(super) passed_on: bool,
    /// Interrupts raised for it that its guest has yet to see.
    pub(super) injected: Chains,
    /// Requests that are back in the guest.
    pub(super) returned: Chains,
    /// What the guest did last that is worth a step, since it was entered.
    pub(super) guest_work: Option<(Label, u64)>,
}

impl Follower<'_> {
    /// `kvm_exit`.
    pub(super) fn exit(&mut self, moment: &Moment) {
        let who = (moment.recording, moment.thread);
        let Some(vcpu) = self.machines.vcpu_of(who) else { return };
        let (isa, code) = exit_code(moment);
        let reasons = self.reasons.get_mut(usize::from(moment.recording));
        let (waits, name) = reasons.map_or((false, String::new()), |names| {
            (is_waiting(names.isa(isa), code), names.name(isa, code))
        });
        let label = self.labels.of(&format!("exit {name}"));
        let on = (self.names.exit, Actor::Vcpu, moment.stamp_ns);
        let Some(state) = self.vcpus.get_mut(vcpu.index) else { return };
        let was_in_guest = std::mem::take(&mut state.in_guest);
        (state.accessed, state.asked_user) = (None, false);
        state.passed_on = false;
        if was_in_guest {
            state.injected = state.injected.stepped(on);
        }
        if waits {
            // The guest has nothing more to do: what was there to be done for it is done.
            let returned = state.returned.take();
            self.finish_all(&returned);
        }
        if self.events.asked_start {
            let chains = self.guest_thread_chains(vcpu.index);
            let chains = chains.stepped((label, Actor::Vcpu, moment.stamp_ns));
            self.thread(who).current = chains;
        } else {
            let chain = chain::begin(Some(vcpu.vm), None, (label, Actor::Vcpu, moment.stamp_ns));
            self.begin_own(who, vcpu.index, Some(chain));
        }
    }

    /// The guest accesses a device, a register, another vCPU.
    pub(super) fn access(&mut self, meaning: Meaning, moment: &Moment) {
        let who = (moment.recording, moment.thread);
        let Some(vcpu) = self.machines.vcpu_of(who) else { return };
        let Some(state) = self.vcpus.get(vcpu.index) else { return };
        // One access may be told twice, as what was asked for and as what was answered.
        if state.accessed.is_some() || state.in_guest {
            return;
        }
        let label = self.labels.of(&access_name(meaning, moment));
        let step = (label, Actor::Vcpu, moment.stamp_ns);
        let device = device(meaning, moment);
        if let Some(state) = self.vcpus.get_mut(vcpu.index) {
            state.accessed = Some(label);
            if device.is_some() {
                let own = state.returned.take_if(|chain| chain.root.device == device);
                let others = state.returned.take();
                self.finish_all(&own.stepped(step));
                self.finish_all(&others);
            }
        }
        if self.events.asked_start {
            let chains = self.thread(who).current.stepped(step);
            self.thread(who).current = chains;
            return;
        }
        let chain = self.access_root(vcpu, device, step);
        self.begin_own(who, vcpu.index, chain);
    }

    fn begin_own(&mut self, who: Thread, vcpu: usize, chain: Option<Chain>) {
        if let Some(state) = self.vcpus.get_mut(vcpu) {
            state.own = chain.as_ref().map(|chain| Arc::clone(&chain.root));
        }
        self.thread(who).current = chain.map_or_else(Chains::default, Chains::one);
    }

    /// Whether a request is the one of this vCPU's exit, and has been with nobody else.
    pub(super) fn is_own(&self, vcpu: usize, chain: &Chain) -> bool {
        let own = self.vcpus.get(vcpu).and_then(|state| state.own.as_ref());
        own.is_some_and(|own| Arc::ptr_eq(own, &chain.root)) && stayed(chain)
    }

    /// A request begins with an access, or with what the guest did before it that is worth a step.
    fn access_root(
        &mut self,
        vcpu: VcpuOf,
        device: Option<Device>,
        access: (Label, Actor, u64),
    ) -> Option<Chain> {
        let vm = Some(vcpu.vm);
        match self.vcpus.get_mut(vcpu.index).and_then(|state| state.guest_work.take()) {
            None => Some(chain::begin(vm, device, access)),
            Some((label, stamp_ns)) => {
                let root = chain::begin(vm, device, (label, Actor::Guest, stamp_ns));
                chain::step(&root, access)
            }
        }
    }

    /// `kvm_userspace_exit`.
    pub(super) fn user_exit(&mut self, moment: &Moment) {
        let who = (moment.recording, moment.thread);
        let Some(vcpu) = self.machines.vcpu_of(who) else { return };
        let step = (self.names.to_user, Actor::Vcpu, moment.stamp_ns);
        let Some(state) = self.vcpus.get_mut(vcpu.index) else { return };
        state.asked_user = true;
        let accessed = state.accessed.is_some();
        let chains = self.thread(who).current.stepped(step);
        if accessed {
            self.gather.began(&chains);
        }
        self.thread(who).current = chains;
    }

    /// `kvm_entry`.
    pub(super) fn entry(&mut self, moment: &Moment) {
        let who = (moment.recording, moment.thread);
        let Some(vcpu) = self.machines.vcpu_of(who) else { return };
        let mut current = self.thread(who).current.take();
        let own = current.take_if(|chain| self.is_own(vcpu.index, chain));
        let Some(state) = self.vcpus.get_mut(vcpu.index) else { return };
        let (accessed, asked_user) = (state.accessed.take(), state.asked_user);
        let left_alone = accessed.filter(|_| !state.passed_on && !asked_user);
        (state.in_guest, state.asked_user, state.guest_work) = (true, false, None);
        state.own = None;
        let step = (self.names.entry, Actor::Vcpu, moment.stamp_ns);
        let mut back = state.injected.take();
        back.add(current);
        let returned = back.stepped(step);
        if let Some(state) = self.vcpus.get_mut(vcpu.index) {
            state.returned.add(returned);
        }
        // The exit's own request is back only if this thread has answered it.
        if asked_user && accessed.is_some() {
            self.finish_all(&own.stepped(step));
        } else if let Some(access) = left_alone {
            self.tell_worker(access, own);
        }
    }

    /// The thread that is woken for such accesses was not, since it was awake: it will find it.
    fn tell_worker(&mut self, access: Label, chains: Chains) {
        let Some(&worker) = self.workers.get(&access) else { return };
        let thread = self.thread(worker);
        if thread.asleep == Some(false) {
            thread.queued.add(chains.clone());
            self.gather.began(&chains);
        }
    }
}

/// Whether a request has been with nobody but vCPUs and their guest.
fn stayed(chain: &Chain) -> bool {
    let mut at = chain;
    loop {
        match &at.parent {
            Some(parent) if matches!(parent.on, Actor::Vcpu | Actor::Guest) => at = parent,
            Some(_) => return false,
            None => return matches!(at.on, Actor::Vcpu | Actor::Guest),
        }
    }
}

/// The instruction set and the code of an exit, as `timeline` has them.
fn exit_code(moment: &Moment) -> (u8, u64) {
    let code = moment.value(0).unwrap_or(0);
    match moment.value(1) {
        Some(low) => (0, (code << 32) | (low & u64::from(u32::MAX))),
        None => (moment.value(2).unwrap_or(0) as u8, code & u64::from(u32::MAX)),
    }
}

/// The device that is accessed; registers of the vCPU and calls are none.
fn device(meaning: Meaning, moment: &Moment) -> Option<Device> {
    /// A page of the smallest size that architectures have.
    const PAGE_BITS: u32 = 12;
    const PORT_BITS: u32 = 3;
    match meaning {
        Meaning::Mmio | Meaning::Pio => {
            let address = moment.value(1)?;
            Some(match meaning {
                Meaning::Pio => Device::Ports(address >> PORT_BITS),
                _ => Device::Page(address >> PAGE_BITS),
            })
        }
        Meaning::FastMmio => Some(Device::Page(moment.value(0)? >> PAGE_BITS)),
        _ => None,
    }
}

fn access_name(meaning: Meaning, moment: &Moment) -> String {
    let number = |at| moment.value(at).unwrap_or(0);
    match meaning {
        Meaning::Mmio if number(0) == MMIO_WRITE => format!("mmio write {:#x}", number(1)),
        Meaning::Mmio => format!("mmio read {:#x}", number(1)),
        Meaning::FastMmio => format!("mmio write {:#x}", number(0)),
        // `rw` of `kvm_pio`: 1 is out (`KVM_PIO_OUT`, include/trace/events/kvm.h's callers).
        Meaning::Pio if number(0) == 1 => format!("port out {:#x}", number(1)),
        Meaning::Pio => format!("port in {:#x}", number(1)),
        Meaning::Msr if number(0) == 1 => format!("msr write {:#x}", number(1)),
        Meaning::Msr => format!("msr read {:#x}", number(1)),
        Meaning::Hypercall => format!("hypercall {:#x}", number(0)),
        _ => "interrupt to a vCPU".to_owned(),
    }
}
