//! Facts about this system: its KVM, and the frequency of its TSC.

use std::fs;
use std::thread::sleep;
use std::time::{Duration, Instant};

use sys::guest_instructions::{hypervisor, processor};

use crate::exitcost::sheet::System;

pub(crate) fn system() -> System {
    System { processor: processor(), hypervisor: hypervisor(), kvm: kvm(), tsc_khz: tsc_khz() }
}

/// The processor's KVM module: `kvm_amd`. `None` if unknown: there is none, or several are built in.
fn kvm() -> Option<String> {
    let modules = fs::read_dir("/sys/module").ok()?;
    let names = modules.filter_map(|module| module.ok()?.file_name().into_string().ok());
    let mut of_processors = names.filter(|name| name.starts_with("kvm_"));
    let first = of_processors.next();
    first.filter(|_| of_processors.next().is_none())
}

/// TSC ticks per millisecond, measured for a twentieth of a second. `None` if it does not count.
fn tsc_khz() -> Option<f64> {
    let (start, from) = (Instant::now(), sys::time_stamp_counter());
    sleep(Duration::from_millis(50));
    let (took, to) = (start.elapsed(), sys::time_stamp_counter());
    let ticks = to.checked_sub(from).filter(|&ticks| ticks > 0)?;
    #[allow(clippy::cast_precision_loss, reason = "a twentieth of a second of ticks")]
    let khz = ticks as f64 / (took.as_secs_f64() * 1e3);
    Some(khz)
}
