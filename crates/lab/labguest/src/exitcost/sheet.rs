//! Measurements of one system, made in one way.

use serde::{Deserialize, Serialize};

use crate::exitcost::kind::Kind;

/// How exits are caused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ExitSource {
    /// In a tiny machine, over `/dev/kvm`.
    Vm,
    /// By a program in this guest.
    Guest,
}

/// What handles an instruction, according to counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum HandledBy {
    /// The processor: there is no exit.
    Hardware,
    /// KVM, which enters the guest again by itself.
    Kernel,
    /// The VMM.
    User,
}

/// The measured system.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct System {
    /// The processor's vendor from CPUID: `AuthenticAMD`.
    pub processor: String,
    /// The hypervisor below this system, from CPUID: `KVMKVMKVM`.
    pub hypervisor: Option<String>,
    /// The processor's KVM module: `kvm_amd`.
    pub kvm: Option<String>,
    /// TSC ticks per millisecond, by this system's clock.
    pub tsc_khz: Option<f64>,
}

/// All kinds, measured in one way on one system.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sheet {
    pub way: ExitSource,
    pub system: System,
    /// Cycles of an iteration of the empty loop, in each run; subtracted from all others.
    pub empty_cycles: Vec<f64>,
    /// One row per kind.
    pub rows: Vec<Row>,
}

/// Measurements of a kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    pub kind: Kind,
    /// The exact operation.
    pub what: String,
    /// Operations per run.
    pub operations: u64,
    /// Total operations, including the warm-up.
    pub made: u64,
    /// Cycles per operation, in each run; empty if not measured.
    pub cycles: Vec<f64>,
    /// Exits per operation, by KVM's counter; includes other exits, such as those of timers.
    pub exits_per_operation: Option<f64>,
    /// Returns to the VMM per operation.
    pub user_exits_per_operation: Option<f64>,
    /// What handled it, according to these two counts.
    pub handled_by: Option<HandledBy>,
    /// Why it was not measured.
    pub not_measured: Option<String>,
}

impl Row {
    /// The row of a kind that can't be measured here.
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
    /// The name in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Hardware => "hardware",
            Self::Kernel => "kernel",
            Self::User => "user",
        }
    }

    /// Derives the handler from exits and returns to user space per operation. If KVM interprets guests' kernels
    /// itself, the absence of exits does not mean that the processor handled it.
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
