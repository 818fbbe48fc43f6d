//! The sample id at the end of records other than samples: event, CPU, thread and time
//! (`sample_id_all`).

use raw_bytes::{ByteOrder, Truncated, slice};

use crate::attr::{Attr, sample_type};
use crate::words::Fields;
use crate::{Record, kind};

/// Event, CPU, thread and time; fields that the event's samples do not have are `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SampleId {
    /// Process.
    pub pid: Option<u32>,
    /// Thread.
    pub tid: Option<u32>,
    /// Time on the file's clock in nanoseconds.
    pub time: Option<u64>,
    /// Id of the event.
    pub id: Option<u64>,
    /// The event's own id, if it was inherited.
    pub stream_id: Option<u64>,
    /// CPU.
    pub cpu: Option<u32>,
}

/// Bits of the sample type that also select fields here, of eight bytes each.
const BITS: u64 = sample_type::TID
    | sample_type::TIME
    | sample_type::ID
    | sample_type::STREAM_ID
    | sample_type::CPU
    | sample_type::IDENTIFIER;

impl SampleId {
    /// Parses the end of a record of an event with these attributes. All fields are `None` for
    /// samples, perf's own records, and events without this flag.
    ///
    /// # Errors
    /// If the record is too short.
    pub fn parse(record: &Record<'_>, attr: &Attr) -> Result<Self, Truncated> {
        let (body, len) = (record.body(), Self::len(record, attr));
        let mut cursor = record.cursor();
        cursor.take((body.len() as u64).checked_sub(len).ok_or(Truncated {
            offset: record.offset,
            wanted: len,
            have: body.len() as u64,
        })?)?;
        if len == 0 {
            return Ok(Self::default());
        }
        let mut fields = Fields::new(cursor, record.order);
        let has = |bits| attr.samples(bits);
        let (pid, tid) = fields.pair_if(has(sample_type::TID))?.unzip();
        let time = fields.word_if(has(sample_type::TIME))?;
        let id = fields.word_if(has(sample_type::ID))?;
        let stream_id = fields.word_if(has(sample_type::STREAM_ID))?;
        let cpu = fields.pair_if(has(sample_type::CPU))?.map(|(cpu, _)| cpu);
        let id = fields.word_if(has(sample_type::IDENTIFIER))?.or(id);
        Ok(Self { pid, tid, time, id, stream_id, cpu })
    }

    /// Its size at the end of a record.
    pub(crate) fn len(record: &Record<'_>, attr: &Attr) -> u64 {
        let of_kernel = record.kind < kind::USER_START && record.kind != kind::SAMPLE;
        if !of_kernel || !attr.flags.sample_id_all() {
            return 0;
        }
        u64::from((attr.sample_type & BITS).count_ones()).saturating_mul(8)
    }
}

/// Position of the event's id in a record: the same in all records of a file, so that it can be
/// read before the event is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IdPlace {
    /// Number of words before it in a sample's body.
    in_samples: u64,
    /// Number of words from it (inclusive) to the end of any other record.
    in_others: u64,
}

impl IdPlace {
    /// The position in records of events with these attributes; `None` if they have no id.
    pub(crate) fn for_attr(attr: &Attr) -> Option<Self> {
        let count = |bits: u64| u64::from((attr.sample_type & bits).count_ones());
        if attr.samples(sample_type::IDENTIFIER) {
            return Some(Self { in_samples: 0, in_others: 1 });
        }
        let before = sample_type::IP | sample_type::TID | sample_type::TIME | sample_type::ADDR;
        let after = sample_type::ID | sample_type::STREAM_ID | sample_type::CPU;
        let there = attr.samples(sample_type::ID);
        there.then(|| Self { in_samples: count(before), in_others: count(after) })
    }

    pub(crate) fn id(self, record: &Record<'_>, order: ByteOrder) -> Option<u64> {
        let body = record.body();
        let at = match record.kind {
            kind::SAMPLE => self.in_samples.checked_mul(8)?,
            _ => (body.len() as u64).checked_sub(self.in_others.checked_mul(8)?)?,
        };
        order.u64_at(slice::range(body, at, 8), 0)
    }
}
