//! Sections that are read on demand, because they can have megabytes.

use crate::Damage;
use crate::compression::{Compression, inflate_section};
use raw_bytes::{ByteOrder, Cursor, slice};
use std::borrow::Cow;

/// How the size of a section's text is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framing {
    /// In four bytes before it (kallsyms, printk).
    Size4,
    /// In eight bytes before it (cmdlines).
    Size8,
    /// The text fills the section (BTF, modules, header info, formats).
    Whole,
}

/// The position of a section in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section {
    /// Offset of its data in the file, after the section header.
    pub offset: u64,
    /// Size in the file according to its header; `None` in version 6, which has no section headers.
    ///
    /// The reader uses the sizes inside the section, as trace-cmd does.
    pub declared: Option<u64>,
    /// How it is compressed.
    pub compression: Compression,
    pub(crate) framing: Framing,
    pub(crate) order: ByteOrder,
}

impl Section {
    /// The section's text, decompressed.
    ///
    /// `file` is the complete parsed file.
    ///
    /// # Errors
    /// If the section is truncated, does not decompress, or declares an implausible size.
    pub fn read<'a>(&self, file: &'a [u8]) -> Result<Cow<'a, [u8]>, Damage> {
        let bytes = self.bytes(file)?;
        let range = self.payload(&bytes)?;
        Ok(match bytes {
            Cow::Borrowed(bytes) => Cow::Borrowed(bytes.get(range).unwrap_or_default()),
            Cow::Owned(mut bytes) => {
                bytes.truncate(range.end);
                bytes.drain(..range.start);
                Cow::Owned(bytes)
            }
        })
    }

    /// All bytes of the section, including the size before the text.
    pub(crate) fn bytes<'a>(&self, file: &'a [u8]) -> Result<Cow<'a, [u8]>, Damage> {
        let rest = slice::from(file, self.offset);
        if self.compression != Compression::None {
            let mut cursor = Cursor::new(rest, self.order, self.offset);
            let short = |cut| Damage::short("compressed section", cut);
            let packed = cursor.u32().map_err(short)?;
            let declared = cursor.u32().map_err(short)?;
            let input = cursor.take(packed.into()).map_err(short)?;
            return inflate_section(&self.compression, input, declared, self.offset)
                .map(Cow::Owned);
        }
        match (self.framing, self.declared) {
            (Framing::Whole, Some(len)) => Cursor::new(rest, self.order, self.offset)
                .take(len)
                .map(Cow::Borrowed)
                .map_err(|cut| Damage::short("section", cut)),
            _ => Ok(Cow::Borrowed(rest)),
        }
    }

    fn payload(&self, bytes: &[u8]) -> Result<std::ops::Range<usize>, Damage> {
        let mut cursor = Cursor::new(bytes, self.order, self.offset);
        let short = |cut| Damage::short("section text", cut);
        let (start, len) = match self.framing {
            Framing::Size4 => (4, u64::from(cursor.u32().map_err(short)?)),
            Framing::Size8 => (8, cursor.u64().map_err(short)?),
            Framing::Whole => (0, bytes.len() as u64),
        };
        let text = cursor.take(len).map_err(short)?;
        Ok(start..text.len().saturating_add(start))
    }
}
