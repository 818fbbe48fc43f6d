//! What KVM's events are called and mean on each architecture: one table per file.
//!
//! Events, fields and codes differ between architectures and drift between kernels. Every name that
//! the timeline and the analyses rely on stands in one of these tables. To add an architecture, add a
//! file with its [`Arch`] and list it in [`ALL`]; nothing else changes.

mod any;
mod arm64;
mod loongarch;
mod powerpc;
mod riscv;
mod rule;
mod s390;
mod text;
mod x86;

use ftrace::eventfmt::EventFormat;
use sources::FormatTable;

use crate::exit_span::Detail;
use crate::thread_event::Kind;

pub use any::SCHED_SWITCH;
pub(crate) use any::{HOST_WORK_SYSTEMS, SLEEP_STATES};
pub use rule::{FLAG, HIGH, Rule, THREAD, VALUE};
pub(crate) use rule::{GUEST_PC_AT, ONLY_IF};

/// All tables. Where two tables have a rule for an event, the first one whose fields the event has
/// is taken.
const ALL: &[&Arch] = &[
    &x86::ARCH,
    &arm64::ARCH,
    &s390::ARCH,
    &riscv::ARCH,
    &powerpc::ARCH,
    &loongarch::ARCH,
    &text::ARCH,
    &any::ARCH,
];

/// What KVM records on one architecture.
#[derive(Debug)]
pub struct Arch {
    /// Events that are part of a vCPU's life.
    rules: &'static [Rule],
    /// Events that tell exits of one reason apart; read only when a report asks for them.
    details: &'static [(Detail, Rule)],
    /// Events by which a guest reaches for something outside itself.
    accesses: &'static [Access],
    /// Events that raise an interrupt for a guest.
    injections: &'static [Injection],
    /// The instruction sets for virtualisation that it has. Without any, the table holds what all
    /// architectures have.
    isas: &'static [IsaCodes],
}

/// The instruction set whose virtualisation an exit belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Isa {
    /// Intel VMX (`KVM_ISA_VMX`).
    Vmx,
    /// AMD SVM (`KVM_ISA_SVM`).
    Svm,
    /// arm64.
    Arm64,
    /// IBM Z; shapes from the kernel's headers, not tested on a real recording yet.
    S390,
    /// RISC-V; shapes from the kernel's headers, not tested on a real recording yet.
    Riscv,
    /// POWER, book3s HV; shapes from the kernel's headers, not tested on a real recording yet.
    Powerpc,
    /// LoongArch; shapes from the kernel's headers, not tested on a real recording yet.
    Loongarch,
    /// Exits of a text, whose reasons have names and no codes.
    Text,
    /// An exit event of a shape not known.
    Unknown,
}

/// How one instruction set's exits are coded.
#[derive(Debug)]
struct IsaCodes {
    isa: Isa,
    /// The name scripts see.
    name: &'static str,
    /// What the event's `isa` field holds (`KVM_ISA_*`); 0 where the event has no such field.
    flag: u8,
    /// Whether the guest has nothing to do after an exit of this code.
    waits: fn(u64) -> bool,
    /// Whether an interrupt of the host's ended the guest's run, wherever the guest was: what it did just
    /// then is a sample of what it does.
    interrupts: fn(u64) -> bool,
    /// The field of the exit event whose symbol in the print fmt names the code; empty: the field
    /// with the code itself.
    symbol_in: fn(u64) -> &'static str,
    /// What is added to the name.
    suffix: fn(u64) -> &'static str,
    /// Names of codes for which the kernel's print fmt has no symbol.
    names: &'static [(u64, &'static str)],
    /// The bits of a code that are flags next to the reason.
    flag_bits: u64,
    /// Names of flags, for kernels whose print fmt leaves them out.
    flags: &'static [(u64, &'static str)],
}

/// What a guest reaches for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AccessKind {
    /// Memory of a device: type, address.
    Mmio,
    /// Memory of a device, written and without an answer to wait for: address.
    FastMmio,
    /// An I/O port: direction, port.
    Pio,
    /// A model-specific register: direction, number.
    Msr,
    /// A hypercall: number.
    Hypercall,
    /// An interrupt to another vCPU.
    Ipi,
}

/// An event by which a guest reaches for something outside itself.
#[derive(Clone, Copy, Debug)]
pub struct Access {
    event: &'static str,
    /// What it reaches for.
    pub kind: AccessKind,
    /// The fields that [`AccessKind`] names, in its order.
    pub fields: &'static [&'static str],
}

/// An event that raises an interrupt for a guest.
#[derive(Clone, Copy, Debug)]
pub struct Injection {
    event: &'static str,
    /// The fields with the vCPU and the level of the line, `none` where the event has none,
    /// `common_flags`, and the vector, `none` again.
    pub fields: &'static [&'static str],
}

impl Injection {
    const fn new(event: &'static str, fields: &'static [&'static str; 4]) -> Self {
        Self { event, fields }
    }
}

impl Access {
    const fn new(event: &'static str, kind: AccessKind, fields: &'static [&'static str]) -> Self {
        Self { event, kind, fields }
    }
}

impl IsaCodes {
    /// Codes that the event's only field holds and names, none of them a wait.
    const fn new(isa: Isa, name: &'static str) -> Self {
        Self {
            isa,
            name,
            flag: 0,
            waits: |_| false,
            interrupts: |_| false,
            symbol_in: |_| "",
            suffix: |_| "",
            names: &[],
            flag_bits: 0,
            flags: &[],
        }
    }
}

impl Isa {
    fn codes(self) -> Option<&'static IsaCodes> {
        ALL.iter().flat_map(|arch| arch.isas).find(|codes| codes.isa == self)
    }

    /// The name scripts see.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.codes().map_or("unknown", |codes| codes.name)
    }

    /// Whether the guest has nothing to do after an exit of this code.
    #[must_use]
    pub fn waits(self, code: u64) -> bool {
        self.codes().is_some_and(|codes| (codes.waits)(code))
    }

    /// Whether an exit of this code came of an interrupt of the host's, wherever the guest was.
    #[must_use]
    pub fn interrupts(self, code: u64) -> bool {
        self.codes().is_some_and(|codes| (codes.interrupts)(code))
    }

    /// Whether its codes are made of two fields: see [`HIGH`].
    #[must_use]
    pub fn has_code_pairs(self) -> bool {
        let arch = ALL.iter().find(|arch| arch.isas.iter().any(|codes| codes.isa == self));
        arch.is_some_and(|arch| arch.rules.iter().any(|rule| !rule.field(HIGH).is_empty()))
    }

    /// The field of the exit event whose symbol in the print fmt names the code; empty: the field
    /// with the code itself.
    #[must_use]
    pub fn symbol_in(self, code: u64) -> &'static str {
        self.codes().map_or("", |codes| (codes.symbol_in)(code))
    }

    /// What a code's name ends with, besides the kernel's symbol.
    #[must_use]
    pub fn suffix(self, code: u64) -> &'static str {
        self.codes().map_or("", |codes| (codes.suffix)(code))
    }

    /// Whether a code has flags next to its reason.
    #[must_use]
    pub fn has_flags(self, code: u64) -> bool {
        self.codes().is_some_and(|codes| code & codes.flag_bits != 0)
    }

    /// The flags of a code for which the kernel's print fmt has no table, as one would be written; those
    /// without a name in hex.
    #[must_use]
    pub fn flags_without_table(self, code: u64) -> String {
        let Some(codes) = self.codes() else { return String::new() };
        let mut remaining = code & codes.flag_bits;
        let mut names = Vec::new();
        for (flag, name) in codes.flags.iter().filter(|(flag, _)| code & flag != 0) {
            names.push((*name).to_owned());
            remaining &= !flag;
        }
        names.extend((remaining != 0).then(|| format!("{remaining:#x}")));
        names.join(" ")
    }

    /// The name of a code for which the kernel's print fmt has no symbol.
    #[must_use]
    pub fn name_without_symbol(self, code: u64) -> Option<&'static str> {
        let names = self.codes()?.names;
        names.iter().find(|(candidate, _)| *candidate == code).map(|(_, name)| *name)
    }
}

impl Arch {
    /// The instruction set of an exit whose event has this in its `isa` field (0: it has none).
    #[must_use]
    pub fn isa(&self, flag: u8) -> Isa {
        let codes = self.isas.iter().find(|codes| codes.flag == 0 || codes.flag == flag);
        codes.map_or(Isa::Unknown, |codes| codes.isa)
    }
}

/// Rules that one table may have: a rule's tag is its table's number times this, plus its place.
const MAX_RULES: usize = 24;

/// Tags of rules are below this.
pub(crate) const RULE_TAGS: u16 = (ALL.len() * MAX_RULES) as u16;

const _: () = {
    let mut table = 0;
    while table < ALL.len() {
        assert!(ALL[table].rules.len() <= MAX_RULES);
        table += 1;
    }
};

fn rules() -> impl Iterator<Item = (u16, &'static Arch, &'static Rule)> {
    (0u16..).step_by(MAX_RULES).zip(ALL).flat_map(|(first, arch)| {
        (first..).zip(arch.rules).map(move |(tag, rule)| (tag, *arch, rule))
    })
}

/// The rule for events of this format, and its tag; `None` if no vCPU is concerned.
#[must_use]
pub fn rule_for(format: &EventFormat) -> Option<(u16, &'static Rule)> {
    rules().find(|(_, _, rule)| rule.is_for(format)).map(|(tag, _, rule)| (tag, rule))
}

/// The rule of that tag.
#[inline]
#[must_use]
pub fn rule(tag: u16) -> Option<&'static Rule> {
    let tag = usize::from(tag);
    ALL.get(tag / MAX_RULES)?.rules.get(tag % MAX_RULES)
}

/// Fields of this format's events that describe an exit besides its reason.
#[must_use]
pub fn detail_for(format: &EventFormat) -> Option<(Detail, &'static Rule)> {
    let mut details = ALL.iter().flat_map(|arch| arch.details);
    details.find(|(_, rule)| rule.is_for(format)).map(|(detail, rule)| (*detail, rule))
}

/// Whether a thread goes to sleep that a `sched_switch` takes off its CPU in this state.
#[must_use]
pub fn sleeps(prev_state: u64) -> bool {
    prev_state & SLEEP_STATES != 0
}

/// The access that events of this format stand for.
#[must_use]
pub fn access_for(format: &EventFormat) -> Option<&'static Access> {
    let mut accesses = ALL.iter().flat_map(|arch| arch.accesses);
    accesses.find(|access| rule::names(access.event, format))
}

/// The injection that events of this format stand for.
#[must_use]
pub fn injection_for(format: &EventFormat) -> Option<&'static Injection> {
    let mut injections = ALL.iter().flat_map(|arch| arch.injections);
    injections.find(|injection| rule::names(injection.event, format))
}

/// The event of a recording that stands for exits.
#[derive(Clone, Copy, Debug)]
pub struct ExitEvent<'f> {
    /// Its architecture.
    pub arch: &'static Arch,
    /// Its fields and their places.
    pub rule: &'static Rule,
    /// Its format in the recording.
    pub format: &'f EventFormat,
}

/// The event that stands for exits among these formats; `None` if no exit can be recorded with them.
#[must_use]
pub fn exit_event(formats: &FormatTable) -> Option<ExitEvent<'_>> {
    let exits = || rules().filter(|(_, _, rule)| rule.kind == Kind::Exit);
    exits().find_map(|(_, arch, rule)| {
        let format = formats.by_name(rule.event).filter(|format| rule.is_for(format))?;
        Some(ExitEvent { arch, rule, format })
    })
}
