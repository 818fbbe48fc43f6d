//! A guest that writes anything anywhere at any time.

use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use shmring::{Change, HostSide, Mode, Received, Sent, SharedMap, Written};

use crate::region::{Memory, plan, put, take, take_all};

const RING: usize = 4096 + 2 * 8192;

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// A word of the region: mostly one that means something.
    fn place(&mut self, len_bytes: usize) -> usize {
        let word = self.next() as usize;
        match self.next() % 16 {
            0 => (word % 288) & !7,
            1..=4 => (word % len_bytes) & !7,
            5..=7 => (4096 + word % 2 * 8192 + word / 2 % 72) & !7,
            _ => (RING + word % 1024) & !7,
        }
    }

    /// A value that is nearly right, or not at all.
    fn value(&mut self, present: u64) -> u64 {
        match self.next() % 6 {
            0 => self.next(),
            1 => present.wrapping_add(self.next() % 32).wrapping_sub(16),
            2 => self.next() % 32,
            3 => 1 << (self.next() % 64),
            4 => u64::MAX - self.next() % 3,
            _ => 0,
        }
    }
}

/// Everything a host does, once; bytes and pages that came of it.
fn look(host: &mut HostSide, target: &std::fs::File) -> usize {
    let mut found = 0;
    let mut page = [0; 4096];
    for ring in &mut host.pages {
        if let Some(taken_page) = ring.next_into(&mut page) {
            assert!((1..=4096).contains(&taken_page.len_bytes));
            found += 1;
        }
        if let Written::Page(_) = ring.next_to(target.as_fd()).unwrap() {
            found += 1;
        }
    }
    host.from_guest.read(&mut page);
    host.to_guest.write(&page[..100]);
    found
}

#[test]
fn a_guest_that_scribbles_everywhere_stops_nobody() {
    for mode in [Mode::Keep, Mode::Overwrite] {
        let memory = Memory::new(1 << 17);
        let mut guest = memory.guest(&plan(2, 5, mode));
        let scribbled = memory.map();
        let target = std::fs::OpenOptions::new().write(true).open("/dev/null").unwrap();
        let ended = AtomicBool::new(false);
        let (mut found, mut looks, mut damage, mut attaches) = (0, 0, 0, 0);
        let (mut slowest, map) = (Duration::ZERO, memory.map());
        thread::scope(|scope| {
            scope.spawn(|| {
                let mut random = Random(0x5C21_BB1E);
                while !ended.load(Ordering::Relaxed) {
                    for _ in 0..random.next() % 4 {
                        let at = random.place(scribbled.len_bytes());
                        let value = random.value(scribbled.load(at));
                        scribbled.store(at, value);
                    }
                    for ring in &mut guest.pages {
                        let _ = ring.fill(|slot| Ok(slot.copy_from(&[1; 4096])));
                    }
                    if random.next().is_multiple_of(64) {
                        guest = memory.guest(&plan(2, 5, mode));
                    }
                }
            });
            // A busy machine takes longer to do as much.
            let begun = Instant::now();
            let mut host = None;
            while begun.elapsed() < Duration::from_secs(2)
                || begun.elapsed() < Duration::from_secs(60)
                    && (found <= 100 || looks <= 1000 || damage <= 10 || attaches <= 10)
            {
                let Some(host) = host.as_mut() else {
                    host = HostSide::attach(Arc::clone(&map)).ok();
                    continue;
                };
                let before = Instant::now();
                found += look(host, &target);
                slowest = slowest.max(before.elapsed());
                looks += 1;
                if host.watch.change() == Change::Replaced
                    && let Ok(again) = HostSide::attach(Arc::clone(&map))
                {
                    damage += host.pages.iter().map(|ring| ring.totals().damage).sum::<u64>();
                    *host = again;
                    attaches += 1;
                }
            }
            ended.store(true, Ordering::Relaxed);
        });
        assert!(found > 100 && looks > 1000, "{found} pages in {looks} looks");
        assert!(damage > 10 && attaches > 10, "{damage} faults, {attaches} new layouts");
        // A busy machine stops a thread for long; a hang takes for ever.
        assert!(slowest < Duration::from_secs(2), "{slowest:?}");
    }
}

#[test]
fn after_damage_the_host_goes_on_with_what_follows() {
    for (what, at, value) in [
        ("a position that jumps back", RING, 3),
        ("a position beyond the ring", RING, 1000),
        ("a position beyond all", RING, u64::MAX),
        ("a sequence number that is too small", RING + 128 + 64 * 4, 1),
        ("a sequence number that is too large", RING + 128 + 64 * 4, u64::MAX),
        ("a length of zero", RING + 128 + 64 * 4 + 16, 0),
        ("a length beyond the slot", RING + 128 + 64 * 4 + 16, 4097),
    ] {
        let memory = Memory::new(1 << 20);
        let mut guest = memory.guest(&plan(1, 8, Mode::Keep));
        let mut host = memory.host();
        (0..4).for_each(|position| assert!(put(&mut guest.pages[0], position)));
        assert_eq!(take_all(&mut host.pages[0]), [0, 1, 2, 3]);
        assert!(put(&mut guest.pages[0], 4));
        memory.map().store(at, value);
        assert_eq!(take_all(&mut host.pages[0]), [], "{what}");
        assert_eq!(host.pages[0].totals().damage, 1, "{what}");
        // The producer continues as if nothing had happened, and after some pages so does the host.
        let mut seen = Vec::new();
        for position in 5..40 {
            put(&mut guest.pages[0], position);
            seen.extend(take_all(&mut host.pages[0]));
        }
        assert_eq!(seen.last(), Some(&39), "{what}");
        assert!(seen.len() >= 30, "{what}: {seen:?}");
        assert!(host.pages[0].totals().damage <= 3, "{what}: {:?}", host.pages[0].totals());
    }
}

#[test]
fn a_position_once_seen_is_not_taken_back() {
    for mode in [Mode::Keep, Mode::Overwrite] {
        let memory = Memory::new(1 << 20);
        let mut guest = memory.guest(&plan(1, 8, mode));
        let mut host = memory.host();
        (0..6).for_each(|position| assert!(put(&mut guest.pages[0], position)));
        assert_eq!(take(&mut host.pages[0]).unwrap().position, 0);
        // Page 1 is still there and next, but the producer says that it has not filled page 4.
        memory.map().store(RING, 4);
        assert_eq!(take(&mut host.pages[0]), None);
        assert_eq!(host.pages[0].totals().damage, 1);
        // Before what was taken it would be an attempt to have pages taken twice.
        memory.map().store(RING, 0);
        assert_eq!(take(&mut host.pages[0]), None);
        assert_eq!(host.pages[0].totals().damage, 2);
    }
}

#[test]
fn a_jump_that_the_slots_deny_is_no_loss_but_damage() {
    let memory = Memory::new(1 << 20);
    let mut guest = memory.guest(&plan(1, 8, Mode::Overwrite));
    let mut host = memory.host();
    put(&mut guest.pages[0], 0);
    memory.map().store(RING, 1 << 40);
    assert_eq!(take_all(&mut host.pages[0]), []);
    let totals = host.pages[0].totals();
    assert_eq!((totals.damage, totals.missed_pages), (1, 0), "a million million pages missed");
}

#[test]
fn a_control_stream_that_jumps_is_left_until_the_next_one_begins() {
    let memory = Memory::new(1 << 20);
    let mut guest = memory.guest(&plan(1, 2, Mode::Keep));
    let mut host = memory.host();
    let mut bytes = [0; 8192];
    for jump in [4097, u64::MAX, 1 << 40] {
        assert_eq!(guest.to_host.write(b"x"), Sent::NewPeer);
        assert_eq!(guest.to_host.write(b"sane"), Sent::Bytes(4));
        assert_eq!(host.from_guest.read(&mut bytes), Received::NewStream);
        assert_eq!(host.from_guest.read(&mut bytes), Received::Bytes(4));
        let head = memory.map().load(4096);
        memory.map().store(4096, head.wrapping_add(jump));
        assert_eq!(host.from_guest.read(&mut bytes), Received::Damage);
        assert_eq!(host.from_guest.read(&mut bytes), Received::Bytes(0));
        // A host that attaches again makes the agent begin a new stream, at a position of its own.
        memory.map().store(4096 + 64, head);
        host = memory.host();
    }
}

#[test]
fn an_absurd_position_does_not_bring_pages_back() {
    let memory = Memory::new(1 << 20);
    let mut guest = memory.guest(&plan(1, 8, Mode::Keep));
    let mut host = memory.host();
    (0..4).for_each(|position| assert!(put(&mut guest.pages[0], position)));
    assert_eq!(take_all(&mut host.pages[0]).len(), 4);
    memory.map().store(RING, u64::MAX);
    assert_eq!(take_all(&mut host.pages[0]), []);
    memory.map().store(RING, 4);
    for _ in 0..3 {
        assert_eq!(take_all(&mut host.pages[0]), [], "taken before");
    }
    assert!(put(&mut guest.pages[0], 4));
    assert_eq!(take_all(&mut host.pages[0]), [4]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// Whatever a region holds that nobody changes any more: it is drained, and that ends.
    #[test]
    fn any_region_is_drained(overwrite: bool, put_pages in 0..20_u64, seed in 1_u64.., count in 0..40) {
        let mode = if overwrite { Mode::Overwrite } else { Mode::Keep };
        let map = Arc::new(SharedMap::of_bytes(&[0; 1 << 16]).unwrap());
        let mut guest = shmring::GuestSide::create(Arc::clone(&map), &plan(1, 5, mode), [0; 16]).unwrap();
        for position in 0..put_pages {
            put(&mut guest.pages[0], position);
        }
        let mut random = Random(seed);
        for _ in 0..count {
            let at = random.place(map.len_bytes());
            map.store(at, random.value(map.load(at)));
        }
        for side in [HostSide::post_mortem, HostSide::attach] {
            let Ok(mut host) = side(Arc::clone(&map)) else { continue };
            let mut page = [0; 4096];
            // One look may end with damage, so "nothing" has to be said twice.
            let mut taken_pages = Vec::new();
            for _ in 0..16 {
                taken_pages.extend(host.pages[0].next_into(&mut page));
            }
            prop_assert!(taken_pages.len() <= 5, "{taken_pages:?}");
            prop_assert!(taken_pages.is_sorted_by(|first, other| first.position < other.position));
            prop_assert_eq!(host.pages[0].next_into(&mut page), None);
            prop_assert_eq!(host.pages[0].totals().taken_pages, taken_pages.len() as u64);
        }
    }
}
