//! Selects events, written as lines of JSON, that contain some words: the first ones, and their number.

use std::io::{self, Write};

use serde_json::Value;

/// Max lines examined for one reply: about a second's work.
const MAX_LINES: u64 = 300_000;

/// Max bytes of a reply.
const MAX_BYTES: usize = 4 << 20;

/// Receives lines of [`report::events::Style::JsonText`].
#[derive(Debug)]
pub(super) struct Picked {
    words: Vec<String>,
    limit: usize,
    origin_ns: u64,
    /// A line without its end yet.
    partial_line: Vec<u8>,
    lines: u64,
    matching: u64,
    event_count: usize,
    events: Vec<u8>,
}

impl Picked {
    /// Selects lines with all of these words, at most `limit`.
    pub(super) fn new(words: &str, limit: usize, origin_ns: u64) -> Self {
        Self {
            words: words.split_whitespace().map(str::to_lowercase).collect(),
            limit,
            origin_ns,
            partial_line: Vec::new(),
            lines: 0,
            matching: 0,
            event_count: 0,
            events: Vec::new(),
        }
    }

    /// Whether it examines no more lines.
    pub(super) fn is_full(&self) -> bool {
        self.lines >= MAX_LINES
    }

    /// The reply.
    pub(super) fn json(&self) -> Vec<u8> {
        let mut out = b"{\"events\":[".to_vec();
        out.extend_from_slice(&self.events);
        out.extend_from_slice(
            format!(
                "],\"matching\":{},\"looked_at\":{},\"all\":{}}}",
                self.matching,
                self.lines,
                !self.is_full()
            )
            .as_bytes(),
        );
        out
    }

    fn line(&mut self, line: &[u8]) {
        self.lines += 1;
        let Ok(Value::Object(mut event)) = serde_json::from_slice::<Value>(line) else { return };
        if !self.has_words(&event) {
            return;
        }
        self.matching += 1;
        if self.event_count >= self.limit || self.events.len() >= MAX_BYTES {
            return;
        }
        // Nanoseconds since 1970 exceed the exact range of a browser's numbers.
        let at = event.get("ts_ns").or(event.get("ts_cycles")).and_then(Value::as_u64);
        event.insert("at".to_owned(), at.unwrap_or(0).saturating_sub(self.origin_ns).into());
        if self.event_count > 0 {
            self.events.push(b',');
        }
        self.event_count += 1;
        self.events.extend_from_slice(Value::Object(event).to_string().as_bytes());
    }

    fn has_words(&self, event: &serde_json::Map<String, Value>) -> bool {
        if self.words.is_empty() {
            return true;
        }
        let text = |name: &str| match event.get(name) {
            Some(Value::String(text)) => text.clone(),
            Some(other) => other.to_string(),
            None => String::new(),
        };
        let all = format!(
            "{} cpu{} {}-{} {} {}",
            text("machine"),
            text("cpu"),
            text("comm"),
            text("pid"),
            text("event"),
            text("text")
        )
        .to_lowercase();
        self.words.iter().all(|word| all.contains(word))
    }
}

impl Write for Picked {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            if self.is_full() {
                return Err(io::ErrorKind::WriteZero.into());
            }
            match piece.strip_suffix(b"\n") {
                None => self.partial_line.extend_from_slice(piece),
                Some(end) if self.partial_line.is_empty() => self.line(end),
                Some(end) => {
                    let mut line = std::mem::take(&mut self.partial_line);
                    line.extend_from_slice(end);
                    self.line(&line);
                }
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(at: u64, text: &str) -> String {
        format!(
            "{{\"ts_ns\":{at},\"machine\":\"host\",\"cpu\":1,\"pid\":7,\"comm\":\"qemu\",\"event\":\"kvm:kvm_exit\",\"text\":\"{text}\"}}\n"
        )
    }

    #[test]
    fn lines_come_in_any_pieces() {
        let all = event(5, "reason npf") + &event(6, "reason io") + &event(9, "NPF again");
        for size in [1, 7, 100, 10_000] {
            let mut picked = Picked::new("npf kvm_", 10, 4);
            all.as_bytes().chunks(size).for_each(|piece| picked.write_all(piece).unwrap());
            let answer: Value = serde_json::from_slice(&picked.json()).unwrap();
            assert_eq!(answer["matching"], 2, "{size}");
            assert_eq!(answer["all"], true);
            let at: Vec<&Value> =
                answer["events"].as_array().unwrap().iter().map(|event| &event["at"]).collect();
            assert_eq!(at, [1, 5]);
        }
    }

    #[test]
    fn the_words_are_those_of_events_not_of_their_form() {
        for (words, matching) in [("text", 0), ("ts_ns", 0), ("HOST cpu1 qemu-7", 1), ("", 1)] {
            let mut picked = Picked::new(words, 0, 0);
            picked.write_all(event(1, "x").as_bytes()).unwrap();
            assert_eq!((picked.matching, picked.event_count), (matching, 0), "{words}");
        }
    }
}
