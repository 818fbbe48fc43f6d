//! Which switches an ablation turns, and what it measured.

use serde::{Deserialize, Serialize};

use crate::exitcost::kind::Kind;
use crate::exitcost::sheet::System;
use crate::exitcost::toggle::Toggle;

/// What is asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AblationOptions {
    pub kinds: Vec<Kind>,
    /// Rounds: runs of each kind in each step.
    pub rounds: u32,
    /// Operations in a run.
    pub operations: u64,
    /// What is switched in each step; nothing in the first.
    pub steps: Vec<Vec<Toggle>>,
    /// For each round, the steps in their order there.
    pub orders: Vec<Vec<usize>>,
}

/// What was measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AblationSheet {
    pub system: System,
    /// One for each step, in the plan's order.
    pub steps: Vec<StepSheet>,
}

/// A step, measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StepSheet {
    /// For each kind of the options, its cycles in each round.
    pub cycles: Vec<Vec<f64>>,
    /// Why it was not measured.
    pub not_measured: Option<String>,
}
