//! The entries of a file.

use super::fields::Fields;
use super::hypercall::Hypercall;

/// The version that this program writes and reads.
pub const VERSION: u32 = 1;

/// Magic bytes at the start of an entry.
pub(crate) const MARK: [u8; 2] = *b"HC";
/// Bytes of an entry's header: magic, type, length in words of 8 bytes, and a checksum over all
/// other bytes.
pub(crate) const ENTRY_HEAD_BYTES: usize = 8;

const BEGIN: u8 = 1;
const PAIR: u8 = 2;
const HYPERCALL: u8 = 3;
const COUNTS: u8 = 4;

/// An entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// Describes the collected data; the first entry of a file.
    Begin(Begin),
    /// Simultaneous readings of both clocks.
    Pair(ClockPair),
    /// A hypercall.
    Hypercall(Hypercall),
    /// The counts so far.
    Counts(Counts),
    /// An unknown type of entry.
    Unknown(u8),
}

/// Description of the collected data.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Begin {
    /// Version of the format.
    pub version: u32,
    /// Number of registers of each hypercall.
    pub words: u32,
    /// Trace id of its recording.
    pub trace_id: u64,
    /// The first collected hypercall number.
    pub first_number: u64,
    /// Size of the range of hypercall numbers.
    pub numbers: u64,
    /// Name of the recording's trace clock, at most 16 bytes.
    pub clock: String,
}

/// A reading of the trace clock between two readings of the monotonic clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClockPair {
    /// The monotonic clock before. Nanoseconds.
    pub mono_before_ns: u64,
    /// The trace clock, in its own units.
    pub trace: u64,
    /// The monotonic clock after. Nanoseconds.
    pub mono_after_ns: u64,
}

/// Counts of the BPF program since it was loaded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Hypercalls with collected numbers.
    pub hypercalls: u64,
    /// Hypercalls that did not fit into the ring buffer.
    pub ring_full: u64,
    /// Hypercalls whose exit happened before the program was loaded.
    pub no_exit: u64,
    /// Exits of vCPUs that did not fit into the table.
    pub no_room: u64,
    /// Hypercalls whose registers could not be read.
    pub unreadable: u64,
}

impl Counts {
    /// Hypercalls that were seen but are missing.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.ring_full.saturating_add(self.no_exit).saturating_add(self.unreadable)
    }
}

impl Entry {
    /// The entry as bytes.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        match self {
            Self::Begin(begin) => wrapped(BEGIN, &begin.to_bytes()),
            Self::Pair(pair) => {
                let numbers = [pair.mono_before_ns, pair.trace, pair.mono_after_ns];
                wrapped(PAIR, numbers.map(u64::to_le_bytes).as_flattened())
            }
            Self::Hypercall(hypercall) => Self::hypercall_bytes(&hypercall.to_bytes()),
            Self::Counts(counts) => wrapped(COUNTS, &counts.to_bytes()),
            Self::Unknown(kind) => wrapped(*kind, &[]),
        }
    }

    /// The entry for a hypercall record from the BPF program.
    #[must_use]
    pub fn hypercall_bytes(record: &[u8]) -> Vec<u8> {
        wrapped(HYPERCALL, record)
    }

    /// Parses the content after an entry's header; `None` if it is too short.
    pub(crate) fn parse(kind: u8, content: &[u8]) -> Option<Self> {
        let mut fields = Fields(content);
        Some(match kind {
            BEGIN => Self::Begin(Begin::parse(fields)?),
            PAIR => Self::Pair(ClockPair {
                mono_before_ns: fields.u64()?,
                trace: fields.u64()?,
                mono_after_ns: fields.u64()?,
            }),
            HYPERCALL => Self::Hypercall(Hypercall::parse(content)?),
            COUNTS => Self::Counts(Counts {
                hypercalls: fields.u64()?,
                ring_full: fields.u64()?,
                no_exit: fields.u64()?,
                no_room: fields.u64()?,
                unreadable: fields.u64()?,
            }),
            other => Self::Unknown(other),
        })
    }
}

impl Begin {
    fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        bytes.extend(self.version.to_le_bytes());
        bytes.extend(self.words.to_le_bytes());
        for number in [self.trace_id, self.first_number, self.numbers] {
            bytes.extend(number.to_le_bytes());
        }
        let name = self.clock.bytes().chain(std::iter::repeat(0));
        bytes.extend(name.take(16));
        bytes
    }

    fn parse(mut fields: Fields<'_>) -> Option<Self> {
        let (version, words) = (fields.u32()?, fields.u32()?);
        let (trace_id, first_number, numbers) = (fields.u64()?, fields.u64()?, fields.u64()?);
        let name = fields.array::<16>()?;
        let name = name.split(|&byte| byte == 0).next().unwrap_or_default();
        // Clock names are always valid text.
        let clock = std::str::from_utf8(name).unwrap_or_default().to_owned();
        Some(Self { version, words, trace_id, first_number, numbers, clock })
    }
}

impl Counts {
    fn to_bytes(self) -> Vec<u8> {
        let Self { hypercalls, ring_full, no_exit, no_room, unreadable } = self;
        let numbers = [hypercalls, ring_full, no_exit, no_room, unreadable];
        numbers.map(u64::to_le_bytes).as_flattened().to_vec()
    }
}

/// The checksum of an entry: over its magic, type, length and content.
pub(crate) fn sum(head: [u8; 4], content: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&head);
    hasher.update(content);
    hasher.finalize()
}

/// Content with a header. The caller guarantees that its length is a number of words.
fn wrapped(kind: u8, content: &[u8]) -> Vec<u8> {
    let words = content.chunks(8).len();
    let [mark, other] = MARK;
    let head = [mark, other, kind, u8::try_from(words).unwrap_or(u8::MAX)];
    let mut bytes = Vec::with_capacity(content.len().saturating_add(ENTRY_HEAD_BYTES));
    bytes.extend(head);
    bytes.extend(sum(head, content).to_le_bytes());
    bytes.extend(content);
    bytes
}
