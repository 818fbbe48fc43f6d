//! State of threads: which threads sleep, and which requests they work on.

use std::sync::Arc;

use super::Actor;
use super::chain::{self, Chain, Chains, Device, Root, Step};
use super::machines::{Machines, Thread, VcpuOf};
use super::places::Places;

/// A request that starts with a vCPU's exit or access. Most exits cause no further steps, so their requests are
/// created lazily.
#[derive(Clone, Copy, Debug)]
pub(super) struct Beginning {
    pub(super) vm: u16,
    pub(super) device: Option<Device>,
    pub(super) step: Step,
}

/// State of a thread.
#[derive(Debug, Default)]
pub(super) struct ThreadState {
    /// `None`: no sleep or wake-up since the last loss.
    pub(super) asleep: Option<bool>,
    /// Requests that woke it; it takes them up when it runs.
    pub(super) pending: Chains,
    /// Requests that arrived while it was awake; it takes them up at its next action.
    pub(super) queued: Chains,
    /// Requests that it works on, except for `beginning`.
    current: Chains,
    beginning: Option<Beginning>,
    /// The request of the current exit or access.
    own_request: Option<Arc<Root>>,
    /// The vCPU that it runs.
    vcpu: Option<VcpuOf>,
    /// Role, resolved on first use.
    role: Option<Actor>,
}

impl ThreadState {
    /// The requests that it works on.
    pub(super) fn current(&mut self) -> &mut Chains {
        if let Some(Beginning { vm, device, step }) = self.beginning.take() {
            self.begin_own(Some(chain::begin(Some(vm), device, step)));
        }
        &mut self.current
    }

    /// Replaces the requests that it works on.
    pub(super) fn set_current(&mut self, chains: Chains) {
        self.beginning = None;
        self.current = chains;
    }

    /// Its exit begins a request, which replaces its other requests.
    #[inline(always)]
    pub(super) fn begin(&mut self, beginning: Beginning) {
        if self.own_request.is_some() || !self.current.is_empty() {
            self.begin_own(None);
        }
        self.beginning = Some(beginning);
    }

    /// [`ThreadState::begin`] with a request that already has steps.
    pub(super) fn begin_own(&mut self, chain: Option<Chain>) {
        self.own_request = chain.as_ref().map(|chain| Arc::clone(&chain.root));
        self.set_current(chain.map_or_else(Chains::default, Chains::single));
    }

    /// Ends its exit: returns the exit's own request, if no other thread worked on it, and its other requests. A
    /// lazy request is only created if it `matters`.
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

    /// Ends an exit that caused no steps; `false` if the thread has other requests.
    #[inline]
    pub(super) fn ends_idle_exit(&mut self) -> bool {
        if !self.current.is_empty() {
            return false;
        }
        (self.beginning, self.own_request) = (None, None);
        true
    }

    /// Whether it has no requests, except for a lazy one.
    #[inline]
    pub(super) fn is_idle(&self) -> bool {
        self.current.is_empty() && self.queued.is_empty()
    }

    /// The vCPU that it runs.
    #[inline]
    pub(super) fn vcpu(&self) -> Option<VcpuOf> {
        self.vcpu
    }

    /// Role; a thread without a name at its first event keeps that role.
    #[inline]
    pub(super) fn role(&mut self, find: impl FnOnce() -> Actor) -> Actor {
        *self.role.get_or_insert_with(find)
    }

    /// Whether it has requests, current or queued.
    pub(super) fn is_busy(&self) -> bool {
        self.beginning.is_some() || !self.current.is_empty() || !self.queued.is_empty()
    }

    /// Whether it waits for a response to a request that it handed on.
    pub(super) fn is_under_way(&self) -> bool {
        self.current.iter().any(|chain| chain.root.is_under_way())
    }

    /// The requests that its current action belongs to.
    pub(super) fn take_up(&mut self) -> &mut Chains {
        let queued = self.queued.take();
        let current = self.current();
        if !queued.is_empty() {
            current.add(queued);
        }
        current
    }

    /// All of its requests, except for a lazy one.
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

/// All threads with events.
#[derive(Debug)]
pub(super) struct Threads<'m> {
    machines: &'m Machines<'m>,
    states: Places<Thread, ThreadState>,
}

impl<'m> Threads<'m> {
    pub(super) fn new(machines: &'m Machines<'m>) -> Self {
        Self { machines, states: Places::default() }
    }

    /// The state of a thread; inserts it if the thread is new.
    #[inline]
    pub(super) fn get_or_insert(&mut self, thread: Thread) -> &mut ThreadState {
        let machines = self.machines;
        let new = || ThreadState { vcpu: machines.vcpu_of(thread), ..ThreadState::default() };
        self.states.get_or_insert_with(thread, new)
    }

    /// The state of a thread with events.
    #[inline]
    pub(super) fn get_mut(&mut self, thread: Thread) -> Option<&mut ThreadState> {
        self.states.get_mut(thread)
    }

    /// The vCPU of a thread, with or without events.
    #[inline]
    pub(super) fn vcpu_of(&mut self, thread: Thread) -> Option<VcpuOf> {
        match self.states.get_mut(thread) {
            Some(state) => state.vcpu(),
            None => self.machines.vcpu_of(thread),
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &ThreadState> {
        self.states.iter().map(|(_, state)| state)
    }

    /// Forgets all states.
    pub(super) fn clear(&mut self) {
        *self = Self::new(self.machines);
    }
}
