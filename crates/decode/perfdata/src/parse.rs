//! Parses a complete file.

use raw_bytes::{ByteOrder, Damages};

#[cfg(feature = "zstd")]
use crate::Unpacked;
use crate::features::Reader;
use crate::header::Header;
use crate::{Damage, Events, Features, Form, PerfDataError, Range, Records};
use crate::{file_form, pipe_form};

/// A recording: the metadata of a perf.data, and the position of its records.
#[derive(Clone, Debug)]
pub struct PerfData {
    /// The form of the file.
    pub form: Form,
    /// Byte order of all numbers: that of the recorded machine.
    pub order: ByteOrder,
    /// Its events.
    pub events: Events,
    /// Its description of the machine and the recorder.
    pub features: Features,
    /// Position of its records.
    pub data: Range,
    /// Missing or damaged data outside the records; empty for an intact file.
    pub damage: Vec<Damage>,
}

impl PerfData {
    /// Parses the metadata in `file`, the complete content of a perf.data.
    ///
    /// # Errors
    /// If it is not a perf.data, ends within its header, or is part of a recording that is a
    /// folder.
    pub fn parse(file: &[u8]) -> Result<Self, PerfDataError> {
        let header = Header::parse(file)?;
        let order = header.order;
        let mut damages = Damages::default();
        let mut events = Events::new(order, file.len());
        let mut features = Features::default();
        let remaining = (file.len() as u64).saturating_sub(header.size);
        let mut data = Range { offset: header.size, size: remaining };
        if let Some(sections) = &header.sections {
            file_form::read_events(file, sections, order, &mut events, &mut damages);
            data = file_form::data(file, sections, &mut damages);
        }
        let reader = &mut Reader {
            order,
            events: &mut events,
            features: &mut features,
            damages: &mut damages,
        };
        match &header.sections {
            Some(sections) => file_form::read_features(file, sections, reader),
            None => pipe_form::read(Records::new(data.bytes_in(file), order, data.offset), reader),
        }
        if features.folder {
            return Err(PerfDataError::Folder);
        }
        events.finish(&mut damages);
        let form = if header.sections.is_some() { Form::File } else { Form::Pipe };
        Ok(Self { form, order, events, features, data, damage: damages.into_vec() })
    }

    /// Its records as stored in `file`: compressed records are not unpacked.
    #[must_use]
    pub fn records<'f>(&self, file: &'f [u8]) -> Records<'f> {
        Records::new(self.data.bytes_in(file), self.order, self.data.offset)
    }

    /// Its records after decompression as bytes, for [`Records::new`].
    ///
    /// # Errors
    /// If a decompressor cannot be allocated.
    #[cfg(feature = "zstd")]
    pub fn unpacked<'f>(&self, file: &'f [u8]) -> std::io::Result<Unpacked<'f>> {
        Unpacked::new(self.records(file), self.order)
    }
}
