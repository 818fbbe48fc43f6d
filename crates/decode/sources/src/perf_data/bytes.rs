//! The records of a perf.data as bytes: those of the file, or what its compressed records unpack to.

use std::path::Path;

use perfdata::{PerfData, Place, Record, Records, kind};
use raw_bytes::ByteOrder;
use sys::FileMap;

use crate::Damage;
use crate::open_error::OpenError;

/// The records of a file.
#[derive(Debug)]
pub(crate) struct Bytes {
    map: FileMap,
    /// Where the records begin in `map`, and how many bytes they take.
    data: perfdata::Range,
    order: ByteOrder,
    /// Of unpacked records, where they come from.
    places: Vec<Place>,
    /// Bytes of the file.
    pub(super) file_len: usize,
}

impl Bytes {
    /// Those of a file; what is compressed is unpacked, once. What is damaged goes to `damage`.
    ///
    /// # Errors
    /// When they unpack to more than may be spooled.
    pub(crate) fn new(
        path: &Path,
        file: FileMap,
        perf: &PerfData,
        damage: &mut Vec<Damage>,
    ) -> Result<Self, OpenError> {
        let (order, file_len) = (perf.order, file.len());
        let is_packed = |packed: u32| matches!(packed, kind::COMPRESSED | kind::COMPRESSED2);
        if !perf.records(&file).flatten().any(|record| is_packed(record.kind)) {
            return Ok(Self { data: perf.data, map: file, order, places: Vec::new(), file_len });
        }
        let mut unpacked = perf.unpacked(&file).map_err(sys::OpenError::io(path))?;
        let map = FileMap::spooled(&mut unpacked, path)?;
        let (places, lost) = unpacked.finish();
        damage.extend(lost.into_iter().map(Damage::from));
        let data = perfdata::Range { offset: 0, size: map.len() as u64 };
        Ok(Self { map, data, order, places, file_len })
    }

    pub(crate) fn records(&self) -> Records<'_> {
        Records::new(self.data.bytes_in(&self.map), self.order, self.data.offset)
    }

    /// The record that begins at an offset of those that [`Bytes::records`] gives.
    pub(crate) fn record(&self, offset: u64) -> Option<Record<'_>> {
        let bytes = self.data.bytes_in(&self.map);
        let from = usize::try_from(offset.checked_sub(self.data.offset)?).ok()?;
        Records::new(bytes.get(from..)?, self.order, offset).next()?.ok()
    }

    /// Some of the bytes; `None`: they aren't there.
    pub(super) fn get(&self, offset: u64, len: u32) -> Option<&[u8]> {
        let from = usize::try_from(offset).ok()?;
        self.map.get(from..from.checked_add(usize::try_from(len).ok()?)?)
    }

    /// Whether the records lie in the file as they are.
    pub(super) fn are_stored(&self) -> bool {
        self.places.is_empty()
    }

    /// Where in the file something lies; of what was unpacked, the compressed record or one before it.
    pub(super) fn in_file(&self, offset: u64) -> u64 {
        let after = self.places.partition_point(|place| place.unpacked <= offset);
        let place = after.checked_sub(1).and_then(|at| self.places.get(at));
        place.map_or(offset, |place| place.offset)
    }
}
