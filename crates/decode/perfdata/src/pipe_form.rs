//! The pipe form: events and features are records.

use raw_bytes::slice::text;
use raw_bytes::{ByteOrder, Truncated};

use crate::attr::Attr;
use crate::features::Reader;
use crate::words::Words;
use crate::{Damage, Range, Record, Records, kind};

/// `PERF_EVENT_UPDATE__NAME`: the update is the event's name.
const UPDATE_NAME: u64 = 2;

/// Reads the records with events and features, at any position in the file.
pub(crate) fn read(records: Records<'_>, reader: &mut Reader<'_>) {
    for record in records {
        // The reader of the records reports the damage.
        let Ok(record) = record else { return };
        let read = match record.kind {
            kind::HEADER_ATTR => event(&record, reader),
            kind::EVENT_UPDATE => update(&record, reader),
            kind::FEATURE => feature(&record, reader),
            kind::BUILD_ID => {
                reader.build_id(record.misc, record.body());
                Ok(())
            }
            kind::TRACING_DATA => {
                let size = record.payload.len() as u64;
                let offset = record.offset.saturating_add(record.bytes.len() as u64);
                reader.features.tracing_data = Some(Range { offset, size });
                Ok(())
            }
            _ => Ok(()),
        };
        reader.damages.keep(read.map_err(|cut| Damage::short("a header record", cut)));
    }
}

/// Attributes, then ids up to the end.
fn event(record: &Record<'_>, reader: &mut Reader<'_>) -> Result<(), Truncated> {
    let order: ByteOrder = record.order;
    let mut cursor = record.cursor();
    let size = Attr::size(record.body(), order);
    let attr = Attr::parse(cursor.take(size)?, order, record.offset)?;
    let ids = Words::new(cursor.rest(), order);
    if let Some(index) = reader.events.add(attr, record.offset, reader.damages) {
        reader.events.add_ids(index, ids.iter());
    }
    Ok(())
}

fn update(record: &Record<'_>, reader: &mut Reader<'_>) -> Result<(), Truncated> {
    let mut cursor = record.cursor();
    let (what, id) = (cursor.u64()?, cursor.u64()?);
    if let Some(index) = reader.events.index_of_id(id).filter(|_| what == UPDATE_NAME) {
        reader.events.set_name(index, text(cursor.rest()));
    }
    Ok(())
}

fn feature(record: &Record<'_>, reader: &mut Reader<'_>) -> Result<(), Truncated> {
    let mut cursor = record.cursor();
    let number = u32::try_from(cursor.u64()?).unwrap_or(u32::MAX);
    reader.read(number, cursor.rest(), cursor.offset());
    Ok(())
}
