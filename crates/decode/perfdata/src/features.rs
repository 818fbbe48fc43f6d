//! What a file says besides records: names of events, the machine, the formats of tracepoints.

use std::ops::Range;

use raw_bytes::{ByteOrder, Cursor};

use crate::attr::EventAttr;

/// Numbers of feature sections (`HEADER_*` of `tools/perf/util/header.h`).
const TRACING_DATA: u32 = 1;
const HOSTNAME: u32 = 3;
const OSRELEASE: u32 = 4;
const VERSION: u32 = 5;
const ARCH: u32 = 6;
const NRCPUS: u32 = 7;
const EVENT_DESC: u32 = 12;

/// Feature sections there may be: bits in the header.
pub(crate) const MOST_FEATURES: u32 = 256;
/// Events that names are read for, at most.
const MOST_EVENTS: u32 = 1 << 16;

/// What a file says besides records.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Features {
    /// Where the formats of tracepoints lie in the file, in the form of trace.dat version 6.
    pub tracing_data: Option<Range<u64>>,
    /// Name of the machine.
    pub hostname: Option<String>,
    /// Release of its kernel.
    pub os_release: Option<String>,
    /// Version of perf.
    pub version: Option<String>,
    /// Its architecture.
    pub arch: Option<String>,
    /// CPUs of the machine.
    pub cpus: Option<u32>,
    /// By id, names of events.
    pub(crate) names: Vec<(String, Vec<u64>)>,
}

impl Features {
    /// Takes the section of feature `number`, which lies at `offset`. What can't be read is left out: nothing
    /// of it is needed to read records.
    pub(crate) fn take(&mut self, number: u32, bytes: &[u8], order: ByteOrder, offset: u64) {
        let mut cursor = Cursor::new(bytes, order, offset);
        match number {
            TRACING_DATA => {
                let end = offset.saturating_add(bytes.len() as u64);
                self.tracing_data = Some(offset..end);
            }
            HOSTNAME => self.hostname = text(&mut cursor),
            OSRELEASE => self.os_release = text(&mut cursor),
            VERSION => self.version = text(&mut cursor),
            ARCH => self.arch = text(&mut cursor),
            // First those there are, then those that were online.
            NRCPUS => self.cpus = cursor.u32().ok(),
            EVENT_DESC => drop(self.event_names(&mut cursor)),
            _ => {}
        }
    }

    /// `HEADER_EVENT_DESC`: for each event its attribute, ids and name.
    fn event_names(&mut self, cursor: &mut Cursor<'_>) -> Option<()> {
        let (count, attr_size) = (cursor.u32().ok()?, cursor.u32().ok()?);
        for _ in 0..count.min(MOST_EVENTS) {
            cursor.take(attr_size.into()).ok()?;
            let ids = cursor.u32().ok()?;
            let name = text(cursor)?;
            let mut of_event = Vec::new();
            for _ in 0..ids {
                of_event.push(cursor.u64().ok()?);
            }
            self.names.push((name, of_event));
        }
        Some(())
    }

    /// Gives attributes their names: by their ids, or by their places where there are as many.
    pub(crate) fn name(&self, attrs: &mut [EventAttr]) {
        let same = self.names.len() == attrs.len();
        for (at, attr) in attrs.iter_mut().enumerate() {
            let has_its_ids = |(_, ids): &&(String, Vec<u64>)| {
                attr.ids.first().is_some_and(|first| ids.contains(first))
            };
            let by_place = || self.names.get(at).filter(|_| same);
            let found = self.names.iter().find(has_its_ids).or_else(by_place);
            attr.name = found.map(|(name, _)| name.clone());
        }
    }
}

/// A text with its length before it, which counts NULs that fill it up.
fn text(cursor: &mut Cursor<'_>) -> Option<String> {
    let len = cursor.u32().ok()?;
    let bytes = cursor.take(len.into()).ok()?;
    let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    Some(String::from_utf8_lossy(bytes.get(..end)?).into_owned())
}
