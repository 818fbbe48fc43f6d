//! A clock that runs back within one CPU is damage: no vCPU is given more time than there was.

use std::collections::BTreeMap;

use testkit::Random;
use timeline::Outcome;

use super::host::{Found, Host, windows};

const V: i32 = 100;
const W: i32 = 101;
const PAGE: usize = 4096;

/// Exits of two vCPUs on two CPUs, a few events on each page.
fn story(events_per_page: usize) -> Host {
    let mut host = Host::x86();
    host.shape.events_per_page = events_per_page;
    for round in 1..=60_u64 {
        let ns = 10_000 * round;
        host.exit(0, ns, V, round % 7).entry(0, ns + 900 + round, V, 0);
        host.exit(1, ns + 50, W, round % 5).switch(1, ns + 60, W, 1, 0);
        host.wake(0, ns + 2_000, V, W).switch(1, ns + 2_100, 0, 0, W).entry(1, ns + 3_000, W, 1);
    }
    host
}

/// Offsets of the pages whose first event is of the thread, by the stamps of their heads.
fn pages_of_cpu(file: &[u8], is_there: impl Fn(u64) -> bool) -> Vec<usize> {
    let stamp = |at: &usize| u64::from_le_bytes(file[*at..*at + 8].try_into().unwrap());
    let is_page = |at: &usize| {
        let commit = u64::from_le_bytes(file[*at + 8..*at + 16].try_into().unwrap());
        (1..4080).contains(&commit) && (10_000..700_000).contains(&stamp(at)) && is_there(stamp(at))
    };
    (0..file.len() / PAGE).map(|page| page * PAGE).filter(is_page).collect()
}

/// Time in the guest and in exits, by vCPU, within the time it was there.
fn assert_no_time_twice(found: &Found, what: &str) {
    let (mut sums, mut ends) = (BTreeMap::new(), BTreeMap::new());
    for exit in &found.exits {
        let span = &exit.span;
        let sum: &mut u64 = sums.entry(exit.vcpu).or_default();
        let (first_ns, last_ns) = ends.entry(exit.vcpu).or_insert((u64::MAX, 0));
        *first_ns = (*first_ns).min(span.start_ns - span.guest_ns - span.before_exit_ns);
        *last_ns = (*last_ns).max(span.start_ns);
        *sum += span.guest_ns + span.before_exit_ns;
        if span.outcome == Outcome::Paired {
            *last_ns = (*last_ns).max(span.end_ns);
            *sum += span.end_ns - span.start_ns;
        }
    }
    for (vcpu, sum) in sums {
        let (first_ns, last_ns) = ends[&vcpu];
        let span_ns = last_ns.saturating_sub(first_ns);
        assert!(sum <= span_ns, "{what}: {sum} ns within {span_ns} ns of vCPU {vcpu}");
    }
}

#[test]
fn a_recording_that_is_repeated_is_timed_once() {
    for events_per_page in [1, 2, 7] {
        let mut host = Host::x86();
        host.shape.events_per_page = events_per_page;
        for round in 1..=60_u64 {
            host.exit(0, 10_000 * round, V, round % 7).entry(0, 10_000 * round + 900, V, 0);
        }
        let mut file = host.file();
        let pages = pages_of_cpu(&file, |_| true);
        assert!(pages.len() >= 15, "{} pages", pages.len());
        let half = pages.len() / 2;
        let once = Found::in_file(&file).exits.len();
        for (from, to) in pages[..half].iter().zip(&pages[half..]) {
            file.copy_within(*from..*from + PAGE, *to);
        }
        let found = Found::in_file(&file);
        assert_eq!(found.pass.losses.pages_damaged(), 1, "{:?}", found.pass.losses.damage);
        let damage = &found.pass.losses.damage.as_slice()[0];
        assert!(damage.what.contains("the clock goes back from"), "{damage}");
        assert_eq!((damage.cpu, damage.offset), (Some(0), pages[half] as u64));
        assert!(
            found.exits.len().abs_diff(once) < 9,
            "exits are counted, those without a time too"
        );
        let paired = found.exits.iter().filter(|exit| exit.is_paired()).count();
        assert!(paired.abs_diff(once / 2) < 9, "{paired} of {once} exits have a time");
        assert_no_time_twice(&found, "twice");
    }
}

#[test]
fn one_page_with_a_wrong_stamp_costs_its_own_spans() {
    let mut host = Host::x86();
    host.shape.events_per_page = 2;
    for ns in (1..=9).map(|round| 10_000 * round) {
        host.exit(0, ns, V, 1).entry(0, ns + 900, V, 0);
    }
    for stamp in [1_u64 << 50, 3] {
        let mut file = host.file();
        let page = pages_of_cpu(&file, |stamp| stamp == 50_000)[0];
        file[page..page + 8].copy_from_slice(&stamp.to_le_bytes());
        let found = Found::in_file(&file);
        assert_eq!(found.pass.losses.pages_damaged(), 1);
        let mut windows = windows(&found.exits);
        assert_eq!(windows.len(), 9);
        windows.retain(|(_, end)| end.is_some());
        let expected = (1..=9).filter(|round| *round != 5).map(|round| 10_000 * round);
        let expected: Vec<_> = expected.map(|ns| (ns, Some(ns + 900))).collect();
        assert_eq!(windows, expected, "stamp {stamp}");
    }
}

#[test]
fn no_damaged_stamp_gives_a_vcpu_more_time_than_there_was() {
    let mut random = Random(0x57E9);
    for round in 0..120 {
        let host = story(1 + round % 5);
        let mut file = host.file();
        let pages = pages_of_cpu(&file, |_| true);
        for _ in 0..=random.below(6) {
            let page = pages[random.below(pages.len() as u64) as usize];
            let other = pages[random.below(pages.len() as u64) as usize];
            match random.below(4) {
                0 => file.copy_within(other..other + PAGE, page),
                1 => file.copy_within(other..other + 8, page),
                2 => file[page + random.below(7) as usize] ^= 1 << random.below(8),
                _ => {
                    // A time extend or an absolute stamp, as its type says, in place of an event.
                    let word = (random.below(1 << 32) as u32 & !31) | (30 + random.below(2) as u32);
                    file[page + 16..page + 20].copy_from_slice(&word.to_le_bytes());
                    let high = random.below(1 << 12) as u32;
                    file[page + 20..page + 24].copy_from_slice(&high.to_le_bytes());
                }
            }
        }
        assert_no_time_twice(&Found::in_file(&file), &format!("round {round}"));
    }
}
