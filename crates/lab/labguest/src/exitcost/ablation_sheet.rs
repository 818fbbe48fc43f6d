//! The plan and the results of an ablation.

use serde::{Deserialize, Serialize};

use crate::exitcost::kind::Kind;
use crate::exitcost::sheet::System;
use crate::exitcost::toggle::Toggle;

/// The plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AblationOptions {
    pub kinds: Vec<Kind>,
    /// Number of rounds: runs of each kind in each step.
    pub rounds: u32,
    /// Operations per run.
    pub operations: u64,
    /// The changed settings of each step; none in the first.
    pub steps: Vec<Vec<Toggle>>,
    /// The order of the steps in each round.
    pub orders: Vec<Vec<usize>>,
}

/// The results.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AblationSheet {
    pub system: System,
    /// Results of each step, in the plan's order.
    pub steps: Vec<StepSheet>,
}

/// Results of a step.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StepSheet {
    /// For each kind in the options, its cycles in each round.
    pub cycles: Vec<Vec<f64>>,
    /// Why it was not measured.
    pub not_measured: Option<String>,
}
