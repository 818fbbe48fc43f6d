//! Measures a page ring: pages a second from one thread to another, and what each end costs alone.
//!
//! `cargo run --release -p hyperscope-shmring --example throughput`

use std::fs::File;
use std::io::{self, Seek};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use shmring::{Access, Filled, GuestSide, HostSide, Mode, RegionPlan, SharedMap, Written};

const PAGE_BYTES: usize = 4096;
const SLOTS: usize = 256;
const PAGES: u64 = 1_000_000;

fn main() -> io::Result<()> {
    alone(Mode::Keep)?;
    alone(Mode::Overwrite)?;
    together()
}

fn sides(mode: Mode) -> io::Result<(GuestSide, HostSide)> {
    let file = tempfile::tempfile_in("/dev/shm")?;
    file.set_len(4 << 20)?;
    let map = || SharedMap::of_file(&file, Access::ReadWrite).map(Arc::new);
    let plan = RegionPlan {
        cpus: 1,
        page_bytes: PAGE_BYTES,
        slots_per_cpu: SLOTS,
        mode,
        control_bytes: 4096,
    };
    let guest = GuestSide::create(map()?, &plan, [0; 16]).map_err(io::Error::other)?;
    let host = HostSide::attach(map()?).map_err(io::Error::other)?;
    Ok((guest, host))
}

fn print_rate(what: &str, pages: u64, took: Duration) {
    let ns = took.as_nanos() as f64 / pages as f64;
    let per_second = 1e9 / ns;
    let gib = per_second * PAGE_BYTES as f64 / f64::from(1 << 30);
    println!("{what:<52} {ns:>7.0} ns/page {per_second:>12.0} pages/s {gib:>6.2} GiB/s");
}

/// Fills a ring and drains it again, in one thread: each end's own cost, pages in the cache.
fn alone(mode: Mode) -> io::Result<()> {
    let (zero, mut target) = (File::open("/dev/zero")?, tempfile::tempfile_in("/dev/shm")?);
    let (mut bytes, rounds) = (vec![7; PAGE_BYTES], PAGES / SLOTS as u64);
    let mut costs = [Duration::ZERO; 5];
    for how in 0..4 {
        let (mut guest, mut host) = sides(mode)?;
        let (Some(producer), Some(consumer)) = (guest.pages.first_mut(), host.pages.first_mut())
        else {
            return Ok(());
        };
        for _ in 0..rounds {
            let start = Instant::now();
            for _ in 0..SLOTS {
                match how {
                    0 => producer.fill(|_| Ok(PAGE_BYTES))?,
                    1 => producer.fill(|slot| Ok(slot.copy_from(&bytes)))?,
                    _ => producer.read_from(zero.as_fd())?,
                };
            }
            target.rewind()?;
            let filled = Instant::now();
            if how == 3 {
                while consumer.next_to(target.as_fd())? != Written::Nothing {}
            } else {
                while consumer.next_into(&mut bytes).is_some() {}
            }
            if let Some(cost) = costs.get_mut(how) {
                *cost += filled - start;
            }
            if how >= 2
                && let Some(cost) = costs.get_mut(if how == 3 { 4 } else { 3 })
            {
                *cost += filled.elapsed();
            }
        }
    }
    let pages = rounds * SLOTS as u64;
    let [empty, copied, read, copied_out, written] = costs;
    print_rate(&format!("{mode:?}: fill, nothing copied"), pages, empty);
    print_rate(&format!("{mode:?}: fill by a copy"), pages, copied);
    print_rate(&format!("{mode:?}: fill by read(2) of /dev/zero"), pages, read);
    print_rate(&format!("{mode:?}: take by a copy"), pages, copied_out);
    print_rate(&format!("{mode:?}: take by write(2) to a file in memory"), pages, written);
    Ok(())
}

/// A producer thread that reads from the kernel, and a consumer that copies.
fn together() -> io::Result<()> {
    let (mut guest, mut host) = sides(Mode::Keep)?;
    let zero = File::open("/dev/zero")?;
    let start = Instant::now();
    std::thread::scope(|scope| {
        scope.spawn(move || -> io::Result<()> {
            let Some(producer) = guest.pages.first_mut() else { return Ok(()) };
            let mut filled = 0;
            while filled < PAGES {
                match producer.read_from(zero.as_fd())? {
                    Filled::Page { .. } => filled += 1,
                    Filled::Nothing | Filled::Full => std::hint::spin_loop(),
                }
            }
            Ok(())
        });
        let (mut count, mut page) = (0, vec![0; PAGE_BYTES]);
        let Some(consumer) = host.pages.first_mut() else { return };
        while count < PAGES {
            match consumer.next_into(&mut page) {
                Some(_) => count += 1,
                None => std::hint::spin_loop(),
            }
        }
    });
    print_rate("Keep: two threads, read(2) in, copy out", PAGES, start.elapsed());
    Ok(())
}
