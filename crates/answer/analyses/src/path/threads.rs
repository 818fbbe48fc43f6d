//! What is known of threads: who sleeps, and who is busy with which requests.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::Actor;
use super::chain::{self, At, Chain, Chains, Device, Root};
use super::labels::Label;
use super::machines::Thread;

/// A request that a vCPU's exit, or its access, begins. Nothing comes of most exits: their requests are made only when
/// somebody asks for them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Beginning {
    pub(super) vm: u16,
    pub(super) device: Option<Device>,
    pub(super) step: (Label, Actor, At),
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
    own: Option<Arc<Root>>,
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
    pub(super) fn begin(&mut self, beginning: Beginning) {
        self.begin_own(None);
        self.beginning = Some(beginning);
    }

    /// [`ThreadState::begin`] with a request that has taken steps already.
    pub(super) fn begin_own(&mut self, chain: Option<Chain>) {
        self.own = chain.as_ref().map(|chain| Arc::clone(&chain.root));
        self.set_current(chain.map_or_else(Chains::default, Chains::one));
    }

    /// Its exit ends: the request that this began, if it has been with nobody else, and those that it is busy with
    /// besides. One that has yet to be made is made only if it `matters`.
    pub(super) fn end_exit(&mut self, matters: bool) -> (Chains, Chains) {
        if !matters {
            self.beginning = None;
        }
        let mut others = self.current().take();
        let own = self.take_own(&mut others);
        self.own = None;
        (own, others)
    }

    /// Takes the request of its exit out of others, if it has been with nobody else.
    pub(super) fn take_own(&self, chains: &mut Chains) -> Chains {
        let Some(own) = &self.own else { return Chains::default() };
        chains.take_if(|chain| Arc::ptr_eq(own, &chain.root) && stayed(chain))
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
    pub(super) fn take_up(&mut self) -> &Chains {
        let queued = self.queued.take();
        let current = self.current();
        current.add(queued);
        current
    }

    /// All requests that are with it, but for one that has yet to be made.
    pub(super) fn all(&self) -> [&Chains; 3] {
        [&self.pending, &self.current, &self.queued]
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

/// All threads that events have shown.
#[derive(Debug, Default)]
pub(super) struct Threads {
    places: FxHashMap<Thread, usize>,
    states: Vec<ThreadState>,
    /// The one that was asked for last, most likely to be asked for again.
    last: Option<(Thread, usize)>,
}

impl Threads {
    /// A thread, new if it has not been seen.
    pub(super) fn of(&mut self, thread: Thread) -> &mut ThreadState {
        let place = self.place(thread).unwrap_or_else(|| {
            let next = self.states.len();
            self.states.push(ThreadState::default());
            self.places.insert(thread, next);
            next
        });
        self.last = Some((thread, place));
        &mut self.states[place]
    }

    /// A thread that has been seen.
    pub(super) fn get_mut(&mut self, thread: Thread) -> Option<&mut ThreadState> {
        let place = self.place(thread)?;
        self.last = Some((thread, place));
        self.states.get_mut(place)
    }

    fn place(&self, thread: Thread) -> Option<usize> {
        match self.last {
            Some((last, place)) if last == thread => Some(place),
            _ => self.places.get(&thread).copied(),
        }
    }

    /// All of them.
    pub(super) fn iter(&self) -> impl Iterator<Item = &ThreadState> {
        self.states.iter()
    }

    /// Nothing is known any more.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}
