//! Texts that decode pages: event formats, symbols, names, the clock. They are stored next to the pages, in a folder
//! that is a complete recording, so a killed recorder leaves a readable one.

use raw_bytes::{ByteOrder, LongSize};
use tracedat::{Compression, EventFormat, Formats, Header, Version};
use tracefs::{EventText, Texts};

/// The header of a trace.dat of this machine.
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

/// Converts the texts for a trace.dat.
pub(crate) fn formats(texts: Texts) -> Formats {
    let format = |EventText { system, text }| EventFormat { system: system.into(), text };
    Formats {
        header_page: texts.header_page,
        header_event: texts.header_event,
        ftrace: texts.ftrace,
        events: texts.events.into_iter().map(format).collect(),
    }
}

/// The file name of a CPU's pages in the folder.
pub(crate) fn pages(cpu: u32) -> String {
    format!("cpu{cpu}")
}

/// The file name of a CPU's segment: readers parse the number after `cpu`, and read a CPU's files in the order of their
/// names.
pub(crate) fn segment_file(cpu: u32, number: u64) -> String {
    format!("cpu{cpu}.{number:010}")
}
