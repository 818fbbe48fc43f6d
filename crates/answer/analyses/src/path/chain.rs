//! A request in progress: its steps, the last one first.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use smallvec::{SmallVec, smallvec};
use timeline::trace_events::TraceEvent;

use super::labels::Label;
use super::{Actor, Place};

/// Max steps of a request; longer ones are loops.
const MAX_STEPS: u8 = 24;

/// Max concurrent requests of one thread.
const MAX_AT_ONCE: usize = 8;

/// Time and place of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct At {
    pub(crate) stamp_ns: u64,
    pub(crate) place: Place,
}

impl At {
    /// Time and place of an event.
    pub(super) const fn of_event(event: &TraceEvent) -> Self {
        Self::of_thread(event, event.thread)
    }

    /// Time and place of an event, attributed to another thread: the one that is switched in.
    pub(super) const fn of_thread(event: &TraceEvent, thread: u32) -> Self {
        let place = Place { recording: event.recording, cpu: event.cpu, thread };
        Self { stamp_ns: event.stamp_ns, place }
    }
}

/// A device that a guest accesses, approximated by a page of addresses or eight ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Device {
    Page(u64),
    Ports(u64),
}

/// State that all branches of one request share. Only one thread follows requests, so separate atomics suffice.
#[derive(Debug)]
pub(super) struct Root {
    /// The VM that the request began in or works for.
    pub(super) vm: Option<u16>,
    /// The accessed device, if the request began with an access.
    pub(super) device: Option<Device>,
    /// The request was passed to another thread or to user space, so a response follows.
    is_begun: AtomicBool,
    done: AtomicBool,
}

impl Root {
    /// Marks the request as finished; `false` if it already was: only the first branch to arrive counts.
    pub(super) fn finish(&self) -> bool {
        let is_done = self.is_done();
        self.done.store(true, Ordering::Relaxed);
        !is_done
    }

    /// Marks the request as begun; `false` if it already was.
    pub(super) fn begin(&self) -> bool {
        let has_begun = self.is_begun.load(Ordering::Relaxed);
        self.is_begun.store(true, Ordering::Relaxed);
        !has_begun
    }

    /// Whether it has begun and is not finished.
    pub(super) fn is_under_way(&self) -> bool {
        self.is_begun.load(Ordering::Relaxed) && !self.is_done()
    }

    pub(super) fn is_done(&self) -> bool {
        self.done.load(Ordering::Relaxed)
    }
}

/// A step, with a link to its predecessor.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) label: Label,
    pub(super) on: Actor,
    pub(super) at: At,
    /// Number of steps up to this one.
    pub(super) depth: u8,
    pub(super) parent: Option<Arc<Node>>,
    pub(super) root: Arc<Root>,
}

/// A request, represented by its last step.
pub(super) type Chain = Arc<Node>;

/// A step of a request: event, actor, time and place.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    pub(super) label: Label,
    pub(super) on: Actor,
    pub(super) at: At,
}

impl Step {
    /// The step of an event.
    pub(super) const fn from_event(label: Label, on: Actor, event: &TraceEvent) -> Self {
        Self { label, on, at: At::of_event(event) }
    }
}

/// Begins a request in a VM or for one, with or without access to a device.
pub(super) fn begin(vm: Option<u16>, device: Option<Device>, first: Step) -> Chain {
    let Step { label, on, at } = first;
    let root = Arc::new(Root {
        vm,
        device,
        is_begun: AtomicBool::new(false),
        done: AtomicBool::new(false),
    });
    Arc::new(Node { label, on, at, depth: 1, parent: None, root })
}

/// Adds a step; `None` if the request is finished or has too many steps.
pub(super) fn step(chain: Chain, Step { label, on, at }: Step) -> Option<Chain> {
    if chain.root.is_done() || chain.depth >= MAX_STEPS {
        return None;
    }
    // Clocks of guests have an error bound: no step may precede its cause.
    let at = At { stamp_ns: at.stamp_ns.max(chain.at.stamp_ns), ..at };
    let (depth, root) = (chain.depth + 1, Arc::clone(&chain.root));
    Some(Arc::new(Node { label, on, at, depth, parent: Some(chain), root }))
}

/// Requests of a thread: usually one, so that the list needs no allocation.
#[derive(Clone, Debug, Default)]
pub(super) struct Chains(SmallVec<[Chain; 2]>);

impl Chains {
    pub(super) fn single(chain: Chain) -> Self {
        Self(smallvec![chain])
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Chain> {
        self.0.iter()
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// Removes and returns those for which `which` holds.
    pub(super) fn take_if(&mut self, which: impl Fn(&Chain) -> bool) -> Self {
        let mut chains = Self::default();
        self.0.retain(|chain| {
            let is_taken = which(chain);
            if is_taken {
                chains.0.push(Arc::clone(chain));
            }
            !is_taken
        });
        chains
    }

    pub(super) fn take(&mut self) -> Self {
        std::mem::take(self)
    }

    /// Adds requests: the latest branch replaces other branches of the same request, up to [`MAX_AT_ONCE`].
    pub(super) fn add(&mut self, more: Self) {
        for chain in more.0 {
            self.0.retain(|other| !other.root.is_done() && !Arc::ptr_eq(&other.root, &chain.root));
            if self.0.len() < MAX_AT_ONCE && !chain.root.is_done() {
                self.0.push(chain);
            }
        }
    }

    /// The same requests with another step; a request that already ends with this step stays unchanged.
    #[inline]
    pub(super) fn stepped(self, step_to: Step) -> Self {
        if self.0.is_empty() { self } else { self.all_stepped(step_to) }
    }

    #[inline(never)]
    fn all_stepped(mut self, step_to: Step) -> Self {
        let Step { label, on, .. } = step_to;
        let next = |chain: Chain| {
            if chain.label == label && chain.on == on { Some(chain) } else { step(chain, step_to) }
        };
        if self.0.len() == 1 {
            return Self(self.0.pop().and_then(next).into_iter().collect());
        }
        Self(self.0.into_iter().filter_map(next).collect())
    }
}

impl IntoIterator for Chains {
    type Item = Chain;
    type IntoIter = smallvec::IntoIter<[Chain; 2]>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}
