//! The marks of a track, which stay in memory until they are written: the format stores one column
//! after the other.

use rustc_hash::FxHashMap;

use crate::Args;
use crate::json::members;

/// Position of a marker's data in [`Data`].
pub(super) type DataAt = (u64, u32);

/// A marker: a slice, or an instant.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mark {
    pub(super) from_ns: u64,
    /// The end; `None` for an instant.
    pub(super) to_ns: Option<u64>,
    /// Index of its name and of its state in the track's strings.
    pub(super) name: u32,
    pub(super) state: u32,
    pub(super) category: u8,
    pub(super) data: DataAt,
}

/// The strings of a track.
#[derive(Debug, Default)]
pub(super) struct Strings {
    numbers: FxHashMap<String, u32>,
    pub(super) all: Vec<String>,
}

impl Strings {
    pub(super) fn intern(&mut self, text: &str) -> u32 {
        if let Some(number) = self.numbers.get(text) {
            return *number;
        }
        let number = u32::try_from(self.all.len()).unwrap_or(u32::MAX);
        self.numbers.insert(text.to_owned(), number);
        self.all.push(text.to_owned());
        number
    }
}

/// The marks of one track.
#[derive(Debug, Default)]
pub(super) struct Marks {
    pub(super) marks: Vec<Mark>,
    pub(super) strings: Strings,
}

/// Data of markers, as JSON: most slices share theirs with others.
#[derive(Debug, Default)]
pub(super) struct Data {
    bytes: Vec<u8>,
    known: FxHashMap<Vec<u8>, DataAt>,
}

/// The exit time is left out: it makes the data of otherwise equal slices differ.
const LEFT_OUT: &str = "exit_ns";

impl Data {
    /// Stores data of a kind; `again` says that equal data are likely to follow.
    pub(super) fn keep(&mut self, kind: &str, args: &Args<'_>, again: bool) -> DataAt {
        let args: Vec<_> = args.iter().filter(|(name, _)| *name != LEFT_OUT).copied().collect();
        let mut text = format!("{{\"type\":\"{kind}\"").into_bytes();
        if !args.is_empty() {
            text.push(b',');
        }
        // Writing to memory can't fail.
        let _ = members(&mut text, &args);
        text.push(b'}');
        if let Some(at) = self.known.get(&text).filter(|_| again) {
            return *at;
        }
        let at = (self.bytes.len() as u64, u32::try_from(text.len()).unwrap_or(0));
        self.bytes.extend_from_slice(&text);
        if again {
            self.known.insert(text, at);
        }
        at
    }

    pub(super) fn get(&self, (at, len): DataAt) -> &[u8] {
        let at = usize::try_from(at).unwrap_or(usize::MAX);
        self.bytes.get(at..at.saturating_add(len as usize)).unwrap_or(b"null")
    }
}
