//! Version 6 of the container: one part after the other.

use anyhow::{Result, ensure};
use tracedat::id;

use super::container::{Bytes, Container, Placed, place};

/// All that goes before the pages, and where they go.
pub(super) fn head(container: &Container, layout: &[(u32, u64)]) -> Result<(Vec<u8>, Vec<Placed>)> {
    // CPUs have no numbers in this version: their place in the table is their number.
    let numbered = layout.iter().zip(0..).all(|(&(cpu, _), place)| cpu == place);
    ensure!(numbered, "version 6 needs every CPU from 0 on");
    let start = container
        .start("6")
        .raw(&container.header_info)
        .raw(&container.ftrace)
        .raw(&container.events)
        .raw(&container.kallsyms)
        .raw(&container.printk)
        .raw(&container.cmdlines)
        .u32(layout.len() as u32)
        .raw(b"options  \0");
    let options = container
        .options
        .iter()
        .try_fold(start, |bytes, option| anyhow::Ok(bytes.u16(option.id).sized4(&option.data)?))?;
    let bytes = options.u16(id::DONE).raw(b"flyrecord\0");
    let table = 16 * layout.len() as u64;
    let clock = container.clock.as_bytes();
    let pages = bytes.len() + table + 8 + clock.len() as u64;
    let placed = place(pages, container.page_size, layout);
    let bytes = placed.iter().fold(bytes, |bytes: Bytes, cpu| bytes.u64(cpu.offset).u64(cpu.size));
    // The option tells readers that the clock's name follows the table.
    let has_clock = container.options.iter().any(|option| option.id == id::TRACECLOCK);
    let bytes = if has_clock { bytes.sized8(clock) } else { bytes };
    Ok((bytes.done(), placed))
}
