//! What measured exits say of their causes: why they happen, what usually helps, and how much time that
//! could save at most.
//!
//! Each rule is a file of its own and a line in [`RULES`]. A rule looks at what was measured of one VM and
//! says nothing where its evidence is not there; `docs/howto/add-advice.md` goes through one.

mod devices;
mod evidence;
mod faults;
mod halt_polling;
mod idles;
mod interrupts;
mod measured;
mod nested_exits;
mod pause;
mod ports;
mod preempted;
mod sums;
mod thresholds;
mod timers;
mod verified;

use rustc_hash::FxHashMap;
use timeline::arch::Isa;

use crate::cpu::TakenCpu;
use crate::nested::NestedRow;

pub use evidence::{EvidenceOf, ExitEvidence, Spent, VmEvidence};
use measured::Measured;
pub use verified::{VERIFIED, Verified, verified};

/// A cause of exits or waiting that a recording may show.
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    /// What it goes by in JSON, in CSV and in `docs/advice.md`.
    pub name: &'static str,
    /// What it says of a VM; nothing where the evidence is weak.
    of: fn(&Measured<'_>) -> Vec<Advice>,
}

/// All rules, in the order in which their advice comes where it could save as much.
pub static RULES: [Rule; 10] = [
    Rule { name: "interrupt-controller", of: interrupts::of },
    Rule { name: "device-address", of: devices::of },
    Rule { name: "legacy-port", of: ports::of },
    Rule { name: "guest-timers", of: timers::of },
    Rule { name: "memory-faults", of: faults::of },
    Rule { name: "pause-overcommit", of: pause::of },
    Rule { name: "preempted-vcpus", of: preempted::of },
    Rule { name: "short-idles", of: idles::of },
    Rule { name: "halt-polling", of: halt_polling::of },
    Rule { name: "nested-exits", of: nested_exits::of },
];

/// What advice is about: where a page shows it, and what it speaks of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum About {
    /// Exits of a reason.
    Reason {
        /// Level of the guest that exits.
        level: u8,
        /// The kernel's name of the reason.
        reason: String,
    },
    /// vCPUs that wait for a CPU.
    RunQueue,
    /// The host's polling before it gives up a CPU.
    HaltPolling,
    /// Exits of guests inside the VM that go to its own hypervisor.
    Nested,
}

/// What the time is that advice could save.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SavingOf {
    /// Of the cost of exits: running on a CPU.
    Cost,
    /// Of the time of exits, where the recording can't distinguish running from waiting.
    Time,
    /// Of waiting for a CPU.
    Waiting,
    /// Of halt polling.
    Polling,
}

impl SavingOf {
    /// Its name in tables and JSON.
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
    /// How many.
    Count(u64),
    /// How long, in nanoseconds.
    Time(u64),
    /// A part of a whole, 0 to 1.
    Share(f64),
    /// How many of one thing there are for each of another.
    Ratio(f64),
}

/// A piece of evidence: what was measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Fact {
    /// What it is.
    pub what: String,
    /// How much.
    pub amount: Amount,
}

impl Fact {
    fn new(what: impl Into<String>, amount: Amount) -> Self {
        Self { what: what.into(), amount }
    }
}

/// What a rule says of a VM.
#[derive(Clone, Debug, PartialEq)]
pub struct Advice {
    /// Name of the rule; see [`RULES`].
    pub rule: &'static str,
    /// The VM.
    pub vm: String,
    /// Whose exits the VM has.
    pub isa: Isa,
    /// Where it belongs.
    pub about: About,
    /// What happens, in a few words.
    pub title: String,
    /// Why it happens.
    pub why: String,
    /// Settings and changes that usually help, the likeliest first.
    pub helps: Vec<String>,
    /// What of the recording shows it.
    pub evidence: Vec<Fact>,
    /// The time that it should save at least, in nanoseconds; 0 where the recording doesn't show how much remains.
    pub saving_at_least_ns: u64,
    /// The time that it could save at most, in nanoseconds: never more than was measured.
    pub saving_at_most_ns: u64,
    /// What that time is.
    pub saving_of: SavingOf,
}

/// What all rules say of one recording: that first which could save most.
///
/// `nested` has the exits of guests inside its guests; `taken` has who had the CPUs that its vCPUs waited for, where that is known. Nothing is said of
/// recordings whose times are no nanoseconds: thresholds are lengths of time.
#[must_use]
pub fn advise(exits: &ExitEvidence, nested: &[NestedRow], taken: &[&TakenCpu]) -> Vec<Advice> {
    if !exits.nanoseconds {
        return Vec::new();
    }
    let mut by_vm: FxHashMap<&str, (Vec<&NestedRow>, Vec<&TakenCpu>)> = FxHashMap::default();
    for row in nested {
        by_vm.entry(&row.vm).or_default().0.push(row);
    }
    for taken in taken {
        by_vm.entry(&taken.vm).or_default().1.push(taken);
    }
    let of_vm = |of: &VmEvidence| {
        let (nested, taken) = by_vm.get(of.vm.as_str()).cloned().unwrap_or_default();
        let measured = Measured::new(of, exits, nested, taken);
        let named = |rule: &Rule| {
            let name = rule.name;
            (rule.of)(&measured).into_iter().map(move |one| Advice { rule: name, ..one })
        };
        RULES.iter().flat_map(named).collect::<Vec<_>>()
    };
    let mut advice: Vec<Advice> = exits.vms.iter().flat_map(of_vm).collect();
    advice.sort_by_key(|one| std::cmp::Reverse(one.saving_at_most_ns));
    advice
}
