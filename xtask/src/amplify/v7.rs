//! Version 7 of the container: sections, and options that point to them.

use anyhow::Result;
use tracedat::id;

use super::container::{Bytes, Container, Placed, place};

/// Number of an OPTIONS section.
const OPTIONS: u16 = id::DONE;
/// Bytes of a section's header.
const SECTION_HEAD: u64 = 16;
/// Bytes of an option's number and size.
const OPTION_HEAD: u64 = 6;

/// All that goes before the pages, and where they go.
///
/// The options are written last but one, before the section with the pages: their size does not
/// depend on what they say, so the place of the pages is known before they are written.
pub(super) fn head(container: &Container, layout: &[(u32, u64)]) -> Result<(Vec<u8>, Vec<Placed>)> {
    let start = container.start("7").text("none").text("");
    let first = start.len() + 8;
    let mut sections = Bytes::new(container.order);
    let mut options = Bytes::new(container.order);
    for (id, data) in parts(container) {
        options = options.u16(id).u32(8).u64(first + sections.len());
        sections = section_head(sections, id, data.len() as u64).raw(data);
    }
    for option in &container.options {
        options = options.u16(option.id).sized4(&option.data)?;
    }
    let options_at = first + sections.len();
    let size = options.len() + OPTION_HEAD + buffer_size(container, layout) + OPTION_HEAD + 8;
    let buffer_at = options_at + SECTION_HEAD + size;
    let placed = place(buffer_at + SECTION_HEAD, container.page_size, layout);
    let end = placed.last().map_or(buffer_at + SECTION_HEAD, |cpu| cpu.offset + cpu.size);
    let options = options
        .u16(id::BUFFER)
        .sized4(&buffer(container, buffer_at, &placed))?
        .u16(id::DONE)
        .u32(8)
        .u64(0);
    let sections = section_head(sections, OPTIONS, size).raw(&options.done());
    let sections = section_head(sections, id::BUFFER, end - buffer_at - SECTION_HEAD);
    Ok((start.u64(options_at).raw(&sections.done()).done(), placed))
}

fn parts(container: &Container) -> [(u16, &[u8]); 6] {
    [
        (id::HEADER_INFO, &container.header_info),
        (id::FTRACE_EVENTS, &container.ftrace),
        (id::EVENT_FORMATS, &container.events),
        (id::KALLSYMS, &container.kallsyms),
        (id::PRINTK, &container.printk),
        (id::CMDLINES, &container.cmdlines),
    ]
}

/// Number, flags (not compressed), name (none), size.
fn section_head(bytes: Bytes, id: u16, size: u64) -> Bytes {
    bytes.u16(id).u16(0).u32(0).u64(size)
}

fn buffer(container: &Container, at: u64, placed: &[Placed]) -> Vec<u8> {
    let start = Bytes::new(container.order)
        .u64(at)
        .text("")
        .text(&container.clock)
        .u32(container.page_size)
        .u32(placed.len() as u32);
    let cpu = |bytes: Bytes, cpu: &Placed| bytes.u32(cpu.cpu).u64(cpu.offset).u64(cpu.size);
    placed.iter().fold(start, cpu).done()
}

fn buffer_size(container: &Container, layout: &[(u32, u64)]) -> u64 {
    8 + 1 + container.clock.len() as u64 + 1 + 4 + 4 + 20 * layout.len() as u64
}
