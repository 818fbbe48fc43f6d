//! Measures the exits that user space of this guest can cause.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::thread::sleep;
use std::time::{Duration, Instant};

use sys::PhysicalPage;
use sys::guest_instructions::{self as instructions, PortReader};

use crate::exitcost::host;
use crate::exitcost::kind::{IO_APIC, Kind, LEAF, MAGIC, MSR_APIC_BASE, PORT_PIC};
use crate::exitcost::measure_options::MeasureOptions;
use crate::exitcost::runs::{EMPTY, WARM_UP, float, net, operations, per};
use crate::exitcost::sheet::{ExitSource, Row, Sheet, System};

/// A page between RAM and devices, on QEMU's boards.
const UNBACKED: u64 = 0xd000_0000;
/// How long the guest sleeps for a wake-up: long enough for its CPU to halt.
const NAP: Duration = Duration::from_millis(1);
/// Hypervisor names of KVM and QEMU's emulator in CPUID.
const KVM: &str = "KVMKVMKVM";
const EMULATOR: &str = "TCGTCGTCGTCG";

/// Causes `count` exits of a kind; returns their total cycles.
type Make = Box<dyn FnMut(u64) -> io::Result<f64>>;

struct Series {
    row: Row,
    make: Make,
}

pub(crate) fn measure(options: &MeasureOptions) -> Sheet {
    let system = host::system();
    let mut rows = Vec::new();
    let mut all = Vec::new();
    for kind in Kind::ALL.into_iter().filter(|kind| options.kinds.contains(kind)) {
        match begin(kind, options, &system) {
            Ok(series) => all.push(series),
            Err(why) => rows.push(Row::without(kind, what(kind), why)),
        }
    }
    let mut empty_cycles = Vec::new();
    for _ in 0..options.runs {
        let empty = per(float(instructions::empty_loop(EMPTY)), EMPTY);
        empty_cycles.push(empty);
        for series in all.iter_mut().filter(|series| series.row.not_measured.is_none()) {
            series.run(empty);
        }
    }
    rows.extend(all.into_iter().map(|series| series.row));
    rows.sort_by_key(|row| row.kind);
    Sheet { way: ExitSource::Guest, system, empty_cycles, rows }
}

/// Prepares and warms up a kind; the error tells why it can't be measured here.
fn begin(kind: Kind, options: &MeasureOptions, system: &System) -> Result<Series, String> {
    match system.hypervisor.as_deref() {
        None => return Err("this machine is not a guest and has no exits".into()),
        Some(EMULATOR) => {
            return Err("this system runs in an emulator and has no exits".into());
        }
        Some(name) if kind == Kind::Hypercall && name != KVM => {
            return Err(format!("the hypervisor is {name:?}, which has other hypercalls"));
        }
        Some(_) => {}
    }
    let mut make = prepare(kind, system.tsc_khz)?;
    let start = Instant::now();
    make(WARM_UP).map_err(|error| error.to_string())?;
    let row = Row {
        operations: operations(options.run(), start.elapsed()),
        made: WARM_UP,
        not_measured: None,
        ..Row::without(kind, what(kind), String::new())
    };
    Ok(Series { row, make })
}

fn prepare(kind: Kind, tsc_khz: Option<f64>) -> Result<Make, String> {
    let refused = |what: &'static str| move |error: io::Error| format!("{what}: {error}");
    Ok(match kind {
        Kind::Cpuid => Box::new(|count| Ok(float(instructions::cpuid_loop(LEAF, count)))),
        Kind::Hypercall => {
            Box::new(|count| Ok(float(instructions::hypercall_loop(MAGIC.into(), count))))
        }
        Kind::Rdmsr => {
            let registers = File::open("/dev/cpu/0/msr")
                .map_err(refused("/dev/cpu/0/msr, of the module msr"))?;
            Box::new(move |count| read_register(&registers, count))
        }
        Kind::PortKernel | Kind::PortUser => {
            let number = if kind == Kind::PortUser { MAGIC } else { PORT_PIC };
            let port = PortReader::acquire(number).map_err(refused("ioperm"))?;
            Box::new(move |count| Ok(float(port.read_loop(count))))
        }
        Kind::MmioKernel | Kind::MmioUser => {
            let address = if kind == Kind::MmioUser { UNBACKED } else { IO_APIC.into() };
            let page = PhysicalPage::map(address).map_err(refused("/dev/mem"))?;
            Box::new(move |count| Ok(float(page.read_loop(count))))
        }
        Kind::HltWake => {
            let khz = tsc_khz.ok_or("the time stamp counter does not advance")?;
            Box::new(move |count| Ok(naps(count, khz)))
        }
        Kind::Wrmsr | Kind::Cr8Read | Kind::Cr8Write => {
            return Err("impossible from user space: use --vm".into());
        }
        Kind::KickPort | Kind::KickMmio | Kind::Send => {
            return Err("the device's driver owns the doorbell: use --vm".into());
        }
    })
}

impl Series {
    fn run(&mut self, empty: f64) {
        let count = self.row.operations;
        // The loops of these kinds do not only consist of instructions.
        let empty = match self.row.kind {
            Kind::Rdmsr | Kind::HltWake => 0.0,
            _ => empty,
        };
        match (self.make)(count) {
            Ok(cycles) => {
                self.row.made += count;
                self.row.cycles.push(net(cycles, count, empty));
            }
            Err(error) => {
                self.row = Row::without(self.row.kind, what(self.row.kind), error.to_string());
            }
        }
    }
}

/// Reads a register through the kernel's msr module; subtracts the time of as many empty reads.
fn read_register(registers: &File, count: u64) -> io::Result<f64> {
    let nothing = File::open("/dev/zero")?;
    let cycles = |file: &File, at: u64| -> io::Result<u64> {
        let start = sys::time_stamp_counter();
        for _ in 0..count {
            file.read_exact_at(&mut [0; 8], at)?;
        }
        Ok(sys::time_stamp_counter().saturating_sub(start))
    };
    let empty = cycles(&nothing, 0)?;
    Ok(float(cycles(registers, MSR_APIC_BASE.into())?) - float(empty))
}

/// Sleeps; returns the time beyond the requested one.
fn naps(count: u64, tsc_khz: f64) -> f64 {
    let nap_ticks = NAP.as_secs_f64() * 1e3 * tsc_khz;
    let beyond = (0..count).map(|_| {
        let start = sys::time_stamp_counter();
        sleep(NAP);
        float(sys::time_stamp_counter().saturating_sub(start)) - nap_ticks
    });
    beyond.sum()
}

fn what(kind: Kind) -> String {
    match kind {
        Kind::Cpuid => format!("CPUID, leaf {LEAF:#x}"),
        Kind::Hypercall => format!("hypercall, number {MAGIC:#x}; from user space it is refused"),
        Kind::Rdmsr => {
            format!("RDMSR of {MSR_APIC_BASE:#x} by the kernel's module msr, less an empty read")
        }
        Kind::PortKernel => format!("IN from port {PORT_PIC:#x}, the PIC where the board has one"),
        Kind::PortUser => format!("IN from port {MAGIC:#x}, which no device has"),
        Kind::MmioKernel => format!("read of {IO_APIC:#x}, the I/O APIC"),
        Kind::MmioUser => format!("read of {UNBACKED:#x}, which no device has"),
        Kind::HltWake => format!("sleep of {} ms: from its end to the program", NAP.as_millis()),
        Kind::Wrmsr
        | Kind::Cr8Read
        | Kind::Cr8Write
        | Kind::KickPort
        | Kind::KickMmio
        | Kind::Send => kind.name().into(),
    }
}
