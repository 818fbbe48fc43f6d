//! Pieces of JSON documents shared by all reports: times with their unit in the name, exit codes,
//! the threads of a VM.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Serialize;
use timeline::Vm;
use timeline::reasons::Code;

/// A struct of times, by name: `NAME_ns`, or `NAME_cycles` with a null `NAME_ns` if the clock counts ticks. Flattened
/// into the object around it. The schema has the meaning of each.
macro_rules! times {
    ($(#[doc = $about:literal])* $vis:vis struct $name:ident {
        $($(#[doc = $help:literal])+ $time:ident = $key:literal,)+
    }) => {
        $(#[doc = $about])*
        #[derive(Clone, Copy, Debug)]
        $vis struct $name {
            /// Whether they are nanoseconds; otherwise ticks.
            $vis in_ns: bool,
            $($(#[doc = $help])+ $vis $time: Option<u64>,)+
        }

        impl ::serde::Serialize for $name {
            fn serialize<S: ::serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                use ::serde::ser::SerializeMap;
                let mut map = serializer.serialize_map(None)?;
                $(
                    map.serialize_entry(concat!($key, "_ns"), &self.$time.filter(|_| self.in_ns))?;
                    if !self.in_ns {
                        map.serialize_entry(concat!($key, "_cycles"), &self.$time)?;
                    }
                )+
                map.end()
            }
        }

        impl ::schemars::JsonSchema for $name {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> ::std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut ::schemars::SchemaGenerator) -> ::schemars::Schema {
                $crate::json::schema_of_times(&[$(($key, concat!($($help),+))),+])
            }
        }
    };
}

pub(crate) use times;

/// The schema of times by name, with the meaning of each.
pub(crate) fn schema_of_times(times: &[(&str, &str)]) -> Schema {
    let time = |(name, help): &(&str, &str)| {
        let time = json_schema!({
            "description": format!("{} Nanoseconds.", help.trim()),
            "type": ["integer", "null"],
            "minimum": 0,
        });
        (format!("{name}_ns"), time.to_value())
    };
    let properties: serde_json::Map<_, _> = times.iter().map(time).collect();
    let required: Vec<&String> = properties.keys().collect();
    let names: Vec<&str> = times.iter().map(|(name, _)| *name).collect();
    json_schema!({
        "type": "object",
        "required": required,
        "patternProperties": tables::column::ticks(&names, false),
        "properties": properties,
    })
}

times! {
    /// Duration of a recording.
    pub(crate) struct Span {
        /// Duration of the recording, from its first event to its last, or of the part that was read; the longest of
        /// all sources.
        span = "span",
    }
}

/// A raw exit code: a number, or arm64's pair as a string.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct RawCode<'c>(pub(crate) &'c Code);

impl RawCode<'_> {
    /// The pattern of a pair.
    pub(crate) const PAIR: &'static str = "^[0-9]+:[0-9]+$";
}

impl JsonSchema for RawCode<'_> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Code".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "The raw code: a number, on arm64 \"ret:esr_ec\". Null: the recording is a text, which contains only names.",
            "type": ["integer", "string", "null"],
            "minimum": 0,
            "pattern": RawCode::PAIR,
        })
    }
}

/// A document with a schema of its own.
#[derive(Debug, JsonSchema)]
pub struct OtherDocument {}

/// A vCPU and its thread.
#[derive(Debug, JsonSchema, Serialize)]
pub(crate) struct VcpuThread {
    /// Id within the VM.
    vcpu: u32,
    /// The host's id of the thread.
    tid: u32,
}

/// The vCPUs of a VM with their threads.
pub(crate) fn threads(vm: &Vm) -> Vec<VcpuThread> {
    vm.vcpus.iter().map(|vcpu| VcpuThread { vcpu: vcpu.vcpu, tid: vcpu.thread }).collect()
}
