//! Samples: the recorded data of one occurrence of an event, in the kernel's order of fields.

use raw_bytes::Truncated;

use crate::attr::{Attr, branch, sample_type};
use crate::words::{Fields, Words};
use crate::{CpuMode, ReadValues, Record, misc};

/// The recorded data of one occurrence of an event; fields that the event does not record are `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sample<'f> {
    /// What ran, as the kernel says.
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
    /// Time in nanoseconds of the file's clock.
    pub time: Option<u64>,
    /// Address that was accessed.
    pub addr: Option<u64>,
    /// Its event's own id, where that was inherited.
    pub stream_id: Option<u64>,
    /// CPU.
    pub cpu: Option<u32>,
    /// Events since the sample before.
    pub period: Option<u64>,
    /// Counts.
    pub read: Option<ReadValues<'f>>,
    /// Call chain, innermost first, with markers ([`crate::marker`]) between addresses.
    pub callchain: Option<Words<'f>>,
    /// Bytes of the event's own: a tracepoint's record, and up to 7 bytes to fill up.
    pub raw: Option<&'f [u8]>,
    /// Where those lie, counted as [`Record::offset`].
    pub raw_offset: u64,
    /// The last branches.
    pub branches: Option<BranchStack<'f>>,
    /// Registers of the program.
    pub regs_user: Option<Registers<'f>>,
    /// The top of the program's stack, as far as it could be read.
    pub stack_user: Option<&'f [u8]>,
    /// What an access cost, in one number or in parts.
    pub weight: Option<u64>,
    /// Where data came from.
    pub data_src: Option<u64>,
    /// Why a transaction was aborted.
    pub transaction: Option<u64>,
    /// Registers of what was interrupted.
    pub regs_intr: Option<Registers<'f>>,
    /// Physical address that was accessed.
    pub phys_addr: Option<u64>,
    /// Control group.
    pub cgroup: Option<u64>,
    /// Bytes of the page that was accessed.
    pub data_page_size: Option<u64>,
    /// Bytes of the instruction's page.
    pub code_page_size: Option<u64>,
    /// Part of a hardware trace.
    pub aux: Option<&'f [u8]>,
}

/// The last branches before a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BranchStack<'f> {
    /// Index of the first in the processor's own list.
    pub hw_index: Option<u64>,
    entries: Words<'f>,
    /// A number for each branch, made of counts of events.
    pub counters: Option<Words<'f>>,
}

/// A branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Branch {
    /// Where from.
    pub from: u64,
    /// Where to.
    pub to: u64,
    /// Its flags (`struct perf_branch_entry`).
    pub flags: u64,
}

/// Words of a branch.
const BRANCH_WORDS: u64 = 3;

impl BranchStack<'_> {
    /// The branches, the last first.
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
    /// Which kind of program (`enum perf_sample_regs_abi`): 0 none, 1 of 32 bits, 2 of 64.
    pub abi: u64,
    /// Which registers, a bit each.
    pub mask: u64,
    /// One for each bit of `mask`, the lowest first; none where `abi` is 0.
    pub values: Words<'f>,
}

impl<'f> Sample<'f> {
    /// Reads a record of type [`crate::kind::SAMPLE`] of an event with those attributes.
    ///
    /// # Errors
    /// When it ends before all that the attributes ask for.
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

    /// Which event, where and when.
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

    /// What is of any length.
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

    /// What is of the processor and of memory.
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

/// A copy of a stack has room for as much as was asked for; how much of it was read comes last.
fn stack<'f>(fields: &mut Fields<'f>) -> Result<&'f [u8], Truncated> {
    let room = fields.sized()?;
    if room.is_empty() {
        return Ok(room);
    }
    let read = usize::try_from(fields.word()?).unwrap_or(usize::MAX).min(room.len());
    Ok(room.get(..read).unwrap_or_default())
}
