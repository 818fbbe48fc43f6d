//! The successive names of renamed threads.

use rustc_hash::FxHashMap;

/// Maximum stored times per thread: a name takes two. Further names are not distinguished.
const MAX_TIMES_OF_THREAD: usize = 256;

/// Maximum stored times for all threads together.
const MAX_TIMES: usize = 1 << 18;

/// By thread: the known first and last time of each of its names, in time order.
#[derive(Clone, Debug, Default)]
pub(super) struct NameHistories {
    by_thread: FxHashMap<u32, Vec<(u64, Box<str>)>>,
    count: usize,
}

impl NameHistories {
    /// Whether a thread had several names.
    pub(super) fn has(&self, thread: u32) -> bool {
        self.by_thread.contains_key(&thread)
    }

    /// Records that a thread had a name from one time to another.
    pub(super) fn add(&mut self, thread: u32, (from_ns, to_ns): (u64, u64), name: &str) {
        if self.count >= MAX_TIMES {
            return;
        }
        let seen = self.by_thread.entry(thread).or_default();
        let before = seen.len();
        note(seen, from_ns, name);
        note(seen, to_ns, name);
        self.count = (self.count + seen.len()).saturating_sub(before);
    }

    /// The name of a renamed thread at a time, and its start; before the first event, that event's
    /// name, from 0 on.
    pub(super) fn at(&self, thread: u32, now_ns: u64) -> Option<(u64, &str)> {
        let seen = self.by_thread.get(&thread)?;
        let after = seen.partition_point(|(at_ns, _)| *at_ns <= now_ns);
        let Some(last) = after.checked_sub(1) else {
            return seen.first().map(|(_, name)| (0, &**name));
        };
        let (_, name) = seen.get(last)?;
        let same = seen.get(..=last)?.iter().rev().take_while(|(_, known)| known == name);
        let (from_ns, _) = same.last()?;
        Some((*from_ns, name))
    }

    /// All names of a thread, each with its first time.
    pub(super) fn names_of(&self, thread: u32) -> impl Iterator<Item = (u64, &str)> {
        let seen = self.by_thread.get(&thread).map_or(&[][..], Vec::as_slice);
        let runs = seen.chunk_by(|before, after| before.1 == after.1);
        runs.filter_map(|run| run.first().map(|(at_ns, name)| (*at_ns, &**name)))
    }
}

/// Adds a time, unless it is inside a known period of the same name.
fn note(seen: &mut Vec<(u64, Box<str>)>, now_ns: u64, name: &str) {
    let at = seen.partition_point(|(at_ns, _)| *at_ns <= now_ns);
    let has_name = |place: Option<usize>| {
        place.and_then(|place| seen.get(place)).is_some_and(|(_, known)| **known == *name)
    };
    let (before, after) = (has_name(at.checked_sub(1)), has_name(Some(at)));
    if before && after {
        return;
    }
    // A name is stored as its first and last time: a third time replaces the adjacent one.
    let replaced = if before && has_name(at.checked_sub(2)) {
        at.checked_sub(1)
    } else {
        (after && has_name(at.checked_add(1))).then_some(at)
    };
    if let Some((known_ns, _)) = replaced.and_then(|place| seen.get_mut(place)) {
        *known_ns = now_ns;
    } else if seen.len() < MAX_TIMES_OF_THREAD {
        seen.insert(at, (now_ns, name.into()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(histories: &NameHistories) -> Vec<(u64, &str)> {
        histories.names_of(7).collect()
    }

    #[test]
    fn a_name_holds_until_the_next_one_in_whatever_order_they_come() {
        let all = [((2, 9), "init"), ((20, 40), "sh"), ((35, 60), "sh"), ((61, 70), "dd")];
        for first in 0..all.len() {
            let mut histories = NameHistories::default();
            let in_order = all.iter().cycle().skip(first).take(all.len());
            in_order.for_each(|(seen_ns, name)| histories.add(7, *seen_ns, name));
            assert_eq!(names(&histories), [(2, "init"), (20, "sh"), (61, "dd")]);
            assert_eq!(histories.count, 6);
            let at = |now_ns| histories.at(7, now_ns);
            assert_eq!(at(1), Some((0, "init")));
            assert_eq!((at(19), at(20)), (Some((2, "init")), Some((20, "sh"))));
            assert_eq!((at(60), at(u64::MAX)), (Some((20, "sh")), Some((61, "dd"))));
        }
        assert_eq!(NameHistories::default().at(7, 5), None);
    }

    #[test]
    fn no_more_is_kept_of_a_thread_than_there_is_room_for() {
        let mut histories = NameHistories::default();
        for at in 0..100_000 {
            histories.add(7, (at, at), if at % 2 == 0 { "a" } else { "b" });
        }
        assert_eq!(histories.count, MAX_TIMES_OF_THREAD);
        assert_eq!(names(&histories).len(), MAX_TIMES_OF_THREAD / 2);
    }
}
