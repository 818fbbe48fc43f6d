//! The records of a perf.data as bytes: directly from the file, or unpacked from its compressed
//! records.

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
    /// Range of the records in `map`.
    data: perfdata::Range,
    order: ByteOrder,
    /// For unpacked records: their origins in the file.
    places: Vec<Place>,
    /// Size of the file in bytes.
    pub(super) file_len: usize,
}

impl Bytes {
    /// The records of a file; compressed records are unpacked once. Damage is added to `damage`.
    ///
    /// # Errors
    /// If they unpack to more than the spool's limit.
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

    /// The record at an offset in the bytes of [`Bytes::records`].
    pub(crate) fn record(&self, offset: u64) -> Option<Record<'_>> {
        let bytes = self.data.bytes_in(&self.map);
        let from = usize::try_from(offset.checked_sub(self.data.offset)?).ok()?;
        Records::new(bytes.get(from..)?, self.order, offset).next()?.ok()
    }

    /// A range of bytes; `None` if it is out of bounds.
    pub(super) fn get(&self, offset: u64, len: u32) -> Option<&[u8]> {
        let from = usize::try_from(offset).ok()?;
        self.map.get(from..from.checked_add(usize::try_from(len).ok()?)?)
    }

    /// Whether the records are stored uncompressed in the file.
    pub(super) fn are_stored(&self) -> bool {
        self.places.is_empty()
    }

    /// The offset in the file; for unpacked records, that of the compressed record or of an earlier
    /// one.
    pub(super) fn in_file(&self, offset: u64) -> u64 {
        let after = self.places.partition_point(|place| place.unpacked <= offset);
        let place = after.checked_sub(1).and_then(|at| self.places.get(at));
        place.map_or(offset, |place| place.offset)
    }
}
