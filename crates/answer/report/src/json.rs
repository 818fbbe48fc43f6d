//! Pieces of JSON documents shared by all reports: times with their unit in the name, exit codes,
//! the threads of a VM.

use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::{Map, Value, json};
use timeline::Vm;
use timeline::reasons::Code;

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

/// Times of a row, by their names: `NAME_ns`; where they are ticks of some clock, that is null, and `NAME_cycles`
/// has them. Flattened into the object that has them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times<const N: usize>(
    pub(crate) bool,
    pub(crate) [(&'static str, Option<u64>); N],
);

impl<const N: usize> Serialize for Times<N> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(is_nanoseconds, times) = self;
        let mut map = serializer.serialize_map(None)?;
        for (name, value) in times {
            map.serialize_entry(&format!("{name}_ns"), &value.filter(|_| *is_nanoseconds))?;
            if !is_nanoseconds {
                map.serialize_entry(&format!("{name}_cycles"), value)?;
            }
        }
        map.end()
    }
}

/// A raw exit code: a number, or arm64's pair as a string.
pub(crate) fn code_json(code: &Code) -> Value {
    match code {
        Code::Number(code) => json!(code),
        pair @ Code::Pair(..) => json!(pair.to_string()),
        Code::NotRecorded => Value::Null,
    }
}

/// The vCPUs of a VM with their threads.
pub(crate) fn threads_json(vm: &Vm) -> Vec<Value> {
    vm.vcpus.iter().map(|vcpu| json!({"vcpu": vcpu.vcpu, "tid": vcpu.thread})).collect()
}
