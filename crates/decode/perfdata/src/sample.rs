//! What one sample has, and what other records end with.

use raw_bytes::{ByteOrder, Cursor};

use crate::attr::{EventAttr, bit};
use crate::records::Record;

/// In which mode a CPU was, as the kernel says (`PERF_RECORD_MISC_CPUMODE_MASK`). On some architectures and
/// kernels it says so wrongly while a vCPU is loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CpuMode {
    /// It doesn't say.
    Unknown,
    /// The host's kernel.
    HostKernel,
    /// The host's user space.
    HostUser,
    /// A hypervisor below the host.
    Hypervisor,
    /// A guest's kernel.
    GuestKernel,
    /// A guest's user space.
    GuestUser,
}

impl CpuMode {
    /// All of them, in the order of reports.
    pub const ALL: [Self; 6] = [
        Self::HostKernel,
        Self::HostUser,
        Self::GuestKernel,
        Self::GuestUser,
        Self::Hypervisor,
        Self::Unknown,
    ];

    /// Its name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::HostKernel => "host_kernel",
            Self::HostUser => "host_user",
            Self::GuestKernel => "guest_kernel",
            Self::GuestUser => "guest_user",
            Self::Hypervisor => "hypervisor",
            Self::Unknown => "unknown",
        }
    }

    const fn of(misc: u16) -> Self {
        match misc & 7 {
            1 => Self::HostKernel,
            2 => Self::HostUser,
            3 => Self::Hypervisor,
            4 => Self::GuestKernel,
            5 => Self::GuestUser,
            _ => Self::Unknown,
        }
    }
}

/// A sample. What its event doesn't have is `None`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample<'f> {
    /// The mode that the kernel says the CPU was in.
    pub mode: CpuMode,
    /// Where the CPU was.
    pub ip: Option<u64>,
    /// Process and thread.
    pub thread: Option<(u32, u32)>,
    /// Time on perf's clock.
    pub time_ns: Option<u64>,
    /// The CPU.
    pub cpu: Option<u32>,
    /// What it stands for, in what the event counts.
    pub period: Option<u64>,
    /// The call chain: eight bytes an address in the file's byte order, from the innermost on, with marks
    /// (`PERF_CONTEXT_*`) among them.
    pub call_chain: &'f [u8],
    /// The event's own bytes: of a tracepoint its record, as its format says.
    pub raw: Option<&'f [u8]>,
    /// Where these bytes lie in the file.
    pub raw_offset: u64,
}

impl<'f> Sample<'f> {
    /// Reads a sample of an event; `None`: it is not whole.
    pub(crate) fn read(record: &Record<'f>, attr: &EventAttr, order: ByteOrder) -> Option<Self> {
        let mut cursor = Cursor::new(record.body, order, record.offset);
        let has = |bit: u64| attr.sample_type & bit != 0;
        let word = |wanted: u64, cursor: &mut Cursor<'f>| match has(wanted) {
            true => cursor.u64().ok().map(Some),
            false => Some(None),
        };
        let pair = |wanted: u64, cursor: &mut Cursor<'f>| match has(wanted) {
            true => Some(Some((cursor.u32().ok()?, cursor.u32().ok()?))),
            false => Some(None),
        };
        word(bit::IDENTIFIER, &mut cursor)?;
        let ip = word(bit::IP, &mut cursor)?;
        let thread = pair(bit::TID, &mut cursor)?;
        let time_ns = word(bit::TIME, &mut cursor)?;
        word(bit::ADDR, &mut cursor)?;
        word(bit::ID, &mut cursor)?;
        word(bit::STREAM_ID, &mut cursor)?;
        let cpu = pair(bit::CPU, &mut cursor)?.map(|(cpu, _)| cpu);
        let period = word(bit::PERIOD, &mut cursor)?;
        if has(bit::READ) {
            skip_read(&mut cursor, attr.read_format)?;
        }
        let mut call_chain: &[u8] = &[];
        if has(bit::CALLCHAIN) {
            let count = cursor.u64().ok()?;
            call_chain = cursor.take(count.checked_mul(8)?).ok()?;
        }
        let (mut raw, mut raw_offset) = (None, 0);
        if has(bit::RAW) {
            let len = cursor.u32().ok()?;
            raw_offset = cursor.offset();
            raw = Some(cursor.take(len.into()).ok()?);
        }
        let mode = CpuMode::of(record.misc);
        Some(Self { mode, ip, thread, time_ns, cpu, period, call_chain, raw, raw_offset })
    }
}

/// Passes over counted values: `struct read_format`, by its bits (`PERF_FORMAT_*`).
fn skip_read(cursor: &mut Cursor<'_>, format: u64) -> Option<()> {
    const TIMES: u64 = 0b11;
    const ID: u64 = 1 << 2;
    const GROUP: u64 = 1 << 3;
    const LOST: u64 = 1 << 4;
    let times = u64::from((format & TIMES).count_ones());
    let of_each = u64::from((format & (ID | LOST)).count_ones()).saturating_add(1);
    let words = match format & GROUP {
        0 => of_each.saturating_add(times),
        _ => cursor.u64().ok()?.checked_mul(of_each)?.checked_add(times)?,
    };
    cursor.take(words.checked_mul(8)?).ok().map(drop)
}

/// Whose a record is that is no sample: `struct sample_id`, at its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SampleId {
    /// Process and thread.
    pub thread: Option<(u32, u32)>,
    /// Time on perf's clock.
    pub time_ns: Option<u64>,
    /// The CPU.
    pub cpu: Option<u32>,
    /// The event's id.
    pub id: Option<u64>,
}

impl SampleId {
    /// `None`: the record has none, or is too short.
    pub(crate) fn read(record: &Record<'_>, attr: &EventAttr, order: ByteOrder) -> Option<Self> {
        attr.sample_id_all.then_some(())?;
        let has = |bit: u64| attr.sample_type & bit != 0;
        let parts = bit::TID | bit::TIME | bit::ID | bit::STREAM_ID | bit::CPU | bit::IDENTIFIER;
        let len = (attr.sample_type & parts).count_ones().saturating_mul(8);
        let begin = record.body.len().checked_sub(usize::try_from(len).ok()?)?;
        let bytes = record.body.get(begin..)?;
        let mut cursor = Cursor::new(bytes, order, record.offset.saturating_add(begin as u64));
        let mut out = Self::default();
        if has(bit::TID) {
            out.thread = Some((cursor.u32().ok()?, cursor.u32().ok()?));
        }
        if has(bit::TIME) {
            out.time_ns = Some(cursor.u64().ok()?);
        }
        if has(bit::ID) {
            out.id = Some(cursor.u64().ok()?);
        }
        if has(bit::STREAM_ID) {
            cursor.u64().ok()?;
        }
        if has(bit::CPU) {
            out.cpu = Some(cursor.u32().ok()?);
            cursor.u32().ok()?;
        }
        if has(bit::IDENTIFIER) {
            out.id = Some(cursor.u64().ok()?);
        }
        Some(out)
    }
}
