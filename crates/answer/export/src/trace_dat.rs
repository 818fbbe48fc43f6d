//! A recording, or a part of one, as a trace.dat of version 7 for trace-cmd and KernelShark.

use std::borrow::Cow;
use std::collections::HashSet;
use std::io::{self, Seek, Write};

use raw_bytes::ByteOrder;
use sources::{BufferInfo, Recording, Stream, Texts};
use timeline::event_filter::Filter;
use tracedat::{
    BufferSpec, Compression, Contents, Formats, Header, RawOption, TraceDatWriter, Version, id,
    option,
};

use crate::readable_format::readable;
use crate::repack::{PAGE_SIZE, Pages, Part};

/// An export of a recording.
#[derive(Clone, Copy, Debug)]
pub struct TraceDatExport<'a> {
    pub recording: &'a Recording,
    /// Selects events by name, CPU and time; conditions on fields are not applied.
    pub filter: &'a Filter,
    /// Write corrected times, on this clock of another machine, instead of recorded ones: the file has no place for the
    /// correction. `None`: recorded times, with the options that describe them.
    pub on_clock: Option<&'a str>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Written {
    pub events: u64,
    /// Pages, records and blocks that could not be read; records and blocks are marked as losses.
    pub damaged: u64,
    /// CPUs with losses after their last event: a page stores only losses before its events.
    pub losses_at_end: u64,
}

/// Options that also hold for a part: facts about the machine, and the kernel's losses.
const KEPT: [u16; 13] = [
    id::DATE,
    id::CPUSTAT,
    id::TRACECLOCK,
    id::UNAME,
    id::HOOK,
    id::OFFSET,
    id::CPUCOUNT,
    id::VERSION,
    id::PROCMAPS,
    id::TRACEID,
    id::GUEST,
    id::TSC2NSEC,
    id::LAST_BOOT_INFO,
];

/// Clocks of a kernel that count nanoseconds (`trace_clocks` of `kernel/trace/trace.c`).
const KERNELS_CLOCKS: [&str; 8] =
    ["local", "global", "uptime", "perf", "mono", "mono_raw", "boot", "tai"];

/// Options that convert recorded times.
const OF_TIMES: [u16; 4] = [id::DATE, id::OFFSET, id::TSC2NSEC, id::TRACECLOCK];

impl TraceDatExport<'_> {
    /// Writes the file to `out`, which is empty.
    ///
    /// # Errors
    /// When `out` can't be written, or texts of the recording are too long for the format.
    pub fn write<W: Write + Seek>(&self, out: W, progress: &dyn Fn(u64)) -> io::Result<Written> {
        let ids = self.ids();
        let contents = self.contents();
        let mut writer = TraceDatWriter::new(out, &contents)?;
        let mut written = Written::default();
        for (at, buffer) in contents.buffers.iter().enumerate() {
            let streams = self.recording.streams().iter().filter(|stream| stream.buffer() == at);
            for stream in streams.filter(|stream| self.filter.wants_cpu(stream.cpu())) {
                let (recording, filter) = (self.recording, self.filter);
                let corrected = self.on_clock.is_some();
                let part = Part { recording, stream, ids: ids.as_ref(), filter, corrected };
                let mut pages = Pages::new(part);
                writer.write_cpu(&buffer.name, stream.cpu(), &mut pages)?;
                written.events += pages.outcome.events;
                written.damaged += pages.outcome.damaged;
                written.losses_at_end += u64::from(pages.outcome.lost_at_end);
                progress(stream.stored_len());
            }
        }
        writer.finish()?;
        Ok(written)
    }

    fn ids(&self) -> Option<HashSet<u16>> {
        if self.filter.events.is_empty() {
            return None;
        }
        let formats = self.recording.formats().iter();
        let wanted = formats
            .filter(|(_, format)| self.filter.compile(format, self.recording.abi()).is_some());
        Some(wanted.map(|(id, _)| id).collect())
    }

    fn contents(&self) -> Contents {
        let recording = self.recording;
        let Texts { mut formats, kallsyms, printk, cmdlines } = recording.texts();
        self.leave_out(&mut formats);
        for event in &mut formats.events {
            if let Cow::Owned(text) = readable(&event.text) {
                event.text = text;
            }
        }
        let streams = recording.streams().iter();
        let cpus = streams.map(|stream| stream.cpu().saturating_add(1)).max().unwrap_or(0);
        let recorded = u32::try_from(recording.cpus()).unwrap_or(0);
        let cpus = cpus.max(if cpus > 0 { recorded.min(1 << 16) } else { 0 });
        let (header, options) = match recording.trace_dat_head() {
            Some((header, options)) => {
                (header_of(header), self.kept_of(header.order, options, cpus))
            }
            None => (self.own_header(), self.own_options(cpus)),
        };
        let buffers = self.buffers(header.page_size);
        Contents { header, formats, kallsyms, printk, cmdlines, options, cpus, buffers }
    }

    /// Leaves out the formats of unwanted events if a reader would take them for enabled events that never happened.
    fn leave_out(&self, formats: &mut Formats) {
        if self.filter.events.is_empty() || !self.recording.formats_say_what_was_on() {
            return;
        }
        let all = self.recording.formats().iter();
        let wanted =
            all.filter(|(_, format)| self.filter.compile(format, self.recording.abi()).is_some());
        let wanted: HashSet<(&str, &str)> =
            wanted.map(|(_, format)| (format.system(), format.name())).collect();
        formats.events.retain(|format| {
            let name = format.text.lines().next().and_then(|line| line.strip_prefix("name: "));
            name.is_none_or(|name| wanted.contains(&(&*format.system, name.trim())))
        });
    }

    /// Whether the selection includes all events.
    fn is_whole(&self) -> bool {
        let Filter { events, cpus, from_ns, to_ns, conditions } = self.filter;
        let has_all_times = from_ns.is_none() && to_ns.is_none();
        let has_all_events = events.is_empty() && conditions.is_empty() && cpus.is_none();
        has_all_times && has_all_events && self.recording.is_whole()
    }

    fn kept_of(&self, order: ByteOrder, options: &[RawOption], cpus: u32) -> Vec<(u16, Vec<u8>)> {
        let keeps = |option: &&RawOption| {
            let of_times = self.on_clock.is_some() && OF_TIMES.contains(&option.id);
            // Counts of all events that the kernel kept: a part would seem to lack events.
            let of_whole = option.id == id::CPUSTAT && !self.is_whole();
            KEPT.contains(&option.id) && !of_times && !of_whole
        };
        let kept_options = options.iter().filter(keeps);
        let mut options: Vec<_> =
            kept_options.map(|option| (option.id, option.data.clone())).collect();
        // Version 6 may omit the option: CPUs without events are in its table.
        if !options.iter().any(|(id, _)| *id == id::CPUCOUNT) {
            options.push((id::CPUCOUNT, option::cpu_count(order, cpus)));
        }
        match self.on_clock {
            Some(clock) => options.push((id::TRACECLOCK, clock_line(clock))),
            None => {
                let shifts = self.recording.info().time_shifts.iter();
                let shifts = shifts.map(|shift| option::time_shift(order, shift));
                options.extend(shifts.map(|data| (id::TIME_SHIFT, data)));
            }
        }
        options
    }

    fn buffers(&self, page_size: u32) -> Vec<BufferSpec> {
        let info = self.recording.info();
        let buffer = |buffer: &BufferInfo| BufferSpec {
            name: buffer.name.clone(),
            clock: self.on_clock.or(buffer.clock.as_deref()).unwrap_or(self.clock()).to_owned(),
            page_size: buffer.page_size.unwrap_or(page_size),
        };
        info.buffers.iter().map(buffer).collect()
    }

    fn clock(&self) -> &str {
        let own_clock = self.recording.info().clock.as_deref().filter(|clock| self.keeps(clock));
        self.on_clock.or(own_clock).unwrap_or("local")
    }

    /// Whether the file can keep the name of the clock. trace-cmd would not know that clocks of other tracers count
    /// nanoseconds.
    fn keeps(&self, clock: &str) -> bool {
        let recording = self.recording;
        let is_kernels = recording.trace_dat_head().is_some() || KERNELS_CLOCKS.contains(&clock);
        is_kernels || !recording.is_nanoseconds()
    }

    fn own_header(&self) -> Header {
        let abi = self.recording.abi();
        let first = self.recording.streams().first().and_then(Stream::page_layout);
        let page_size = first.map_or(PAGE_SIZE, |layout| layout.page_size);
        Header {
            version: Version::V7,
            order: abi.order,
            user_long: abi.long,
            page_size: u32::try_from(page_size).unwrap_or(u32::MAX),
            compression: Compression::None,
            compression_version: String::new(),
        }
    }

    fn own_options(&self, cpus: u32) -> Vec<(u16, Vec<u8>)> {
        let order = self.recording.abi().order;
        vec![
            (id::TRACECLOCK, clock_line(self.clock())),
            (id::VERSION, concat!("hyperscope ", env!("CARGO_PKG_VERSION"), "\0").into()),
            (id::CPUCOUNT, option::cpu_count(order, cpus)),
        ]
    }
}

fn header_of(header: &Header) -> Header {
    // A compression that can't be unpacked here can't be packed either.
    let compression = match &header.compression {
        Compression::Other(_) => Compression::None,
        known => known.clone(),
    };
    Header { version: Version::V7, compression, ..header.clone() }
}

/// The text of `trace_clock` with the clock selected.
fn clock_line(clock: &str) -> Vec<u8> {
    format!("[{clock}]\n\0").into_bytes()
}
