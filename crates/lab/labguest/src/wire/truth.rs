//! The expected content of a recording, as reported by the program that caused the events.

use serde::{Deserialize, Serialize};

/// One kind of event, and how many of it were made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Truth {
    /// What was done, for people.
    pub what: String,
    /// By which property of exits (`hyperscope exits --by`), or `event` for events by name.
    pub by: String,
    /// The value of that property.
    pub key: Key,
    /// How many.
    pub count: u64,
    /// More may be there: the kernel makes them, too.
    #[serde(default)]
    pub at_least: bool,
    /// Only exits of this level: 1 are the guests of the recorded machine, 2 those inside these.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level: Option<u8>,
    /// Only events of tasks whose name begins so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
}

/// The value of a property.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Key {
    /// A number, as of a port.
    Number(u64),
    /// A name, as of a reason.
    Name(String),
}
