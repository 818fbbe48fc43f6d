//! Parses a complete file according to its version.

use raw_bytes::Damages;

use crate::buffers::{note_repetitions, part_overlaps};
use crate::formats::Formats;
use crate::header::{Header, Version};
use crate::metadata::Metadata;
use crate::recording::TraceDat;
use crate::{TraceDatError, v6, v7};

impl TraceDat {
    /// Parses the metadata of `file`, the complete content of a trace.dat.
    ///
    /// # Errors
    /// If the file is not a trace.dat of version 6 or 7, or ends before its first usable part.
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
        // Instances can come first in a file.
        self.buffers.sort_by_key(|buffer| !buffer.name.is_empty());
        part_overlaps(&mut self.buffers, &mut damages);
        note_repetitions(&self.buffers, &mut damages);
        if self.buffers.is_empty() {
            damages.note(
                0,
                "no CPU table: the recorder did not finish this file, or its end is missing",
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
}
