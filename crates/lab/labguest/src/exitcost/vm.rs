//! Measures in the tiny machine: runs of all kinds in turn, so that a drift over time affects all.

use std::time::Instant;

use sys::guest_instructions::has_vmmcall;
use sys::kvm::Controllers;

use crate::exitcost::host;
use crate::exitcost::kind::{
    IO_APIC, Kind, LEAF, MAGIC, MEMORY_BELL, MSR_APIC_BASE, PORT_BELL, PORT_PIC, UNBACKED,
};
use crate::exitcost::machine::{BatchCost, LONG, Machine, MachineError, SHORT, Setup};
use crate::exitcost::measure_options::MeasureOptions;
use crate::exitcost::runs::{EMPTY, WARM_UP, float, net, operations, per};
use crate::exitcost::sheet::{ExitSource, HandledBy, Row, Sheet};

/// Why there are no CR8 exits in 32-bit mode.
pub(crate) const NO_CR8: &str = "CR8 needs a guest in 64-bit mode, which KVM does not run here";

/// A kind, and its runs.
struct Series {
    row: Row,
    /// KVM's total count in its runs.
    exits: Option<u64>,
    user_exits: u64,
}

pub(crate) fn measure(options: &MeasureOptions) -> Result<Sheet, String> {
    let system = host::system();
    let kinds = Kind::ALL.into_iter().filter(|kind| options.kinds.contains(kind));
    let (mut machine, long_mode) = match machine() {
        Ok(machine) => machine,
        Err(error) => {
            let why = error.to_string();
            let rows = kinds.map(|kind| Row::without(kind, what(kind), why.clone())).collect();
            return Ok(Sheet { way: ExitSource::Vm, system, empty_cycles: Vec::new(), rows });
        }
    };
    let mut all: Vec<Series> =
        kinds.map(|kind| warm_up(kind, options, &mut machine, long_mode)).collect();
    let mut empty_cycles = Vec::new();
    for _ in 0..options.runs {
        let empty = machine.batch(None, EMPTY, LONG).map_err(|error| error.to_string())?;
        let empty = per(empty.cycles, EMPTY);
        empty_cycles.push(empty);
        for series in all.iter_mut().filter(|series| series.row.not_measured.is_none()) {
            series.run(&mut machine, empty);
        }
    }
    // With hardware virtualization the guest's kernel runs on the processor; paravirtual KVM interprets much of it.
    let interprets =
        !system.kvm.as_ref().is_some_and(|kvm| ["kvm_amd", "kvm_intel"].contains(&kvm.as_str()));
    let rows = all.into_iter().map(|series| series.row(interprets)).collect();
    Ok(Sheet { way: ExitSource::Vm, system, empty_cycles, rows })
}

/// A machine in 64-bit mode, or in 32-bit mode if KVM does not support that.
pub(crate) fn machine() -> Result<(Machine, bool), MachineError> {
    let setup = Setup {
        long_mode: true,
        controllers: Controllers::Kernel,
        has_doorbells: true,
        has_vhost: false,
    };
    let mut machine = Machine::new(setup, has_vmmcall())?;
    if machine.batch(None, 1, SHORT).is_ok() {
        return Ok((machine, true));
    }
    let mut machine = Machine::new(Setup { long_mode: false, ..setup }, has_vmmcall())?;
    machine.batch(None, 1, SHORT)?;
    Ok((machine, false))
}

/// Runs a few operations, whose time determines the number per run.
fn warm_up(kind: Kind, options: &MeasureOptions, machine: &mut Machine, long_mode: bool) -> Series {
    let without =
        |why| Series { row: Row::without(kind, what(kind), why), exits: None, user_exits: 0 };
    if !long_mode && kind.needs_long_mode() {
        return without(NO_CR8.into());
    }
    let start = Instant::now();
    if let Err(error) = machine.batch(Some(kind), WARM_UP, SHORT) {
        return without(error.to_string());
    }
    let count = kind.at_most(operations(options.run(), start.elapsed()));
    let row = Row {
        operations: count,
        made: WARM_UP,
        not_measured: None,
        ..Row::without(kind, what(kind), String::new())
    };
    Series { row, exits: Some(0), user_exits: 0 }
}

impl Series {
    fn run(&mut self, machine: &mut Machine, empty: f64) {
        let count = self.row.operations;
        match machine.batch(Some(self.row.kind), count, LONG) {
            Ok(BatchCost { cycles, exits, user_exits }) => {
                // A wake-up is timed without a loop.
                let empty = if self.row.kind == Kind::HltWake { 0.0 } else { empty };
                self.row.made += count;
                self.row.cycles.push(net(cycles, count, empty));
                self.exits = self.exits.zip(exits).map(|(sum, exits)| sum + exits);
                self.user_exits += user_exits;
            }
            Err(error) => {
                self.row = Row::without(self.row.kind, what(self.row.kind), error.to_string());
            }
        }
    }

    fn row(self, interprets: bool) -> Row {
        let mut row = self.row;
        let count = row.operations * row.cycles.len() as u64;
        if count > 0 {
            let exits = self.exits.map(|exits| per(float(exits), count));
            let user = per(float(self.user_exits), count);
            row.exits_per_operation = exits;
            row.user_exits_per_operation = Some(user);
            row.handled_by = HandledBy::from_counts(exits, user, interprets);
        }
        row
    }
}

fn what(kind: Kind) -> String {
    match kind {
        Kind::Cpuid => format!("CPUID, leaf {LEAF:#x}"),
        Kind::Hypercall => format!("hypercall, number {MAGIC:#x}"),
        Kind::Rdmsr => format!("RDMSR of {MSR_APIC_BASE:#x} (IA32_APIC_BASE)"),
        Kind::Wrmsr => format!("WRMSR to {MSR_APIC_BASE:#x} of what it holds"),
        Kind::Cr8Read => "MOV from CR8".into(),
        Kind::Cr8Write => "MOV to CR8 of what it holds".into(),
        Kind::PortKernel => format!("IN from port {PORT_PIC:#x}, KVM's PIC"),
        Kind::PortUser => format!("IN from port {MAGIC:#x}"),
        Kind::MmioKernel => format!("read of {IO_APIC:#x}, KVM's I/O APIC"),
        Kind::MmioUser => format!("read of {UNBACKED:#x}"),
        Kind::KickPort => format!("OUT to port {PORT_BELL:#x}, an ioeventfd"),
        Kind::KickMmio => format!("write to {MEMORY_BELL:#x}, an ioeventfd"),
        Kind::Send => "a frame by a virtqueue: from OUT to its doorbell to the interrupt".into(),
        Kind::HltWake => "HLT: from an irqfd's signal to the next instruction".into(),
    }
}
