//! A whole file, read.

use raw_bytes::{ByteOrder, Damages};

#[cfg(feature = "zstd")]
use crate::Unpacked;
use crate::features::Reader;
use crate::header::Header;
use crate::{Damage, Events, Features, Form, PerfDataError, Range, Records};
use crate::{file_form, pipe_form};

/// A recording: all that a perf.data says of itself, and where its records are.
#[derive(Clone, Debug)]
pub struct PerfData {
    /// How it was written.
    pub form: Form,
    /// Byte order of all numbers: that of the recorded machine.
    pub order: ByteOrder,
    /// Its events.
    pub events: Events,
    /// Its description of the machine and the recorder.
    pub features: Features,
    /// Where its records are.
    pub data: Range,
    /// What was missing or wrong outside the records; empty for a sound file.
    pub damage: Vec<Damage>,
}

impl PerfData {
    /// Reads what `file`, the whole content of a perf.data, says of itself.
    ///
    /// # Errors
    /// When it is no perf.data, ends within its header, or is part of a recording that is a folder.
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

    /// Its records as they lie in `file`: compressed ones are not unpacked.
    #[must_use]
    pub fn records<'f>(&self, file: &'f [u8]) -> Records<'f> {
        Records::new(self.data.bytes_in(file), self.order, self.data.offset)
    }

    /// Its records as they were before some of them were compressed, one after the other, as bytes for
    /// [`Records::new`].
    ///
    /// # Errors
    /// When there is no memory for a decompressor.
    #[cfg(feature = "zstd")]
    pub fn unpacked<'f>(&self, file: &'f [u8]) -> std::io::Result<Unpacked<'f>> {
        Unpacked::new(self.records(file), self.order)
    }
}
