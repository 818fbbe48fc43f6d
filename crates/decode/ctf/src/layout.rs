//! The layout of a trace, from the metadata of either version.

use raw_bytes::ByteOrder;

use crate::field::Struct;
use crate::header::HeaderPlan;
use crate::skim::Skim;
use crate::steps::Step;
use crate::{CtfError, metadata};

/// The layout of a trace.
#[derive(Clone, Debug)]
pub struct Layout {
    /// Version of the format: `1.8` or `2`.
    pub version: &'static str,
    /// UUID of the trace.
    pub uuid: Option<[u8; 16]>,
    /// The trace's native byte order.
    pub order: ByteOrder,
    /// Environment: the tracer's description of the machine and of itself.
    pub env: Vec<(String, EnvValue)>,
    /// Its clocks.
    pub clocks: Vec<Clock>,
    /// The header of each packet.
    pub packet_header: Option<Struct>,
    /// Stream classes, sorted by id.
    pub streams: Vec<StreamClass>,
    pub(crate) slots: usize,
}

/// A value of the environment.
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
    /// Its description.
    pub description: String,
    /// Cycles per second.
    pub frequency: u64,
    /// Offset of its zero in seconds.
    pub offset_s: i64,
    /// Additional offset in cycles.
    pub offset_cycles: u64,
}

/// A stream class: the common properties of its packets and events.
#[derive(Clone, Debug, Default)]
pub struct StreamClass {
    /// Its id.
    pub id: u64,
    /// The context in each packet header.
    pub packet_context: Option<Struct>,
    /// The header of each event.
    pub event_header: Option<Struct>,
    /// The context of each event, independent of its class.
    pub event_context: Option<Struct>,
    /// Event classes, sorted by id.
    pub events: Vec<EventClass>,
    /// Index of its clock.
    pub clock: Option<usize>,
    pub(crate) clock_name: Option<String>,
    pub(crate) header: HeaderPlan,
    pub(crate) skim: Skim,
}

/// An event class.
#[derive(Clone, Debug, Default)]
pub struct EventClass {
    /// Its id in its stream class.
    pub id: u64,
    /// Its name.
    pub name: String,
    /// Id of its stream class.
    pub(crate) stream_id: u64,
    /// The context of events of this class.
    pub context: Option<Struct>,
    /// Its fields.
    pub payload: Option<Struct>,
    /// The layout of all its fields.
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
    /// Offset of its zero in nanoseconds.
    #[must_use]
    pub fn offset_ns(&self) -> i128 {
        // `offset_s` is in seconds for a clock of any frequency.
        let seconds = i128::from(self.offset_s) * 1_000_000_000;
        seconds.saturating_add(self.cycles_ns(self.offset_cycles))
    }

    /// Duration of cycles in nanoseconds.
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
    /// Parses metadata.
    ///
    /// # Errors
    /// If it is not metadata, is damaged, or is invalid.
    pub fn parse(metadata: &[u8]) -> Result<Self, CtfError> {
        metadata::parse(metadata)
    }

    /// An entry of the environment as text.
    #[must_use]
    pub fn env(&self, name: &str) -> Option<&str> {
        self.env.iter().find_map(|(key, value)| match value {
            EnvValue::Text(text) if key == name => Some(text.as_str()),
            _ => None,
        })
    }

    /// The stream class with an id, and its index.
    #[must_use]
    pub fn stream(&self, id: u64) -> Option<(usize, &StreamClass)> {
        let at = self.streams.binary_search_by_key(&id, |stream| stream.id).ok()?;
        Some((at, self.streams.get(at)?))
    }
}

impl StreamClass {
    /// The index of the event class with an id.
    #[inline]
    #[must_use]
    pub fn event_index(&self, id: u64) -> Option<usize> {
        // Most tracers number event classes without gaps.
        let here = usize::try_from(id).ok();
        if let Some(here) =
            here.filter(|&at| self.events.get(at).is_some_and(|event| event.id == id))
        {
            return Some(here);
        }
        self.events.binary_search_by_key(&id, |event| event.id).ok()
    }
}
