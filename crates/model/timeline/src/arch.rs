//! Names and meanings of KVM's events on each architecture, one table per file.
//!
//! Events, fields and codes differ between architectures and change between kernels. All names that
//! the timeline and the analyses rely on are in these tables. To add an architecture, add a file
//! with its [`Arch`] and list it in [`ALL`]; nothing else changes.

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

/// All tables. If two tables have a rule for an event, the first rule whose fields the event has
/// applies.
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

/// KVM's events on one architecture.
#[derive(Debug)]
pub struct Arch {
    /// Events that change the state of a vCPU.
    rules: &'static [Rule],
    /// Events that distinguish exits with the same reason; read only for reports that need them.
    details: &'static [(Detail, Rule)],
    /// Events of guest accesses to devices, registers and the hypervisor.
    accesses: &'static [Access],
    /// Events that inject an interrupt into a guest.
    injections: &'static [Injection],
    /// Its virtualization extensions. A table without any has the events of all architectures.
    isas: &'static [IsaCodes],
}

/// The virtualization extension that an exit belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Isa {
    /// Intel VMX (`KVM_ISA_VMX`).
    Vmx,
    /// AMD SVM (`KVM_ISA_SVM`).
    Svm,
    /// arm64.
    Arm64,
    /// IBM Z. From the kernel's headers; not tested on a real recording yet.
    S390,
    /// RISC-V. From the kernel's headers; not tested on a real recording yet.
    Riscv,
    /// POWER, book3s HV. From the kernel's headers; not tested on a real recording yet.
    Powerpc,
    /// LoongArch. From the kernel's headers; not tested on a real recording yet.
    Loongarch,
    /// Exits in a printed trace: reasons have names, but no codes.
    Text,
    /// An exit event with unknown fields.
    Unknown,
}

/// The exit codes of one virtualization extension.
#[derive(Debug)]
struct IsaCodes {
    isa: Isa,
    /// Its name in output.
    name: &'static str,
    /// Value of the event's `isa` field (`KVM_ISA_*`); 0 if the event has no such field.
    flag: u8,
    /// Whether an exit with this code is a waiting exit.
    waits: fn(u64) -> bool,
    /// Whether a host interrupt caused the exit, independent of what the guest did: such an exit is
    /// a sample of the guest.
    interrupts: fn(u64) -> bool,
    /// The field of the exit event whose symbol in the print fmt names the code; empty: the field
    /// with the code itself.
    symbol_in: fn(u64) -> &'static str,
    /// Suffix of the name.
    suffix: fn(u64) -> &'static str,
    /// Names of codes without a symbol in the kernel's print fmt.
    names: &'static [(u64, &'static str)],
    /// Bits of a code that are flags, not part of the reason.
    flag_bits: u64,
    /// Names of flags, for kernels whose print fmt omits them.
    flags: &'static [(u64, &'static str)],
}

/// The kind of a guest's access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AccessKind {
    /// Device memory: type, address.
    Mmio,
    /// Device memory, a write that needs no response: address.
    FastMmio,
    /// An I/O port: direction, port.
    Pio,
    /// A model-specific register: direction, number.
    Msr,
    /// A hypercall: number.
    Hypercall,
    /// An interrupt for another vCPU.
    Ipi,
}

/// An event of a guest access to a device, a register or the hypervisor.
#[derive(Clone, Copy, Debug)]
pub struct Access {
    event: &'static str,
    /// The kind of access.
    pub kind: AccessKind,
    /// The fields that [`AccessKind`] names, in its order.
    pub fields: &'static [&'static str],
}

/// An event that injects an interrupt into a guest.
#[derive(Clone, Copy, Debug)]
pub struct Injection {
    event: &'static str,
    /// The fields with the vCPU, the level of the line (`none` if the event has no such field),
    /// `common_flags`, and the vector (or `none`).
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
    /// Codes that are in the event's only field, which also names them; no code is a wait.
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

    /// Its name in output.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.codes().map_or("unknown", |codes| codes.name)
    }

    /// Whether an exit with this code is a waiting exit.
    #[must_use]
    pub fn waits(self, code: u64) -> bool {
        self.codes().is_some_and(|codes| (codes.waits)(code))
    }

    /// Whether a host interrupt caused an exit with this code, independent of what the guest did.
    #[must_use]
    pub fn interrupts(self, code: u64) -> bool {
        self.codes().is_some_and(|codes| (codes.interrupts)(code))
    }

    /// Whether its codes combine two fields: see [`HIGH`].
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

    /// Suffix of a code's name, after the kernel's symbol.
    #[must_use]
    pub fn suffix(self, code: u64) -> &'static str {
        self.codes().map_or("", |codes| (codes.suffix)(code))
    }

    /// Whether a code has flags besides its reason.
    #[must_use]
    pub fn has_flags(self, code: u64) -> bool {
        self.codes().is_some_and(|codes| code & codes.flag_bits != 0)
    }

    /// Formats the flags of a code if the kernel's print fmt has no table for them; flags without a
    /// name are in hex.
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

    /// The name of a code without a symbol in the kernel's print fmt.
    #[must_use]
    pub fn name_without_symbol(self, code: u64) -> Option<&'static str> {
        let names = self.codes()?.names;
        names.iter().find(|(candidate, _)| *candidate == code).map(|(_, name)| *name)
    }
}

impl Arch {
    /// The extension of an exit with this value in the event's `isa` field (0: no such field).
    #[must_use]
    pub fn isa(&self, flag: u8) -> Isa {
        let codes = self.isas.iter().find(|codes| codes.flag == 0 || codes.flag == flag);
        codes.map_or(Isa::Unknown, |codes| codes.isa)
    }
}

/// Maximum rules per table: the tag of a rule is the table's index times this, plus the rule's
/// index.
const MAX_RULES: usize = 24;

/// Exclusive upper bound of rule tags.
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

/// The rule for events of this format, and its tag; `None` if they do not concern vCPUs.
#[must_use]
pub fn rule_for(format: &EventFormat) -> Option<(u16, &'static Rule)> {
    rules().find(|(_, _, rule)| rule.is_for(format)).map(|(tag, _, rule)| (tag, rule))
}

/// The rule with this tag.
#[inline]
#[must_use]
pub fn rule(tag: u16) -> Option<&'static Rule> {
    let tag = usize::from(tag);
    ALL.get(tag / MAX_RULES)?.rules.get(tag % MAX_RULES)
}

/// Fields of events of this format that describe an exit besides its reason.
#[must_use]
pub fn detail_for(format: &EventFormat) -> Option<(Detail, &'static Rule)> {
    let mut details = ALL.iter().flat_map(|arch| arch.details);
    details.find(|(_, rule)| rule.is_for(format)).map(|(detail, rule)| (*detail, rule))
}

/// Whether a thread that `sched_switch` takes off its CPU in this state goes to sleep.
#[must_use]
pub fn sleeps(prev_state: u64) -> bool {
    prev_state & SLEEP_STATES != 0
}

/// Whether it then sleeps until what it waits for has happened, in the middle of its work: mostly for storage
/// (`TASK_UNINTERRUPTIBLE`, include/linux/sched.h).
#[must_use]
pub fn sleeps_uninterruptibly(prev_state: u64) -> bool {
    prev_state & 2 != 0
}

/// The access that events of this format report.
#[must_use]
pub fn access_for(format: &EventFormat) -> Option<&'static Access> {
    let mut accesses = ALL.iter().flat_map(|arch| arch.accesses);
    accesses.find(|access| rule::names(access.event, format))
}

/// The injection that events of this format report.
#[must_use]
pub fn injection_for(format: &EventFormat) -> Option<&'static Injection> {
    let mut injections = ALL.iter().flat_map(|arch| arch.injections);
    injections.find(|injection| rule::names(injection.event, format))
}

/// The exit event of a recording.
#[derive(Clone, Copy, Debug)]
pub struct ExitEvent<'f> {
    /// Its architecture.
    pub arch: &'static Arch,
    /// Its fields.
    pub rule: &'static Rule,
    /// Its format in the recording.
    pub format: &'f EventFormat,
}

/// The exit event among these formats; `None` if the recording cannot contain exits.
#[must_use]
pub fn exit_event(formats: &FormatTable) -> Option<ExitEvent<'_>> {
    let exits = || rules().filter(|(_, _, rule)| rule.kind == Kind::Exit);
    exits().find_map(|(_, arch, rule)| {
        let format = formats.by_name(rule.event).filter(|format| rule.is_for(format))?;
        Some(ExitEvent { arch, rule, format })
    })
}
