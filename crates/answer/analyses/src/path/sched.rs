//! Wake-ups hand requests from thread to thread.

use timeline::arch::{sleeps, sleeps_uninterruptibly};
use timeline::trace_events::TraceEvent;

use super::Actor;
use super::chain::{self, At, Chains, Step};
use super::follow::{Follower, Says};
use super::machines::Thread;
use super::requests::RequestSink;

/// Max cached names of steps with thread names; further names are built each time.
const MAX_NAMED: usize = 1 << 14;

impl<S: RequestSink> Follower<'_, S> {
    /// `sched_switch`.
    pub(super) fn switch(&mut self, trace_event: &TraceEvent) {
        let recording = trace_event.recording;
        let cpu = self.cpus.state_mut(trace_event);
        if !cpu.interrupt.is_empty() {
            cpu.interrupt.clear();
        }
        cpu.running = trace_event.thread_value(2);
        if let Some(prev) = trace_event.thread_value(0).filter(|&prev| prev != 0) {
            let state = trace_event.value(1).unwrap_or(0);
            let thread = self.thread((recording, prev));
            thread.asleep = Some(sleeps(state));
            if sleeps(state) && !sleeps_uninterruptibly(state) {
                self.sleeps((recording, prev));
            }
        }
        if let Some(next) = trace_event.thread_value(2).filter(|&next| next != 0) {
            self.runs((recording, next), At::of_thread(trace_event, next));
        }
    }

    /// A sleeping thread is done with its requests, except that a vCPU's thread continues its exit after any
    /// sleep.
    fn sleeps(&mut self, who: Thread) {
        let thread = self.thread(who);
        if thread.is_idle() {
            return;
        }
        let vcpu = thread.vcpu();
        let (mut done, queued) = (thread.current().take(), thread.queued.take());
        if vcpu.is_some() {
            let own_chains = thread.take_own(&mut done);
            thread.set_current(own_chains);
        }
        self.let_go(done);
        self.let_go(queued);
    }

    fn runs(&mut self, who: Thread, at: At) {
        let Some(thread) = self.threads.get_mut(who) else { return };
        thread.asleep = Some(false);
        if thread.pending.is_empty() {
            return;
        }
        let pending = thread.pending.take();
        let on = self.role(who);
        let step = Step { label: self.runs_label(who, on), on, at };
        let running = pending.stepped(step);
        let thread = self.thread(who);
        thread.current().add(running);
        if on == Actor::Guest {
            let arrived = self.thread(who).current().take();
            self.guest_task_runs(who, arrived);
        }
    }

    /// `sched_waking`.
    pub(super) fn waking(&mut self, trace_event: &TraceEvent) {
        let Some(woken) = trace_event.thread_value(0) else { return };
        let woken = (trace_event.recording, woken);
        if self.thread(woken).asleep == Some(false) {
            // It is awake, so the wake-up has no effect: it takes up the request later.
            self.wake_running(trace_event, woken);
            return;
        }
        let chains = self.causes(trace_event, woken);
        self.thread(woken).asleep = Some(false);
        self.hand_over(trace_event, woken, chains);
    }

    /// `sched_wakeup` repeats `sched_waking` with a less reliable context: it may run in another CPU's interrupt.
    /// It counts if `sched_waking` was not recorded.
    pub(super) fn wakeup(&mut self, trace_event: &TraceEvent) {
        let Some(woken) = trace_event.thread_value(0) else { return };
        if self.thread((trace_event.recording, woken)).asleep == Some(true) {
            self.waking(trace_event);
        }
    }

    fn hand_over(&mut self, trace_event: &TraceEvent, woken: Thread, chains: Chains) {
        if chains.is_empty() {
            if self.thread(woken).is_under_way() {
                // It waits in the middle of a request, and continues that.
                return;
            }
            let incoming =
                self.comes_in(trace_event, woken).map_or_else(Chains::default, Chains::single);
            self.requests.began(&incoming);
            self.thread(woken).pending = incoming;
            return;
        }
        let on = self.role(woken);
        let label = self.wakes_label(woken, on);
        let waker = self.waker(trace_event);
        let step = chains.stepped(Step::from_event(label, waker, trace_event));
        self.thread(woken).pending = step;
    }

    fn wake_running(&mut self, trace_event: &TraceEvent, woken: Thread) {
        let flags = trace_event.value(1).unwrap_or(0);
        let waker = (trace_event.recording, trace_event.thread);
        if Self::in_hardirq(flags) || waker == woken {
            return;
        }
        let handed = self.thread(waker).take_up().clone();
        if !handed.is_empty() {
            self.passed_on(waker, woken);
            self.requests.began(&handed);
            self.thread(woken).queued.add(handed);
        }
    }

    /// The requests that cause a wake-up.
    fn causes(&mut self, trace_event: &TraceEvent, woken: Thread) -> Chains {
        let flags = trace_event.value(1).unwrap_or(0);
        let waker = (trace_event.recording, trace_event.thread);
        if Self::in_interrupt(flags) || trace_event.thread == 0 {
            let cpu = self.cpus.state_mut(trace_event);
            if !cpu.interrupt.is_empty() {
                return cpu.interrupt.clone();
            }
        }
        if !Self::in_hardirq(flags) && trace_event.thread != 0 {
            let chains = self.thread(waker).take_up().clone();
            if !chains.is_empty() {
                self.passed_on(waker, woken);
                self.requests.began(&chains);
                return chains;
            }
        }
        Chains::default()
    }

    /// A vCPU's thread handed its request to another thread, which therefore works for the VM.
    fn passed_on(&mut self, waker: Thread, woken: Thread) {
        let Some(vcpu) = self.vcpu_of(waker) else { return };
        let is_other = self.vcpu_of(woken).is_none();
        if is_other {
            self.works_for.insert(woken, vcpu.vm);
        }
        let Some(state) = self.vcpus.get_mut(vcpu.index) else { return };
        state.passed_on = true;
        if let Some(access) = state.accessed.filter(|_| is_other) {
            self.workers.insert(access, woken);
        }
    }

    /// An external event begins a request, if the woken thread works for a VM.
    fn comes_in(&mut self, trace_event: &TraceEvent, woken: Thread) -> Option<chain::Chain> {
        if self.events.asked_start {
            return None;
        }
        let vcpu = self.vcpu_of(woken).map(|vcpu| vcpu.vm);
        let vm = vcpu.or_else(|| self.works_for.get(&woken).copied())?;
        let waker = self.waker(trace_event);
        let who = match waker {
            Actor::Interrupt => None,
            _ => Some((trace_event.recording, trace_event.thread)),
        };
        let on = self.role(woken);
        let label = self.named(Says::Wakes(on), who);
        Some(chain::begin(Some(vm), None, Step::from_event(label, waker, trace_event)))
    }

    fn waker(&mut self, trace_event: &TraceEvent) -> Actor {
        let flags = trace_event.value(1).unwrap_or(0);
        match trace_event.thread {
            0 => Actor::Interrupt,
            _ if Self::in_hardirq(flags) => Actor::Interrupt,
            thread => self.role((trace_event.recording, thread)),
        }
    }

    fn wakes_label(&mut self, woken: Thread, on: Actor) -> super::labels::Label {
        if on.has_name() {
            return self.named(Says::IsWoken, Some(woken));
        }
        self.names.wakes[on as usize]
    }

    fn runs_label(&mut self, who: Thread, on: Actor) -> super::labels::Label {
        if on.has_name() {
            return self.named(Says::Runs, Some(who));
        }
        self.names.runs[on as usize]
    }

    /// The name of a step with the name of a thread, or of an interrupt.
    fn named(&mut self, says: Says, thread: Option<Thread>) -> super::labels::Label {
        if let Some(label) = self.named.get(&(says, thread)) {
            return *label;
        }
        let who = thread.map_or_else(|| "interrupt".to_owned(), |thread| self.comm(thread));
        let label = self.labels.intern(&match says {
            Says::IsWoken => format!("wakes {who}"),
            Says::Runs => format!("{who} runs"),
            Says::Wakes(on) => format!("{who} wakes {}", on.name()),
        });
        if self.named.len() < MAX_NAMED {
            self.named.insert((says, thread), label);
        }
        label
    }

    /// A thread's name as the kernel saved it, without the numbers of kernel workers (`kworker/0:2`, `vhost-713`),
    /// which differ in each run.
    fn comm(&self, thread: Thread) -> String {
        let recording = self.machines.recordings.get(usize::from(thread.0));
        let comm = recording.and_then(|recording| recording.comm(thread.1)).unwrap_or("?");
        let comm = comm.split('/').next().unwrap_or(comm);
        match comm.rsplit_once('-') {
            Some((name, number)) if number.bytes().all(|byte| byte.is_ascii_digit()) => {
                name.to_owned()
            }
            _ => comm.to_owned(),
        }
    }
}
