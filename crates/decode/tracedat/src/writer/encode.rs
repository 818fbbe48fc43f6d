//! Encodes numbers and texts for the file.

use super::{Contents, invalid};
use crate::formats::Formats;
use crate::header::{Header, MAGIC, Version};
use raw_bytes::ByteOrder;
use std::io;

/// Writes numbers in the byte order of a file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Encoder {
    order: ByteOrder,
}

impl Encoder {
    pub(crate) fn new(order: ByteOrder) -> Self {
        Self { order }
    }

    pub(crate) fn u16(self, value: u16) -> [u8; 2] {
        match self.order {
            ByteOrder::Little => value.to_le_bytes(),
            ByteOrder::Big => value.to_be_bytes(),
        }
    }

    pub(crate) fn u32(self, value: u32) -> [u8; 4] {
        match self.order {
            ByteOrder::Little => value.to_le_bytes(),
            ByteOrder::Big => value.to_be_bytes(),
        }
    }

    pub(crate) fn u64(self, value: u64) -> [u8; 8] {
        match self.order {
            ByteOrder::Little => value.to_le_bytes(),
            ByteOrder::Big => value.to_be_bytes(),
        }
    }

    /// A length as four bytes.
    pub(crate) fn len32(self, len: usize) -> io::Result<[u8; 4]> {
        let len = u32::try_from(len).map_err(|_| invalid(format!("{len} bytes are too many")))?;
        Ok(self.u32(len))
    }

    /// The file's header, without the offset of the options at its end.
    pub(super) fn header(self, header: &Header) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend(format!("{}\0", header.version.number()).into_bytes());
        bytes.push(u8::from(header.order == ByteOrder::Big));
        bytes.push(if header.user_long == raw_bytes::LongSize::Four { 4 } else { 8 });
        bytes.extend(self.u32(header.page_size));
        if header.version == Version::V7 {
            let (name, version) = (header.compression.name(), &header.compression_version);
            bytes.extend(format!("{name}\0{version}\0").into_bytes());
        }
        bytes
    }

    fn text64(self, text: &[u8], out: &mut Vec<u8>) {
        out.extend(self.u64(text.len() as u64));
        out.extend(text);
    }

    pub(super) fn header_info(self, formats: &Formats) -> Vec<u8> {
        let mut out = b"header_page\0".to_vec();
        self.text64(formats.header_page.as_bytes(), &mut out);
        out.extend(b"header_event\0");
        self.text64(formats.header_event.as_bytes(), &mut out);
        out
    }

    pub(super) fn ftrace(self, formats: &Formats) -> io::Result<Vec<u8>> {
        let mut out = self.len32(formats.ftrace.len())?.to_vec();
        formats.ftrace.iter().for_each(|text| self.text64(text.as_bytes(), &mut out));
        Ok(out)
    }

    /// Consecutive events of the same system share an entry.
    pub(super) fn events(self, formats: &Formats) -> io::Result<Vec<u8>> {
        let systems: Vec<_> = formats.events.chunk_by(|a, b| a.system == b.system).collect();
        let mut out = self.len32(systems.len())?.to_vec();
        for events in systems {
            let name = events.first().map_or("", |event| &event.system);
            out.extend(name.as_bytes());
            out.push(0);
            out.extend(self.len32(events.len())?);
            events.iter().for_each(|event| self.text64(event.text.as_bytes(), &mut out));
        }
        Ok(out)
    }

    /// The sizes of kallsyms, printk formats and command lines, each with a reference to its text:
    /// the texts are large, so they are not copied.
    pub(super) fn texts(self, contents: &Contents) -> io::Result<[(Vec<u8>, &[u8]); 3]> {
        let Contents { kallsyms, printk, cmdlines, .. } = contents;
        Ok([
            (self.len32(kallsyms.len())?.to_vec(), kallsyms),
            (self.len32(printk.len())?.to_vec(), printk),
            (self.u64(cmdlines.len() as u64).to_vec(), cmdlines),
        ])
    }

    /// An option with its number and size.
    pub(super) fn option(self, id: u16, data: &[u8], out: &mut Vec<u8>) -> io::Result<()> {
        out.extend(self.u16(id));
        out.extend(self.len32(data.len())?);
        out.extend(data);
        Ok(())
    }
}
