//! A producer and a consumer at full speed, through a ring far too small for them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use shmring::{Mode, PageProducer, Poller};

use crate::region::{Memory, content, plan, take};

/// Pages of each run.
const KEPT: u64 = 1_000_000;
const OVERWRITTEN: u64 = 400_000;

/// Fills all pages; how often the ring was full.
fn produce(ring: &mut PageProducer, pages: u64) -> u64 {
    let mut bytes = Vec::new();
    let mut full = 0;
    for position in 0..pages {
        content(position, &mut bytes);
        while ring.is_full() {
            full += 1;
            thread::yield_now();
        }
        ring.fill(|slot| Ok(slot.copy_from(&bytes))).unwrap();
    }
    full
}

#[test]
fn kept_pages_all_arrive_in_order_and_whole() {
    let memory = Memory::new(1 << 20);
    let mut guest = memory.guest(&plan(1, 7, Mode::Keep));
    let mut host = memory.host();
    thread::scope(|scope| {
        let full = scope.spawn(|| produce(&mut guest.pages[0], KEPT));
        let mut poller = Poller::default();
        let mut next = 0;
        while next < KEPT {
            let taken_page = take(&mut host.pages[0]);
            if let Some(taken_page) = taken_page {
                assert_eq!(
                    (taken_page.position, taken_page.missed_pages, taken_page.damage_before),
                    (next, 0, 0)
                );
                next += 1;
            } else {
                thread::yield_now();
            }
            poller.looked(taken_page.is_some());
        }
        assert!(full.join().unwrap() > 0, "the ring was never full: nothing was shown");
        assert!(poller.polls() > KEPT);
    });
    let totals = host.pages[0].totals();
    assert_eq!((totals.taken_pages, totals.missed_pages, totals.damage), (KEPT, 0, 0));
}

#[test]
fn overwritten_pages_are_counted_to_the_page() {
    for slots in [3, 7, 64] {
        let memory = Memory::new(1 << 20);
        let mut guest = memory.guest(&plan(1, slots, Mode::Overwrite));
        let mut host = memory.host();
        let ended = AtomicBool::new(false);
        let (mut next, mut taken_pages) = (0, 0_u64);
        thread::scope(|scope| {
            scope.spawn(|| {
                produce(&mut guest.pages[0], OVERWRITTEN);
                ended.store(true, Ordering::Release);
            });
            loop {
                let was_last = ended.load(Ordering::Acquire);
                if let Some(taken_page) = take(&mut host.pages[0]) {
                    assert_eq!(taken_page.position, next + taken_page.missed_pages);
                    assert_eq!(taken_page.damage_before, 0);
                    (next, taken_pages) = (taken_page.position + 1, taken_pages + 1);
                    if taken_pages.is_multiple_of(5000) {
                        thread::sleep(Duration::from_micros(200));
                    }
                } else if was_last {
                    break;
                } else {
                    thread::yield_now();
                }
            }
        });
        let totals = host.pages[0].totals();
        assert_eq!((totals.taken_pages, totals.damage), (taken_pages, 0));
        assert_eq!(totals.taken_pages + totals.missed_pages, OVERWRITTEN);
        assert!(totals.missed_pages > 0, "nothing was overwritten: nothing was shown");
        assert!(totals.taken_pages > 100, "{slots} slots: {totals:?}");
        assert_eq!(next, OVERWRITTEN, "the newest page stays");
    }
}

#[test]
fn each_cpu_has_a_ring_of_its_own() {
    let memory = Memory::new(1 << 20);
    let mut guest = memory.guest(&plan(3, 16, Mode::Keep));
    let mut host = memory.host();
    for (cpu, ring) in guest.pages.iter_mut().enumerate() {
        assert_eq!(ring.cpu(), cpu);
        (0..=cpu as u64).for_each(|position| assert!(crate::region::put(ring, position)));
    }
    for (cpu, ring) in host.pages.iter_mut().enumerate() {
        assert_eq!((ring.cpu(), crate::region::take_all(ring).len()), (cpu, cpu + 1));
    }
}
