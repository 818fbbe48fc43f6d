//! Prints names and fields of events like `babeltrace2 --names all --clock-cycles --no-delta`, for
//! comparison.

use std::fmt::Write;

use ctf::{Events, Float, Integer, Label, Layout, Packets, Visit};

/// Lines of all events of a stream's file: clock, name, fields.
pub(crate) fn lines(layout: &Layout, file: &[u8]) -> Vec<String> {
    let mut all = Vec::new();
    for packet in Packets::new(layout, file).map_while(Result::ok) {
        let from = packet.offset as usize;
        let bytes = &file[from..from + packet.len as usize];
        let mut events = Events::new(layout, &packet, bytes).unwrap();
        while let Some(Ok(event)) = events.next_event() {
            let mut pretty = Pretty::default();
            if events.visit(&mut pretty).is_err() {
                break;
            }
            let scopes = pretty.scopes.join(" ");
            all.push(format!("{:020} {} {scopes}", event.cycles, event.class.name));
        }
    }
    all
}

#[derive(Default)]
struct Pretty {
    text: String,
    depth: usize,
    scopes: Vec<String>,
    /// Number of elements so far in each open array; `None` for a structure.
    open: Vec<Option<usize>>,
}

impl Pretty {
    fn label(&mut self, name: &str) {
        if !self.text.ends_with(['{', '[']) && !self.text.is_empty() {
            self.text.push(',');
        }
        let space = if self.text.is_empty() { "" } else { " " };
        match self.open.last_mut() {
            Some(Some(at)) => {
                let _ = write!(self.text, "{space}[{at}] = ");
                *at += 1;
            }
            _ => {
                let _ = write!(self.text, "{space}{name} = ");
            }
        }
    }

    fn number(&self, value: i128, integer: Option<&Integer>) -> String {
        match integer {
            Some(integer) if integer.base == 16 => {
                let mask = (1_u128 << integer.bits) - 1;
                format!("0x{:X}", value as u128 & mask)
            }
            Some(integer) if integer.base == 8 => {
                let mask = (1_u128 << (integer.bits.div_ceil(3) * 3)) - 1;
                format!("0{:o}", value as u128 & mask)
            }
            _ => value.to_string(),
        }
    }

    fn quoted(&mut self, bytes: &[u8]) {
        self.text.push('"');
        for &byte in bytes {
            match byte {
                b'\\' | b'"' => self.text.extend(['\\', char::from(byte)]),
                b'\n' => self.text.push_str("\\n"),
                b'\t' => self.text.push_str("\\t"),
                b'\r' => self.text.push_str("\\r"),
                _ => self.text.push(char::from(byte)),
            }
        }
        self.text.push('"');
    }
}

impl Visit for Pretty {
    fn integer(
        &mut self,
        name: &str,
        value: i128,
        integer: Option<&Integer>,
        labels: Option<&[Label]>,
    ) {
        self.label(name);
        let number = self.number(value, integer);
        let Some(labels) = labels else { return self.text.push_str(&number) };
        let mut mine: Vec<&str> = labels
            .iter()
            .filter(|label| label.from <= value && value <= label.to)
            .map(|label| label.name.as_str())
            .collect();
        mine.dedup();
        match mine.first() {
            Some(label) => {
                let more = if mine.len() > 1 { ", ..." } else { "" };
                let _ = more;
                let _ = write!(self.text, "( \"{label}\" : container = {number} )");
            }
            None => {
                let _ = write!(self.text, "( <unknown> : container = {number} )");
            }
        }
    }

    fn float(&mut self, name: &str, value: f64, _: &Float) {
        self.label(name);
        let _ = write!(self.text, "{value}");
    }

    fn text(&mut self, name: &str, bytes: &[u8]) {
        self.label(name);
        self.quoted(bytes);
    }

    fn begin(&mut self, name: &str, is_array: bool) {
        self.depth += 1;
        if self.depth > 1 {
            self.label(name);
        }
        self.text.push(if is_array { '[' } else { '{' });
        self.open.push(is_array.then_some(0));
    }

    fn end(&mut self, is_array: bool) {
        self.depth -= 1;
        self.open.pop();
        self.text.push_str(if is_array { " ]" } else { " }" });
        if self.depth == 0 {
            self.scopes.push(std::mem::take(&mut self.text));
        }
    }
}
