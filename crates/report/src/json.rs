//! Pieces of JSON documents shared by all reports: times with their unit in the name.

use serde_json::{Map, Value};

/// A JSON object in the making; keys keep their order.
#[derive(Debug, Default)]
pub(crate) struct Object(Map<String, Value>);

impl Object {
    pub(crate) fn set(&mut self, key: &str, value: impl Into<Value>) -> &mut Self {
        self.0.insert(key.to_owned(), value.into());
        self
    }

    /// Sets `NAME_ns`; where times are ticks of some clock, `NAME_cycles`, and `NAME_ns` is null.
    pub(crate) fn time(&mut self, name: &str, nanoseconds: bool, value: Option<u64>) -> &mut Self {
        if nanoseconds {
            return self.set(&format!("{name}_ns"), value);
        }
        self.set(&format!("{name}_ns"), Value::Null).set(&format!("{name}_cycles"), value)
    }

    /// The object, emptied.
    pub(crate) fn done(&mut self) -> Value {
        Value::Object(std::mem::take(&mut self.0))
    }
}
