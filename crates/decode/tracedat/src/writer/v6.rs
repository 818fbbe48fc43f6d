//! Version 6: options have the instances; the tables of CPUs precede all pages.

use super::{Contents, Entry, Output, invalid};
use crate::options::id;
use std::io::{self, Seek, Write};

/// Positions of the tables with the positions of pages.
#[derive(Debug)]
pub(super) struct Tables {
    /// Offset in the file of each buffer's first pair of numbers.
    starts: Vec<u64>,
}

impl Tables {
    pub(super) fn begin<W: Write + Seek>(
        out: &mut Output<W>,
        contents: &Contents,
    ) -> io::Result<Self> {
        let encoder = out.encoder;
        out.write(&encoder.header(&contents.header))?;
        out.write(&encoder.header_info(&contents.formats))?;
        out.write(&encoder.ftrace(&contents.formats)?)?;
        out.write(&encoder.events(&contents.formats)?)?;
        for (size, text) in encoder.texts(contents)? {
            out.write(&size)?;
            out.write(text)?;
        }
        out.write(&encoder.u32(contents.cpus))?;
        let places = Self::options(out, contents)?;
        // The top-level buffer's table comes first, even without pages.
        let mut starts = vec![0; contents.buffers.len()];
        let top = contents.buffers.iter().position(|buffer| buffer.name.is_empty());
        let start = Self::table(out, contents, top)?;
        set(&mut starts, top, start);
        for (index, place) in places {
            let tag = out.position()?;
            let start = Self::table(out, contents, Some(index))?;
            set(&mut starts, Some(index), start);
            out.patch_u64(place, tag)?;
        }
        Ok(Self { starts })
    }

    /// Writes the options; returns for each instance the position for its table's offset.
    fn options<W: Write + Seek>(
        out: &mut Output<W>,
        contents: &Contents,
    ) -> io::Result<Vec<(usize, u64)>> {
        let mut list = b"options  \0".to_vec();
        for (id, data) in &contents.options {
            out.encoder.option(*id, data, &mut list)?;
        }
        let start = out.position()?;
        let mut places = Vec::new();
        let named = contents.buffers.iter().enumerate().filter(|(_, spec)| !spec.name.is_empty());
        for (index, spec) in named {
            let data = [&[0; 8], spec.name.as_bytes(), &[0]].concat();
            let place = start.saturating_add(list.len() as u64).saturating_add(OPTION_HEADER);
            places.push((index, place));
            out.encoder.option(id::BUFFER, &data, &mut list)?;
        }
        list.extend(out.encoder.u16(id::DONE));
        out.write(&list)?;
        Ok(places)
    }

    /// Writes an empty table; returns the position of its numbers.
    fn table<W: Write + Seek>(
        out: &mut Output<W>,
        contents: &Contents,
        buffer: Option<usize>,
    ) -> io::Result<u64> {
        out.write(b"flyrecord\0")?;
        let start = out.position()?;
        let bytes = u64::from(contents.cpus).saturating_mul(PER_CPU);
        io::copy(&mut io::Read::take(io::repeat(0), bytes), &mut out.out)?;
        if contents.options.iter().any(|(id, _)| *id == id::TRACECLOCK) {
            let spec = buffer.and_then(|index| contents.buffers.get(index));
            let clock = format!("[{}]", spec.map_or("local", |spec| spec.clock.as_str()));
            let len = out.encoder.u64(clock.len() as u64);
            out.write(&len)?;
            out.write(clock.as_bytes())?;
        }
        Ok(start)
    }

    /// Writes the position of a CPU's pages to its buffer's table.
    pub(super) fn fill<W: Write + Seek>(
        &self,
        out: &mut Output<W>,
        buffer: usize,
        entry: Entry,
    ) -> io::Result<()> {
        let start = self.starts.get(buffer).ok_or_else(|| invalid("no such buffer"))?;
        let at = start.saturating_add(u64::from(entry.cpu).saturating_mul(PER_CPU));
        out.patch_u64(at, entry.offset)?;
        out.patch_u64(at.saturating_add(8), entry.len)
    }
}

/// Bytes before an option's data: number and size.
const OPTION_HEADER: u64 = 6;
/// Bytes per CPU in a table: offset and length.
const PER_CPU: u64 = 16;

fn set(starts: &mut [u64], index: Option<usize>, start: u64) {
    if let Some(place) = index.and_then(|index| starts.get_mut(index)) {
        *place = start;
    }
}
