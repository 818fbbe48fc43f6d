//! The content of records, by type.

use raw_bytes::{Cursor, Truncated, slice};

use crate::attr::Attr;
use crate::words::{Fields, Words};
use crate::{BuildId, ReadValues, Record, Sample, SampleId, kind, misc};

/// The content of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body<'f> {
    /// A sample.
    Sample(Box<Sample<'f>>),
    /// A mapping (MMAP, MMAP2).
    Mapping(Mapping<'f>),
    /// A thread's name.
    Comm(Comm<'f>),
    /// The start of a thread.
    Fork(Task),
    /// The end of a thread.
    Exit(Task),
    /// Lost records (LOST).
    Lost(Lost),
    /// Lost samples (LOST_SAMPLES).
    LostSamples(Lost),
    /// An event is throttled.
    Throttle(Throttle),
    /// An event is no longer throttled.
    Unthrottle(Throttle),
    /// Counts of a thread.
    Read(ReadValues<'f>),
    /// A thread is switched in or out.
    Switch(Switch),
    /// A symbol was registered or unregistered.
    Ksymbol(Ksymbol<'f>),
    /// The end of a round: all records available by then have been written.
    FinishedRound,
    /// Ids of events.
    IdIndex(IdIndexEntries<'f>),
    /// Conversion from the processor's counter to time.
    TimeConv(TimeConv),
    /// Another type.
    Other,
}

/// A mapping of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mapping<'f> {
    /// Process; -1 as `u32` for the kernel.
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
    /// Access protection (`PROT_…`); only in MMAP2.
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
    /// Whether it comes from exec.
    pub exec: bool,
}

/// The start or the end of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Task {
    /// Process.
    pub pid: u32,
    /// Process of the parent thread.
    pub parent_pid: u32,
    /// Thread.
    pub tid: u32,
    /// Parent thread.
    pub parent_tid: u32,
    /// Time in nanoseconds.
    pub time: u64,
}

/// Lost records or samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lost {
    /// Id of the event whose buffer was full; unknown for LOST_SAMPLES.
    pub id: Option<u64>,
    /// Number of lost records.
    pub count: u64,
}

/// An event that was throttled because it occurred too often.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Throttle {
    /// Time in nanoseconds.
    pub time: u64,
    /// Id of the event.
    pub id: u64,
    /// The event's own id.
    pub stream_id: u64,
}

/// A thread is switched in or out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Switch {
    /// It is switched out.
    pub out: bool,
    /// It was preempted.
    pub preempted: bool,
    /// The previous or the next process and thread, if all threads were recorded.
    pub other: Option<(u32, u32)>,
}

/// A kernel symbol that was registered or unregistered during the recording: BPF, trampolines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ksymbol<'f> {
    /// First address.
    pub addr: u64,
    /// Bytes.
    pub len: u32,
    /// Kind of symbol (`enum perf_record_ksymbol_type`).
    pub kind: u16,
    /// It was unregistered.
    pub gone: bool,
    /// The symbol.
    pub name: &'f [u8],
}

/// Conversion from the processor's counter to time: ns = `zero` + (counter × `mult`) >> `shift`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeConv {
    /// Bits to shift by.
    pub shift: u64,
    /// Factor.
    pub mult: u64,
    /// Time of counter 0 in nanoseconds.
    pub zero: u64,
}

/// Ids of events, with their CPUs and threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdIndexEntries<'f> {
    entries: Words<'f>,
    /// Machine and vCPU of each entry, if guests' events were injected.
    guests: Words<'f>,
}

/// An id of an event, with its CPU and thread.
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
    /// Process of the VM, and the vCPU.
    pub guest: Option<(u64, u64)>,
}

impl IdIndexEntries<'_> {
    /// All entries in order.
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
    /// Parses a record of an event with these attributes.
    ///
    /// # Errors
    /// If it ends before the fields of its type.
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

/// The content of a record, without its header and its sample id.
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
        // Device, inode and its generation; or the size of a build id, three bytes, and space for
        // 20.
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

/// Entries, then the same number of machines and vCPUs if there is enough data.
fn id_index<'f>(
    record: &Record<'f>,
    cursor: &mut Cursor<'f>,
) -> Result<IdIndexEntries<'f>, Truncated> {
    let count = cursor.u64()?;
    let entries = Words::new(cursor.take(count.saturating_mul(32))?, record.order);
    let guests = cursor.take(count.saturating_mul(16)).unwrap_or_default();
    Ok(IdIndexEntries { entries, guests: Words::new(guests, record.order) })
}
