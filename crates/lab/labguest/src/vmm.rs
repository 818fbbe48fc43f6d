//! A VMM whose devices take known times, which tests compare with a recording.
//!
//! Its guest writes to one port after another, or on arm64 to one address after another. Behind each is a device with
//! one activity: it reads the clock in a busy loop, sleeps, takes a lock that another thread holds, or writes to an
//! eventfd.

mod machine;

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread::{Builder, sleep};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rustix::event::{EventfdFlags, eventfd};
use serde_json::{Value, json};

use self::machine::{device_of, machine};

/// Numbers of the devices: their ports, which KVM does not emulate.
const SPINS: u8 = 0x81;
const SLEEPS: u8 = 0x82;
const LOCKS: u8 = 0x83;
const RINGS: u8 = 0x84;
const DONE: u8 = 0x85;

const SPIN: Duration = Duration::from_micros(400);
const NAP: Duration = Duration::from_millis(2);
const HOLD: Duration = Duration::from_millis(3);

/// Max time of the guest between two exits.
const MAX_RUN: Duration = Duration::from_secs(20);

/// A lock that another thread holds while the vCPU waits for it.
#[derive(Debug, Default)]
struct Held {
    lock: Mutex<u64>,
    is_taken: AtomicBool,
}

/// Runs this number of rounds. Prints how long each device took, by its own clock, and the CPU time of the vCPU's
/// thread.
pub(crate) fn run(rounds: Option<String>) -> io::Result<()> {
    let rounds: u16 = rounds.and_then(|rounds| rounds.parse().ok()).unwrap_or(50);
    let held = Arc::new(Held::default());
    let (asks, requests) = channel::<()>();
    let of_holder = Arc::clone(&held);
    let holder = Builder::new().name("holder".to_owned()).spawn(move || {
        for () in requests {
            let mut lock = of_holder.lock.lock();
            of_holder.is_taken.store(true, Ordering::Release);
            sleep(HOLD);
            *lock += 1;
        }
    })?;
    let vcpu = Builder::new().name("vcpu0".to_owned()).spawn(move || vcpu(rounds, &held, &asks))?;
    let ended = || io::Error::other("a thread has panicked");
    let measured = vcpu.join().map_err(|_| ended())??;
    holder.join().map_err(|_| ended())?;
    println!("{measured}");
    Ok(())
}

fn vcpu(rounds: u16, held: &Held, asks: &Sender<()>) -> io::Result<Value> {
    let mut vm = machine(rounds, [SPINS, SLEEPS, LOCKS, RINGS], DONE)?;
    let bell = eventfd(0, EventfdFlags::CLOEXEC)?;
    let mut took = [Duration::ZERO; 4];
    loop {
        let exit = vm.run(MAX_RUN).map_err(io::Error::other)?;
        let Some(port) = device_of(exit) else {
            return Err(io::Error::other(format!("the guest stopped: {exit:?}")));
        };
        if port == DONE {
            let ns = took.map(|took| u64::try_from(took.as_nanos()).unwrap_or(u64::MAX));
            let [spins_ns, sleeps_ns, locks_ns, rings_ns] = ns;
            return Ok(json!({
                "rounds": rounds,
                "spins_ns": spins_ns,
                "sleeps_ns": sleeps_ns,
                "locks_ns": locks_ns,
                "rings_ns": rings_ns,
                "cpu_ns": cpu_ns(),
            }));
        }
        let spent = device(port, held, asks, &bell)?;
        if let Some(sum) = took.get_mut(usize::from(port.wrapping_sub(SPINS))) {
            *sum += spent;
        }
    }
}

/// CPU time of the calling thread.
fn cpu_ns() -> i64 {
    let used = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    used.tv_sec * 1_000_000_000 + used.tv_nsec
}

/// Runs the device at a port; returns its time.
fn device(port: u8, held: &Held, asks: &Sender<()>, bell: &OwnedFd) -> io::Result<Duration> {
    if port == LOCKS {
        held.is_taken.store(false, Ordering::Release);
        asks.send(()).map_err(io::Error::other)?;
        while !held.is_taken.load(Ordering::Acquire) {
            std::thread::yield_now();
        }
    }
    let start = Instant::now();
    match port {
        SPINS => while start.elapsed() < SPIN {},
        SLEEPS => sleep(NAP),
        LOCKS => drop(held.lock.lock()),
        RINGS => drop(rustix::io::write(bell, &1_u64.to_ne_bytes())?),
        _ => {}
    }
    Ok(start.elapsed())
}
