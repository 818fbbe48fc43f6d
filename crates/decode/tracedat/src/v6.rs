//! Version 6: consecutive parts; options and the tables of CPUs come last.

use crate::buffers::{Buffer, FileFacts, TEXT_PAGE};
use crate::metadata::{Metadata, selected};
use crate::options::{OptionReader, RawOption, id};
use crate::section::{Framing, Section};
use crate::{Compression, Damage, TraceDat, TraceDatError};
use raw_bytes::{ByteOrder, Cursor, Damages, slice};

/// The text after the header.
const FIRST: &[u8] = b"header_page\0";

/// Reads the data after the header into `out`. A damaged part ends reading, because the position of
/// the next part is unknown.
pub(crate) fn read<'a>(
    file: &'a [u8],
    mut cursor: Cursor<'a>,
    out: &mut TraceDat,
    damages: &mut Damages,
) -> Result<(), TraceDatError> {
    if !cursor.rest().starts_with(FIRST) {
        let offset = cursor.offset();
        if FIRST.starts_with(cursor.rest()) {
            cursor.take(FIRST.len() as u64).map_err(TraceDatError::short("header"))?;
        }
        return Err(TraceDatError::Missing { offset, expected: "header_page" });
    }
    let read = parts(file, &mut cursor, out, damages);
    damages.keep(read);
    Ok(())
}

fn parts<'a>(
    file: &'a [u8],
    cursor: &mut Cursor<'a>,
    out: &mut TraceDat,
    damages: &mut Damages,
) -> Result<(), Damage> {
    let order = out.header.order;
    out.formats.read_header(cursor)?;
    out.formats.read_ftrace(cursor)?;
    out.formats.read_events(cursor)?;
    out.kallsyms = Some(text(cursor, order, Framing::Size4)?);
    out.printk = Some(text(cursor, order, Framing::Size4)?);
    out.cmdlines = Some(text(cursor, order, Framing::Size8)?);
    let cpus = cursor.u32().map_err(|cut| Damage::short("number of CPUs", cut))?;
    let mut what = tag(cursor)?;
    if what.starts_with(b"options") {
        let mut reader = OptionReader::new(file, order, &Compression::None);
        let read = reader.list(cursor);
        out.options = reader.options;
        out.metadata = Metadata::read(&out.options, order, damages);
        read?;
        what = tag(cursor)?;
    }
    let header = out.header.clone();
    let tables = Tables {
        facts: FileFacts::new(file, &header),
        cpus: out.metadata.cpu_count.unwrap_or(cpus),
        clock_follows: out.options.iter().any(|option| option.id == id::TRACECLOCK),
    };
    let top = tables.buffer(String::new(), what, cursor, damages);
    out.buffers.extend(damages.keep(top));
    tables.instances(out, damages);
    Ok(())
}

/// The position of a text that is preceded by its size.
fn text(cursor: &mut Cursor<'_>, order: ByteOrder, framing: Framing) -> Result<Section, Damage> {
    let short = |cut| Damage::short("text", cut);
    let offset = cursor.offset();
    let len = match framing {
        Framing::Size8 => cursor.u64().map_err(short)?,
        _ => cursor.u32().map_err(short)?.into(),
    };
    cursor.take(len).map_err(short)?;
    Ok(Section { offset, declared: None, compression: Compression::None, framing, order })
}

/// The ten bytes that identify the next part: "options  ", "flyrecord" or "latency  ", with a NUL.
fn tag<'a>(cursor: &mut Cursor<'a>) -> Result<&'a [u8], Damage> {
    cursor.take(10).map_err(|cut| Damage::short("tag", cut))
}

/// Maximum length of a clock line; real ones have under a hundred bytes.
const MAX_CLOCK: u64 = 256;

/// Reads the tables with the positions of pages: one per buffer.
struct Tables<'a> {
    facts: FileFacts<'a>,
    cpus: u32,
    /// In a file with a TRACECLOCK option, the selected clock follows each table.
    clock_follows: bool,
}

impl Tables<'_> {
    fn buffer(
        &self,
        name: String,
        what: &[u8],
        cursor: &mut Cursor<'_>,
        damages: &mut Damages,
    ) -> Result<Buffer, Damage> {
        let at = cursor.offset();
        if what.starts_with(b"flyrecord") {
            let mut buffer = Buffer::parse_v6(name, self.cpus, cursor, &self.facts, damages);
            buffer.clock = self.clock(cursor);
            return Ok(buffer);
        }
        if !what.starts_with(b"latency") {
            let at = at.saturating_sub(10);
            return Err(Damage::new(at, "neither \"flyrecord\" nor \"latency\""));
        }
        let page_size = self.facts.page_size;
        let len = cursor.rest().len() as u64;
        let latency = Some(self.facts.range(at, len, false, TEXT_PAGE));
        Ok(Buffer { name, clock: None, page_size, cpus: Vec::new(), latency })
    }

    fn clock(&self, cursor: &mut Cursor<'_>) -> Option<String> {
        let len = cursor.u64().ok().filter(|&len| self.clock_follows && len <= MAX_CLOCK)?;
        selected(&slice::text(cursor.take(len).ok()?)).map(str::to_owned)
    }

    /// Reads instances, whose BUFFER options have only an offset and a name.
    fn instances(&self, out: &mut TraceDat, damages: &mut Damages) {
        // Options of a hostile file could all point to the same long table.
        let mut room = self.facts.file.len() / BYTES_PER_CPU;
        for option in out.options.iter().filter(|option| option.id == id::BUFFER) {
            let read = self.instance(option, damages);
            let Some(buffer) = damages.keep(read).flatten() else { continue };
            match room.checked_sub(buffer.cpus.len()) {
                Some(less) => room = less,
                None => {
                    return damages.note(option.offset, "several instances share one CPU table");
                }
            }
            out.buffers.push(buffer);
        }
    }

    fn instance(
        &self,
        option: &RawOption,
        damages: &mut Damages,
    ) -> Result<Option<Buffer>, Damage> {
        let short = |cut| Damage::short("BUFFER option", cut);
        let FileFacts { file, order, .. } = self.facts;
        let mut data = option.cursor(order);
        let offset = data.u64().map_err(short)?;
        let name = slice::text(data.c_str().map_err(short)?);
        if name.is_empty() {
            return Ok(None); // The top buffer, which was read where it must be.
        }
        let mut cursor = Cursor::new(slice::from(file, offset), order, offset);
        let what = tag(&mut cursor)?;
        self.buffer(name, what, &mut cursor, damages).map(Some)
    }
}

/// Bytes per CPU in a table: offset and length.
const BYTES_PER_CPU: usize = 16;
