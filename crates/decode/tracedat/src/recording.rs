//! A parsed file.

use crate::Damage;
use crate::buffers::Buffer;
use crate::formats::Formats;
use crate::header::Header;
use crate::metadata::Metadata;
use crate::options::RawOption;
use crate::section::Section;
use raw_bytes::Abi;

/// A recording: the content of a trace.dat except the pages and the large texts, for which it has
/// the positions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceDat {
    /// The fixed part at the start.
    pub header: Header,
    /// Texts that describe pages and events.
    pub formats: Formats,
    /// `/proc/kallsyms`.
    pub kallsyms: Option<Section>,
    /// `printk_formats`.
    pub printk: Option<Section>,
    /// `saved_cmdlines`: see [`Cmdlines`](crate::Cmdlines).
    pub cmdlines: Option<Section>,
    /// The kernel's BTF.
    pub btf: Option<Section>,
    /// `/proc/modules`.
    pub modules: Option<Section>,
    /// All options in file order, including unknown ones.
    pub options: Vec<RawOption>,
    /// The meaning of the options.
    pub metadata: Metadata,
    /// The top-level buffer, if it exists, then instances.
    pub buffers: Vec<Buffer>,
    /// Missing or damaged data; empty for an intact file.
    pub damage: Vec<Damage>,
}

impl TraceDat {
    /// Byte order and `long` of the recorded kernel; if its page header does not have it, `long` is
    /// that of the recording program.
    #[must_use]
    pub fn abi(&self) -> Abi {
        let long = self.formats.kernel_long().unwrap_or(self.header.user_long);
        Abi { order: self.header.order, long }
    }

    /// Name of the top-level buffer's clock: the selected clock in TRACECLOCK, otherwise the
    /// buffer's own.
    #[must_use]
    pub fn clock(&self) -> Option<&str> {
        let top = self.buffers.iter().find(|buffer| buffer.name.is_empty());
        self.metadata.selected_clock().or_else(|| top?.clock.as_deref())
    }
}
