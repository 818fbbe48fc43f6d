//! Version 7: sections that options refer to.

use crate::buffers::{Buffer, FileFacts};
use crate::formats::Formats;
use crate::header::Header;
use crate::metadata::Metadata;
use crate::options::{OptionReader, RawOption, SectionHeader, id};
use crate::section::{Framing, Section};
use crate::{Damage, TraceDat, TraceDatError};
use raw_bytes::{Cursor, Damages};

/// Reads the data after the header into `out`.
pub(crate) fn read(
    file: &[u8],
    mut cursor: Cursor<'_>,
    out: &mut TraceDat,
    damages: &mut Damages,
) -> Result<(), TraceDatError> {
    let first = cursor.u64().map_err(TraceDatError::short("header"))?;
    let header = out.header.clone();
    let mut reader = OptionReader::new(file, header.order, &header.compression);
    reader.chain(first, damages);
    out.options = reader.options;
    out.metadata = Metadata::read(&out.options, header.order, damages);
    for kind in [id::HEADER_INFO, id::FTRACE_EVENTS, id::EVENT_FORMATS] {
        let section = Finder { file, header: &header, options: &out.options }.section(
            kind,
            Framing::Whole,
            damages,
        );
        let read =
            section.map_or(Ok(()), |section| formats(file, &section, kind, &mut out.formats));
        damages.keep(read);
    }
    let find = Finder { file, header: &header, options: &out.options };
    out.kallsyms = find.section(id::KALLSYMS, Framing::Size4, damages);
    out.printk = find.section(id::PRINTK, Framing::Size4, damages);
    out.cmdlines = find.section(id::CMDLINES, Framing::Size8, damages);
    out.btf = find.section(id::BTF_FILE, Framing::Whole, damages);
    out.modules = find.section(id::MODULES_FILE, Framing::Whole, damages);
    let facts = FileFacts::new(file, &header);
    let buffers = out.options.iter().filter(|o| matches!(o.id, id::BUFFER | id::BUFFER_TEXT));
    out.buffers = buffers.filter_map(|o| Buffer::parse_v7(o, &facts, damages)).collect();
    Ok(())
}

/// Finds sections through their options.
struct Finder<'a> {
    file: &'a [u8],
    header: &'a Header,
    options: &'a [RawOption],
}

impl Finder<'_> {
    /// The section in the last option with a number.
    fn section(&self, kind: u16, framing: Framing, damages: &mut Damages) -> Option<Section> {
        let Header { order, ref compression, .. } = *self.header;
        let option = self.options.iter().rfind(|option| option.id == kind)?;
        let at = option.cursor(order).u64().map_err(|cut| Damage::short("section option", cut));
        let at = damages.keep(at)?;
        let header = damages.keep(SectionHeader::read(self.file, order, at))?;
        if header.id == kind {
            return Some(header.section(order, compression, framing));
        }
        damages.note(at, format!("section {} where section {kind} should be", header.id));
        None
    }
}

fn formats(file: &[u8], section: &Section, kind: u16, out: &mut Formats) -> Result<(), Damage> {
    // The texts have their own sizes; trace-cmd also ignores the size in the section header.
    let bytes = Section { declared: None, ..section.clone() };
    let bytes = bytes.bytes(file)?;
    let mut cursor = Cursor::new(&bytes, section.order, section.offset);
    match kind {
        id::HEADER_INFO => out.read_header(&mut cursor),
        id::FTRACE_EVENTS => out.read_ftrace(&mut cursor),
        _ => out.read_events(&mut cursor),
    }
}
