//! Steps of threads for requests: work events, and raised interrupts of guests.

use timeline::trace_events::TraceEvent;

use super::chain::{Chain, Chains, Step, step};
use super::events::Event;
use super::follow::Follower;
use super::requests::RequestSink;

impl<S: RequestSink> Follower<'_, S> {
    /// A work event of the host or the guest.
    pub(super) fn work(&mut self, event: &Event, trace_event: &TraceEvent) {
        if self.machines.is_guest(trace_event.recording) {
            self.guest_work(event, trace_event);
        }
        if Self::in_hardirq(trace_event.value(2).unwrap_or(0)) {
            return;
        }
        let who = (trace_event.recording, trace_event.thread);
        let on = self.role(who);
        let step = Step::from_event(event.label, on, trace_event);
        let Some(thread) = self.threads.get_mut(who) else { return };
        if thread.is_busy() {
            let chains = thread.take_up().take().stepped(step);
            thread.set_current(chains);
        }
    }

    /// A guest's interrupt is raised. Several events can record it on its way through the emulated controllers;
    /// the first one is the step.
    pub(super) fn inject(&mut self, event: &Event, trace_event: &TraceEvent) {
        let lowered = trace_event.value(1) == Some(0);
        let who = (trace_event.recording, trace_event.thread);
        if lowered || Self::in_hardirq(trace_event.value(2).unwrap_or(0)) {
            return;
        }
        let on = self.role(who);
        let own_vcpu = self.vcpu_of(who);
        let vm = own_vcpu.map(|vcpu| vcpu.vm).or_else(|| self.works_for.get(&who).copied());
        let Some(vm) = vm.or_else(|| self.machines.only_vm(trace_event.recording)) else { return };
        let target = self.machines.vcpu_by_id(vm, trace_event.value(0));
        if own_vcpu.is_some() && own_vcpu.map(|vcpu| vcpu.index) == target {
            // Its own timer, or the response to its own access.
            return;
        }
        let events = self.events;
        let Some(thread) = self.threads.get_mut(who) else { return };
        let mut chains = Chains::default();
        for chain in thread.take_up().iter() {
            let next = if events.is_injection(chain.label) && chain.on == on {
                Some(Chain::clone(chain))
            } else {
                step(Chain::clone(chain), Step::from_event(event.label, on, trace_event))
            };
            chains.add(next.map_or_else(Chains::default, Chains::single));
        }
        thread.set_current(chains.clone());
        if let Some(target) = target.and_then(|target| self.vcpus.get_mut(target)) {
            target.injected.add(chains);
        }
        if own_vcpu.is_none() && !on.has_name() {
            self.works_for.insert(who, vm);
        }
    }
}
