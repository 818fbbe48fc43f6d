//! Buffers, and the positions of their CPUs' pages in the file.

use crate::Damage;
use crate::compression::Compression;
use crate::header::{Header, sane_page_size};
use crate::options::{RawOption, SectionHeader, id};
use raw_bytes::{ByteOrder, Cursor, Damages, Truncated, counted, slice};
use std::collections::HashSet;

/// A ring buffer of the recording: the top-level buffer or an instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Buffer {
    /// Name of the instance; empty for the top-level buffer.
    pub name: String,
    /// Its trace clock, such as `local`, if the file has it.
    pub clock: Option<String>,
    /// Size of its pages (the kernel's sub-buffers) in bytes: a power of two.
    pub page_size: u32,
    /// CPUs with an entry in the file; CPUs without pages can be missing.
    pub cpus: Vec<CpuData>,
    /// Text of a latency tracer instead of pages.
    pub latency: Option<DataRange>,
}

/// The pages of a CPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CpuData {
    /// The CPU's number.
    pub cpu: u32,
    /// Position of its pages in the file.
    pub data: DataRange,
}

/// A range of the file that holds trace data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataRange {
    /// Offset in the file in bytes.
    pub offset: u64,
    /// Size in the file in bytes; never extends past the end of the file.
    pub len: u64,
    /// The file truncates it: data after the end is lost.
    pub cut: bool,
    /// Its compression; compressed data is a list of chunks.
    pub compression: Compression,
    pub(crate) order: ByteOrder,
    pub(crate) page_size: u32,
}

/// Facts about the file for parsing buffers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FileFacts<'a> {
    pub(crate) file: &'a [u8],
    pub(crate) order: ByteOrder,
    pub(crate) compression: &'a Compression,
    pub(crate) page_size: u32,
}

impl<'a> FileFacts<'a> {
    pub(crate) fn new(file: &'a [u8], header: &'a Header) -> Self {
        let Header { order, ref compression, page_size, .. } = *header;
        Self { file, order, compression, page_size }
    }

    pub(crate) fn range(&self, offset: u64, len: u64, compressed: bool, page: u32) -> DataRange {
        let compression = if compressed { self.compression.clone() } else { Compression::None };
        DataRange { offset, len, cut: false, compression, order: self.order, page_size: page }
    }

    /// The range, truncated at the end of the file.
    fn clipped(&self, what: &str, range: DataRange, damages: &mut Damages) -> DataRange {
        let end = self.file.len() as u64;
        let have = end.saturating_sub(range.offset).min(range.len);
        if have == range.len {
            return range;
        }
        let lost = range.len.saturating_sub(have);
        let cut = Truncated { offset: range.offset, wanted: range.len, have };
        let what =
            format!("{what}: {} past the end of the file", counted(lost, "byte is", "bytes are"));
        damages.add(Damage::new(range.offset, what).of_cut(cut));
        DataRange { len: have, cut: true, ..range }
    }
}

impl Buffer {
    /// Reads a BUFFER or BUFFER_TEXT option of version 7; after truncation, CPUs before it remain.
    pub(crate) fn parse_v7(
        option: &RawOption,
        facts: &FileFacts<'_>,
        damages: &mut Damages,
    ) -> Option<Self> {
        let mut buffer = None;
        let mut cursor = option.cursor(facts.order);
        if let Err(damage) = Self::fill(&mut cursor, option.id, &mut buffer, facts, damages) {
            damages.add(damage);
        }
        buffer
    }

    fn fill(
        cursor: &mut Cursor<'_>,
        option: u16,
        out: &mut Option<Self>,
        facts: &FileFacts<'_>,
        damages: &mut Damages,
    ) -> Result<(), Damage> {
        let short = |cut| Damage::short("buffer option", cut);
        let section = cursor.u64().map_err(short)?;
        let name = slice::text(cursor.c_str().map_err(short)?);
        let clock = Some(slice::text(cursor.c_str().map_err(short)?)).filter(|c| !c.is_empty());
        let header = SectionHeader::read(facts.file, facts.order, section)?;
        if header.id != option {
            let what = format!("section {} where buffer \"{name}\" should be", header.id);
            return Err(Damage::new(section, what));
        }
        let page_size = facts.page_size;
        let buffer = out.insert(Self { name, clock, page_size, cpus: vec![], latency: None });
        if option == id::BUFFER_TEXT {
            let text = facts.range(header.data, header.size, header.compressed, TEXT_PAGE);
            buffer.latency = Some(facts.clipped("latency text", text, damages));
            return Ok(());
        }
        let (at, page_size) = (cursor.offset(), cursor.u32().map_err(short)?);
        buffer.page_size = sane_page_size(page_size, facts.page_size, at, damages);
        for _ in 0..cursor.u32().map_err(short)? {
            let cpu = cursor.u32().map_err(short)?;
            let (offset, len) = (cursor.u64().map_err(short)?, cursor.u64().map_err(short)?);
            let data = facts.range(offset, len, header.compressed, buffer.page_size);
            buffer.push_cpu(cpu, data, facts, damages);
        }
        Ok(())
    }

    fn push_cpu(
        &mut self,
        cpu: u32,
        data: DataRange,
        facts: &FileFacts<'_>,
        damages: &mut Damages,
    ) {
        let data = facts.clipped(&format!("CPU {cpu} of \"{}\"", self.name), data, damages);
        self.cpus.push(CpuData { cpu, data });
    }

    /// Reads the table of version 6 after "flyrecord": a pair of numbers per CPU.
    pub(crate) fn parse_v6(
        name: String,
        cpus: u32,
        cursor: &mut Cursor<'_>,
        facts: &FileFacts<'_>,
        damages: &mut Damages,
    ) -> Self {
        let page_size = facts.page_size;
        let mut buffer = Self { name, clock: None, page_size, cpus: vec![], latency: None };
        for cpu in 0..cpus {
            let mut pair = || Ok((cursor.u64()?, cursor.u64()?));
            match pair() {
                Ok((offset, len)) => {
                    let data = facts.range(offset, len, false, page_size);
                    buffer.push_cpu(cpu, data, facts, damages);
                }
                Err(cut) => {
                    damages.add(Damage::short("table of CPUs", cut));
                    break;
                }
            }
        }
        buffer
    }
}

/// Text has no pages: any length is valid.
pub(crate) const TEXT_PAGE: u32 = 1;

/// Removes overlaps between CPUs: a page belongs to at most one CPU.
///
/// The range that begins first ends where the next begins, so that a hostile file cannot make
/// readers read the same bytes repeatedly.
pub(crate) fn part_overlaps(buffers: &mut [Buffer], damages: &mut Damages) {
    let mut ranges: Vec<(&String, &mut CpuData)> = buffers
        .iter_mut()
        .flat_map(|buffer| buffer.cpus.iter_mut().map(|cpu| (&buffer.name, cpu)))
        .filter(|(_, cpu)| cpu.data.len > 0)
        .collect();
    ranges.sort_by_key(|(_, cpu)| (cpu.data.offset, cpu.data.len));
    let mut limit = u64::MAX;
    for (name, CpuData { cpu, data }) in ranges.into_iter().rev() {
        let room = limit.saturating_sub(data.offset);
        if data.len > room {
            let lost = data.len.saturating_sub(room);
            let what = counted(lost, "byte belongs", "bytes belong");
            let what = format!("CPU {cpu} of \"{name}\": {what} to another CPU too");
            damages.note(data.offset, what);
            data.len = room;
            data.cut = true;
        }
        limit = data.offset;
    }
}

/// Records buffers with the same name, and duplicate entries for a CPU of a buffer. All remain, and
/// readers of pages must expect them.
pub(crate) fn note_repetitions(buffers: &[Buffer], damages: &mut Damages) {
    let mut names = HashSet::new();
    for Buffer { name, cpus, .. } in buffers {
        if !names.insert(name) {
            damages.note(0, format!("there are several buffers \"{name}\""));
        }
        let mut seen = HashSet::new();
        for CpuData { cpu, data } in cpus.iter().filter(|cpu| cpu.data.len > 0) {
            if !seen.insert(*cpu) {
                damages.note(data.offset, format!("CPU {cpu} of \"{name}\" appears again"));
            }
        }
    }
}
