//! The tracer of functions.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Recorded calls of functions. Null: none.
#[derive(Clone, Debug, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(default)]
pub struct TracerSummary {
    /// The kernel's name for the tracer.
    #[schemars(extend("enum" = ["function", "function_graph"]))]
    pub name: String,
    /// Functions whose calls were recorded, which made them slower. Null: the kernel does not list them.
    pub functions: Option<usize>,
    /// Patterns of functions that were requested; none: all.
    pub only: Vec<String>,
    /// Patterns of functions among them that were not traced.
    pub except: Vec<String>,
    /// Patterns of functions from which calls were followed; none: from all.
    pub within: Vec<String>,
    /// The depth to which they were followed; 0: unlimited.
    pub depth: u32,
    /// Calls in the recording. Null: they were not counted.
    pub calls: Option<u64>,
}
