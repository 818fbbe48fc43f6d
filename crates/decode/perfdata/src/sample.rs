//! Samples: the recorded fields of an event, in the kernel's order.

use raw_bytes::Truncated;

use crate::attr::{Attr, branch, sample_type};
use crate::words::{Fields, Words};
use crate::{CpuMode, ReadValues, Record, misc};

/// The recorded fields of an event; fields that the event does not record are `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sample<'f> {
    /// The CPU mode according to the kernel.
    pub cpu_mode: CpuMode,
    /// Whether `ip` is exactly the instruction that caused it.
    pub exact_ip: bool,
    /// Id of its event.
    pub id: Option<u64>,
    /// Address of the instruction.
    pub ip: Option<u64>,
    /// Process.
    pub pid: Option<u32>,
    /// Thread.
    pub tid: Option<u32>,
    /// Time on the file's clock in nanoseconds.
    pub time: Option<u64>,
    /// Address that was accessed.
    pub addr: Option<u64>,
    /// Its event's own id, if the event was inherited.
    pub stream_id: Option<u64>,
    /// CPU.
    pub cpu: Option<u32>,
    /// Event count since the previous sample.
    pub period: Option<u64>,
    /// Counts.
    pub read: Option<ReadValues<'f>>,
    /// Call chain, innermost first, with markers ([`crate::marker`]) between addresses.
    pub callchain: Option<Words<'f>>,
    /// Raw data of the event: a tracepoint's record, with up to 7 bytes of padding.
    pub raw: Option<&'f [u8]>,
    /// Offset of the raw data, in the terms of [`Record::offset`].
    pub raw_offset: u64,
    /// The branch stack.
    pub branches: Option<BranchStack<'f>>,
    /// User-space registers.
    pub regs_user: Option<Registers<'f>>,
    /// The readable part of the top of the user stack.
    pub stack_user: Option<&'f [u8]>,
    /// Cost of a memory access, in one number or in parts.
    pub weight: Option<u64>,
    /// Source of the accessed data.
    pub data_src: Option<u64>,
    /// Abort reason of a transaction.
    pub transaction: Option<u64>,
    /// Registers at the interrupt.
    pub regs_intr: Option<Registers<'f>>,
    /// Physical address that was accessed.
    pub phys_addr: Option<u64>,
    /// Control group.
    pub cgroup: Option<u64>,
    /// Size of the accessed page in bytes.
    pub data_page_size: Option<u64>,
    /// Size of the instruction's page in bytes.
    pub code_page_size: Option<u64>,
    /// Part of a hardware trace.
    pub aux: Option<&'f [u8]>,
}

/// The last branches before a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BranchStack<'f> {
    /// Index of the first entry in the processor's branch records.
    pub hw_index: Option<u64>,
    entries: Words<'f>,
    /// Encoded event counters of each branch.
    pub counters: Option<Words<'f>>,
}

/// A branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Branch {
    /// Source address.
    pub from: u64,
    /// Target address.
    pub to: u64,
    /// Its flags (`struct perf_branch_entry`).
    pub flags: u64,
}

/// Words of a branch.
const BRANCH_WORDS: u64 = 3;

impl BranchStack<'_> {
    /// The branches, most recent first.
    pub fn iter(&self) -> impl Iterator<Item = Branch> {
        (0..self.entries.len()).step_by(3).filter_map(|at| {
            let mut words = self.entries.from(at);
            Some(Branch { from: words.next()?, to: words.next()?, flags: words.next()? })
        })
    }
}

/// Registers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Registers<'f> {
    /// ABI of the registers (`enum perf_sample_regs_abi`): 0 none, 1 32-bit, 2 64-bit.
    pub abi: u64,
    /// A bit for each register.
    pub mask: u64,
    /// A value for each bit of `mask`, lowest first; empty if `abi` is 0.
    pub values: Words<'f>,
}

impl<'f> Sample<'f> {
    /// Parses a record of type [`crate::kind::SAMPLE`] of an event with these attributes.
    ///
    /// # Errors
    /// If it ends before the fields that the attributes select.
    pub fn parse(record: &Record<'f>, attr: &Attr) -> Result<Self, Truncated> {
        let mut fields = Fields::new(record.cursor(), record.order);
        let mut sample = Self {
            cpu_mode: CpuMode::from_misc(record.misc),
            exact_ip: record.misc & misc::EXACT_IP != 0,
            ..Self::default()
        };
        sample.identity(attr, &mut fields)?;
        sample.contents(attr, &mut fields)?;
        sample.machine(attr, &mut fields)?;
        Ok(sample)
    }

    /// Event, CPU, thread and time.
    fn identity(&mut self, attr: &Attr, fields: &mut Fields<'f>) -> Result<(), Truncated> {
        let has = |bits| attr.samples(bits);
        self.id = fields.word_if(has(sample_type::IDENTIFIER))?;
        self.ip = fields.word_if(has(sample_type::IP))?;
        (self.pid, self.tid) = fields.pair_if(has(sample_type::TID))?.unzip();
        self.time = fields.word_if(has(sample_type::TIME))?;
        self.addr = fields.word_if(has(sample_type::ADDR))?;
        self.id = fields.word_if(has(sample_type::ID))?.or(self.id);
        self.stream_id = fields.word_if(has(sample_type::STREAM_ID))?;
        self.cpu = fields.pair_if(has(sample_type::CPU))?.map(|(cpu, _)| cpu);
        self.period = fields.word_if(has(sample_type::PERIOD))?;
        Ok(())
    }

    /// Fields of variable length.
    fn contents(&mut self, attr: &Attr, fields: &mut Fields<'f>) -> Result<(), Truncated> {
        let has = |bits| attr.samples(bits);
        if has(sample_type::READ) {
            self.read = Some(ReadValues::read(attr.read_format, fields)?);
        }
        if has(sample_type::CALLCHAIN) {
            self.callchain = Some(fields.counted_words()?);
        }
        if has(sample_type::RAW) {
            let size = fields.cursor.u32()?;
            self.raw_offset = fields.cursor.offset();
            self.raw = Some(fields.cursor.take(size.into())?);
        }
        if has(sample_type::BRANCH_STACK) {
            self.branches = Some(branches(attr.branch_sample_type, fields)?);
        }
        if has(sample_type::REGS_USER) {
            self.regs_user = Some(registers(attr.sample_regs_user, fields)?);
        }
        if has(sample_type::STACK_USER) {
            self.stack_user = Some(stack(fields)?);
        }
        Ok(())
    }

    /// Fields about the processor and memory.
    fn machine(&mut self, attr: &Attr, fields: &mut Fields<'f>) -> Result<(), Truncated> {
        let has = |bits| attr.samples(bits);
        let weight = has(sample_type::WEIGHT) || has(sample_type::WEIGHT_STRUCT);
        self.weight = fields.word_if(weight)?;
        self.data_src = fields.word_if(has(sample_type::DATA_SRC))?;
        self.transaction = fields.word_if(has(sample_type::TRANSACTION))?;
        if has(sample_type::REGS_INTR) {
            self.regs_intr = Some(registers(attr.sample_regs_intr, fields)?);
        }
        self.phys_addr = fields.word_if(has(sample_type::PHYS_ADDR))?;
        self.cgroup = fields.word_if(has(sample_type::CGROUP))?;
        self.data_page_size = fields.word_if(has(sample_type::DATA_PAGE_SIZE))?;
        self.code_page_size = fields.word_if(has(sample_type::CODE_PAGE_SIZE))?;
        if has(sample_type::AUX) {
            self.aux = Some(fields.sized()?);
        }
        Ok(())
    }
}

fn branches<'f>(wanted: u64, fields: &mut Fields<'f>) -> Result<BranchStack<'f>, Truncated> {
    let count = fields.word()?;
    let hw_index = fields.word_if(wanted & branch::HW_INDEX != 0)?;
    let entries = fields.words(count.saturating_mul(BRANCH_WORDS))?;
    let counted = wanted & branch::COUNTERS != 0;
    let counters = if counted { Some(fields.words(count)?) } else { None };
    Ok(BranchStack { hw_index, entries, counters })
}

fn registers<'f>(mask: u64, fields: &mut Fields<'f>) -> Result<Registers<'f>, Truncated> {
    let abi = fields.word()?;
    let count = if abi == 0 { 0 } else { mask.count_ones() };
    Ok(Registers { abi, mask, values: fields.words(count.into())? })
}

/// A stack copy has the requested size; the number of bytes that could be read follows it.
fn stack<'f>(fields: &mut Fields<'f>) -> Result<&'f [u8], Truncated> {
    let room = fields.sized()?;
    if room.is_empty() {
        return Ok(room);
    }
    let read = usize::try_from(fields.word()?).unwrap_or(usize::MAX).min(room.len());
    Ok(room.get(..read).unwrap_or_default())
}
