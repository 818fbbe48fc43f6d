//! Agents and hosts that end at any point and start again, and regions whose guest is gone.

use shmring::{Access, AttachError, Change, Filled, HostSide, Mode, RegionPlan, SharedMap};

use crate::region::{BOOT, Memory, plan, put, take, take_all};

/// Offset of the first page ring: after the header and two control rings of 4096 bytes.
const RING: usize = 4096 + 2 * 8192;

#[test]
fn a_host_goes_on_where_the_one_before_stood() {
    let memory = Memory::new(1 << 20);
    let mut guest = memory.guest(&plan(1, 8, Mode::Keep));
    (0..8).for_each(|position| assert!(put(&mut guest.pages[0], position)));
    assert!(!put(&mut guest.pages[0], 8), "nobody has taken a page");
    let mut host = memory.host();
    assert_eq!(guest.pulse.host_attaches(), 1);
    (0..3).for_each(|position| assert_eq!(take(&mut host.pages[0]).unwrap().position, position));
    drop(host);
    (8..11).for_each(|position| assert!(put(&mut guest.pages[0], position)));
    let mut host = memory.host();
    assert_eq!(guest.pulse.host_attaches(), 2);
    assert_eq!(take_all(&mut host.pages[0]), (3..11).collect::<Vec<_>>());
    assert_eq!(host.pages[0].totals().missed_pages, 0);
}

#[test]
fn a_host_that_was_away_learns_what_a_flight_recorder_overwrote() {
    let memory = Memory::new(1 << 20);
    let mut guest = memory.guest(&plan(1, 8, Mode::Overwrite));
    (0..5).for_each(|position| assert!(put(&mut guest.pages[0], position)));
    assert_eq!(take_all(&mut memory.host().pages[0]).len(), 5);
    (5..100).for_each(|position| assert!(put(&mut guest.pages[0], position)));
    let mut host = memory.host();
    let first = take(&mut host.pages[0]).unwrap();
    assert_eq!((first.position, first.missed_pages), (92, 87));
    assert_eq!(take_all(&mut host.pages[0]), (93..100).collect::<Vec<_>>());
}

#[test]
fn pages_of_an_agent_that_was_killed_come_before_those_of_the_next() {
    for mode in [Mode::Keep, Mode::Overwrite] {
        let memory = Memory::new(1 << 20);
        let mut host_sees = Vec::new();
        let mut guest = memory.guest(&plan(1, 8, mode));
        let mut host = memory.host();
        (0..3).for_each(|position| assert!(put(&mut guest.pages[0], position)));
        assert_eq!(host.watch.change(), Change::None);
        // Killed in the middle of a page, which is never finished.
        let _ = guest.pages[0].fill(|slot| {
            slot.copy_from(b"half a page");
            Err(std::io::ErrorKind::Interrupted.into())
        });
        drop(guest);
        let mut guest = memory.guest(&plan(1, 8, mode));
        (3..6).for_each(|position| assert!(put(&mut guest.pages[0], position)));
        assert_eq!(host.watch.change(), Change::Restarted { epoch: 2 });
        assert_eq!(host.watch.change(), Change::None);
        while let Some(taken_page) = take(&mut host.pages[0]) {
            host_sees.push((taken_page.position, taken_page.epoch));
        }
        assert_eq!(host_sees, [(0, 1), (1, 1), (2, 1), (3, 2), (4, 2), (5, 2)]);
        assert_eq!((host.pages[0].totals().missed_pages, host.pages[0].totals().damage), (0, 0));
    }
}

#[test]
fn a_page_finished_but_not_announced_is_kept() {
    let memory = Memory::new(1 << 20);
    let mut guest = memory.guest(&plan(1, 8, Mode::Keep));
    (0..3).for_each(|position| assert!(put(&mut guest.pages[0], position)));
    drop(guest);
    // As if the agent had been killed before the last store of page 2.
    memory.map().store(RING, 2);
    let mut host = memory.host();
    assert_eq!(take_all(&mut host.pages[0]), [0, 1]);
    let mut guest = memory.guest(&plan(1, 8, Mode::Keep));
    assert!(put(&mut guest.pages[0], 3));
    assert_eq!(take_all(&mut host.pages[0]), [2, 3]);
}

#[test]
fn another_plan_replaces_the_region() {
    let memory = Memory::new(1 << 20);
    let mut guest = memory.guest(&plan(1, 8, Mode::Keep));
    let mut host = memory.host();
    (0..2).for_each(|position| assert!(put(&mut guest.pages[0], position)));
    assert_eq!(take(&mut host.pages[0]).unwrap().position, 0);
    drop(guest);
    let mut guest = memory.guest(&RegionPlan { page_bytes: 8192, ..plan(2, 4, Mode::Keep) });
    put(&mut guest.pages[1], 0);
    assert_eq!(take_all(&mut host.pages[0]), [], "a consumer of the old layout reads nothing");
    assert_eq!(host.pages[0].totals().damage, 0, "it looked where nothing is any more");
    assert_eq!(host.watch.change(), Change::Replaced);
    let mut host = memory.host();
    assert_eq!((host.watch.agent().epoch, host.watch.plan().page_bytes), (2, 8192));
    let mut page = [0; 8192];
    assert_eq!(host.pages[1].next_into(&mut page).unwrap().epoch, 2);
}

#[test]
fn an_agent_that_starts_over_damage_works_from_then_on() {
    let to_host = 4096;
    for (what, at, value) in [
        ("the host's position in the future", RING + 64, 1000),
        ("the host's position far behind", RING, 1000),
        ("an agent's position beyond all", RING, u64::MAX - 1),
        ("a control stream's position beyond its reader's", to_host, 1 << 40),
        ("a reader's position beyond its control stream's", to_host + 64, 1 << 40),
        ("another layout", 40, 9),
        ("no magic", 0, 1),
    ] {
        let memory = Memory::new(1 << 20);
        drop(memory.guest(&plan(1, 8, Mode::Keep)));
        memory.map().store(at, value);
        let mut guest = memory.guest(&plan(1, 8, Mode::Keep));
        let mut host = memory.host();
        let first = guest.pages[0].position();
        assert!(put(&mut guest.pages[0], first), "{what}: it is full");
        assert_eq!(take_all(&mut host.pages[0]), [first], "{what}");
        assert_eq!(host.pages[0].totals().damage, 0, "{what}");
        assert_eq!(guest.to_host.write(b"x"), shmring::Sent::NewPeer);
        assert_eq!(guest.to_host.write(b"hello"), shmring::Sent::Bytes(5), "{what}");
        let mut text = [0; 8];
        assert_eq!(host.from_guest.read(&mut text), shmring::Received::NewStream, "{what}");
        assert_eq!(host.from_guest.read(&mut text), shmring::Received::Bytes(5), "{what}");
    }
}

#[test]
fn a_region_is_read_after_its_guest_crashed() {
    let memory = Memory::new(1 << 20);
    let mut guest = memory.guest(&plan(2, 8, Mode::Overwrite));
    (0..1000).for_each(|position| assert!(put(&mut guest.pages[0], position)));
    put(&mut guest.pages[1], 0);
    guest.to_host.write(b"formats");
    // The guest died while it overwrote the oldest page.
    let _ = guest.pages[0].fill(|slot| {
        slot.copy_from(&[0xAA; 4096]);
        Err(std::io::ErrorKind::Interrupted.into())
    });
    drop(guest);
    let before = memory.map();
    for _ in 0..2 {
        let mut host = HostSide::post_mortem(memory.map_to_read()).unwrap();
        assert_eq!(take_all(&mut host.pages[0]), (993..1000).collect::<Vec<_>>());
        assert_eq!(take_all(&mut host.pages[1]), [0]);
        let totals = host.pages[0].totals();
        assert_eq!((totals.missed_pages, totals.damage), (0, 0));
        let mut text = [0; 16];
        assert_eq!(host.from_guest.read(&mut text), shmring::Received::NewStream);
        assert_eq!(host.from_guest.read(&mut text), shmring::Received::Bytes(7));
        assert_eq!(&text[..7], b"formats");
        assert!(host.watch.agent().is_running, "it did not say that it ended");
        assert_eq!(host.watch.agent().boot_id, BOOT);
    }
    assert_eq!(before.load(256), 0, "the host left a trace");
}

#[test]
fn an_agent_shows_that_it_lives_and_ends() {
    let memory = Memory::new(1 << 20);
    let mut guest = memory.guest(&plan(1, 8, Mode::Keep));
    let host = memory.host();
    guest.pulse.woke();
    assert!(guest.pulse.beat(12_345));
    let agent = host.watch.agent();
    assert_eq!((agent.heartbeats, agent.wake_ups, agent.guest_ns), (1, 1, 12_345));
    let mut second = memory.guest(&plan(1, 8, Mode::Keep));
    assert!(!guest.pulse.beat(12_346), "another agent writes here");
    assert!(second.pulse.beat(12_347) && host.watch.agent().is_running);
    second.pulse.end();
    assert!(!host.watch.agent().is_running);
}

#[test]
fn what_was_dropped_is_counted() {
    let memory = Memory::new(1 << 20);
    let mut guest = memory.guest(&plan(1, 2, Mode::Keep));
    let host = memory.host();
    (0..2).for_each(|position| assert!(put(&mut guest.pages[0], position)));
    let full = guest.pages[0].fill(|_| panic!("there is no slot to fill")).unwrap();
    assert_eq!(full, Filled::Full);
    guest.pages[0].lose(1, 4096);
    guest.pages[0].lose(2, 100);
    let losses = host.pages[0].producer_losses();
    assert_eq!((losses.pages, losses.bytes), (3, 4196));
}

#[test]
fn memory_without_a_region_is_refused() {
    let memory = Memory::new(1 << 20);
    let attach = || HostSide::attach(memory.map()).map(drop);
    assert_eq!(attach(), Err(AttachError::NotReady));
    memory.map().store(0, 7);
    assert_eq!(attach(), Err(AttachError::NoRegion(7)));
    let short = SharedMap::of_file(&Memory::new(100).file, Access::ReadWrite).unwrap();
    assert_eq!(HostSide::attach(short.into()).map(drop), Err(AttachError::TooShort(100)));
    drop(memory.guest(&plan(1, 8, Mode::Keep)));
    assert_eq!(attach(), Ok(()));
    memory.file.set_len(RING as u64).unwrap();
    assert!(matches!(attach(), Err(AttachError::Layout(_))), "the file is cut");
}
