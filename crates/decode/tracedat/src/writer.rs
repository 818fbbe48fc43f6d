//! Writes files of both versions: first the metadata, then pages as they arrive.

mod encode;
mod pages;
mod v6;
mod v7;

use crate::Compression;
use crate::formats::Formats;
use crate::header::{Header, Version};
use crate::options::id;
pub(crate) use encode::Encoder;
use std::collections::HashSet;
use std::io::{self, Seek, SeekFrom, Write};

/// The content of a file without the pages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contents {
    /// The fixed part. Version 6 has no compression.
    pub header: Header,
    /// Texts that describe pages and events.
    pub formats: Formats,
    /// `/proc/kallsyms`.
    pub kallsyms: Vec<u8>,
    /// `printk_formats`.
    pub printk: Vec<u8>,
    /// `saved_cmdlines`.
    pub cmdlines: Vec<u8>,
    /// Options by number and data, in this order, except those that the writer creates: BUFFER and
    /// the positions of sections. [`option`] encodes options with numbers.
    ///
    /// [`option`]: crate::option
    pub options: Vec<(u16, Vec<u8>)>,
    /// CPUs of the recorded machine: the length of every buffer's table in version 6.
    pub cpus: u32,
    /// The buffers in the order of their pages; the top-level buffer has the empty name.
    pub buffers: Vec<BufferSpec>,
}

/// A buffer to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BufferSpec {
    /// Name of the instance; empty for the top-level buffer.
    pub name: String,
    /// Name of its trace clock, such as `local`.
    pub clock: String,
    /// Size of its pages in bytes, a power of two. In version 6 the header's size applies to all
    /// buffers.
    pub page_size: u32,
}

/// Position of a CPU's pages in the file.
#[derive(Clone, Copy, Debug)]
struct Entry {
    cpu: u32,
    offset: u64,
    len: u64,
}

/// Writes a file.
///
/// Pages are copied in pieces of ten, so memory does not grow with the recording. If a writer is
/// dropped before [`finish`](Self::finish), the file has no index of its pages.
#[derive(Debug)]
pub struct TraceDatWriter<W> {
    out: Output<W>,
    header: Header,
    cpus: u32,
    buffers: Vec<BufferSpec>,
    /// Index of the buffer whose pages are being written.
    current: usize,
    /// CPUs of that buffer whose pages have been written.
    done: HashSet<u32>,
    state: State,
}

/// Data for the end of the file.
#[derive(Debug)]
enum State {
    V6(v6::Tables),
    V7(v7::Sections),
}

impl<W: Write + Seek> TraceDatWriter<W> {
    /// Writes everything before the pages. `out` must be empty and at its start.
    ///
    /// # Errors
    /// If `out` cannot be written, or if the version cannot store `contents`: texts too long for
    /// their size fields, a page size that is not a power of two, unknown compression.
    pub fn new(out: W, contents: &Contents) -> io::Result<Self> {
        check(contents)?;
        let mut out = Output { out, encoder: Encoder::new(contents.header.order) };
        let state = match contents.header.version {
            Version::V6 => State::V6(v6::Tables::begin(&mut out, contents)?),
            Version::V7 => State::V7(v7::Sections::begin(&mut out, contents)?),
        };
        let (header, buffers) = (contents.header.clone(), contents.buffers.clone());
        let (cpus, done) = (contents.cpus, HashSet::new());
        Ok(Self { out, header, cpus, buffers, current: 0, done, state })
    }

    /// Writes all `pages` of a CPU of the buffer with this name.
    ///
    /// Buffers come in the order of [`Contents::buffers`], their CPUs in any order, each once.
    /// Returns the bytes read from `pages`.
    ///
    /// # Errors
    /// If reading or writing fails, for a buffer out of order, for a CPU that already has pages or
    /// exceeds [`Contents::cpus`], or for an incomplete page.
    pub fn write_cpu(&mut self, buffer: &str, cpu: u32, pages: impl io::Read) -> io::Result<u64> {
        let ahead = self.buffers.get(self.current..).unwrap_or_default();
        let steps = ahead.iter().position(|spec| spec.name == buffer);
        let steps = steps
            .ok_or_else(|| invalid(format!("there is no buffer \"{buffer}\" left to write")))?;
        if cpu >= self.cpus {
            return Err(invalid(format!("CPU {cpu} of {}", self.cpus)));
        }
        if steps > 0 {
            self.current = self.current.saturating_add(steps);
            self.done.clear();
        }
        if !self.done.insert(cpu) {
            return Err(invalid(format!("CPU {cpu} of \"{buffer}\" again")));
        }
        match &mut self.state {
            State::V6(tables) => {
                let page_size = self.header.page_size;
                let (entry, read) = pages::stored(&mut self.out, cpu, page_size, pages)?;
                tables.fill(&mut self.out, self.current, entry)?;
                Ok(read)
            }
            State::V7(sections) => {
                sections.open(&mut self.out, &self.buffers, self.current)?;
                let spec = self.buffers.get(self.current);
                let page_size = spec.map_or(self.header.page_size, |spec| spec.page_size);
                let how = &self.header.compression;
                let (entry, read) = pages::copy(&mut self.out, cpu, page_size, how, pages)?;
                sections.add(entry);
                Ok(read)
            }
        }
    }

    /// Adds an option that is only known at the end, such as loss counts.
    ///
    /// # Errors
    /// In version 6, in which options precede the pages.
    pub fn add_option(&mut self, id: u16, data: Vec<u8>) -> io::Result<()> {
        match &mut self.state {
            State::V6(_) => Err(invalid("in version 6 all options come before the pages")),
            State::V7(sections) => {
                sections.late_options.push((id, data));
                Ok(())
            }
        }
    }

    /// Writes the index of the pages, which completes the file.
    ///
    /// # Errors
    /// If writing fails.
    pub fn finish(mut self) -> io::Result<W> {
        if let State::V7(sections) = &mut self.state {
            sections.finish(&mut self.out, &self.buffers)?;
        }
        self.out.out.flush()?;
        Ok(self.out.out)
    }
}

fn invalid(what: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, what.into())
}

fn check(contents: &Contents) -> io::Result<()> {
    let sizes = contents.buffers.iter().map(|buffer| buffer.page_size);
    for size in sizes.chain([contents.header.page_size]) {
        if !size.is_power_of_two() {
            return Err(invalid(format!("a page of {size} bytes")));
        }
    }
    let cpus = Encoder::new(contents.header.order).u32(contents.cpus);
    // Readers of version 6 use this option as the length of the tables, if it exists.
    let count = contents.options.iter().rfind(|(id, _)| *id == id::CPUCOUNT);
    if count.is_some_and(|(_, data)| *data != cpus) && contents.header.version == Version::V6 {
        return Err(invalid(format!("a CPUCOUNT option that is not {}", contents.cpus)));
    }
    match (contents.header.version, &contents.header.compression) {
        (_, Compression::Other(name)) => {
            Err(invalid(format!("compression {name} is not supported")))
        }
        (Version::V6, how) if *how != Compression::None => {
            Err(invalid("version 6 has no compression"))
        }
        _ => Ok(()),
    }
}

/// The file and its number format.
#[derive(Debug)]
struct Output<W> {
    out: W,
    encoder: Encoder,
}

impl<W: Write + Seek> Output<W> {
    fn position(&mut self) -> io::Result<u64> {
        self.out.stream_position()
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.out.write_all(bytes)
    }

    /// Overwrites the bytes at `at`, and returns to the end.
    fn patch(&mut self, at: u64, bytes: &[u8]) -> io::Result<()> {
        let end = self.position()?;
        self.out.seek(SeekFrom::Start(at))?;
        self.out.write_all(bytes)?;
        self.out.seek(SeekFrom::Start(end))?;
        Ok(())
    }

    fn patch_u64(&mut self, at: u64, value: u64) -> io::Result<()> {
        let bytes = self.encoder.u64(value);
        self.patch(at, &bytes)
    }

    /// Writes zeros up to the next multiple of `page_size`; returns the position.
    fn align(&mut self, page_size: u32) -> io::Result<u64> {
        let position = self.position()?;
        let aligned = position.next_multiple_of(page_size.max(1).into());
        io::copy(
            &mut io::Read::take(io::repeat(0), aligned.saturating_sub(position)),
            &mut self.out,
        )?;
        Ok(aligned)
    }
}
