//! The tiny machine: page tables, descriptors and one interrupt, and batches of an operation in it.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use sys::Tap;
use sys::kvm::{
    Controllers, Doorbell, KvmError, Registers, Segment, SpecialRegisters, Table, TinyVm, VmExit,
};

use crate::exitcost::counters::Counter;
use crate::exitcost::kind::{IO_APIC, Kind, MEMORY_BELL, PORT_BELL};
use crate::exitcost::payload::{self, Facts, PORT_DONE};
use crate::exitcost::runs::float;
use crate::exitcost::server::{self, Server};
use crate::exitcost::waker::{self, Waker};

const MEMORY_BYTES: usize = 0x20000;
/// Four consecutive page tables: of 512 GiB, of 1 GiB, and two of 2 MiB pages.
const PAGE_TABLES: usize = 0x1000;
const DESCRIPTORS: usize = 0x5000;
const INTERRUPTS: usize = 0x6000;
const RESULTS: usize = 0x7000;
const CODE: usize = 0x8000;
const HANDLER: usize = 0x9000;
const STACK_TOP: usize = 0xc000;
const SAMPLES: usize = 0x10000;
/// The interrupt line of the first PIC that wakes the machine, and the vector of its first line.
const LINE: u8 = 4;
const VECTORS: u8 = 0x20;
/// Max time of a batch that tests whether an operation works: KVM repeats some operations forever, for example
/// paravirtual ones.
pub(crate) const SHORT: Duration = Duration::from_secs(10);
/// Max time of any other batch.
pub(crate) const LONG: Duration = Duration::from_secs(120);

/// Parameters of a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Setup {
    /// 64-bit mode, or 32-bit mode without page tables.
    pub(crate) long_mode: bool,
    /// Where interrupt controllers are emulated.
    pub(crate) controllers: Controllers,
    /// Whether KVM signals the doorbells' eventfds, or user space does.
    pub(crate) has_doorbells: bool,
    /// Whether the kernel's vhost-net handles sent frames, instead of this program.
    pub(crate) has_vhost: bool,
}

/// Why a machine failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum MachineError {
    #[error(transparent)]
    Kvm(#[from] KvmError),
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error("the machine stopped: {0}")]
    Stopped(String),
}

type Result<T> = std::result::Result<T, MachineError>;

/// The cost of a batch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BatchCost {
    /// Cycles of the machine's TSC: of the loop, or from signals to the instructions after the halt.
    pub(crate) cycles: f64,
    /// Exits, by KVM's counter.
    pub(crate) exits: Option<u64>,
    /// Number of returns to this program.
    pub(crate) user_exits: u64,
}

/// A machine that is ready to run.
#[derive(Debug)]
pub(crate) struct Machine {
    vm: TinyVm,
    setup: Setup,
    facts: Facts,
    exits: Option<Counter>,
    /// The target of frames; made for the first one.
    tap: Option<Tap>,
    asks: OwnedFd,
    wakes: OwnedFd,
    /// Delay before the halted machine gets its signal.
    nap: Duration,
    /// Whether a batch did not end: the machine's state is undefined then.
    has_failed: bool,
}

/// Min and max time for the machine to halt. The min is below KVM's halt polling time (200 us), so that polling can be
/// separated from sleep.
const NAP: [Duration; 2] = [Duration::from_micros(100), Duration::from_millis(20)];
/// A machine counts as halted after this multiple of the quickest entry and exit.
const EXITS_TO_HALT: u32 = 4;

impl Machine {
    /// Makes a machine.
    pub(crate) fn new(setup: Setup, has_vmmcall: bool) -> Result<Self> {
        let mut vm = TinyVm::new(MEMORY_BYTES, setup.controllers)?;
        let (asks, wakes) = (waker::bell()?, waker::bell()?);
        if setup.has_doorbells {
            vm.add_doorbell(Doorbell::Port(PORT_BELL), asks.as_fd())?;
            vm.add_doorbell(Doorbell::Memory(MEMORY_BELL.into()), asks.as_fd())?;
        }
        if setup.controllers == Controllers::Kernel {
            vm.set_pic(VECTORS)?;
            vm.add_interrupt(LINE.into(), wakes.as_fd())?;
        }
        let mut registers = vm.special_registers()?;
        let facts = Facts { has_vmmcall, apic_base: registers.apic_base };
        enter_mode(&mut registers, setup.long_mode);
        vm.set_special_registers(&registers)?;
        fill(vm.memory_mut(), setup.long_mode);
        // Older kernels lack this file.
        let exits = vm.counters().ok().and_then(|file| Counter::find(file, "exits").ok());
        Ok(Self { vm, setup, facts, exits, tap: None, asks, wakes, nap: NAP[1], has_failed: false })
    }

    /// Executes an operation a number of times, or an empty loop if there is none; in a new machine if the last batch
    /// failed.
    pub(crate) fn batch(
        &mut self,
        kind: Option<Kind>,
        count: u64,
        at_most: Duration,
    ) -> Result<BatchCost> {
        if self.has_failed {
            let nap = self.nap;
            *self = Self { nap, ..Self::new(self.setup, self.facts.has_vmmcall)? };
        }
        let batch = self.try_batch(kind, count, at_most);
        self.has_failed = batch.is_err();
        batch
    }

    fn try_batch(
        &mut self,
        kind: Option<Kind>,
        count: u64,
        at_most: Duration,
    ) -> Result<BatchCost> {
        let is_wake = kind == Some(Kind::HltWake);
        // Pending kicks of earlier batches.
        self.drain()?;
        put(self.vm.memory_mut(), CODE, &payload::program(kind, self.facts));
        self.vm.set_registers(&Registers {
            rip: CODE as u64,
            rsp: STACK_TOP as u64,
            rdi: RESULTS as u64,
            rsi: SAMPLES as u64,
            rbp: count,
            rflags: 2,
            ..Registers::default()
        })?;
        let waker = if is_wake {
            Some(Waker::start(&self.asks, &self.wakes, count, self.nap)?)
        } else {
            None
        };
        let server = if kind == Some(Kind::Send) { Some(self.serve()?) } else { None };
        let before = self.exits()?;
        let start = Instant::now();
        let user_exits = self.run(at_most, server.as_ref())?;
        if kind.is_none() {
            self.nap = self.nap.min(EXITS_TO_HALT * start.elapsed()).max(NAP[0]);
        }
        drop(server);
        self.vm.end_vhost();
        // Excludes the exit that reports the end of the loop.
        let exits = self.exits()?.zip(before).map(|(after, before)| (after - before).max(1) - 1);
        let cycles = match waker {
            Some(waker) => self.wake_cycles(&waker.end()?)?,
            None => float(self.word(RESULTS + 8).wrapping_sub(self.word(RESULTS))),
        };
        Ok(BatchCost { cycles, exits, user_exits })
    }

    /// Starts the server for sent frames.
    fn serve(&mut self) -> Result<Server> {
        let tap = match &self.tap {
            Some(tap) => tap.try_clone()?,
            None => self.tap.insert(Tap::make()?).try_clone()?,
        };
        if self.setup.has_vhost {
            Ok(server::by_vhost(&mut self.vm, &tap, &self.asks, &self.wakes)?)
        } else if self.setup.has_doorbells {
            Ok(server::by_thread(tap, &self.asks, &self.wakes)?)
        } else {
            Ok(Server::Own(tap))
        }
    }

    fn exits(&self) -> Result<Option<u64>> {
        Ok(self.exits.as_ref().map(Counter::value).transpose()?)
    }

    /// Resets the eventfds.
    fn drain(&self) -> Result<()> {
        waker::ring(&self.asks)?;
        Ok(waker::wait(&self.asks)?)
    }

    /// Runs it to the end; returns the number of earlier returns to user space.
    fn run(&mut self, at_most: Duration, server: Option<&Server>) -> Result<u64> {
        let mut user_exits = 0;
        loop {
            let exit = self.vm.run(at_most)?;
            if exit == VmExit::Port(PORT_DONE) {
                return Ok(user_exits);
            }
            user_exits += 1;
            match exit {
                VmExit::Port(PORT_BELL) => match server {
                    Some(Server::Own(tap)) => server::send(tap, &self.wakes)?,
                    _ => waker::ring(&self.asks)?,
                },
                VmExit::Memory(address) if address == u64::from(MEMORY_BELL) => {
                    waker::ring(&self.asks)?;
                }
                VmExit::Port(_) | VmExit::Memory(_) => {}
                VmExit::Halt if self.setup.controllers == Controllers::User => {
                    waker::wait(&self.wakes)?;
                    self.vm.interrupt(VECTORS + LINE)?;
                }
                VmExit::TimedOut => {
                    let text = format!("it did not end within {} s", at_most.as_secs());
                    return Err(MachineError::Stopped(text));
                }
                other => return Err(MachineError::Stopped(format!("{other:?}"))),
            }
        }
    }

    /// Sum of all wake-up times, from signal to next instruction.
    fn wake_cycles(&self, signals: &[u64]) -> Result<f64> {
        let offset = self.vm.tsc_offset()?;
        let samples = (0..).map(|at| self.word(SAMPLES + 8 * at));
        let woken = samples.zip(signals).map(|(guest_tsc, &signal)| {
            let host_tsc = guest_tsc.wrapping_sub(offset.cast_unsigned());
            float(host_tsc.saturating_sub(signal))
        });
        Ok(woken.sum())
    }

    fn word(&self, at: usize) -> u64 {
        let bytes = self.vm.memory().get(at..).and_then(<[u8]>::first_chunk);
        bytes.map_or(0, |bytes| u64::from_le_bytes(*bytes))
    }
}

fn put(memory: &mut [u8], at: usize, bytes: &[u8]) {
    if let Some(place) = memory.get_mut(at..at + bytes.len()) {
        place.copy_from_slice(bytes);
    }
}

fn put_words(memory: &mut [u8], at: usize, words: impl IntoIterator<Item = u64>) {
    for (index, word) in words.into_iter().enumerate() {
        put(memory, at + 8 * index, &word.to_le_bytes());
    }
}

/// Writes the page tables and descriptors.
fn fill(memory: &mut [u8], long_mode: bool) {
    /// Present and writable.
    const HERE: u64 = 3;
    /// A page of 2 MiB.
    const LARGE: u64 = 1 << 7;
    const UNCACHED: u64 = 1 << 4;
    let table = |at: usize| (PAGE_TABLES + 0x1000 * at) as u64;
    put_words(memory, PAGE_TABLES, [table(1) | HERE]);
    // The first GiB, and the fourth one, where interrupt controllers are.
    put_words(memory, PAGE_TABLES + 0x1000, [table(2) | HERE, 0, 0, table(3) | HERE]);
    let pages = (0..512_u64).map(|page| page << 21 | LARGE | HERE);
    put_words(memory, PAGE_TABLES + 0x2000, pages.clone());
    put_words(memory, PAGE_TABLES + 0x3000, pages.map(|page| page | 3 << 30 | UNCACHED));
    let code = if long_mode { 0x00af_9b00_0000_ffff } else { 0x00cf_9b00_0000_ffff };
    put_words(memory, DESCRIPTORS, [0, code, 0x00cf_9300_0000_ffff]);
    let gate = HANDLER as u64 | 8 << 16 | 0x8e00 << 32;
    let gate_bytes = if long_mode { 16 } else { 8 };
    put_words(memory, INTERRUPTS + gate_bytes * usize::from(VECTORS + LINE), [gate]);
    put(memory, HANDLER, payload::handler(long_mode));
}

/// Sets the CPU up for its mode.
fn enter_mode(registers: &mut SpecialRegisters, long_mode: bool) {
    /// Protected mode, with an FPU and native FPU errors.
    const CR0: u64 = 1 | 1 << 4 | 1 << 5;
    let code = Segment {
        limit: u32::MAX,
        selector: 8,
        kind: 11,
        present: 1,
        s: 1,
        g: 1,
        l: long_mode.into(),
        db: (!long_mode).into(),
        ..Segment::default()
    };
    let data = Segment { selector: 16, kind: 3, l: 0, db: 1, ..code };
    registers.cs = code;
    for segment in [&mut registers.ds, &mut registers.es, &mut registers.ss] {
        *segment = data;
    }
    registers.gdt = Table { base: DESCRIPTORS as u64, limit: 23, ..Table::default() };
    registers.idt = Table { base: INTERRUPTS as u64, limit: 0xfff, ..Table::default() };
    registers.cr0 = CR0;
    if long_mode {
        registers.cr0 |= 1 << 31;
        // Page tables of long mode; long mode is enabled and active.
        (registers.cr3, registers.cr4, registers.efer) = (PAGE_TABLES as u64, 1 << 5, 0x500);
    }
}

/// The I/O APIC's page is mapped in the fourth GiB.
const _: () = assert!(IO_APIC >> 30 == 3);
