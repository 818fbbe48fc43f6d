//! Which exits are measured, how, and for how long.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::exitcost::kind::Kind;
use crate::exitcost::sheet::ExitSource;

/// What is asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MeasureOptions {
    pub way: ExitSource,
    /// Which kinds; in the order of [`Kind::ALL`] whatever order they are in.
    pub kinds: Vec<Kind>,
    pub runs: u32,
    /// How long a run should take, about.
    pub run_ms: u64,
}

impl MeasureOptions {
    pub(crate) fn run(&self) -> Duration {
        Duration::from_millis(self.run_ms)
    }
}
