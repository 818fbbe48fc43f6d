//! What a trace's metadata say: one type for both versions.

use raw_bytes::ByteOrder;

use crate::field::Struct;
use crate::header::HeaderPlan;
use crate::skim::Skim;
use crate::steps::Step;
use crate::{CtfError, metadata};

/// What a trace's metadata say.
#[derive(Clone, Debug)]
pub struct Layout {
    /// Version of the format: `1.8` or `2`.
    pub version: &'static str,
    /// Identity of the trace.
    pub uuid: Option<[u8; 16]>,
    /// The byte order that the trace calls its own.
    pub order: ByteOrder,
    /// The tracer's description of the machine and of itself.
    pub env: Vec<(String, EnvValue)>,
    /// Its clocks.
    pub clocks: Vec<Clock>,
    /// The head of each packet.
    pub packet_header: Option<Struct>,
    /// Its classes of streams, in the order of their ids.
    pub streams: Vec<StreamClass>,
    pub(crate) slots: usize,
}

/// Something that the tracer says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EnvValue {
    /// A text.
    Text(String),
    /// A number.
    Number(i128),
}

/// A clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Clock {
    /// Its name.
    pub name: String,
    /// What it is, in words.
    pub description: String,
    /// Cycles in a second.
    pub frequency: u64,
    /// Where its zero is, in seconds.
    pub offset_s: i64,
    /// And in cycles on top.
    pub offset_cycles: u64,
}

/// A class of streams: what their packets and events have in common.
#[derive(Clone, Debug, Default)]
pub struct StreamClass {
    /// Its id.
    pub id: u64,
    /// The second part of each packet's head.
    pub packet_context: Option<Struct>,
    /// The head of each event.
    pub event_header: Option<Struct>,
    /// What each event has, whatever its class.
    pub event_context: Option<Struct>,
    /// Classes of events, in the order of their ids.
    pub events: Vec<EventClass>,
    /// The index of its clock.
    pub clock: Option<usize>,
    pub(crate) clock_name: Option<String>,
    pub(crate) header: HeaderPlan,
    pub(crate) skim: Skim,
}

/// A class of events.
#[derive(Clone, Debug, Default)]
pub struct EventClass {
    /// Its id among those of its stream class.
    pub id: u64,
    /// Its name.
    pub name: String,
    /// The class of streams it is of.
    pub(crate) stream_id: u64,
    /// The context that only events of this class have before their fields.
    pub context: Option<Struct>,
    /// Its fields.
    pub payload: Option<Struct>,
    /// Where all of it lies.
    pub steps: Vec<Step>,
}

impl Default for Clock {
    fn default() -> Self {
        Self {
            name: String::new(),
            description: String::new(),
            frequency: 1_000_000_000,
            offset_s: 0,
            offset_cycles: 0,
        }
    }
}

impl Clock {
    /// Where its zero is, in nanoseconds.
    #[must_use]
    pub fn offset_ns(&self) -> i128 {
        // A second of every clock has as many nanoseconds.
        let seconds = i128::from(self.offset_s) * 1_000_000_000;
        seconds.saturating_add(self.cycles_ns(self.offset_cycles))
    }

    /// How long some cycles take, in nanoseconds.
    #[inline]
    #[must_use]
    pub fn cycles_ns(&self, cycles: u64) -> i128 {
        if self.frequency == 1_000_000_000 {
            return cycles.into();
        }
        let ns = u128::from(cycles) * 1_000_000_000 / u128::from(self.frequency.max(1));
        i128::try_from(ns).unwrap_or(i128::MAX)
    }
}

impl Layout {
    /// Reads metadata.
    ///
    /// # Errors
    /// When they are no metadata, are damaged, or describe what can't be.
    pub fn parse(metadata: &[u8]) -> Result<Self, CtfError> {
        metadata::parse(metadata)
    }

    /// What the tracer says under a name, as text.
    #[must_use]
    pub fn env(&self, name: &str) -> Option<&str> {
        self.env.iter().find_map(|(key, value)| match value {
            EnvValue::Text(text) if key == name => Some(text.as_str()),
            _ => None,
        })
    }

    /// The class of streams of an id.
    #[must_use]
    pub fn stream(&self, id: u64) -> Option<(usize, &StreamClass)> {
        let at = self.streams.binary_search_by_key(&id, |stream| stream.id).ok()?;
        Some((at, self.streams.get(at)?))
    }
}

impl StreamClass {
    /// The index of the class of events of an id.
    #[inline]
    #[must_use]
    pub fn event_index(&self, id: u64) -> Option<usize> {
        // Most tracers number them without gaps.
        let here = usize::try_from(id).ok();
        if let Some(here) =
            here.filter(|&at| self.events.get(at).is_some_and(|event| event.id == id))
        {
            return Some(here);
        }
        self.events.binary_search_by_key(&id, |event| event.id).ok()
    }
}
