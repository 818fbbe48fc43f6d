//! State of threads: which threads sleep, and which requests they work on.

use std::sync::Arc;

use super::Actor;
use super::chain::{self, Chain, Chains, Device, Root, Step};
use super::machines::{Machines, Thread, VcpuOf};
use super::places::Places;

/// A request that a vCPU's exit, or its access, begins. Nothing comes of most exits: their requests are made only when
/// somebody asks for them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Beginning {
    pub(super) vm: u16,
    pub(super) device: Option<Device>,
    pub(super) step: Step,
}

/// What is known of a thread.
#[derive(Debug, Default)]
pub(super) struct ThreadState {
    /// `None`: not seen to sleep or wake since the last loss.
    pub(super) asleep: Option<bool>,
    /// Requests for which it was woken, and that it is to take up when it runs.
    pub(super) pending: Chains,
    /// Requests handed to it while it was awake: it takes them up when it next does something.
    pub(super) queued: Chains,
    /// Requests it is busy with, but for the one that has yet to be made.
    current: Chains,
    beginning: Option<Beginning>,
    /// The request that the exit under way, or its access, began.
    own_request: Option<Arc<Root>>,
    /// The vCPU that it runs.
    vcpu: Option<VcpuOf>,
    /// The thread's identity, resolved on first use.
    role: Option<Actor>,
}

impl ThreadState {
    /// The requests it is busy with.
    pub(super) fn current(&mut self) -> &mut Chains {
        if let Some(Beginning { vm, device, step }) = self.beginning.take() {
            self.begin_own(Some(chain::begin(Some(vm), device, step)));
        }
        &mut self.current
    }

    /// It is busy with these from now on.
    pub(super) fn set_current(&mut self, chains: Chains) {
        self.beginning = None;
        self.current = chains;
    }

    /// Its exit begins a request, which is all that it is busy with.
    #[inline(always)]
    pub(super) fn begin(&mut self, beginning: Beginning) {
        if self.own_request.is_some() || !self.current.is_empty() {
            self.begin_own(None);
        }
        self.beginning = Some(beginning);
    }

    /// [`ThreadState::begin`] with a request that has taken steps already.
    pub(super) fn begin_own(&mut self, chain: Option<Chain>) {
        self.own_request = chain.as_ref().map(|chain| Arc::clone(&chain.root));
        self.set_current(chain.map_or_else(Chains::default, Chains::single));
    }

    /// Its exit ends: the request that this began, if it has been with nobody else, and those that it is busy with
    /// besides. One that has yet to be made is made only if it `matters`.
    pub(super) fn end_exit(&mut self, matters: bool) -> (Chains, Chains) {
        if !matters {
            self.beginning = None;
        }
        let mut others = self.current().take();
        let own_chains = self.take_own(&mut others);
        self.own_request = None;
        (own_chains, others)
    }

    /// Removes the request of its exit from the others, if no other thread worked on it.
    pub(super) fn take_own(&self, chains: &mut Chains) -> Chains {
        let Some(own_request) = &self.own_request else { return Chains::default() };
        chains.take_if(|chain| Arc::ptr_eq(own_request, &chain.root) && stayed(chain))
    }

    /// Its exit ends, in which it has had nothing to do but what its exit began, of which nothing comes; false if
    /// there is more to it.
    #[inline]
    pub(super) fn ends_idle_exit(&mut self) -> bool {
        if !self.current.is_empty() {
            return false;
        }
        (self.beginning, self.own_request) = (None, None);
        true
    }

    /// Whether it has no request but one that has yet to be made.
    #[inline]
    pub(super) fn is_idle(&self) -> bool {
        self.current.is_empty() && self.queued.is_empty()
    }

    /// The vCPU that it runs.
    #[inline]
    pub(super) fn vcpu(&self) -> Option<VcpuOf> {
        self.vcpu
    }

    /// Who it is; one that was seen first without a name stays what it was.
    #[inline]
    pub(super) fn role(&mut self, find: impl FnOnce() -> Actor) -> Actor {
        *self.role.get_or_insert_with(find)
    }

    /// Whether it is, or will be, busy with something.
    pub(super) fn is_busy(&self) -> bool {
        self.beginning.is_some() || !self.current.is_empty() || !self.queued.is_empty()
    }

    /// Whether it waits in the midst of something that has been handed to someone.
    pub(super) fn is_under_way(&self) -> bool {
        self.current.iter().any(|chain| chain.root.is_under_way())
    }

    /// The requests that what the thread does now is for.
    pub(super) fn take_up(&mut self) -> &mut Chains {
        let queued = self.queued.take();
        let current = self.current();
        if !queued.is_empty() {
            current.add(queued);
        }
        current
    }

    /// All requests that are with it, but for one that has yet to be made.
    pub(super) fn all(&self) -> [&Chains; 3] {
        [&self.pending, &self.current, &self.queued]
    }
}

/// Whether only vCPUs and their guest worked on a request.
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

/// All threads that events have shown.
#[derive(Debug)]
pub(super) struct Threads<'m> {
    machines: &'m Machines<'m>,
    states: Places<Thread, ThreadState>,
}

impl<'m> Threads<'m> {
    /// None so far.
    pub(super) fn new(machines: &'m Machines<'m>) -> Self {
        Self { machines, states: Places::default() }
    }

    /// A thread, new if it has not been seen.
    #[inline]
    pub(super) fn get_or_insert(&mut self, thread: Thread) -> &mut ThreadState {
        let machines = self.machines;
        let new = || ThreadState { vcpu: machines.vcpu_of(thread), ..ThreadState::default() };
        self.states.get_or_insert_with(thread, new)
    }

    /// A thread that has been seen.
    #[inline]
    pub(super) fn get_mut(&mut self, thread: Thread) -> Option<&mut ThreadState> {
        self.states.get_mut(thread)
    }

    /// The vCPU that a thread runs, whether or not it has been seen.
    #[inline]
    pub(super) fn vcpu_of(&mut self, thread: Thread) -> Option<VcpuOf> {
        match self.states.get_mut(thread) {
            Some(state) => state.vcpu(),
            None => self.machines.vcpu_of(thread),
        }
    }

    /// All of them.
    pub(super) fn iter(&self) -> impl Iterator<Item = &ThreadState> {
        self.states.iter().map(|(_, state)| state)
    }

    /// Nothing is known any more.
    pub(super) fn clear(&mut self) {
        *self = Self::new(self.machines);
    }
}
