//! The tracer of functions.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which calls of functions were recorded.
#[derive(Clone, Debug, Default, JsonSchema, Serialize, Deserialize)]
#[serde(default)]
pub struct TracerSummary {
    /// The kernel's name for the tracer.
    pub name: String,
    /// Functions that got its call, as far as the kernel lists them.
    pub functions: Option<usize>,
    /// Patterns of functions that were asked for; none: all.
    pub only: Vec<String>,
    /// Of these not.
    pub except: Vec<String>,
    /// Only what was called from these.
    pub within: Vec<String>,
    /// So deep at most; 0: however deep.
    pub depth: u32,
    /// Calls in the recording; none: they were not counted.
    pub calls: Option<u64>,
}
