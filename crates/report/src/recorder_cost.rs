//! What making a recording cost, shown beside what it says.

use serde_json::Value;

use crate::json::Object;
use crate::units::{share, time};

/// The recorder's own use of the machine that it recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecorderCost {
    /// CPU time of the recorder.
    pub cpu_ns: u64,
    /// How long it recorded.
    pub duration_ns: u64,
    /// CPUs that it recorded.
    pub cpus: u64,
}

impl RecorderCost {
    /// CPU time that the recorded CPUs had.
    fn available_ns(&self) -> u64 {
        self.duration_ns.saturating_mul(self.cpus)
    }

    pub(crate) fn note(&self) -> String {
        format!(
            "recording took {} of CPU time, {} of what was there",
            time(self.cpu_ns, true),
            share(self.cpu_ns, self.available_ns())
        )
    }

    pub(crate) fn json(&self) -> Value {
        let mut cost = Object::default();
        cost.set("cpu_ns", self.cpu_ns).set("available_ns", self.available_ns());
        cost.done()
    }
}
