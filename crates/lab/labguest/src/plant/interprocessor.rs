//! Workloads that send interrupts from one processor to another.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use rustix::thread::{CpuSet, sched_setaffinity};
use serde_json::Value;

use super::options::PlantOptions;
use super::pace::Pace;

/// The address of system calls (LSTAR), a register that hypervisors leave to guests.
const LSTAR: u64 = 0xc000_0082;

/// Keeps the calling thread on a processor.
fn stay_on(cpu: u64) -> io::Result<()> {
    let mut cpus = CpuSet::new();
    cpus.set(usize::try_from(cpu).unwrap_or(0));
    Ok(sched_setaffinity(None, &cpus)?)
}

/// Runs `work` on processor 0, while another thread keeps processor 1 busy if that is asked for.
fn beside(is_busy: bool, work: impl FnOnce() -> io::Result<Value>) -> io::Result<Value> {
    if !is_busy {
        return stay_on(0).and_then(|()| work());
    }
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let busy = scope.spawn(|| {
            let stayed = stay_on(1);
            while stayed.is_ok() && !is_over.load(Ordering::Relaxed) {
                std::hint::black_box(0);
            }
            stayed
        });
        let counted = stay_on(0).and_then(|()| work());
        is_over.store(true, Ordering::Relaxed);
        busy.join().map_err(|_| io::Error::other("a thread panicked"))??;
        counted
    })
}

/// Processor 0 has processor 1 read a register: one interrupt each.
pub(super) fn remote(options: &mut PlantOptions) -> io::Result<Value> {
    let register = options.number("register", LSTAR);
    let pace = Pace::read(options)?;
    let registers = File::open("/dev/cpu/1/msr")?;
    beside(true, || {
        pace.run(|batch| {
            (0..batch).try_for_each(|_| registers.read_exact_at(&mut [0; 8], register))
        })
    })
}

/// Processor 0 wakes a thread of processor 1, which has another thread to run, or with `busy=0` is idle.
pub(super) fn wake(options: &mut PlantOptions) -> io::Result<Value> {
    let is_busy = options.number("busy", 1) > 0;
    let pace = Pace::read(options)?;
    let (mut requests, mut to_other) = io::pipe()?;
    let (mut answers, mut to_here) = io::pipe()?;
    let other = thread::spawn(move || {
        stay_on(1)?;
        while requests.read(&mut [0])? == 1 {
            to_here.write_all(&[0])?;
        }
        io::Result::Ok(())
    });
    let counted = beside(is_busy, || {
        pace.run(|batch| {
            (0..batch).try_for_each(|_| {
                to_other.write_all(&[0])?;
                answers.read_exact(&mut [0])
            })
        })
    });
    drop(to_other);
    other.join().map_err(|_| io::Error::other("a thread panicked"))??;
    counted
}
