//! What was measured in one place, in one way.

use serde::{Deserialize, Serialize};

use crate::exitcost::kind::Kind;

/// How exits are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ExitSource {
    /// In a machine of its own, over `/dev/kvm`.
    Vm,
    /// By a program in the guest that this is.
    Guest,
}

/// Who does what an instruction asks for, as far as counters show.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum HandledBy {
    /// The processor: there is no exit.
    Hardware,
    /// KVM, which enters the guest again by itself.
    Kernel,
    /// The program that has the machine.
    User,
}

/// A system on which exits are made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct System {
    /// Who made the processor, as it says itself: `AuthenticAMD`.
    pub processor: String,
    /// The hypervisor that this system runs on, as that says itself: `KVMKVMKVM`.
    pub hypervisor: Option<String>,
    /// The module that is KVM for this system's processor: `kvm_amd`.
    pub kvm: Option<String>,
    /// Ticks of the time stamp counter in a millisecond, by this system's clock.
    pub tsc_khz: Option<f64>,
}

/// All kinds, measured in one way on one system.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sheet {
    pub way: ExitSource,
    pub system: System,
    /// Cycles that a turn of the loop takes with nothing in it, in each run; taken from all others.
    pub empty_cycles: Vec<f64>,
    /// One row a kind.
    pub rows: Vec<Row>,
}

/// A kind of exits, measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    pub kind: Kind,
    /// What was done, exactly.
    pub what: String,
    /// Operations in a run.
    pub operations: u64,
    /// Operations in all, with those that warmed up.
    pub made: u64,
    /// Cycles that an operation took, in each run; empty when nothing was measured.
    pub cycles: Vec<f64>,
    /// Exits for each operation, by KVM's own counter; other exits, of timers, are in it.
    pub exits_per_operation: Option<f64>,
    /// How often an operation came back to the program that has the machine.
    pub user_exits_per_operation: Option<f64>,
    /// Who did it, as these two counts show.
    pub handled_by: Option<HandledBy>,
    /// Why nothing was measured.
    pub not_measured: Option<String>,
}

impl Row {
    /// A kind that can't be measured here.
    pub(crate) fn without(kind: Kind, what: String, why: String) -> Self {
        Self {
            kind,
            what,
            operations: 0,
            made: 0,
            cycles: Vec::new(),
            exits_per_operation: None,
            user_exits_per_operation: None,
            handled_by: None,
            not_measured: Some(why),
        }
    }
}

impl HandledBy {
    /// As it is named in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Hardware => "hardware",
            Self::Kernel => "kernel",
            Self::User => "user",
        }
    }

    /// Derived from exits, and from returns to user space, of each operation. Where KVM interprets guests'
    /// kernels itself, no exit does not mean that the processor did it.
    pub(crate) fn from_counts(
        exits: Option<f64>,
        user_exits: f64,
        interprets: bool,
    ) -> Option<Self> {
        match exits {
            _ if user_exits > 0.5 => Some(Self::User),
            Some(exits) if exits >= 0.5 => Some(Self::Kernel),
            Some(_) if !interprets => Some(Self::Hardware),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_alone_show_who_handled_it() {
        assert_eq!(HandledBy::from_counts(Some(1.0), 1.0, false), Some(HandledBy::User));
        assert_eq!(HandledBy::from_counts(Some(1.01), 0.0, false), Some(HandledBy::Kernel));
        assert_eq!(HandledBy::from_counts(Some(0.02), 0.0, false), Some(HandledBy::Hardware));
        assert_eq!(HandledBy::from_counts(Some(0.02), 0.0, true), None);
        assert_eq!(HandledBy::from_counts(None, 1.0, false), Some(HandledBy::User));
        assert_eq!(HandledBy::from_counts(None, 0.0, false), None);
    }
}
