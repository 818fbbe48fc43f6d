//! Derives causes from measured exits: why they happen, what usually helps, and the max time that this can save.
//!
//! Each rule is a file and a line in [`RULES`]. A rule reads the measurements of one VM and gives no advice
//! without sufficient evidence; `docs/howto/add-advice.md` explains how to add one.

pub(crate) mod devices;
pub(crate) mod evidence;
pub(crate) mod faults;
mod halt_polling;
mod idles;
pub(crate) mod interrupts;
mod measured;
mod nested_exits;
pub(crate) mod pause;
pub(crate) mod ports;
mod preempted;
pub(crate) mod sums;
pub(crate) mod thresholds;
pub(crate) mod timers;
mod verified;

use rustc_hash::FxHashMap;
use timeline::arch::Isa;

use crate::cpu::TakenCpu;
use crate::nested::NestedRow;

pub use evidence::{EvidenceOf, ExitEvidence, Spent, VmEvidence};
use measured::Measured;
pub use verified::{VERIFIED, Verified, verified};

/// A cause of exits or waiting that a recording can show.
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    /// Name in JSON, in CSV and in `docs/advice.md`.
    pub name: &'static str,
    /// Gives advice for one VM; empty if the evidence is weak.
    advise: fn(&Measured<'_>) -> Vec<Advice>,
}

/// All rules. Advice with equal savings is in this order.
pub static RULES: [Rule; 10] = [
    Rule { name: "interrupt-controller", advise: interrupts::advise },
    Rule { name: "device-address", advise: devices::advise },
    Rule { name: "legacy-port", advise: ports::advise },
    Rule { name: "guest-timers", advise: timers::advise },
    Rule { name: "memory-faults", advise: faults::advise },
    Rule { name: "pause-overcommit", advise: pause::advise },
    Rule { name: "preempted-vcpus", advise: preempted::advise },
    Rule { name: "short-idles", advise: idles::advise },
    Rule { name: "halt-polling", advise: halt_polling::advise },
    Rule { name: "nested-exits", advise: nested_exits::advise },
];

/// The subject of an advice, which decides where a page shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum About {
    /// Exits with one reason.
    Reason {
        /// Level of the guest that exits.
        level: u8,
        /// The kernel's name of the reason.
        reason: String,
    },
    /// vCPUs that wait for a CPU.
    RunQueue,
    /// The host polls before it gives up a CPU.
    HaltPolling,
    /// Reflected exits: nested guests exit to the VM's own hypervisor.
    Nested,
}

/// The kind of time that an advice can save.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SavingOf {
    /// Cost of exits: CPU time.
    Cost,
    /// Time of exits, if the recording does not separate running from waiting.
    Time,
    /// Run-queue wait.
    Waiting,
    /// Halt polling.
    Polling,
}

impl SavingOf {
    /// Name in tables and JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cost => "cost",
            Self::Time => "time",
            Self::Waiting => "waiting",
            Self::Polling => "halt polling",
        }
    }
}

/// A number of a recording with its unit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Amount {
    Count(u64),
    /// Nanoseconds.
    Time(u64),
    /// From 0 to 1.
    Share(f64),
    /// A quotient of two quantities.
    Ratio(f64),
}

/// A measured fact that supports an advice.
#[derive(Clone, Debug, PartialEq)]
pub struct Fact {
    pub what: String,
    pub amount: Amount,
}

impl Fact {
    pub(crate) fn new(what: impl Into<String>, amount: Amount) -> Self {
        Self { what: what.into(), amount }
    }
}

/// Advice of a rule for a VM.
#[derive(Clone, Debug, PartialEq)]
pub struct Advice {
    /// Name of the rule: see [`RULES`].
    pub rule: &'static str,
    pub vm: String,
    /// Instruction set of the VM's exits.
    pub isa: Isa,
    pub about: About,
    /// The problem, in a few words.
    pub title: String,
    /// The explanation.
    pub why: String,
    /// Settings and changes that usually help, the most promising first.
    pub helps: Vec<String>,
    /// Measurements that support the advice.
    pub evidence: Vec<Fact>,
    /// Min saving in nanoseconds; 0 if the recording doesn't show how much time remains.
    pub saving_at_least_ns: u64,
    /// Max saving in nanoseconds: never more than was measured.
    pub saving_at_most_ns: u64,
    /// The kind of time that the advice saves.
    pub saving_of: SavingOf,
}

/// Advice of all rules for one recording, the largest saving first.
///
/// `nested` has the exits of nested guests; `takers` has the threads that ran on the CPUs that vCPUs waited for,
/// if known. Recordings whose times are not nanoseconds get no advice, because thresholds are durations.
#[must_use]
pub fn advise(exits: &ExitEvidence, nested: &[NestedRow], takers: &[&TakenCpu]) -> Vec<Advice> {
    if !exits.nanoseconds {
        return Vec::new();
    }
    let mut by_vm: FxHashMap<&str, (Vec<&NestedRow>, Vec<&TakenCpu>)> = FxHashMap::default();
    for row in nested {
        by_vm.entry(&row.vm).or_default().0.push(row);
    }
    for taker in takers {
        by_vm.entry(&taker.vm).or_default().1.push(taker);
    }
    let of_vm = |evidence: &VmEvidence| {
        let (nested, takers) = by_vm.get(evidence.vm.as_str()).cloned().unwrap_or_default();
        let measured = Measured::new(evidence, exits, nested, takers);
        let named = |rule: &Rule| {
            let name = rule.name;
            (rule.advise)(&measured).into_iter().map(move |advice| Advice { rule: name, ..advice })
        };
        RULES.iter().flat_map(named).collect::<Vec<_>>()
    };
    let mut advice: Vec<Advice> = exits.vms.iter().flat_map(of_vm).collect();
    advice.sort_by_key(|entry| std::cmp::Reverse(entry.saving_at_most_ns));
    advice
}
