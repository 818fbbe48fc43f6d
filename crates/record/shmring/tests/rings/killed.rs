//! An agent that is a process of its own, and is killed wherever it happens to be.

use std::env;
use std::path::Path;
use std::process::{Child, Command};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use shmring::{Access, Filled, GuestSide, HostSide, Mode, SharedMap};

use crate::region::{BOOT, content, plan, take};

/// Set for the process that is the agent: the memory's file, and the mode.
const MEMORY: &str = "SHMRING_TEST_MEMORY";
const MODE: &str = "SHMRING_TEST_MODE";
const KILLS: u64 = 40;

/// Not a test by itself: what the process that is killed does. It ends on its own, should its parent.
#[test]
fn agent() {
    let (Some(file), Some(mode)) = (env::var_os(MEMORY), env::var_os(MODE)) else { return };
    let mode = if mode == "keep" { Mode::Keep } else { Mode::Overwrite };
    let map = Arc::new(SharedMap::open(Path::new(&file), Access::ReadWrite).unwrap());
    let mut guest = GuestSide::create(map, &plan(1, 5, mode), BOOT).unwrap();
    let (mut bytes, end) = (Vec::new(), Instant::now() + Duration::from_secs(20));
    while Instant::now() < end {
        content(guest.pages[0].position(), &mut bytes);
        if guest.pages[0].fill(|slot| Ok(slot.copy_from(&bytes))).unwrap() == Filled::Full {
            thread::yield_now();
        }
    }
}

fn start(file: &Path, mode: Mode) -> Child {
    Command::new(env::current_exe().unwrap())
        .args(["--exact", "killed::agent"])
        .env(MEMORY, file)
        .env(MODE, if mode == Mode::Keep { "keep" } else { "overwrite" })
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap()
}

#[test]
fn no_page_is_lost_or_torn_when_agents_are_killed() {
    for mode in [Mode::Keep, Mode::Overwrite] {
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().set_len(1 << 20).unwrap();
        let map = Arc::new(SharedMap::of_file(file.as_file(), Access::ReadWrite).unwrap());
        let mut host = None;
        let (mut next, mut epochs) = (0, 0);
        for kill in 0..KILLS {
            let mut agent = start(file.path(), mode);
            // Some are killed while they start, most while they fill.
            let (first, mut taken_pages) = (Instant::now(), 0);
            while taken_pages < 200 * (kill % 5) && first.elapsed() < Duration::from_secs(10) {
                let Some(host) = host.as_mut() else {
                    host = HostSide::attach(Arc::clone(&map)).ok();
                    continue;
                };
                match check(host, &mut next, &mut epochs, mode) {
                    0 => thread::yield_now(),
                    count => taken_pages += count,
                }
            }
            agent.kill().unwrap();
            agent.wait().unwrap();
        }
        let mut host = host.unwrap();
        while check(&mut host, &mut next, &mut epochs, mode) > 0 {}
        let totals = host.pages[0].totals();
        assert_eq!((totals.damage, totals.taken_pages + totals.missed_pages), (0, next));
        assert!(mode == Mode::Overwrite || totals.missed_pages == 0);
        assert!(epochs > KILLS / 2 && next > 1000, "{next} pages of {epochs} starts");
    }
}

/// Takes a page, if there is one, and compares it with those before.
fn check(host: &mut HostSide, next: &mut u64, last_epoch: &mut u64, mode: Mode) -> u64 {
    let Some(taken_page) = take(&mut host.pages[0]) else { return 0 };
    assert_eq!(
        (taken_page.position, taken_page.damage_before),
        (*next + taken_page.missed_pages, 0)
    );
    assert!(taken_page.epoch >= *last_epoch);
    assert!(mode == Mode::Overwrite || taken_page.missed_pages == 0);
    (*next, *last_epoch) = (taken_page.position + 1, taken_page.epoch);
    1
}
