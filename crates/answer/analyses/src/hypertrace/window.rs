//! A sorting window for late events, with limits.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use super::{Carrier, GuestEvent, VcpuThread};

/// Larger than the guest module's max delay of half a second.
const WINDOW_NS: u64 = 1_000_000_000;
/// Max events in the window.
const MOST: usize = 1 << 20;

/// Receives events in the order of time.
type Sink<'s> = &'s mut dyn FnMut(VcpuThread, &GuestEvent, &Carrier);

/// Events in the window.
#[derive(Debug, Default)]
pub(super) struct Window {
    /// Timestamps; equal ones keep their order of arrival.
    order: BinaryHeap<Reverse<(u64, u64)>>,
    waiting: BTreeMap<u64, (VcpuThread, GuestEvent, Carrier)>,
    next: u64,
    released_ns: u64,
    late: u64,
}

impl Window {
    pub(super) fn add(&mut self, from: VcpuThread, event: GuestEvent, by: Carrier) {
        let stamp_ns = event.stamp_ns();
        self.late += u64::from(stamp_ns < self.released_ns);
        self.order.push(Reverse((stamp_ns, self.next)));
        self.waiting.insert(self.next, (from, event, by));
        self.next += 1;
    }

    /// Emits events that are older than the window.
    pub(super) fn release(&mut self, now_ns: u64, to: Sink<'_>) {
        let until_ns = now_ns.saturating_sub(WINDOW_NS);
        while let Some(Reverse((stamp_ns, _))) = self.order.peek() {
            if *stamp_ns > until_ns && self.order.len() <= MOST {
                return;
            }
            self.first(to);
        }
    }

    /// Emits all remaining events.
    pub(super) fn rest(&mut self, to: Sink<'_>) {
        while !self.order.is_empty() {
            self.first(to);
        }
    }

    /// Number of events that arrived after a later event was emitted.
    pub(super) fn late(&self) -> u64 {
        self.late
    }

    fn first(&mut self, to: Sink<'_>) {
        let Some(Reverse((stamp_ns, key))) = self.order.pop() else { return };
        self.released_ns = self.released_ns.max(stamp_ns);
        if let Some((from, event, by)) = self.waiting.remove(&key) {
            to(from, &event, &by);
        }
    }
}

#[cfg(test)]
mod tests {
    use hypertrace::Mark;

    use super::*;

    fn add(window: &mut Window, stamp_ns: u64) {
        let mark = Mark { stamp_ns, text: String::new() };
        let from = VcpuThread { recording: 0, thread: 1 };
        window.add(from, GuestEvent::Mark(mark, None), Carrier::default());
    }

    #[test]
    fn what_comes_within_the_window_comes_in_order() {
        let (mut window, mut seen) = (Window::default(), Vec::new());
        for stamp_ns in [5, 3, 4, 900_000_000, 1_000_000_004] {
            add(&mut window, stamp_ns);
            window.release(stamp_ns, &mut |_, event, _| seen.push(event.stamp_ns()));
        }
        assert_eq!(seen, [3, 4]);
        add(&mut window, 2);
        window.rest(&mut |_, event, _| seen.push(event.stamp_ns()));
        assert_eq!(seen, [3, 4, 2, 5, 900_000_000, 1_000_000_004]);
        assert_eq!(window.late(), 1);
    }
}
