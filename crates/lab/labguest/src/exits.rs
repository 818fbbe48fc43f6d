//! A workload that causes known numbers of exits, which differ from the kernel's own by their leaf, number, register,
//! port or address.

#[cfg(target_arch = "x86_64")]
use std::fs::File;
use std::io;
#[cfg(target_arch = "x86_64")]
use std::os::unix::fs::FileExt;
use std::thread;
use std::time::Duration;

use labguest::wire::{Key, Truth};
use sys::PhysicalPage;
#[cfg(target_arch = "x86_64")]
use sys::guest_instructions::{PortWriter, cpuid, hypercall};

use crate::number_argument;

/// "HY": part of numbers that nothing else uses.
#[cfg(target_arch = "x86_64")]
const MAGIC: u16 = 0x4859;
/// In the CPUID range reserved for hypervisors, and unused.
#[cfg(target_arch = "x86_64")]
const LEAF: u32 = 0x4000_0000 | MAGIC as u32;
/// KVM's steal time MSR; the kernel writes it once, at boot.
#[cfg(target_arch = "x86_64")]
const MSR_KVM_STEAL_TIME: u32 = 0x4b56_4d03;
/// A page between RAM and devices, on the lab's boards.
const UNBACKED: u64 = if cfg!(target_arch = "aarch64") { 0x0d00_0000 } else { 0xd000_0000 };
/// How long the guest sleeps for each wait: long enough for its CPU to halt.
const NAP: Duration = Duration::from_millis(2);

/// Causes the requested exits (`KIND=COUNT`), and prints their numbers, a line of JSON each.
pub(crate) fn run(arguments: impl Iterator<Item = String>) -> io::Result<()> {
    for argument in arguments {
        println!("{}", serde_json::to_string(&make_asked(&argument)?)?);
    }
    Ok(())
}

/// Causes the exits of `KIND=COUNT`.
pub(crate) fn make_asked(text: &str) -> io::Result<Truth> {
    let (kind, count) = number_argument::number(text)?;
    make(kind, count)
}

fn invalid(text: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, text)
}

fn make(kind: &str, count: u64) -> io::Result<Truth> {
    match kind {
        "mmio" => mmio(count),
        "nap" => Ok(naps(count)),
        #[cfg(target_arch = "x86_64")]
        "cpuid" | "hypercall" | "msr" | "port" => x86(kind, count),
        _ => Err(invalid(format!("unknown kind of exits {kind:?}"))),
    }
}

fn truth(what: String, by: &str, key: Key, count: u64) -> Truth {
    Truth { what, by: by.to_owned(), key, count, at_least: false, level: None, task: None }
}

fn mmio(count: u64) -> io::Result<Truth> {
    let page = PhysicalPage::map(UNBACKED)?;
    for _ in 0..count {
        let _ = page.read_u32();
    }
    let what = format!("reads of device memory at {UNBACKED:#x}");
    Ok(truth(what, "gpa", Key::Number(UNBACKED), count))
}

/// Sleeps: the CPU halts once per nap, and whenever else the kernel idles.
fn naps(count: u64) -> Truth {
    for _ in 0..count {
        thread::sleep(NAP);
    }
    let reason = if cfg!(target_arch = "aarch64") { "WFx" } else { "hlt" };
    let what = format!("sleeps of {} ms", NAP.as_millis());
    Truth { at_least: true, ..truth(what, "reason", Key::Name(reason.into()), count) }
}

#[cfg(target_arch = "x86_64")]
fn x86(kind: &str, count: u64) -> io::Result<Truth> {
    Ok(match kind {
        "cpuid" => {
            for _ in 0..count {
                let _ = cpuid(LEAF);
            }
            truth(
                format!("CPUID with leaf {LEAF:#x}"),
                "cpuid_leaf",
                Key::Number(LEAF.into()),
                count,
            )
        }
        "hypercall" => {
            for at in 0..count {
                let _ = hypercall(MAGIC.into(), [at, 0, 0, 0]);
            }
            truth(
                format!("hypercalls with number {MAGIC:#x}"),
                "hypercall",
                Key::Number(MAGIC.into()),
                count,
            )
        }
        "msr" => {
            let registers = File::open("/dev/cpu/0/msr")?;
            for _ in 0..count {
                registers.read_exact_at(&mut [0; 8], MSR_KVM_STEAL_TIME.into())?;
            }
            let what = format!("RDMSR of {MSR_KVM_STEAL_TIME:#x}");
            truth(what, "msr", Key::Number(MSR_KVM_STEAL_TIME.into()), count)
        }
        _ => {
            let port = PortWriter::acquire(MAGIC)?;
            for _ in 0..count {
                port.write(0);
            }
            truth(format!("OUT to port {MAGIC:#x}"), "port", Key::Number(MAGIC.into()), count)
        }
    })
}
