//! Metadata of the original for the writer: everything but its pages.

use anyhow::{Context, Result};
use tracedat::{BufferSpec, Compression, Contents, Header, Section, TraceDat, Version, id};

/// Options to copy: those without file offsets or event counts.
const KEPT: &[u16] = &[
    id::DATE,
    id::TRACECLOCK,
    id::UNAME,
    id::HOOK,
    id::OFFSET,
    id::CPUCOUNT,
    id::VERSION,
    id::PROCMAPS,
    id::TRACEID,
    id::TIME_SHIFT,
    id::GUEST,
    id::TSC2NSEC,
];

/// The contents of the file to write.
pub(super) fn build(input: &[u8], recording: &TraceDat, version: Version) -> Result<Contents> {
    let header = Header {
        version,
        compression: Compression::None,
        compression_version: String::new(),
        ..recording.header.clone()
    };
    let options = recording.options.iter().filter(|option| KEPT.contains(&option.id));
    let numbers = recording.buffers.iter().flat_map(|buffer| &buffer.cpus).map(|cpu| cpu.cpu);
    let cpus = numbers.max().map_or(0, |last| last + 1);
    Ok(Contents {
        header,
        formats: recording.formats.clone(),
        kallsyms: text(input, recording.kallsyms.as_ref())?,
        printk: text(input, recording.printk.as_ref())?,
        cmdlines: text(input, recording.cmdlines.as_ref())?,
        options: options.map(|option| (option.id, option.data.clone())).collect(),
        cpus: recording.metadata.cpu_count.unwrap_or(0).max(cpus),
        buffers: buffers(recording),
    })
}

fn buffers(recording: &TraceDat) -> Vec<BufferSpec> {
    let clock = |buffer_clock: &Option<String>| {
        buffer_clock.as_deref().or_else(|| recording.clock()).unwrap_or("local").to_owned()
    };
    let spec = |buffer: &tracedat::Buffer| BufferSpec {
        name: buffer.name.clone(),
        clock: clock(&buffer.clock),
        page_size: buffer.page_size,
    };
    recording.buffers.iter().map(spec).collect()
}

fn text(input: &[u8], section: Option<&Section>) -> Result<Vec<u8>> {
    let read = section.map(|section| section.read(input)).transpose();
    Ok(read.context("a section is damaged")?.unwrap_or_default().into_owned())
}
