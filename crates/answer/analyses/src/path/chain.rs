//! A request on its way: the steps it has taken, the last one first.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use smallvec::{SmallVec, smallvec};
use timeline::trace_events::TraceEvent;

use super::labels::Label;
use super::{Actor, Place};

/// Steps of one request; what goes on longer goes in circles.
const MAX_STEPS: u8 = 24;

/// Requests that one thread is busy with at once.
const MAX_AT_ONCE: usize = 8;

/// When and where a step is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct At {
    pub(crate) stamp_ns: u64,
    pub(crate) place: Place,
}

impl At {
    /// Where an event was recorded.
    pub(super) const fn of_event(event: &TraceEvent) -> Self {
        Self::of_thread(event, event.thread)
    }

    /// The same, but done by another thread: the one that is switched to.
    pub(super) const fn of_thread(event: &TraceEvent, thread: u32) -> Self {
        let place = Place { recording: event.recording, cpu: event.cpu, thread };
        Self { stamp_ns: event.stamp_ns, place }
    }
}

/// What a guest accesses, as closely as one access can be said to be of the same device as another:
/// a page of addresses, or eight ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Device {
    Page(u64),
    Ports(u64),
}

/// What all ways of one request share. One thread at a time follows requests: its marks need not be set in one go.
#[derive(Debug)]
pub(super) struct Root {
    /// The VM it began in, or is for.
    pub(super) vm: Option<u16>,
    /// What was accessed, where it began with an access: see [`Device`].
    pub(super) device: Option<Device>,
    /// It has been handed to someone, or user space was asked: an answer is to come.
    is_begun: AtomicBool,
    done: AtomicBool,
}

impl Root {
    /// Takes the request as done; `false` if it was already: the way that arrives first counts.
    pub(super) fn finish(&self) -> bool {
        let is_done = self.is_done();
        self.done.store(true, Ordering::Relaxed);
        !is_done
    }

    /// Takes the request as begun; `false` if it was already.
    pub(super) fn begin(&self) -> bool {
        let has_begun = self.is_begun.load(Ordering::Relaxed);
        self.is_begun.store(true, Ordering::Relaxed);
        !has_begun
    }

    /// Whether it has begun, and is not done yet.
    pub(super) fn is_under_way(&self) -> bool {
        self.is_begun.load(Ordering::Relaxed) && !self.is_done()
    }

    pub(super) fn is_done(&self) -> bool {
        self.done.load(Ordering::Relaxed)
    }
}

/// A step, and those before it.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) label: Label,
    pub(super) on: Actor,
    pub(super) at: At,
    /// Steps up to here, this one included.
    pub(super) depth: u8,
    pub(super) parent: Option<Arc<Node>>,
    pub(super) root: Arc<Root>,
}

/// A request, by the step it took last.
pub(super) type Chain = Arc<Node>;

/// A step of a request: what happens, on which side of the machine, and when and where.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    pub(super) label: Label,
    pub(super) on: Actor,
    pub(super) at: At,
}

impl Step {
    /// The step that an event shows.
    pub(super) const fn from_event(label: Label, on: Actor, event: &TraceEvent) -> Self {
        Self { label, on, at: At::of_event(event) }
    }
}

/// A request begins, in a VM or for one, with an access to a device or without.
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

/// The request takes a step; `None` when it is done, or has taken too many.
pub(super) fn step(chain: Chain, Step { label, on, at }: Step) -> Option<Chain> {
    if chain.root.is_done() || chain.depth >= MAX_STEPS {
        return None;
    }
    // Clocks of guests are known to within a bound only: no step is before the one that caused it.
    let at = At { stamp_ns: at.stamp_ns.max(chain.at.stamp_ns), ..at };
    let (depth, root) = (chain.depth + 1, Arc::clone(&chain.root));
    Some(Arc::new(Node { label, on, at, depth, parent: Some(chain), root }))
}

/// Requests that someone is busy with: mostly one, so that no memory is allocated for their list.
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

    /// Takes out those for which `which` holds.
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

    /// Adds requests: of one request only the way that came last, and no more than can be kept.
    pub(super) fn add(&mut self, more: Self) {
        for chain in more.0 {
            self.0.retain(|other| !other.root.is_done() && !Arc::ptr_eq(&other.root, &chain.root));
            if self.0.len() < MAX_AT_ONCE && !chain.root.is_done() {
                self.0.push(chain);
            }
        }
    }

    /// The same requests one step on; those that end with that step already stay where they are.
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
