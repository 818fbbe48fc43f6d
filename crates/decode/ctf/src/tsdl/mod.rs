//! Metadata of CTF 1.8 (TSDL): blocks of `trace`, `env`, `clock`, `stream` and `event`.

mod attributes;
mod parser;
mod types;

use raw_bytes::ByteOrder;

use self::attributes::{Value, uuid};
use self::parser::Parser;
use crate::field::{FieldType, Struct};
use crate::layout::{Clock, EnvValue, EventClass, Layout, StreamClass};
use crate::tokens::{Token, TokenAt, tokens};
use crate::{CtfError, resolve};

/// Parses a text.
pub(crate) fn parse(text: &[u8]) -> Result<Layout, CtfError> {
    let tokens = tokens(text)?;
    let order = native_order(&tokens).unwrap_or(ByteOrder::Little);
    let mut reader = Reader {
        parser: Parser::new(tokens, order),
        layout: Layout {
            version: "1.8",
            uuid: None,
            order,
            env: Vec::new(),
            clocks: Vec::new(),
            packet_header: None,
            streams: Vec::new(),
            slots: 0,
        },
        events: Vec::new(),
    };
    while !reader.parser.is_at_end() {
        reader.block()?;
    }
    let Reader { mut layout, events, .. } = reader;
    resolve::put_events(&mut layout, events)?;
    Ok(layout)
}

/// The byte order in the `trace` block, which also applies to earlier types.
fn native_order(tokens: &[TokenAt]) -> Option<ByteOrder> {
    let is = |at: usize, word: &str| {
        tokens
            .get(at)
            .is_some_and(|token| matches!(&token.token, Token::Word(text) if text == word))
    };
    let sign = |at: usize, sign: &str| {
        tokens
            .get(at)
            .is_some_and(|token| matches!(&token.token, Token::Sign(text) if *text == sign))
    };
    let trace = (0..tokens.len()).find(|&at| is(at, "trace") && sign(at + 1, "{"))?;
    let mut depth = 0_usize;
    for at in trace + 1..tokens.len() {
        if sign(at, "{") {
            depth += 1;
        } else if sign(at, "}") {
            depth = depth.saturating_sub(1);
            if depth == 0 {
                return None;
            }
        } else if depth == 1 && is(at, "byte_order") && sign(at + 1, "=") {
            let is_big = is(at + 2, "be") || is(at + 2, "network");
            return Some(if is_big { ByteOrder::Big } else { ByteOrder::Little });
        }
    }
    None
}

/// An entry of a block: a type for a path, or a value.
enum Entry {
    Type(String, FieldType),
    Value(String, Value),
}

struct Reader {
    parser: Parser,
    layout: Layout,
    events: Vec<EventClass>,
}

impl Reader {
    fn block(&mut self) -> Result<(), CtfError> {
        if self.parser.take_sign(";") || self.parser.declaration()? {
            return Ok(());
        }
        let word = self.parser.word("a block")?;
        self.parser.sign("{")?;
        self.parser.open_scope()?;
        match word.as_str() {
            "trace" => self.trace()?,
            "env" => self.env()?,
            "clock" => self.clock()?,
            "stream" => self.stream()?,
            "event" => self.event()?,
            "callsite" => self.entries(|_, _| Ok(()))?,
            other => return self.parser.fail(format!("{other} is not a block")),
        }
        self.parser.close_scope();
        self.parser.take_sign(";");
        Ok(())
    }

    /// Calls `take` with each entry of a block, up to the block's end.
    fn entries(
        &mut self,
        mut take: impl FnMut(&mut Self, Entry) -> Result<(), CtfError>,
    ) -> Result<(), CtfError> {
        while !self.parser.take_sign("}") {
            if self.parser.take_sign(";") || self.parser.declaration()? {
                continue;
            }
            let path = self.parser.path()?;
            let entry = if self.parser.take_sign(":=") {
                let entry = Entry::Type(path, self.parser.type_alone()?);
                self.parser.sign(";")?;
                entry
            } else {
                self.parser.sign("=")?;
                let value = self.parser.value()?;
                self.parser.sign(";")?;
                Entry::Value(path, value)
            };
            take(self, entry)?;
        }
        Ok(())
    }

    fn structure(&self, path: &str, field_type: FieldType) -> Result<Struct, CtfError> {
        match field_type {
            FieldType::Struct(structure) => Ok(structure),
            _ => self.parser.fail(format!("{path} is not a struct")),
        }
    }

    fn trace(&mut self) -> Result<(), CtfError> {
        self.entries(|reader, entry| {
            match entry {
                Entry::Type(path, field_type) if path == "packet.header" => {
                    reader.layout.packet_header = Some(reader.structure(&path, field_type)?);
                }
                Entry::Value(path, Value::Text(text)) if path == "uuid" => {
                    reader.layout.uuid = uuid(&text);
                }
                Entry::Value(path, Value::Number(major)) if path == "major" && major != 1 => {
                    return reader.parser.fail(format!("its version is {major}, not 1.8"));
                }
                _ => {}
            }
            Ok(())
        })
    }

    fn env(&mut self) -> Result<(), CtfError> {
        self.entries(|reader, entry| {
            let Entry::Value(name, value) = entry else { return Ok(()) };
            let value = match value {
                Value::Number(number) => EnvValue::Number(number),
                Value::Text(text) | Value::Word(text) => EnvValue::Text(text),
            };
            reader.layout.env.push((name, value));
            Ok(())
        })
    }

    fn clock(&mut self) -> Result<(), CtfError> {
        let mut clock = Clock::default();
        self.entries(|reader, entry| {
            let Entry::Value(name, value) = entry else { return Ok(()) };
            match (name.as_str(), value) {
                ("name", Value::Text(text) | Value::Word(text)) => clock.name = text,
                ("description", Value::Text(text)) => clock.description = text,
                ("freq", Value::Number(number)) => {
                    clock.frequency = u64::try_from(number).unwrap_or(0);
                    if clock.frequency == 0 {
                        return reader.parser.fail("a clock has an impossible frequency");
                    }
                }
                ("offset_s", Value::Number(number)) => {
                    clock.offset_s = i64::try_from(number).unwrap_or(0);
                }
                ("offset", Value::Number(number)) => {
                    clock.offset_cycles = u64::try_from(number).unwrap_or(0);
                }
                _ => {}
            }
            Ok(())
        })?;
        self.layout.clocks.push(clock);
        Ok(())
    }

    fn stream(&mut self) -> Result<(), CtfError> {
        let mut stream = StreamClass::default();
        self.entries(|reader, entry| {
            match entry {
                Entry::Type(path, field_type) => {
                    let structure = Some(reader.structure(&path, field_type)?);
                    match path.as_str() {
                        "packet.context" => stream.packet_context = structure,
                        "event.header" => stream.event_header = structure,
                        "event.context" => stream.event_context = structure,
                        _ => {}
                    }
                }
                Entry::Value(path, value) if path == "id" => stream.id = reader.id(value)?,
                Entry::Value(..) => {}
            }
            Ok(())
        })?;
        self.layout.streams.push(stream);
        Ok(())
    }

    fn event(&mut self) -> Result<(), CtfError> {
        let mut event = EventClass::default();
        self.entries(|reader, entry| {
            match entry {
                Entry::Type(path, field_type) => {
                    let structure = Some(reader.structure(&path, field_type)?);
                    match path.as_str() {
                        "context" => event.context = structure,
                        "fields" => event.payload = structure,
                        _ => {}
                    }
                }
                Entry::Value(path, value) => match (path.as_str(), value) {
                    ("name", Value::Text(text) | Value::Word(text)) => event.name = text,
                    ("id", value) => event.id = reader.id(value)?,
                    ("stream_id", value) => event.stream_id = reader.id(value)?,
                    _ => {}
                },
            }
            Ok(())
        })?;
        self.events.push(event);
        Ok(())
    }

    fn id(&self, value: Value) -> Result<u64, CtfError> {
        match value {
            Value::Number(number) if number >= 0 => Ok(u64::try_from(number).unwrap_or(u64::MAX)),
            _ => self.parser.fail("an id is not a number"),
        }
    }
}
