//! Workloads on memory: pages that nothing has used yet, and pages that are given back.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Instant;

use serde_json::{Value, json};

use super::options::PlantOptions;
use super::pace::Pace;
use crate::measure::nanoseconds;

const PAGE: usize = 4096;
/// The most that is allocated at once.
const MAX_MIB: u64 = 4096;

/// Touches each page of new memory once, in steps of 1 MiB, within about the time.
pub(super) fn touch(options: &mut PlantOptions) -> io::Result<Value> {
    let time = options.time()?;
    let mib = options.number("mib", 16).clamp(1, MAX_MIB);
    options.none_is_left()?;
    let pause = time / u32::try_from(mib).unwrap_or(u32::MAX);
    let (start, mut memory) = (Instant::now(), Vec::new());
    for _ in 0..mib {
        let mut piece = vec![0_u8; 1 << 20];
        touch_pages(&mut piece);
        memory.push(piece);
        thread::sleep(pause);
    }
    let pages = std::hint::black_box(memory).len() * ((1 << 20) / PAGE);
    Ok(json!({ "count": pages, "took_ns": nanoseconds(start.elapsed()) }))
}

fn touch_pages(memory: &mut [u8]) {
    memory.iter_mut().step_by(PAGE).for_each(|byte| *byte = 1);
}

/// Maps memory, touches some of it and unmaps it, while other threads of the process compute: they have to forget its
/// translation. From 33 MiB on the C library always asks the kernel for a mapping.
pub(super) fn unmap(options: &mut PlantOptions) -> io::Result<Value> {
    let others = options.threads(1)?;
    let mib = options.number("mib", 40).clamp(1, MAX_MIB);
    let pages = usize::try_from(options.number("pages", 4)).unwrap_or(4);
    let pace = Pace::read(options)?;
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..others {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    std::hint::black_box(0);
                }
            });
        }
        let counted = pace.run(|batch| {
            for _ in 0..batch {
                let size = usize::try_from(mib << 20).unwrap_or(PAGE);
                let mut memory = vec![0_u8; size];
                let used = memory.get_mut(..size.min(pages * PAGE)).unwrap_or_default();
                touch_pages(used);
                drop(std::hint::black_box(memory));
            }
            Ok(())
        });
        is_over.store(true, Ordering::Relaxed);
        counted
    })
}
