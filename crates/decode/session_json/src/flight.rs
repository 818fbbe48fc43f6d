//! How a flight recorder came to dump a session.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How a flight recorder (record --flight) dumped a session.
#[derive(Clone, Debug, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(default)]
pub struct FlightSummary {
    /// The time that was to be kept.
    #[schemars(extend("minimum" = 1))]
    pub window_ns: u64,
    /// Less was kept: more came than was to be kept (--size), or the recorder began later.
    pub shorter: bool,
    /// Segments of each CPU that the session was put together from.
    #[schemars(extend("minimum" = 1))]
    pub segments: u64,
    /// Events that were cut off at both ends, where not all CPUs were recorded.
    pub events_cut: u64,
    /// Bytes of pages that the disk had no room for: their events are missing.
    pub unwritten_bytes: u64,
    /// Why it was dumped.
    pub trigger: Trigger,
}

/// Why a session is dumped.
#[derive(Clone, Debug, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(default)]
pub struct Trigger {
    /// What asked for it.
    pub kind: TriggerKind,
    /// What it says of itself: what a person wrote, the condition, the alert. Null: nothing.
    pub text: Option<String>,
    /// When, in Unix time.
    pub unix_ns: u64,
    /// The VM that it is about, where it is about one; `text` has it in words.
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
