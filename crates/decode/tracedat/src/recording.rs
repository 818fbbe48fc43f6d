//! A whole file, read.

use crate::buffers::{Buffer, note_repetitions, part_overlaps};
use crate::formats::Formats;
use crate::header::{Header, Version};
use crate::metadata::Metadata;
use crate::options::RawOption;
use crate::section::Section;
use crate::{Damage, TraceDatError, v6, v7};
use raw_bytes::{Abi, Damages};

/// A recording: all of a trace.dat but the pages and the large texts, of which it knows the place.
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
    /// All options in the order of the file, also those not known here.
    pub options: Vec<RawOption>,
    /// What the options say.
    pub metadata: Metadata,
    /// The top buffer, where there is one, then instances.
    pub buffers: Vec<Buffer>,
    /// What was missing or wrong; empty for a sound file.
    pub damage: Vec<Damage>,
}

impl TraceDat {
    /// Reads the metadata of `file`, the whole content of a trace.dat.
    ///
    /// # Errors
    /// When the file is no trace.dat of version 6 or 7, or ends before any of it can be used.
    pub fn parse(file: &[u8]) -> Result<Self, TraceDatError> {
        let mut damages = Damages::default();
        let (header, cursor) = Header::parse(file, &mut damages)?;
        let read = match header.version {
            Version::V6 => v6::read,
            Version::V7 => v7::read,
        };
        let mut recording = Self::empty(header);
        read(file, cursor, &mut recording, &mut damages)?;
        recording.finish(damages);
        Ok(recording)
    }

    fn finish(&mut self, mut damages: Damages) {
        self.formats.check(&mut damages);
        // A file may have instances first.
        self.buffers.sort_by_key(|buffer| !buffer.name.is_empty());
        part_overlaps(&mut self.buffers, &mut damages);
        note_repetitions(&self.buffers, &mut damages);
        if self.buffers.is_empty() {
            damages.note(
                0,
                "no table of CPUs: the recorder did not finish this file, or its end is missing",
            );
        }
        self.damage = damages.into_vec();
    }

    fn empty(header: Header) -> Self {
        Self {
            header,
            formats: Formats::default(),
            kallsyms: None,
            printk: None,
            cmdlines: None,
            btf: None,
            modules: None,
            options: Vec::new(),
            metadata: Metadata::default(),
            buffers: Vec::new(),
            damage: Vec::new(),
        }
    }

    /// Byte order and `long` of the recorded kernel; where its page header does not give it, `long`
    /// is that of the recording program.
    #[must_use]
    pub fn abi(&self) -> Abi {
        let long = self.formats.kernel_long().unwrap_or(self.header.user_long);
        Abi { order: self.header.order, long }
    }

    /// Name of the top buffer's clock: the selected one of TRACECLOCK, else the buffer's own.
    #[must_use]
    pub fn clock(&self) -> Option<&str> {
        let top = self.buffers.iter().find(|buffer| buffer.name.is_empty());
        self.metadata.selected_clock().or_else(|| top?.clock.as_deref())
    }
}
