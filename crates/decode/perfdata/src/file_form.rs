//! The file form: events and features are in sections.

use raw_bytes::{ByteOrder, Cursor, Damages, Truncated, bytes};

use crate::attr::Attr;
use crate::features::Reader;
use crate::header::Sections;
use crate::words::Words;
use crate::{Damage, Events, Range};

/// Bytes at the end of an entry in the section of events: the position of its ids.
const IDS_BYTES: u64 = 16;

/// Reads the section of events.
pub(crate) fn read_events(
    file: &[u8],
    sections: &Sections,
    order: ByteOrder,
    events: &mut Events,
    damages: &mut Damages,
) {
    let Range { offset, size } = sections.attrs;
    let mut cursor = Cursor::new(sections.attrs.bytes_in(file), order, offset);
    let have = cursor.rest().len() as u64;
    if size > have {
        damages.add(Damage::short("events", Truncated { offset, wanted: size, have }));
    }
    let attr_size = sections.attr_size.saturating_sub(IDS_BYTES);
    if attr_size < 64 {
        damages
            .note(offset, format!("an event cannot have a size of {}", bytes(sections.attr_size)));
        return;
    }
    while !cursor.is_empty() {
        let at = cursor.offset();
        let read = cursor.take(attr_size).and_then(|attr| {
            let ids = Range::read(&mut cursor)?;
            Ok((Attr::parse(attr, order, at)?, ids))
        });
        let Some((attr, ids)) = damages.keep(read.map_err(|cut| Damage::short("an event", cut)))
        else {
            return;
        };
        let Some(index) = events.add(attr, at, damages) else { return };
        events.add_ids(index, Words::new(ids.bytes_in(file), order).iter());
    }
}

/// The position of the records. If the recorder was killed before it wrote their size, they extend
/// to the end of the file.
pub(crate) fn data(file: &[u8], sections: &Sections, damages: &mut Damages) -> Range {
    let Range { offset, size } = sections.data;
    let available = (file.len() as u64).saturating_sub(offset);
    if size == 0 && available > 0 {
        damages.note(
            offset,
            "the recorder was killed before it wrote the size of the data: everything up to the end of the file \
             is read",
        );
        return Range { offset, size: available };
    }
    if size > available {
        let what = "the file is shorter than its header says";
        let what =
            format!("{what}: it has {available} of {} of records; copy it again", bytes(size));
        let cut = Truncated { offset, wanted: size, have: available };
        damages.add(Damage::new(offset, what).of_cut(cut));
    }
    Range { offset, size: size.min(available) }
}

/// Reads the feature sections, whose table follows the records.
pub(crate) fn read_features(file: &[u8], sections: &Sections, reader: &mut Reader<'_>) {
    // A killed recorder has written the feature bits, but no sections.
    if sections.data.size == 0 {
        return;
    }
    let offset = sections.data.end();
    let table = Range { offset, size: u64::MAX };
    let mut cursor = Cursor::new(table.bytes_in(file), reader.order, offset);
    for number in sections.features() {
        let section = Range::read(&mut cursor);
        let section = section.map_err(|cut| Damage::short("a feature's place", cut));
        let Some(section) = reader.damages.keep(section) else { return };
        let bytes = section.bytes_in(file);
        if section.size > bytes.len() as u64 {
            let cut = Truncated {
                offset: section.offset,
                wanted: section.size,
                have: bytes.len() as u64,
            };
            reader.damages.add(Damage::short(&format!("feature {number}"), cut));
        }
        reader.read(number, bytes, section.offset);
    }
}
