//! What makes pages readable: event formats, symbols, names, the clock; beside the pages, in a
//! folder that is a recording by itself. A recorder that is killed leaves that.

use std::fs;
use std::path::{Path, PathBuf};

use abi::{ByteOrder, LongSize};
use tracedat::{Compression, EventFormat, Formats, Header, Version};
use tracefs::{EventText, Texts};

use crate::error::{RecordError, Result};

/// The head of a trace.dat of this machine.
pub(crate) fn header(texts: &Texts) -> Header {
    Header {
        version: Version::V7,
        order: if cfg!(target_endian = "big") { ByteOrder::Big } else { ByteOrder::Little },
        user_long: if cfg!(target_pointer_width = "64") { LongSize::Eight } else { LongSize::Four },
        page_size: texts.page_size(),
        compression: Compression::None,
        compression_version: String::new(),
    }
}

/// The texts as a trace.dat holds them.
pub(crate) fn formats(texts: &Texts) -> Formats {
    let format = |event: &EventText| EventFormat {
        system: event.system.as_str().into(),
        text: event.text.clone(),
    };
    Formats {
        header_page: texts.header_page.clone(),
        header_event: texts.header_event.clone(),
        ftrace: texts.ftrace.clone(),
        events: texts.events.iter().map(format).collect(),
    }
}

/// Writes texts into a folder, laid out as in tracefs.
pub(crate) fn write_texts(texts: &Texts, to: &Path, clock: &str) -> Result<()> {
    write(&to.join("events/header_page"), texts.header_page.as_bytes())?;
    write(&to.join("events/header_event"), texts.header_event.as_bytes())?;
    for text in &texts.ftrace {
        let folder = to.join("events/ftrace").join(event_name(text));
        write(&folder.join("format"), text.as_bytes())?;
    }
    for event in &texts.events {
        let folder = to.join("events").join(&event.system).join(event_name(&event.text));
        write(&folder.join("format"), event.text.as_bytes())?;
    }
    write(&to.join("kallsyms"), &texts.kallsyms)?;
    write(&to.join("printk_formats"), &texts.printk)?;
    write(&to.join("trace_clock"), clock.as_bytes())
}

/// The name in a `format` text's first line. The text may be a guest's, and the name becomes that of
/// a folder.
fn event_name(format: &str) -> &str {
    let name = format.lines().next().and_then(|line| line.strip_prefix("name: ")).unwrap_or("");
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
    if !name.is_empty() && name.chars().all(is_plain) { name } else { "unknown" }
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
