//! What records say, by their types.

use raw_bytes::{Cursor, Truncated, slice};

use crate::attr::Attr;
use crate::words::{Fields, Words};
use crate::{BuildId, ReadValues, Record, Sample, SampleId, kind, misc};

/// What a record says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body<'f> {
    /// An event's occurrence.
    Sample(Box<Sample<'f>>),
    /// A mapping (MMAP, MMAP2).
    Mapping(Mapping<'f>),
    /// A thread's name.
    Comm(Comm<'f>),
    /// The beginning of a thread.
    Fork(Task),
    /// The end of a thread.
    Exit(Task),
    /// Records that found no room (LOST).
    Lost(Lost),
    /// Samples that were lost (LOST_SAMPLES).
    LostSamples(Lost),
    /// An event is held back.
    Throttle(Throttle),
    /// It is no longer.
    Unthrottle(Throttle),
    /// Counts of a thread.
    Read(ReadValues<'f>),
    /// A thread begins or ends to run.
    Switch(Switch),
    /// A symbol came or went.
    Ksymbol(Ksymbol<'f>),
    /// All records that were there by then have been written.
    FinishedRound,
    /// Ids of events.
    IdIndex(IdIndexEntries<'f>),
    /// From time to the processor's counter.
    TimeConv(TimeConv),
    /// Something else.
    Other,
}

/// A mapping of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mapping<'f> {
    /// Process; of the kernel's own -1 as `u32`.
    pub pid: u32,
    /// Thread.
    pub tid: u32,
    /// First address.
    pub addr: u64,
    /// Bytes.
    pub len: u64,
    /// Offset in the file, in bytes.
    pub file_offset: u64,
    /// The file's build id.
    pub build_id: Option<BuildId>,
    /// What may be done with it (`PROT_…`), in MMAP2.
    pub protection: Option<u32>,
    /// The file.
    pub path: &'f [u8],
}

/// A thread's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Comm<'f> {
    /// Process.
    pub pid: u32,
    /// Thread.
    pub tid: u32,
    /// The name.
    pub name: &'f [u8],
    /// Whether it is that of a new program.
    pub exec: bool,
}

/// The beginning or the end of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Task {
    /// Process.
    pub pid: u32,
    /// Process of the thread that began it.
    pub parent_pid: u32,
    /// Thread.
    pub tid: u32,
    /// Thread that began it.
    pub parent_tid: u32,
    /// When, in nanoseconds.
    pub time: u64,
}

/// Records or samples that are missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lost {
    /// Id of the event into whose buffer they would have gone; not known of LOST_SAMPLES.
    pub id: Option<u64>,
    /// How many.
    pub count: u64,
}

/// An event that came too often.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Throttle {
    /// When, in nanoseconds.
    pub time: u64,
    /// Id of the event.
    pub id: u64,
    /// The event's own id.
    pub stream_id: u64,
}

/// A thread begins or ends to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Switch {
    /// It ends to run.
    pub out: bool,
    /// It would have gone on.
    pub preempted: bool,
    /// Process and thread that ran before or run next, where all threads were recorded.
    pub other: Option<(u32, u32)>,
}

/// A symbol of the kernel that came or went while it was recorded: BPF, trampolines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ksymbol<'f> {
    /// First address.
    pub addr: u64,
    /// Bytes.
    pub len: u32,
    /// Of what kind (`enum perf_record_ksymbol_type`).
    pub kind: u16,
    /// It went.
    pub gone: bool,
    /// The symbol.
    pub name: &'f [u8],
}

/// From time to the processor's counter: ns = `zero` + (counter × `mult`) >> `shift`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeConv {
    /// Bits to shift by.
    pub shift: u64,
    /// Factor.
    pub mult: u64,
    /// Nanoseconds at which the counter was 0.
    pub zero: u64,
}

/// Ids of events with where they count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdIndexEntries<'f> {
    entries: Words<'f>,
    /// Of each entry the machine and the vCPU, where guests' events were injected.
    guests: Words<'f>,
}

/// An id of an event with where it counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdIndexEntry {
    /// The id.
    pub id: u64,
    /// Number of the buffer.
    pub index: u64,
    /// CPU; -1 as `u64`: any.
    pub cpu: u64,
    /// Thread; -1 as `u64`: any.
    pub tid: u64,
    /// Process of the virtual machine it is of, and the vCPU.
    pub guest: Option<(u64, u64)>,
}

impl IdIndexEntries<'_> {
    /// All of them in order.
    pub fn iter(&self) -> impl Iterator<Item = IdIndexEntry> {
        (0..self.entries.len()).step_by(4).filter_map(|at| {
            let (mut words, mut guest) = (self.entries.from(at), self.guests.from(at.div_ceil(2)));
            Some(IdIndexEntry {
                id: words.next()?,
                index: words.next()?,
                cpu: words.next()?,
                tid: words.next()?,
                guest: guest.next().zip(guest.next()),
            })
        })
    }
}

impl<'f> Body<'f> {
    /// Reads a record of an event with those attributes.
    ///
    /// # Errors
    /// When it ends before all that its type asks for.
    pub fn parse(record: &Record<'f>, attr: &Attr) -> Result<Self, Truncated> {
        let mut cursor = own_cursor(record, attr);
        let cursor = &mut cursor;
        Ok(match record.kind {
            kind::SAMPLE => Self::Sample(Box::new(Sample::parse(record, attr)?)),
            kind::MMAP | kind::MMAP2 => Self::Mapping(mapping(record, cursor)?),
            kind::COMM => Self::Comm(comm(record, cursor)?),
            kind::FORK => Self::Fork(task(cursor)?),
            kind::EXIT => Self::Exit(task(cursor)?),
            kind::LOST => {
                let id = Some(cursor.u64()?);
                Self::Lost(Lost { id, count: cursor.u64()? })
            }
            kind::LOST_SAMPLES => Self::LostSamples(Lost { id: None, count: cursor.u64()? }),
            kind::THROTTLE => Self::Throttle(throttle(cursor)?),
            kind::UNTHROTTLE => Self::Unthrottle(throttle(cursor)?),
            kind::READ => {
                cursor.u64()?; // Process and thread.
                let mut fields = Fields::new(cursor.clone(), record.order);
                Self::Read(ReadValues::read(attr.read_format, &mut fields)?)
            }
            kind::SWITCH | kind::SWITCH_CPU_WIDE => Self::Switch(switch(record, cursor)?),
            kind::KSYMBOL => Self::Ksymbol(ksymbol(cursor)?),
            kind::FINISHED_ROUND => Self::FinishedRound,
            kind::ID_INDEX => Self::IdIndex(id_index(record, cursor)?),
            kind::TIME_CONV => Self::TimeConv(TimeConv {
                shift: cursor.u64()?,
                mult: cursor.u64()?,
                zero: cursor.u64()?,
            }),
            _ => Self::Other,
        })
    }
}

/// A record's own bytes: without its head and what ends it.
fn own_cursor<'f>(record: &Record<'f>, attr: &Attr) -> Cursor<'f> {
    let body = record.body();
    let len = (body.len() as u64).saturating_sub(SampleId::len(record, attr));
    Cursor::new(slice::range(body, 0, len), record.order, record.cursor().offset())
}

fn mapping<'f>(record: &Record<'f>, cursor: &mut Cursor<'f>) -> Result<Mapping<'f>, Truncated> {
    let (pid, tid) = (cursor.u32()?, cursor.u32()?);
    let (addr, len, file_offset) = (cursor.u64()?, cursor.u64()?, cursor.u64()?);
    let mut mapping =
        Mapping { pid, tid, addr, len, file_offset, build_id: None, protection: None, path: &[] };
    if record.kind == kind::MMAP2 {
        // Device, inode and its generation; or the size of a build id, three bytes, and room for 20.
        let of_file = cursor.take(24)?;
        if record.misc & misc::MMAP_BUILD_ID != 0 {
            let size = of_file.first().copied().unwrap_or(0).min(20);
            mapping.build_id = Some(BuildId::new(slice::range(of_file, 4, size.into())));
        }
        mapping.protection = Some(cursor.u32()?);
        cursor.u32()?; // Flags of mmap.
    }
    mapping.path = slice::until_nul(cursor.rest());
    Ok(mapping)
}

fn comm<'f>(record: &Record<'f>, cursor: &mut Cursor<'f>) -> Result<Comm<'f>, Truncated> {
    let (pid, tid) = (cursor.u32()?, cursor.u32()?);
    let exec = record.misc & misc::COMM_EXEC != 0;
    Ok(Comm { pid, tid, name: slice::until_nul(cursor.rest()), exec })
}

fn task(cursor: &mut Cursor<'_>) -> Result<Task, Truncated> {
    Ok(Task {
        pid: cursor.u32()?,
        parent_pid: cursor.u32()?,
        tid: cursor.u32()?,
        parent_tid: cursor.u32()?,
        time: cursor.u64()?,
    })
}

fn throttle(cursor: &mut Cursor<'_>) -> Result<Throttle, Truncated> {
    Ok(Throttle { time: cursor.u64()?, id: cursor.u64()?, stream_id: cursor.u64()? })
}

fn switch(record: &Record<'_>, cursor: &mut Cursor<'_>) -> Result<Switch, Truncated> {
    let cpu_wide = record.kind == kind::SWITCH_CPU_WIDE;
    let other = if cpu_wide { Some((cursor.u32()?, cursor.u32()?)) } else { None };
    let has = |bit| record.misc & bit != 0;
    Ok(Switch { out: has(misc::SWITCH_OUT), preempted: has(misc::SWITCH_OUT_PREEMPT), other })
}

fn ksymbol<'f>(cursor: &mut Cursor<'f>) -> Result<Ksymbol<'f>, Truncated> {
    let (addr, len) = (cursor.u64()?, cursor.u32()?);
    let (kind, flags) = (cursor.u16()?, cursor.u16()?);
    let name = slice::until_nul(cursor.rest());
    Ok(Ksymbol { addr, len, kind, gone: flags & 1 == 1, name })
}

/// Entries, then as many of machine and vCPU where there is room for those.
fn id_index<'f>(
    record: &Record<'f>,
    cursor: &mut Cursor<'f>,
) -> Result<IdIndexEntries<'f>, Truncated> {
    let count = cursor.u64()?;
    let entries = Words::new(cursor.take(count.saturating_mul(32))?, record.order);
    let guests = cursor.take(count.saturating_mul(16)).unwrap_or_default();
    Ok(IdIndexEntries { entries, guests: Words::new(guests, record.order) })
}
