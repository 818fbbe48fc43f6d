//! Which exits to measure, how, and for how long.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::exitcost::kind::Kind;
use crate::exitcost::sheet::ExitSource;

/// The options.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MeasureOptions {
    pub way: ExitSource,
    /// The kinds; always measured in the order of [`Kind::ALL`].
    pub kinds: Vec<Kind>,
    pub runs: u32,
    /// Approximate time of a run.
    pub run_ms: u64,
}

impl MeasureOptions {
    pub(crate) fn run(&self) -> Duration {
        Duration::from_millis(self.run_ms)
    }
}
