//! What makes pages readable: event formats, symbols, names, the clock; beside the pages, in a
//! folder that is a recording by itself. A recorder that is killed leaves that.

use std::fs;
use std::path::{Path, PathBuf};

use abi::{ByteOrder, LongSize};
use tracedat::{Compression, EventFormat, Formats, Header, Version};

use crate::error::{RecordError, Result};
use crate::instance::Instance;
use crate::tracefs;

/// Everything of a recording but its pages.
#[derive(Debug)]
pub(crate) struct Texts {
    pub(crate) formats: Formats,
    pub(crate) kallsyms: Vec<u8>,
    pub(crate) printk: Vec<u8>,
    pub(crate) page_size: u32,
}

impl Texts {
    /// Reads them from tracefs: the formats of these events and of ftrace's own.
    pub(crate) fn read(tracefs: &Path, instance: &Instance, events: &[String]) -> Result<Self> {
        let folder = instance.file("events");
        let mut formats = Formats {
            header_page: tracefs::read(&tracefs.join("events/header_page"))?,
            header_event: tracefs::read(&tracefs.join("events/header_event"))?,
            ..Formats::default()
        };
        let own = tracefs.join("events/ftrace");
        for event in tracefs::folders(&own)? {
            formats.ftrace.push(tracefs::read(&own.join(event).join("format"))?);
        }
        for event in events {
            let (system, name) = event.split_once(':').unwrap_or(("", event));
            let text = tracefs::read(&folder.join(system).join(name).join("format"))?;
            formats.events.push(EventFormat { system: system.into(), text });
        }
        let page_size = page_size(&formats.header_page);
        // Symbols help, but nothing depends on them.
        let optional = |path: PathBuf| fs::read(path).unwrap_or_default();
        Ok(Self {
            formats,
            kallsyms: optional("/proc/kallsyms".into()),
            printk: optional(tracefs.join("printk_formats")),
            page_size,
        })
    }

    /// The head of a trace.dat of this machine.
    pub(crate) fn header(&self) -> Header {
        Header {
            version: Version::V7,
            order: if cfg!(target_endian = "big") { ByteOrder::Big } else { ByteOrder::Little },
            user_long: if cfg!(target_pointer_width = "64") {
                LongSize::Eight
            } else {
                LongSize::Four
            },
            page_size: self.page_size,
            compression: Compression::None,
            compression_version: String::new(),
        }
    }

    /// Writes them into a folder, laid out as in tracefs.
    pub(crate) fn write(&self, to: &Path, clock: &str) -> Result<()> {
        write(&to.join("events/header_page"), self.formats.header_page.as_bytes())?;
        write(&to.join("events/header_event"), self.formats.header_event.as_bytes())?;
        for text in &self.formats.ftrace {
            write(
                &to.join("events/ftrace").join(event_name(text)).join("format"),
                text.as_bytes(),
            )?;
        }
        for event in &self.formats.events {
            let folder = to.join("events").join(&*event.system).join(event_name(&event.text));
            write(&folder.join("format"), event.text.as_bytes())?;
        }
        write(&to.join("kallsyms"), &self.kallsyms)?;
        write(&to.join("printk_formats"), &self.printk)?;
        write(&to.join("trace_clock"), clock.as_bytes())
    }
}

/// The name in a `format` text's first line.
fn event_name(format: &str) -> &str {
    format.lines().next().and_then(|line| line.strip_prefix("name: ")).unwrap_or("unknown")
}

/// The size of a page of the ring buffer: where its data begins, and how long that is.
pub(crate) fn page_size(header_page: &str) -> u32 {
    let line = header_page.lines().find(|line| line.contains(" data;")).unwrap_or("");
    let number = |key: &str| {
        let text = line.split(';').find_map(|part| part.trim().strip_prefix(key))?;
        text.parse::<u32>().ok()
    };
    let size = number("offset:").zip(number("size:")).and_then(|(at, size)| at.checked_add(size));
    size.filter(|size| size.is_power_of_two()).unwrap_or(4096)
}

fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(RecordError::io("make", folder))?;
    }
    fs::write(path, bytes).map_err(RecordError::io("write", path))
}

/// Where the pages of a CPU are in the folder.
pub(crate) fn pages(folder: &Path, cpu: u32) -> PathBuf {
    folder.join(format!("cpu{cpu}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_its_head_and_its_data() {
        let text = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
                    \tfield: char data;\toffset:16;\tsize:16368;\tsigned:1;\n";
        assert_eq!(page_size(text), 16384);
        assert_eq!(page_size("nothing"), 4096);
    }
}
