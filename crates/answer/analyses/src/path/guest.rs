//! Requests within the guest: its work before an exit, and the thread that continued after the entry.

use timeline::trace_events::TraceEvent;

use super::Actor;
use super::chain::{At, Chains, Step};
use super::events::Event;
use super::follow::Follower;
use super::machines::Thread;
use super::requests::RequestSink;

impl<S: RequestSink> Follower<'_, S> {
    /// The VM of an event in a guest.
    pub(super) fn vm_of_guest(&self, trace_event: &TraceEvent) -> Option<u16> {
        let vcpu = self.machines.vcpu_of_guest(trace_event.recording, trace_event.cpu)?;
        self.machines.vcpus.get(vcpu).map(|vcpu| vcpu.vm)
    }

    /// The requests of the guest thread that is current on this vCPU.
    pub(super) fn guest_thread_chains(&mut self, vcpu: usize) -> Chains {
        let mut cpus = self.machines.guest_cpus_of(vcpu).iter();
        let running = cpus
            .find_map(|&(recording, cpu)| Some((recording, self.cpus.running(recording, cpu)?)));
        running.map_or_else(Chains::default, |thread| self.thread(thread).current().clone())
    }

    /// A step in the guest: it may cause the next access, and returned requests continue with it.
    pub(super) fn guest_work(&mut self, event: &Event, trace_event: &TraceEvent) {
        let Some(vcpu) = self.machines.vcpu_of_guest(trace_event.recording, trace_event.cpu) else {
            return;
        };
        let Some(state) = self.vcpus.get_mut(vcpu) else { return };
        state.guest_work = Some((event.label, At::of_event(trace_event)));
        let step = Step::from_event(event.label, Actor::Guest, trace_event);
        state.returned = state.returned.take().stepped(step);
    }

    /// A guest's interrupt handler starts.
    pub(super) fn guest_interrupt(&mut self, event: &Event, trace_event: &TraceEvent) {
        let Some(vcpu) = self.machines.vcpu_of_guest(trace_event.recording, trace_event.cpu) else {
            return;
        };
        let Some(state) = self.vcpus.get_mut(vcpu) else { return };
        // Clocks have an error bound: the handler may appear to start before the entry.
        let mut due = state.returned.take();
        due.add(state.injected.clone());
        state.returned = due.stepped(Step::from_event(event.label, Actor::Guest, trace_event));
        let returned = state.returned.clone();
        self.cpus.state_mut(trace_event).interrupt = returned;
    }

    /// A guest's thread runs that a request woke: the request has reached its target.
    pub(super) fn guest_task_runs(&mut self, who: Thread, arrived: Chains) {
        if self.events.asked_end {
            self.thread(who).set_current(arrived);
            return;
        }
        self.finish_all(&arrived);
    }
}
