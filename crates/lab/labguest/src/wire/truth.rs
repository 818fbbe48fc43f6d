//! The expected content of a recording, as reported by the program that caused the events.

use serde::{Deserialize, Serialize};

/// A kind of event, and its number.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Truth {
    /// A description for users.
    pub what: String,
    /// Property of exits (`hyperscope exits --by`), or `event` for events by name.
    pub by: String,
    /// The value of that property.
    pub key: Key,
    /// Number of events.
    pub count: u64,
    /// There may be more: the kernel causes them, too.
    #[serde(default)]
    pub at_least: bool,
    /// Only exits of this level: 1 for guests of the recorded machine, 2 for nested guests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level: Option<u8>,
    /// Only events of tasks with this name prefix.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
}

/// The value of a property.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Key {
    /// A number, for example of a port.
    Number(u64),
    /// A name, for example of a reason.
    Name(String),
}
