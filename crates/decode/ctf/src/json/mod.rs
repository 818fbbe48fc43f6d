//! Metadata of CTF 2: JSON objects, each preceded by a record separator. This module parses the
//! trace's properties, `classes.rs` its field types.

mod classes;

use std::collections::HashMap;

use raw_bytes::ByteOrder;
use serde_json::{Map, Value};

use crate::field::{FieldType, Struct};
use crate::layout::{Clock, EnvValue, EventClass, Layout, StreamClass};
use crate::{CtfError, resolve};

/// Parses a text.
pub(crate) fn parse(text: &[u8]) -> Result<Layout, CtfError> {
    let mut reader = Reader::new();
    let fragments = text.split(|&byte| byte == 0x1e);
    let fragments = fragments.filter(|fragment| !fragment.trim_ascii().is_empty());
    for (at, fragment) in (1..).zip(fragments) {
        reader.fragment = at;
        let value: Map<String, Value> = match serde_json::from_slice(fragment) {
            Ok(value) => value,
            Err(error) => return reader.fail(error.to_string()),
        };
        reader.fragment(&value)?;
    }
    let Reader { mut layout, events, .. } = reader;
    resolve::put_events(&mut layout, events)?;
    Ok(layout)
}

struct Reader {
    fragment: usize,
    layout: Layout,
    events: Vec<EventClass>,
    /// Types by name.
    aliases: HashMap<String, FieldType>,
    nodes: usize,
    depth: usize,
}

type Object = Map<String, Value>;

fn text<'v>(object: &'v Object, key: &str) -> Option<&'v str> {
    object.get(key)?.as_str()
}

fn number(object: &Object, key: &str) -> Option<u64> {
    object.get(key)?.as_u64()
}

fn integer(value: &Value) -> Option<i128> {
    value.as_i64().map(i128::from).or_else(|| value.as_u64().map(i128::from))
}

impl Reader {
    fn new() -> Self {
        let layout = Layout {
            version: "2",
            uuid: None,
            order: ByteOrder::Little,
            env: Vec::new(),
            clocks: Vec::new(),
            packet_header: None,
            streams: Vec::new(),
            slots: 0,
        };
        let (events, aliases) = (Vec::new(), HashMap::new());
        Self { fragment: 0, layout, events, aliases, nodes: 0, depth: 0 }
    }

    fn fail<T>(&self, what: impl Into<String>) -> Result<T, CtfError> {
        Err(CtfError::Fragment { fragment: self.fragment, what: what.into() })
    }

    fn fragment(&mut self, object: &Object) -> Result<(), CtfError> {
        match text(object, "type") {
            Some("preamble") => {
                if number(object, "version") != Some(2) {
                    return self.fail("its version is not 2");
                }
                self.layout.uuid = self.layout.uuid.or(uuid(object));
            }
            Some("trace-class") => self.trace(object)?,
            Some("clock-class") => self.clock(object)?,
            Some("data-stream-class") => self.stream(object)?,
            Some("event-record-class") => self.event(object)?,
            Some("field-class-alias") => {
                let (Some(name), Some(class)) = (text(object, "name"), object.get("field-class"))
                else {
                    return self.fail("an alias has no name, or no field class");
                };
                let class = self.class(class)?;
                self.aliases.insert(name.to_owned(), class);
            }
            // Extensions can add other types.
            Some(_) => {}
            None => return self.fail("it has no type"),
        }
        Ok(())
    }

    fn trace(&mut self, object: &Object) -> Result<(), CtfError> {
        self.layout.uuid = uuid(object).or(self.layout.uuid);
        self.layout.packet_header = self.structure(object, "packet-header-field-class")?;
        for (name, value) in
            object.get("environment").and_then(Value::as_object).into_iter().flatten()
        {
            let value = match value {
                Value::String(text) => EnvValue::Text(text.clone()),
                other => EnvValue::Number(integer(other).unwrap_or(0)),
            };
            self.layout.env.push((name.clone(), value));
        }
        Ok(())
    }

    fn clock(&mut self, object: &Object) -> Result<(), CtfError> {
        let Some(frequency) = number(object, "frequency").filter(|&frequency| frequency > 0) else {
            return self.fail("a clock has no frequency");
        };
        let offset = object.get("offset-from-origin").or_else(|| object.get("offset"));
        let offset = offset.and_then(Value::as_object);
        let part = |key: &str| offset.and_then(|offset| offset.get(key));
        // References use the id; drafts used the name.
        let name = text(object, "id").or_else(|| text(object, "name")).unwrap_or_default();
        self.layout.clocks.push(Clock {
            name: name.to_owned(),
            description: text(object, "description").unwrap_or_default().to_owned(),
            frequency,
            offset_s: part("seconds").and_then(Value::as_i64).unwrap_or(0),
            offset_cycles: part("cycles").and_then(Value::as_u64).unwrap_or(0),
        });
        Ok(())
    }

    fn stream(&mut self, object: &Object) -> Result<(), CtfError> {
        let clock = text(object, "default-clock-class-id");
        let clock = clock.or_else(|| text(object, "default-clock-class-name"));
        let stream = StreamClass {
            id: number(object, "id").unwrap_or(0),
            packet_context: self.structure(object, "packet-context-field-class")?,
            event_header: self.structure(object, "event-record-header-field-class")?,
            event_context: self.structure(object, "event-record-common-context-field-class")?,
            clock_name: clock.map(str::to_owned),
            ..StreamClass::default()
        };
        self.layout.streams.push(stream);
        Ok(())
    }

    fn event(&mut self, object: &Object) -> Result<(), CtfError> {
        let event = EventClass {
            id: number(object, "id").unwrap_or(0),
            name: text(object, "name").unwrap_or_default().to_owned(),
            stream_id: number(object, "data-stream-class-id").unwrap_or(0),
            context: self.structure(object, "specific-context-field-class")?,
            payload: self.structure(object, "payload-field-class")?,
            steps: Vec::new(),
        };
        self.events.push(event);
        Ok(())
    }

    fn structure(&mut self, object: &Object, key: &str) -> Result<Option<Struct>, CtfError> {
        let Some(value) = object.get(key) else { return Ok(None) };
        match self.class(value)? {
            FieldType::Struct(structure) => Ok(Some(structure)),
            _ => self.fail(format!("{key} is not a structure")),
        }
    }
}

fn uuid(object: &Object) -> Option<[u8; 16]> {
    let bytes = object.get("uuid")?.as_array()?;
    let byte = |value: &Value| value.as_u64().and_then(|byte| u8::try_from(byte).ok());
    bytes.iter().map(byte).collect::<Option<Vec<u8>>>()?.try_into().ok()
}
