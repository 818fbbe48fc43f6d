//! Version 7: sections, two lists of options with their positions, and finally the names of
//! sections.

use super::pages::write_block;
use super::{BufferSpec, Contents, Entry, Output};
use crate::Compression;
use crate::options::id;
use std::io::{self, Seek, Write};

/// For sections without a second piece.
const NONE: &[u8] = &[];

/// Positions of the sections written so far.
#[derive(Debug)]
pub(super) struct Sections {
    compression: Compression,
    /// Position for the offset of the next list of options.
    next_options: u64,
    /// Options for the last list.
    pub(super) late_options: Vec<(u16, Vec<u8>)>,
    /// The buffer whose section is being written.
    open: Option<OpenBuffer>,
    /// Number of buffers whose section has been started or completed.
    begun_buffers: usize,
    /// Names of sections, each with its NUL.
    strings: Vec<u8>,
}

#[derive(Debug)]
struct OpenBuffer {
    index: usize,
    section: OpenSection,
    entries: Vec<Entry>,
}

/// A section whose size is still unknown.
#[derive(Clone, Copy, Debug)]
struct OpenSection {
    offset: u64,
    data: u64,
}

impl Sections {
    pub(super) fn begin<W: Write + Seek>(
        out: &mut Output<W>,
        contents: &Contents,
    ) -> io::Result<Self> {
        let encoder = out.encoder;
        out.write(&encoder.header(&contents.header))?;
        let next_options = out.position()?;
        out.write(&[0; 8])?;
        let compression = contents.header.compression.clone();
        let (late_options, strings) = (Vec::new(), Vec::new());
        let mut sections =
            Self { compression, next_options, late_options, open: None, begun_buffers: 0, strings };
        let formats = &contents.formats;
        let [kallsyms, printk, cmdlines] = encoder.texts(contents)?;
        let parts = [
            (id::HEADER_INFO, "headers", (encoder.header_info(formats), NONE)),
            (id::FTRACE_EVENTS, "ftrace events", (encoder.ftrace(formats)?, NONE)),
            (id::EVENT_FORMATS, "events format", (encoder.events(formats)?, NONE)),
            (id::KALLSYMS, "kallsyms", kallsyms),
            (id::PRINTK, "printk", printk),
            (id::CMDLINES, "command lines", cmdlines),
        ];
        let mut options = Vec::new();
        for (id, name, (data, text)) in parts {
            let offset = sections.write(out, id, name, [&data, text])?;
            options.push((id, encoder.u64(offset).to_vec()));
        }
        options.extend(contents.options.iter().cloned());
        sections.options(out, &options)?;
        Ok(sections)
    }

    /// Writes a section header without a size.
    fn header<W: Write + Seek>(
        &mut self,
        out: &mut Output<W>,
        id: u16,
        name: &str,
        compressed: bool,
    ) -> io::Result<OpenSection> {
        let encoder = out.encoder;
        let offset = out.position()?;
        out.write(&encoder.u16(id))?;
        out.write(&encoder.u16(compressed.into()))?;
        out.write(&encoder.len32(self.strings.len())?)?;
        self.strings.extend(name.as_bytes());
        self.strings.push(0);
        out.write(&[0; 8])?;
        Ok(OpenSection { offset, data: offset.saturating_add(SECTION_HEADER) })
    }

    fn close<W: Write + Seek>(out: &mut Output<W>, section: OpenSection) -> io::Result<()> {
        let size = out.position()?.saturating_sub(section.data);
        out.patch_u64(section.data.saturating_sub(8), size)
    }

    /// Writes a section from two complete pieces; returns its position.
    fn write<W: Write + Seek>(
        &mut self,
        out: &mut Output<W>,
        id: u16,
        name: &str,
        data: [&[u8]; 2],
    ) -> io::Result<u64> {
        let compressed = self.compression != Compression::None;
        let section = self.header(out, id, name, compressed)?;
        if compressed {
            write_block(out, &self.compression, &data.concat())?;
        } else {
            data.iter().try_for_each(|piece| out.write(piece))?;
        }
        Self::close(out, section)?;
        Ok(section.offset)
    }

    /// Writes a list of options, and its position to the previous list.
    fn options<W: Write + Seek>(
        &mut self,
        out: &mut Output<W>,
        options: &[(u16, Vec<u8>)],
    ) -> io::Result<()> {
        let section = self.header(out, id::DONE, "options", false)?;
        let mut list = Vec::new();
        for (id, data) in options {
            out.encoder.option(*id, data, &mut list)?;
        }
        out.encoder.option(id::DONE, &[0; 8], &mut list)?;
        out.write(&list)?;
        Self::close(out, section)?;
        out.patch_u64(self.next_options, section.offset)?;
        self.next_options = out.position()?.saturating_sub(8);
        Ok(())
    }

    /// Starts the section of a buffer, and completes those before it.
    pub(super) fn open<W: Write + Seek>(
        &mut self,
        out: &mut Output<W>,
        buffers: &[BufferSpec],
        index: usize,
    ) -> io::Result<()> {
        let last = index.saturating_add(1);
        while let Some(spec) = buffers.get(self.begun_buffers).filter(|_| self.begun_buffers < last)
        {
            self.close_buffer(out, buffers)?;
            let compressed = self.compression != Compression::None;
            let name = format!("buffer flyrecord {}", spec.name);
            let section = self.header(out, id::BUFFER, &name, compressed)?;
            self.open =
                Some(OpenBuffer { index: self.begun_buffers, section, entries: Vec::new() });
            self.begun_buffers = self.begun_buffers.saturating_add(1);
        }
        Ok(())
    }

    /// Adds a CPU's pages; a CPU without pages has no entry, as in trace-cmd.
    pub(super) fn add(&mut self, entry: Entry) {
        if let Some(open) = self.open.as_mut().filter(|_| entry.len > 0) {
            open.entries.push(entry);
        }
    }

    fn close_buffer<W: Write + Seek>(
        &mut self,
        out: &mut Output<W>,
        buffers: &[BufferSpec],
    ) -> io::Result<()> {
        let Some(OpenBuffer { index, section, entries }) = self.open.take() else { return Ok(()) };
        Self::close(out, section)?;
        let Some(spec) = buffers.get(index) else { return Ok(()) };
        let encoder = out.encoder;
        let mut data = encoder.u64(section.offset).to_vec();
        for text in [&spec.name, &spec.clock] {
            data.extend(text.as_bytes());
            data.push(0);
        }
        data.extend(encoder.u32(spec.page_size));
        data.extend(encoder.len32(entries.len())?);
        for Entry { cpu, offset, len } in entries {
            data.extend(encoder.u32(cpu));
            data.extend(encoder.u64(offset));
            data.extend(encoder.u64(len));
        }
        self.late_options.push((id::BUFFER, data));
        Ok(())
    }

    pub(super) fn finish<W: Write + Seek>(
        &mut self,
        out: &mut Output<W>,
        buffers: &[BufferSpec],
    ) -> io::Result<()> {
        self.open(out, buffers, buffers.len())?;
        self.close_buffer(out, buffers)?;
        let late = std::mem::take(&mut self.late_options);
        self.options(out, &late)?;
        let section = self.header(out, id::STRINGS, "strings", false)?;
        out.write(&self.strings)?;
        Self::close(out, section)
    }
}

/// Bytes of a section header: number, flags, name and size.
const SECTION_HEADER: u64 = 16;
