//! How a flight recorder came to dump a session.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a dumped session says of how it came about: `recorded.flight` of `session.json`.
#[derive(Clone, Debug, PartialEq, Eq, Default, JsonSchema, Serialize, Deserialize)]
#[serde(default)]
pub struct FlightSummary {
    /// What was to be kept.
    pub window_ns: u64,
    /// Less is there, since more came than was to be kept (`--size`), or the recorder began later.
    pub shorter: bool,
    /// Segments of each CPU that it was put together from.
    pub segments: u64,
    /// Events that were cut off at the edges, where not all CPUs had been recorded yet, or were no more.
    pub events_cut: u64,
    /// Bytes of pages that the disk had no room for while they were kept.
    pub unwritten_bytes: u64,
    /// Why it was dumped.
    pub trigger: Trigger,
}

/// Why a session is dumped.
#[derive(Clone, Debug, PartialEq, Eq, Default, JsonSchema, Serialize, Deserialize)]
#[serde(default)]
pub struct Trigger {
    /// What kind of thing it was.
    pub kind: TriggerKind,
    /// What it says of itself: the condition, the alert's name, what a person wrote.
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
    /// SIGUSR1.
    #[default]
    Signal,
    /// `hyperscope flight dump`.
    Command,
    /// A condition on live figures.
    Condition,
    /// An alert's webhook.
    Alert,
}
