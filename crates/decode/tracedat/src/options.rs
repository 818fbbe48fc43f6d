//! Reads the list of options as raw bytes, along a chain that can be damaged.

use crate::Damage;
use crate::compression::Compression;
use crate::section::{Framing, Section};
use raw_bytes::{ByteOrder, Cursor, Damages, Truncated, slice};
use std::borrow::Cow;
use std::collections::HashSet;

/// Numbers of the options and sections of trace-cmd.
pub mod id {
    /// End of a list; in version 7 with the offset of the next list.
    pub const DONE: u16 = 0;
    /// Text: microseconds to add to all times.
    pub const DATE: u16 = 1;
    /// Text: `per_cpu/cpuN/stats`.
    pub const CPUSTAT: u16 = 2;
    /// A buffer and the position of its pages.
    pub const BUFFER: u16 = 3;
    /// Text: the file `trace_clock`.
    pub const TRACECLOCK: u16 = 4;
    /// Text: `uname -a`, shortened.
    pub const UNAME: u16 = 5;
    /// Text: a hook that joins two events.
    pub const HOOK: u16 = 6;
    /// Text: nanoseconds to add to all times.
    pub const OFFSET: u16 = 7;
    /// Number of CPUs.
    pub const CPUCOUNT: u16 = 8;
    /// Text: version of the recording program.
    pub const VERSION: u16 = 9;
    /// Text: memory maps of traced processes.
    pub const PROCMAPS: u16 = 10;
    /// Identity of the recording.
    pub const TRACEID: u16 = 11;
    /// Conversion of times to the clock of a peer, such as the host.
    pub const TIME_SHIFT: u16 = 12;
    /// A guest recorded at the same time.
    pub const GUEST: u16 = 13;
    /// Conversion from TSC ticks to nanoseconds.
    pub const TSC2NSEC: u16 = 14;
    /// Section names.
    pub const STRINGS: u16 = 15;
    /// `header_page` and `header_event`.
    pub const HEADER_INFO: u16 = 16;
    /// Formats of the ftrace system.
    pub const FTRACE_EVENTS: u16 = 17;
    /// Formats of all other systems.
    pub const EVENT_FORMATS: u16 = 18;
    /// `/proc/kallsyms`.
    pub const KALLSYMS: u16 = 19;
    /// `printk_formats`.
    pub const PRINTK: u16 = 20;
    /// `saved_cmdlines`.
    pub const CMDLINES: u16 = 21;
    /// A buffer stored as text (latency tracers).
    pub const BUFFER_TEXT: u16 = 22;
    /// The kernel's BTF; since trace-cmd 3.4.
    pub const BTF_FILE: u16 = 23;
    /// `last_boot_info` of a persistent buffer; since trace-cmd 3.4.
    pub const LAST_BOOT_INFO: u16 = 24;
    /// `/proc/modules`; since trace-cmd 3.4.
    pub const MODULES_FILE: u16 = 25;
}

/// An option as stored in the file, including unknown ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawOption {
    /// Its number: see [`id`].
    pub id: u16,
    /// Offset of its data in the file; for a compressed list, the offset of the list.
    pub offset: u64,
    /// Its data.
    pub data: Vec<u8>,
}

impl RawOption {
    /// The data as text, up to the first NUL.
    #[must_use]
    pub fn text(&self) -> String {
        slice::text(&self.data)
    }

    pub(crate) fn cursor(&self, order: ByteOrder) -> Cursor<'_> {
        Cursor::new(&self.data, order, self.offset)
    }
}

/// Memory limit for options per byte of file: an empty option takes 6 bytes there and 40 here.
const MEMORY_PER_BYTE: u64 = 8;
/// Memory limit for options of any file, in bytes.
const MAX_MEMORY: u64 = 64 << 20;

/// Reads option lists into a `Vec`; stops if lists overlap.
pub(crate) struct OptionReader<'a> {
    file: &'a [u8],
    order: ByteOrder,
    compression: &'a Compression,
    budget: u64,
    pub(crate) options: Vec<RawOption>,
}

impl<'a> OptionReader<'a> {
    pub(crate) fn new(file: &'a [u8], order: ByteOrder, compression: &'a Compression) -> Self {
        let budget = (file.len() as u64).saturating_mul(MEMORY_PER_BYTE).min(MAX_MEMORY);
        Self { file, order, compression, budget, options: Vec::new() }
    }

    /// Follows the version 7 chain of option sections from `first`.
    pub(crate) fn chain(&mut self, first: u64, damages: &mut Damages) {
        let mut seen = HashSet::new();
        let mut next = first;
        while next != 0 {
            if !seen.insert(next) {
                damages.note(next, "the chain of option lists is circular; reading stopped here");
                return;
            }
            match self.section(next) {
                Ok(after) => next = after,
                Err(damage) => return damages.add(damage),
            }
        }
    }

    /// Reads an option section; returns the offset of the next one, 0 after the last.
    fn section(&mut self, at: u64) -> Result<u64, Damage> {
        let header = SectionHeader::read(self.file, self.order, at)?;
        if header.id != id::DONE {
            return Err(Damage::new(at, format!("section {} where options should be", header.id)));
        }
        let section = header.section(self.order, self.compression, Framing::Size4);
        let bytes = section.bytes(self.file)?;
        if let Cow::Owned(inflated) = &bytes {
            self.spend(inflated.len() as u64, at)?;
        }
        let mut cursor = Cursor::new(&bytes, self.order, header.data);
        loop {
            let option = self.read_option(&mut cursor, section.compression != Compression::None)?;
            if option.id == id::DONE {
                return option
                    .cursor(self.order)
                    .u64()
                    .map_err(|cut| Damage::short("end of the option list", cut));
            }
            self.options.push(option);
        }
    }

    /// Reads the version 6 list, which ends with an id 0 without data.
    pub(crate) fn list(&mut self, cursor: &mut Cursor<'_>) -> Result<(), Damage> {
        loop {
            let mut ahead = cursor.clone();
            if ahead.u16().map_err(|cut| Damage::short("option list", cut))? == id::DONE {
                *cursor = ahead;
                return Ok(());
            }
            let option = self.read_option(cursor, false)?;
            self.options.push(option);
        }
    }

    fn read_option(
        &mut self,
        cursor: &mut Cursor<'_>,
        inflated: bool,
    ) -> Result<RawOption, Damage> {
        let list = cursor.offset();
        let short = |cut| Damage::short("option list", cut);
        let id = cursor.u16().map_err(short)?;
        let len = cursor.u32().map_err(short)?;
        let offset = if inflated { list } else { cursor.offset() };
        let data = cursor.take(len.into()).map_err(short)?;
        self.spend(u64::from(len).saturating_add(size_of::<RawOption>() as u64), offset)?;
        Ok(RawOption { id, offset, data: data.to_vec() })
    }

    /// Overlapping lists in a hostile file would repeat the same bytes without end.
    fn spend(&mut self, memory: u64, offset: u64) -> Result<(), Damage> {
        self.budget = self.budget.checked_sub(memory).ok_or_else(|| {
            Damage::new(offset, "option lists hold implausibly much data; reading stopped here")
        })?;
        Ok(())
    }
}

/// The 16 bytes before every section of version 7.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SectionHeader {
    pub(crate) id: u16,
    pub(crate) compressed: bool,
    pub(crate) size: u64,
    /// Offset of the section's data in the file.
    pub(crate) data: u64,
}

impl SectionHeader {
    pub(crate) fn read(file: &[u8], order: ByteOrder, at: u64) -> Result<Self, Damage> {
        // Of a section past the end of the file, only the offset is known.
        let is_past_end = at > file.len() as u64;
        let short = |cut: Truncated| match Damage::short("section header", cut) {
            damage if is_past_end => damage.of_cut(Truncated { wanted: 0, ..cut }),
            damage => damage,
        };
        let mut cursor = Cursor::new(slice::from(file, at), order, at);
        let id = cursor.u16().map_err(short)?;
        let flags = cursor.u16().map_err(short)?;
        cursor.u32().map_err(short)?;
        let size = cursor.u64().map_err(short)?;
        Ok(Self { id, compressed: flags & 1 != 0, size, data: cursor.offset() })
    }

    pub(crate) fn section(self, order: ByteOrder, how: &Compression, framing: Framing) -> Section {
        let compression = if self.compressed { how.clone() } else { Compression::None };
        Section { offset: self.data, declared: Some(self.size), compression, framing, order }
    }
}
