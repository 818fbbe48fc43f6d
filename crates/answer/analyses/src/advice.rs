//! What measured exits say of their causes: why they happen, what usually helps, and how much time that
//! could save at most.
//!
//! Each rule is a file of its own and a line in [`RULES`]. A rule looks at what was measured of one VM and
//! says nothing where its evidence is not there; `docs/howto/add-advice.md` goes through one.

pub(crate) mod devices;
pub(crate) mod evidence;
mod faults;
mod halt_polling;
mod idles;
pub(crate) mod interrupts;
mod measured;
mod nested_exits;
mod pause;
pub(crate) mod ports;
mod preempted;
pub(crate) mod sums;
pub(crate) mod thresholds;
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
    /// Its name in JSON, in CSV and in `docs/advice.md`.
    pub name: &'static str,
    /// What it says of a VM; nothing where the evidence is weak.
    advise: fn(&Measured<'_>) -> Vec<Advice>,
}

/// All rules, in the order in which their advice comes where it could save as much.
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
/// `nested` has the exits of nested guests; `takers` has who ran on the CPUs that vCPUs waited for, where that is known.
/// Recordings whose times are not nanoseconds get no advice, because thresholds are lengths of time.
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
