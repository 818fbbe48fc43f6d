//! A profile for pprof: the used messages of its `profile.proto`, with its field numbers, maintained by
//! hand.
//!
//! Values are samples and nanoseconds. Each machine is a mapping of its own, so that no tool takes functions
//! of a guest for those of its host. Labels have VM, vCPU, state and thread.

use std::collections::HashMap;
use std::io::{self, Write};

use flate2::Compression;
use flate2::write::GzEncoder;
use prost::Message;

use super::ProfileReport;
use super::lines::{self, Line};
use super::stacks::stack;

#[derive(Clone, PartialEq, Message)]
struct Profile {
    #[prost(message, repeated, tag = "1")]
    sample_type: Vec<ValueType>,
    #[prost(message, repeated, tag = "2")]
    sample: Vec<Sample>,
    #[prost(message, repeated, tag = "3")]
    mapping: Vec<Mapping>,
    #[prost(message, repeated, tag = "4")]
    location: Vec<Location>,
    #[prost(message, repeated, tag = "5")]
    function: Vec<Function>,
    #[prost(string, repeated, tag = "6")]
    string_table: Vec<String>,
    #[prost(int64, tag = "10")]
    duration_nanos: i64,
    #[prost(int64, tag = "14")]
    default_sample_type: i64,
}

#[derive(Clone, PartialEq, Message)]
struct ValueType {
    #[prost(int64, tag = "1")]
    kind: i64,
    #[prost(int64, tag = "2")]
    unit: i64,
}

#[derive(Clone, PartialEq, Message)]
struct Sample {
    /// The innermost first.
    #[prost(uint64, repeated, tag = "1")]
    location_id: Vec<u64>,
    #[prost(int64, repeated, tag = "2")]
    value: Vec<i64>,
    #[prost(message, repeated, tag = "3")]
    label: Vec<Label>,
}

#[derive(Clone, PartialEq, Message)]
struct Label {
    #[prost(int64, tag = "1")]
    key: i64,
    #[prost(int64, tag = "2")]
    text: i64,
    #[prost(int64, tag = "3")]
    number: i64,
}

#[derive(Clone, PartialEq, Message)]
struct Mapping {
    #[prost(uint64, tag = "1")]
    id: u64,
    #[prost(int64, tag = "5")]
    filename: i64,
    #[prost(bool, tag = "7")]
    has_functions: bool,
}

#[derive(Clone, PartialEq, Message)]
struct Location {
    #[prost(uint64, tag = "1")]
    id: u64,
    #[prost(uint64, tag = "2")]
    mapping_id: u64,
    #[prost(message, repeated, tag = "4")]
    line: Vec<CodeLine>,
}

/// `Line`, with only a function.
#[derive(Clone, PartialEq, Message)]
struct CodeLine {
    #[prost(uint64, tag = "1")]
    function_id: u64,
}

#[derive(Clone, PartialEq, Message)]
struct Function {
    #[prost(uint64, tag = "1")]
    id: u64,
    #[prost(int64, tag = "2")]
    name: i64,
    #[prost(int64, tag = "3")]
    system_name: i64,
}

pub(super) fn pprof(report: &ProfileReport) -> io::Result<Vec<u8>> {
    let mut packed = GzEncoder::new(Vec::new(), Compression::default());
    packed.write_all(&messages(report))?;
    packed.finish()
}

fn messages(report: &ProfileReport) -> Vec<u8> {
    let mut tables = Tables::default();
    // The string table begins with the empty string.
    tables.text("");
    let sample_type = vec![
        ValueType { kind: tables.text("samples"), unit: tables.text("count") },
        ValueType { kind: tables.text("time"), unit: tables.text("nanoseconds") },
    ];
    let sample = lines::all(report).iter().map(|line| tables.sample(line)).collect();
    let default_sample_type = tables.text("time");
    let profile = Profile {
        sample_type,
        sample,
        mapping: tables.mappings,
        location: tables.locations,
        function: tables.functions,
        string_table: tables.texts,
        duration_nanos: signed(report.time_ns()),
        default_sample_type,
    };
    profile.encode_to_vec()
}

/// Saturates values that are too great.
fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// Tables whose entries samples reference by number.
#[derive(Default)]
struct Tables {
    texts: Vec<String>,
    by_text: HashMap<String, i64>,
    mappings: Vec<Mapping>,
    locations: Vec<Location>,
    functions: Vec<Function>,
    /// By machine, and by machine and frame name.
    by_machine: HashMap<String, u64>,
    by_frame: HashMap<(u64, String), u64>,
}

impl Tables {
    fn text(&mut self, text: &str) -> i64 {
        if let Some(&number) = self.by_text.get(text) {
            return number;
        }
        let number = signed(self.texts.len() as u64);
        self.texts.push(text.to_owned());
        self.by_text.insert(text.to_owned(), number);
        number
    }

    fn sample(&mut self, line: &Line<'_>) -> Sample {
        let key = &line.key;
        let in_guest = key.state.is_some_and(analyses::states::VcpuState::is_guest);
        let mapping = self.mapping(if in_guest && !line.host_code { key.vm } else { "host" });
        let location_id =
            stack(line).into_iter().rev().map(|(_, name)| self.location(mapping, name)).collect();
        let mut label = vec![self.label("vm", key.vm)];
        label.extend(key.state.map(|state| self.label("state", state.name())));
        label.extend(key.comm.map(|comm| self.label("comm", comm)));
        label.extend(key.vcpu.map(|vcpu| {
            let number = i64::from(vcpu);
            Label { key: self.text("vcpu"), text: 0, number }
        }));
        Sample { location_id, value: vec![signed(line.time.samples), signed(line.time.ns)], label }
    }

    fn label(&mut self, key: &str, text: &str) -> Label {
        Label { key: self.text(key), text: self.text(text), number: 0 }
    }

    fn mapping(&mut self, machine: &str) -> u64 {
        if let Some(&id) = self.by_machine.get(machine) {
            return id;
        }
        let id = self.mappings.len() as u64 + 1;
        let filename = self.text(&format!("[{machine}]"));
        self.mappings.push(Mapping { id, filename, has_functions: true });
        self.by_machine.insert(machine.to_owned(), id);
        id
    }

    fn location(&mut self, mapping_id: u64, name: String) -> u64 {
        if let Some(&id) = self.by_frame.get(&(mapping_id, name.clone())) {
            return id;
        }
        let id = self.locations.len() as u64 + 1;
        let text = self.text(&name);
        self.functions.push(Function { id, name: text, system_name: text });
        self.locations.push(Location { id, mapping_id, line: vec![CodeLine { function_id: id }] });
        self.by_frame.insert((mapping_id, name), id);
        id
    }
}
