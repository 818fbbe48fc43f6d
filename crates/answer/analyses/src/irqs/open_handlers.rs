//! Open handlers of one CPU, and the states of its vCPU meanwhile.
//!
//! ```text
//!  guest   softirq ──────────┐ irq ───┐ ┌── … ───────── end     the irq is the softirq's child
//!  host    ──────── guest ────── exit ──── guest ─────────      what is no guest is taken from both
//! ```
//! Guest events arrive before the states of their vCPU, which are only final after the next entry: handlers wait
//! until the states reach their end.

use std::collections::VecDeque;

use super::sums::Handler;

/// Max handlers that wait for states: beyond it, the first one is counted without states.
const MAX_WAITING: usize = 1 << 10;
/// Max nested handlers: a soft interrupt, interrupts of each priority, and handlers without an end.
const MAX_OPEN: usize = 16;

#[derive(Clone, Copy, Debug)]
struct Entry {
    handler: Handler,
    /// Its end is known.
    is_closed: bool,
    /// It was counted, and waits for earlier entries.
    is_done: bool,
    /// Number of the interrupted handler.
    parent: Option<u64>,
}

#[derive(Debug, Default)]
pub(super) struct OpenHandlers {
    /// By start.
    entries: VecDeque<Entry>,
    /// Number of the first entry.
    first: u64,
    /// Numbers of the open handlers, the innermost last.
    open: Vec<u64>,
    /// Whether the CPU is a vCPU with states.
    has_host: bool,
}

impl OpenHandlers {
    pub(super) fn new(has_host: bool) -> Self {
        Self { has_host, ..Self::default() }
    }

    fn entry(&mut self, number: u64) -> Option<&mut Entry> {
        let at = usize::try_from(number.checked_sub(self.first)?).ok()?;
        self.entries.get_mut(at)
    }

    pub(super) fn begin(&mut self, handler: Handler, count: &mut impl FnMut(&Handler)) {
        if self.open.len() >= MAX_OPEN {
            self.abandon();
        }
        if self.entries.len() >= MAX_WAITING {
            self.count_first(count);
        }
        let number = self.first.saturating_add(self.entries.len() as u64);
        let parent = self.open.last().copied();
        self.entries.push_back(Entry { handler, is_closed: false, is_done: false, parent });
        self.open.push(number);
    }

    /// Ends the innermost open handler with this source and number; handlers nested in it have lost their ends.
    /// Returns false if no such handler is open.
    pub(super) fn end(
        &mut self,
        (source, number): (u8, u64),
        now_ns: u64,
        count: &mut impl FnMut(&Handler),
    ) -> bool {
        let is_same_handler =
            |entry: &Entry| (entry.handler.source, entry.handler.number) == (source, number);
        let open = &self.open;
        let first = self.first;
        let entries = &self.entries;
        let entry_of = |number: u64| entries.get(usize::try_from(number.checked_sub(first)?).ok()?);
        let Some(depth) =
            open.iter().rposition(|&number| entry_of(number).is_some_and(is_same_handler))
        else {
            return false;
        };
        while self.open.len() > depth + 1 {
            self.drop_innermost();
        }
        let Some(number) = self.open.pop() else { return false };
        let has_host = self.has_host;
        if let Some(entry) = self.entry(number) {
            entry.handler.to_ns = now_ns.max(entry.handler.from_ns);
            entry.is_closed = true;
        }
        if !has_host {
            self.count(number, count);
        }
        self.release();
        true
    }

    /// Drops the open handlers, whose ends are unknown.
    pub(super) fn abandon(&mut self) {
        while !self.open.is_empty() {
            self.drop_innermost();
        }
        self.release();
    }

    fn drop_innermost(&mut self) {
        let Some(number) = self.open.pop() else { return };
        if let Some(entry) = self.entry(number) {
            entry.is_done = true;
        }
    }

    /// Adds a state of the vCPU that lasts until `to_ns`.
    pub(super) fn state(
        &mut self,
        (from_ns, to_ns): (u64, u64),
        is_guest: bool,
        count: &mut impl FnMut(&Handler),
    ) {
        let begun_count = self.entries.partition_point(|entry| entry.handler.from_ns < to_ns);
        // Nested handlers come first, because their time is subtracted from the outer ones.
        for at in (0..begun_count).rev() {
            let Some(entry) = self.entries.get_mut(at).filter(|entry| !entry.is_done) else {
                continue;
            };
            let end_ns = if entry.is_closed { entry.handler.to_ns } else { u64::MAX };
            let (begin, end) = (from_ns.max(entry.handler.from_ns), to_ns.min(end_ns));
            if !is_guest && begin < end {
                entry.handler.away_ns = entry.handler.away_ns.saturating_add(end - begin);
            }
            if end_ns <= to_ns {
                entry.handler.is_placed = true;
                self.count(self.first.saturating_add(at as u64), count);
            }
        }
        self.release();
    }

    /// Counts all closed handlers, because no more states come.
    pub(super) fn finish(mut self, count: &mut impl FnMut(&Handler)) {
        for at in (0..self.entries.len()).rev() {
            if self.entries.get(at).is_some_and(|entry| entry.is_closed && !entry.is_done) {
                self.count(self.first.saturating_add(at as u64), count);
            }
        }
    }

    /// Counts a handler, and adds its time to the interrupted handler's nested time.
    fn count(&mut self, number: u64, count: &mut impl FnMut(&Handler)) {
        let Some(entry) = self.entry(number) else { return };
        entry.is_done = true;
        let Entry { handler, parent, .. } = *entry;
        count(&handler);
        if let Some(parent) = parent.and_then(|parent| self.entry(parent)) {
            let within = &mut parent.handler;
            within.within_ns = within.within_ns.saturating_add(handler.duration_ns());
            within.away_within_ns = within.away_within_ns.saturating_add(handler.away_ns);
        }
    }

    fn count_first(&mut self, count: &mut impl FnMut(&Handler)) {
        let (first, entry) = (self.first, self.entries.front().copied());
        if entry.is_some_and(|entry| entry.is_closed && !entry.is_done) {
            self.count(first, count);
        }
        self.open.retain(|&number| number != first);
        self.entries.pop_front();
        self.first = self.first.saturating_add(1);
    }

    fn release(&mut self) {
        while self.entries.front().is_some_and(|entry| entry.is_done) {
            self.entries.pop_front();
            self.first = self.first.saturating_add(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Number of a handler, its own time, and its own time outside of the guest.
    type Own = Vec<(u64, u64, u64)>;

    /// Results for nested handlers and vCPU states; each state lasts until its end time.
    fn counted(handlers: &[(u64, u64, u64)], states: &[(u64, bool)], late: usize) -> Own {
        let mut events: Vec<(u64, u8, u64)> = Vec::new();
        for &(number, from_ns, to_ns) in handlers {
            events.extend([(from_ns, 1, number), (to_ns, 0, number)]);
        }
        events.sort_unstable();
        let mut own_times = Own::new();
        let mut open = OpenHandlers::new(true);
        let mut count = |handler: &Handler| {
            let own_ns = handler.duration_ns() - handler.within_ns;
            assert!(handler.is_placed);
            own_times.push((handler.number, own_ns, handler.away_ns - handler.away_within_ns));
        };
        let (mut given, mut from_ns) = (0, 0);
        for (at, &(now_ns, begins, number)) in events.iter().enumerate() {
            let handler = Handler { number, from_ns: now_ns, ..Handler::default() };
            match begins {
                1 => open.begin(handler, &mut count),
                _ => assert!(open.end((0, number), now_ns, &mut count)),
            }
            // States arrive late, and never before the events within them.
            while let Some(&(to_ns, is_guest)) = states.get(given)
                && events.get(at + 1).is_some_and(|next| to_ns <= next.0)
                && at % late == 0
            {
                open.state((from_ns, to_ns), is_guest, &mut count);
                (from_ns, given) = (to_ns, given + 1);
            }
        }
        for &(to_ns, is_guest) in states.iter().skip(given) {
            open.state((from_ns, to_ns), is_guest, &mut count);
            from_ns = to_ns;
        }
        assert!(open.entries.is_empty());
        own_times.sort_unstable();
        own_times
    }

    /// The same results, computed for each nanosecond.
    fn naive(handlers: &[(u64, u64, u64)], states: &[(u64, bool)]) -> Own {
        let mut own_times: Own = handlers.iter().map(|&(number, ..)| (number, 0, 0)).collect();
        for ns in 0..states.last().map_or(0, |last| last.0) {
            let is_guest =
                states.iter().find(|(to_ns, _)| ns < *to_ns).is_some_and(|state| state.1);
            let open = handlers.iter().filter(|&&(_, from, to)| from <= ns && ns < to);
            let Some(inner) = open.max_by_key(|handler| handler.1) else { continue };
            let row = own_times.iter_mut().find(|row| row.0 == inner.0).unwrap();
            row.1 += 1;
            row.2 += u64::from(!is_guest);
        }
        own_times.sort_unstable();
        own_times
    }

    /// Random handlers: each one is inside the previous one, or follows it.
    fn nested(steps: &[(u64, u64, bool)]) -> Vec<(u64, u64, u64)> {
        let mut handlers: Vec<(u64, u64, u64)> = Vec::new();
        let mut open: Vec<usize> = Vec::new();
        let mut now_ns = 0;
        for &(wait_ns, _, ends) in steps {
            now_ns += wait_ns;
            match open.pop() {
                Some(at) if ends => handlers[at].2 = now_ns,
                was => {
                    open.extend(was);
                    open.push(handlers.len());
                    handlers.push((handlers.len() as u64, now_ns, 0));
                }
            }
        }
        while let Some(at) = open.pop() {
            now_ns += 1;
            handlers[at].2 = now_ns;
        }
        handlers
    }

    proptest! {
        #[test]
        fn every_nanosecond_is_the_innermost_handlers(
            steps in prop::collection::vec((1u64..9, 0u64..1, any::<bool>()), 1..15),
            lengths in prop::collection::vec((1u64..12, any::<bool>()), 0..12),
            late in 1usize..4,
        ) {
            let handlers = nested(&steps);
            let end_ns = handlers.iter().map(|handler| handler.2).max().unwrap();
            let mut to_ns = 0;
            let mut states: Vec<(u64, bool)> = Vec::new();
            for (length_ns, is_guest) in lengths {
                to_ns += length_ns;
                states.push((to_ns, is_guest));
            }
            states.push((to_ns.max(end_ns) + 1, true));
            prop_assert_eq!(counted(&handlers, &states, late), naive(&handlers, &states));
        }
    }

    #[test]
    fn a_handler_that_lost_its_end_is_not_counted() {
        let mut rows = Vec::new();
        let mut open = OpenHandlers::new(false);
        let mut count = |handler: &Handler| {
            rows.push((handler.number, handler.duration_ns(), handler.within_ns))
        };
        let handler = |number, from_ns| Handler { number, from_ns, ..Handler::default() };
        open.begin(handler(1, 10), &mut count);
        open.begin(handler(2, 20), &mut count);
        assert!(open.end((0, 1), 30, &mut count));
        assert!(!open.end((0, 2), 40, &mut count));
        open.begin(handler(3, 50), &mut count);
        open.abandon();
        assert!(!open.end((0, 3), 60, &mut count));
        open.begin(handler(4, 70), &mut count);
        open.begin(handler(5, 80), &mut count);
        assert!(open.end((0, 5), 85, &mut count) && open.end((0, 4), 90, &mut count));
        open.finish(&mut count);
        assert_eq!(rows, [(1, 20, 0), (5, 5, 0), (4, 20, 5)]);
    }

    #[test]
    fn handlers_wait_within_bounds() {
        let mut counted = 0;
        let mut open = OpenHandlers::new(true);
        for at in 0..5000 {
            let handler = Handler { number: at, from_ns: at * 10, ..Handler::default() };
            open.begin(handler, &mut |_| counted += 1);
            open.end((0, at), at * 10 + 5, &mut |_| counted += 1);
            assert!(open.entries.len() <= MAX_WAITING);
        }
        open.finish(&mut |handler| {
            assert!(!handler.is_placed);
            counted += 1;
        });
        assert_eq!(counted, 5000);
        let mut deep = OpenHandlers::new(false);
        for at in 0..100 {
            deep.begin(Handler { number: at, ..Handler::default() }, &mut |_| ());
            assert!(deep.open.len() <= MAX_OPEN);
        }
    }
}
