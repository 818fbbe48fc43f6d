//! Features: a recording's description of the machine, the recorder and its events.

use raw_bytes::slice::{range, text};
use raw_bytes::{ByteOrder, Cursor, Damages, Truncated};

use crate::attr::Attr;
use crate::events::Events;
use crate::words::Words;
use crate::{BuildId, Damage, Range, misc};

/// Numbers of features.
pub mod feature {
    /// Formats of tracepoints.
    pub const TRACING_DATA: u32 = 1;
    /// Build ids of executed files.
    pub const BUILD_ID: u32 = 2;
    /// Name of the host.
    pub const HOSTNAME: u32 = 3;
    /// Release of the kernel.
    pub const OSRELEASE: u32 = 4;
    /// Version of perf.
    pub const VERSION: u32 = 5;
    /// The architecture.
    pub const ARCH: u32 = 6;
    /// Number of CPUs.
    pub const NRCPUS: u32 = 7;
    /// The command line.
    pub const CMDLINE: u32 = 11;
    /// Events with their names and ids.
    pub const EVENT_DESC: u32 = 12;
    /// Times of the first and the last sample.
    pub const SAMPLE_TIME: u32 = 21;
    /// Resolution of the clock.
    pub const CLOCKID: u32 = 23;
    /// The recording is a folder.
    pub const DIR_FORMAT: u32 = 24;
    /// Records are compressed.
    pub const COMPRESSED: u32 = 27;
    /// The clock and the wall-clock time.
    pub const CLOCK_DATA: u32 = 29;
}

/// Maximum number of build ids.
const MAX_BUILD_IDS: usize = 1 << 16;
/// Maximum arguments of the command line.
const MAX_ARGUMENTS: u32 = 1 << 12;

/// A recording's description of the machine and the recorder; missing facts are `None` or empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Features {
    /// Name of the host.
    pub hostname: Option<String>,
    /// Release of the kernel.
    pub os_release: Option<String>,
    /// Version of perf.
    pub version: Option<String>,
    /// The architecture, as in `uname -m`.
    pub arch: Option<String>,
    /// Possible CPUs of the machine.
    pub cpus_available: Option<u32>,
    /// Online CPUs.
    pub cpus_online: Option<u32>,
    /// The command line of the recorder.
    pub command: Vec<String>,
    /// Times of the first and the last sample, in nanoseconds.
    pub sample_time: Option<(u64, u64)>,
    /// Resolution of the clock in nanoseconds, if a clock was requested.
    pub clock_step_ns: Option<u64>,
    /// The clock and the wall-clock time.
    pub clock_data: Option<ClockData>,
    /// Position of the tracepoint formats.
    pub tracing_data: Option<Range>,
    /// Build ids of executed files.
    pub build_ids: Vec<(BuildId, String)>,
    /// Records are compressed.
    pub compressed: bool,
    /// The recording is a folder; other files have some of the records.
    pub folder: bool,
}

/// Simultaneous readings of two clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockData {
    /// The recording's clock (`CLOCK_…` of the kernel).
    pub clock_id: u32,
    /// Wall-clock time in nanoseconds since 1970.
    pub wall_ns: u64,
    /// The recording's clock at that time, in nanoseconds.
    pub clock_ns: u64,
}

/// Reads features from sections or records.
pub(crate) struct Reader<'p> {
    pub(crate) order: ByteOrder,
    pub(crate) events: &'p mut Events,
    pub(crate) features: &'p mut Features,
    pub(crate) damages: &'p mut Damages,
}

impl Reader<'_> {
    /// Reads a feature, which is at `offset` in the file.
    pub(crate) fn read(&mut self, number: u32, bytes: &[u8], offset: u64) {
        let mut cursor = Cursor::new(bytes, self.order, offset);
        let read = self.read_feature(number, &mut cursor);
        self.damages.keep(read.map_err(|cut| Damage::short("a feature", cut)));
    }

    fn read_feature(&mut self, number: u32, cursor: &mut Cursor<'_>) -> Result<(), Truncated> {
        let features = &mut *self.features;
        match number {
            feature::TRACING_DATA => {
                let (offset, size) = (cursor.offset(), cursor.rest().len() as u64);
                features.tracing_data = Some(Range { offset, size });
            }
            feature::BUILD_ID => self.build_ids(cursor)?,
            feature::HOSTNAME => features.hostname = Some(sized_text(cursor)?),
            feature::OSRELEASE => features.os_release = Some(sized_text(cursor)?),
            feature::VERSION => features.version = Some(sized_text(cursor)?),
            feature::ARCH => features.arch = Some(sized_text(cursor)?),
            feature::NRCPUS => {
                features.cpus_available = Some(cursor.u32()?);
                features.cpus_online = Some(cursor.u32()?);
            }
            feature::CMDLINE => {
                features.command.clear();
                for _ in 0..cursor.u32()?.min(MAX_ARGUMENTS) {
                    features.command.push(sized_text(cursor)?);
                }
            }
            feature::EVENT_DESC => self.events(cursor)?,
            feature::SAMPLE_TIME => features.sample_time = Some((cursor.u64()?, cursor.u64()?)),
            feature::CLOCKID => features.clock_step_ns = Some(cursor.u64()?),
            feature::DIR_FORMAT => features.folder = true,
            feature::COMPRESSED => features.compressed = true,
            feature::CLOCK_DATA => {
                cursor.u32()?; // Version: 1.
                let clock_id = cursor.u32()?;
                let (wall_ns, clock_ns) = (cursor.u64()?, cursor.u64()?);
                features.clock_data = Some(ClockData { clock_id, wall_ns, clock_ns });
            }
            _ => {}
        }
        Ok(())
    }

    /// Build id records, one after the other.
    fn build_ids(&mut self, cursor: &mut Cursor<'_>) -> Result<(), Truncated> {
        while !cursor.is_empty() {
            cursor.u32()?;
            let (misc, size) = (cursor.u16()?, cursor.u16()?);
            let body = cursor.take(u64::from(size).saturating_sub(8))?;
            self.build_id(misc, body);
        }
        Ok(())
    }

    /// A build id without its record header: process of a VM, 20 bytes, their number, the file.
    pub(crate) fn build_id(&mut self, misc: u16, body: &[u8]) {
        let list = &mut self.features.build_ids;
        if body.len() < 28 || list.len() >= MAX_BUILD_IDS {
            return;
        }
        let sized = misc & misc::BUILD_ID_SIZE != 0;
        let size = body.get(24).copied().filter(|_| sized).unwrap_or(20).min(20);
        let id = BuildId::new(range(body, 4, size.into()));
        list.push((id, text(range(body, 28, u64::MAX))));
    }

    /// The file's second list of events, which has names.
    fn events(&mut self, cursor: &mut Cursor<'_>) -> Result<(), Truncated> {
        let (count, attr_size) = (cursor.u32()?, cursor.u32()?);
        for index in 0..count as usize {
            let offset = cursor.offset();
            let attr = cursor.take(attr_size.into())?;
            let id_count = u64::from(cursor.u32()?);
            let name = sized_text(cursor)?;
            let ids = Words::new(cursor.take(id_count.saturating_mul(8))?, self.order);
            let of_id = ids.get(0).and_then(|id| self.events.index_of_id(id));
            let known = of_id.or_else(|| (index < self.events.list().len()).then_some(index));
            let place = match known {
                Some(place) => place,
                None => {
                    let attr = Attr::parse(attr, self.order, offset)?;
                    let Some(place) = self.events.add(attr, offset, self.damages) else { break };
                    place
                }
            };
            self.events.add_ids(place, ids.iter());
            self.events.set_name(place, name);
        }
        Ok(())
    }
}

/// A text of a feature: its size in four bytes, then the text padded with NULs.
fn sized_text(cursor: &mut Cursor<'_>) -> Result<String, Truncated> {
    let len = cursor.u32()?;
    cursor.take(len.into()).map(text)
}
