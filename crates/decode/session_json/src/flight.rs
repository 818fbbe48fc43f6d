//! How a flight recorder came to dump a session.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How a flight recorder (record --flight) dumped a session.
#[derive(Clone, Debug, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(default)]
pub struct FlightSummary {
    /// The requested time to keep.
    #[schemars(extend("minimum" = 1))]
    pub window_ns: u64,
    /// Less was kept: the data exceeded the size limit (--size), or the recorder began later.
    pub shorter: bool,
    /// Segments of each CPU from which the session was assembled.
    #[schemars(extend("minimum" = 1))]
    pub segments: u64,
    /// Events that were cut off at both ends, because not all CPUs were recorded there.
    pub events_cut: u64,
    /// Bytes of pages that did not fit on the disk: their events are missing.
    pub unwritten_bytes: u64,
    /// Why it was dumped.
    pub trigger: Trigger,
}

/// Why a session is dumped.
#[derive(Clone, Debug, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(default)]
pub struct Trigger {
    /// The kind of trigger.
    pub kind: TriggerKind,
    /// The trigger's text: the user's words, the condition, the alert. Null: none.
    pub text: Option<String>,
    /// When, in Unix time.
    pub unix_ns: u64,
    /// The VM that it concerns, if it concerns one; `text` also names it.
    #[serde(skip)]
    pub vm: Option<String>,
}

/// Kinds of triggers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TriggerKind {
    /// A signal, SIGUSR1.
    #[default]
    Signal,
    /// `hyperscope flight dump`.
    Command,
    /// A condition on live figures (--when).
    Condition,
    /// The webhook of an alert.
    Alert,
}
