//! Counts, of one event or of its group (`perf_event_attr::read_format`).

use raw_bytes::Truncated;

use crate::attr::read_format;
use crate::words::{Fields, Words};

/// Counts of an event, or of all events of its group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadValues<'f> {
    /// Enabled time in nanoseconds.
    pub time_enabled: Option<u64>,
    /// Running time in nanoseconds.
    pub time_running: Option<u64>,
    counts: Counts<'f>,
}

/// The count of an event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// The count.
    pub value: u64,
    /// The event's id.
    pub id: Option<u64>,
    /// Lost samples.
    pub lost: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Counts<'f> {
    One(Count),
    /// By event: its count, then the fields of `format`.
    Group {
        words: Words<'f>,
        format: u64,
    },
}

impl<'f> ReadValues<'f> {
    /// The count of each event.
    pub fn counts(&self) -> impl Iterator<Item = Count> + use<'f> {
        let (single, words, format) = match self.counts {
            Counts::One(count) => (Some(count), Words::default(), 0),
            Counts::Group { words, format } => (None, words, format),
        };
        let step = words_of_event(format);
        let of_group = (0..words.len()).step_by(step).filter_map(move |at| {
            let mut fields = words.from(at);
            count(format, &mut fields)
        });
        single.into_iter().chain(of_group)
    }

    pub(crate) fn read(format: u64, fields: &mut Fields<'f>) -> Result<Self, Truncated> {
        let has = |bit| format & bit != 0;
        let group = has(read_format::GROUP);
        let first = fields.word()?;
        let time_enabled = fields.word_if(has(read_format::TOTAL_TIME_ENABLED))?;
        let time_running = fields.word_if(has(read_format::TOTAL_TIME_RUNNING))?;
        let counts = if group {
            let words = first.saturating_mul(words_of_event(format) as u64);
            Counts::Group { words: fields.words(words)?, format }
        } else {
            let id = fields.word_if(has(read_format::ID))?;
            let lost = fields.word_if(has(read_format::LOST))?;
            Counts::One(Count { value: first, id, lost })
        };
        Ok(Self { time_enabled, time_running, counts })
    }
}

fn count(format: u64, words: &mut impl Iterator<Item = u64>) -> Option<Count> {
    let has = |bit| format & bit != 0;
    let value = words.next()?;
    let id = if has(read_format::ID) { words.next() } else { None };
    let lost = if has(read_format::LOST) { words.next() } else { None };
    Some(Count { value, id, lost })
}

/// Words per event in the counts of a group.
const fn words_of_event(format: u64) -> usize {
    let more = format & (read_format::ID | read_format::LOST);
    (more.count_ones() as usize).saturating_add(1)
}
