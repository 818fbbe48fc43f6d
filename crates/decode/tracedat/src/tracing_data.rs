//! The tracepoint formats in a perf.data: the same bytes as the beginning of a trace.dat of version
//! 6.
//!
//! `record_data` of `tools/perf/util/trace-event-info.c` writes them. It omits the kernel's
//! symbols, because perf obtains them in other ways.

use raw_bytes::{Abi, ByteOrder, Cursor, Damages, LongSize};

use crate::header::MAGIC;
use crate::{Damage, Formats, TraceDatError};

/// The data that perf copies from tracefs.
#[derive(Clone, Debug)]
pub struct TracingData {
    /// Byte order and long size of the recorded kernel.
    pub abi: Abi,
    /// Formats of events.
    pub formats: Formats,
    /// `/proc/kallsyms`; empty if omitted.
    pub kallsyms: Vec<u8>,
    /// `printk_formats`.
    pub printk: Vec<u8>,
    /// `saved_cmdlines`; since version 0.6 of this data.
    pub cmdlines: Vec<u8>,
    /// Missing or damaged data.
    pub damage: Vec<Damage>,
}

impl TracingData {
    /// Parses this part of a file, which begins at `offset`.
    ///
    /// # Errors
    /// If its first bytes are wrong.
    pub fn parse(bytes: &[u8], offset: u64) -> Result<Self, TraceDatError> {
        let rest = bytes.strip_prefix(&MAGIC).ok_or(TraceDatError::NotTraceDat)?;
        let offset = offset.saturating_add(MAGIC.len() as u64);
        let short = TraceDatError::short("formats of tracepoints");
        let mut cursor = Cursor::new(rest, ByteOrder::Little, offset);
        let _version = cursor.c_str().map_err(&short)?;
        let order = match cursor.u8().map_err(&short)? {
            0 => ByteOrder::Little,
            _ => ByteOrder::Big,
        };
        let mut cursor = Cursor::new(cursor.rest(), order, cursor.offset());
        let user_long = LongSize::from_bytes(cursor.u8().map_err(&short)?.into());
        let _page_size = cursor.u32().map_err(&short)?;
        let mut out = Self {
            abi: Abi { order, long: LongSize::Eight },
            formats: Formats::default(),
            kallsyms: Vec::new(),
            printk: Vec::new(),
            cmdlines: Vec::new(),
            damage: Vec::new(),
        };
        let mut damages = Damages::default();
        let read = out.parts(&mut cursor);
        damages.keep(read);
        out.abi.long = out.formats.kernel_long().or(user_long).unwrap_or(LongSize::Eight);
        out.damage = damages.into_vec();
        Ok(out)
    }

    fn parts(&mut self, cursor: &mut Cursor<'_>) -> Result<(), Damage> {
        self.formats.read_header(cursor)?;
        self.formats.read_ftrace(cursor)?;
        self.formats.read_events(cursor)?;
        let short = |cut| Damage::short("texts after the formats", cut);
        let len = cursor.u32().map_err(short)?;
        self.kallsyms = cursor.take(len.into()).map_err(short)?.to_vec();
        let len = cursor.u32().map_err(short)?;
        self.printk = cursor.take(len.into()).map_err(short)?.to_vec();
        // Versions before 0.6 end here.
        if let Ok(len) = cursor.u64() {
            self.cmdlines = cursor.take(len).map_err(short)?.to_vec();
        }
        Ok(())
    }
}
