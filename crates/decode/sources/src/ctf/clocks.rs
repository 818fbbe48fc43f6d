//! Converts cycles of a trace's clocks to nanoseconds of one clock, in 64 bits.
//!
//! Offsets from tracers can exceed 64 bits or be negative, for example if nanoseconds are declared
//! as seconds. The times of such a trace count from its clock's own zero, and a note says so; times
//! that still do not fit are damage.

use ::ctf::{Clock, Events, Layout, Packet};
use sys::FileMap;

use super::Found;

/// A trace's clocks, by their index in its layout.
#[derive(Debug)]
pub(super) struct Clocks {
    clocks: Vec<Clock>,
    /// Subtracted from all times.
    zero_ns: i128,
}

/// Converts cycles of a stream's clock to nanoseconds.
#[derive(Clone, Debug)]
pub(super) enum ToNs {
    /// Cycles are nanoseconds; this offset is added.
    Offset(i128),
    Any(Clock, i128),
}

impl ToNs {
    /// The time of a clock reading; `None` if it does not fit.
    #[inline]
    pub(super) fn ns(&self, cycles: u64) -> Option<u64> {
        match self {
            Self::Offset(offset) => u64::try_from(offset.saturating_add(cycles.into())).ok(),
            Self::Any(clock, offset) => {
                u64::try_from(offset.saturating_add(clock.cycles_ns(cycles))).ok()
            }
        }
    }

    /// The time of something other than an event, such as a loss; clamped to the valid range.
    pub(super) fn nearest_ns(&self, cycles: u64) -> u64 {
        let is_below = match self {
            Self::Offset(offset) | Self::Any(_, offset) => *offset < 0,
        };
        self.ns(cycles).unwrap_or(if is_below { 0 } else { u64::MAX })
    }
}

/// The minimum and maximum reading of a clock in the trace's packets.
#[derive(Clone, Copy, Debug)]
struct Readings {
    least: u64,
    greatest: u64,
}

impl Clocks {
    /// The clocks of a trace with these packets, and a note if its offsets are unusable.
    pub(super) fn new<'f>(
        layout: &Layout,
        files: &[FileMap],
        found: impl Iterator<Item = &'f Found>,
    ) -> (Self, Option<String>) {
        let mut readings: Vec<Option<Readings>> = layout.clocks.iter().map(|_| None).collect();
        for (file, packet) in found.flatten() {
            let stream = layout.streams.get(packet.stream);
            let clock = stream.and_then(|stream| stream.clock);
            let Some(known) = clock.and_then(|clock| readings.get_mut(clock)) else { continue };
            let file: &[u8] = files.get(*file).map_or(&[], |file| file);
            for reading in readings_of(layout, file, packet).into_iter().flatten() {
                let now = known.get_or_insert(Readings { least: reading, greatest: reading });
                now.least = now.least.min(reading);
                now.greatest = now.greatest.max(reading);
            }
        }
        let mut clocks = Self { clocks: layout.clocks.clone(), zero_ns: 0 };
        let bad = clocks.first_that_does_not_fit(&readings);
        let Some(bad) = bad.and_then(|at| layout.clocks.get(at)) else { return (clocks, None) };
        let note = clocks.count_from_own_zero(bad, &readings);
        (clocks, Some(note))
    }

    /// The conversion for a stream of this class.
    pub(super) fn for_stream(&self, layout: &Layout, stream: usize) -> ToNs {
        let stream = layout.streams.get(stream);
        let clock = stream.and_then(|stream| self.clocks.get(stream.clock?));
        let Some(clock) = clock else { return ToNs::Offset(0) };
        let offset = clock.offset_ns().saturating_sub(self.zero_ns);
        match clock.frequency {
            1_000_000_000 => ToNs::Offset(offset),
            _ => ToNs::Any(clock.clone(), offset),
        }
    }

    /// Index of the first clock with a reading that has no 64-bit time.
    fn first_that_does_not_fit(&self, readings: &[Option<Readings>]) -> Option<usize> {
        let fits = |(clock, readings): (&Clock, &Option<Readings>)| {
            let offset = clock.offset_ns().saturating_sub(self.zero_ns);
            let (min, greatest) = readings.map_or((0, 0), |all| (all.least, all.greatest));
            let begin = offset.saturating_add(clock.cycles_ns(min));
            let end = offset.saturating_add(clock.cycles_ns(greatest));
            begin >= 0 && end <= u64::MAX.into()
        };
        self.clocks.iter().zip(readings).position(|pair| !fits(pair))
    }

    /// Sets the origin of times to the earliest zero of the clocks; if times still do not fit, to
    /// the first reading.
    fn count_from_own_zero(&mut self, bad: &Clock, readings: &[Option<Readings>]) -> String {
        let offset = bad.offset_ns();
        let offset = match offset % 1_000_000_000 {
            0 => format!("{} s", offset / 1_000_000_000),
            _ => format!("{offset} ns"),
        };
        let zeros = self.clocks.iter().map(Clock::offset_ns);
        self.zero_ns = zeros.min().unwrap_or(0);
        let mut from = "the clock's zero";
        if self.first_that_does_not_fit(readings).is_some() {
            let first = |(clock, readings): (&Clock, &Option<Readings>)| {
                let min = readings.as_ref()?.least;
                Some(clock.offset_ns().saturating_add(clock.cycles_ns(min)))
            };
            self.zero_ns = self.clocks.iter().zip(readings).filter_map(first).min().unwrap_or(0);
            from = "the first packet";
        }
        format!(
            "the offset of its clock {}, {offset}, does not fit 64 bits of nanoseconds: times count from {from}",
            bad.name
        )
    }
}

/// Readings of a packet's clock: from its header, or of its first event.
fn readings_of(layout: &Layout, file: &[u8], packet: &Packet) -> [Option<u64>; 2] {
    let Packet { begin, end, .. } = *packet;
    if begin.is_some() || end.is_some() {
        return [begin.or(end), end.or(begin)];
    }
    let bytes = raw_bytes::slice::range(file, packet.offset, packet.len);
    let first = Events::new(layout, packet, bytes).and_then(|mut events| events.next_event());
    [first.and_then(Result::ok).map(|event| event.cycles), None]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clock(offset_s: i64, offset_cycles: u64, frequency: u64) -> Clock {
        Clock { name: "c".to_owned(), offset_s, offset_cycles, frequency, ..Clock::default() }
    }

    /// Converts the readings of a clock.
    fn times(clock: Clock, min: u64, greatest: u64) -> ([Option<u64>; 2], Option<String>) {
        let mut clocks = Clocks { clocks: vec![clock.clone()], zero_ns: 0 };
        let readings = [Some(Readings { least: min, greatest })];
        let bad = clocks.first_that_does_not_fit(&readings);
        let note = bad.map(|_| clocks.count_from_own_zero(&clock, &readings));
        let offset = clock.offset_ns() - clocks.zero_ns;
        let to_ns = ToNs::Any(clock, offset);
        ([to_ns.ns(min), to_ns.ns(greatest)], note)
    }

    #[test]
    fn offsets_that_fit_are_kept() {
        let day = 1_700_000_000;
        let (found, note) = times(clock(day, 5, 1_000_000_000), 7, 9);
        let base = day as u64 * 1_000_000_000 + 5;
        assert_eq!((found, note), ([Some(base + 7), Some(base + 9)], None));
        // A zero before the epoch does no harm if no event is before the epoch.
        let (found, note) = times(clock(-2, 0, 1_000_000_000), 2_000_000_007, 2_000_000_009);
        assert_eq!((found, note), ([Some(7), Some(9)], None));
    }

    #[test]
    fn offsets_beyond_64_bits_or_before_zero_are_left_out() {
        for offset_s in [1_351_530_929_945_824_323, i64::MAX, i64::MIN, -5] {
            let (found, note) = times(clock(offset_s, 0, 1_000_000_000), 7, 9);
            assert_eq!(found, [Some(7), Some(9)], "{offset_s}");
            let note = note.unwrap();
            assert!(note.contains(&format!("{offset_s} s, does not fit 64 bits")), "{note}");
            assert!(note.ends_with("the clock's zero"), "{note}");
        }
        let (found, _) = times(clock(0, u64::MAX, 1), 3, 4);
        assert_eq!(found, [Some(3_000_000_000), Some(4_000_000_000)]);
    }

    #[test]
    fn readings_beyond_64_bits_count_from_the_first() {
        let first = u64::MAX - 1;
        let (found, note) = times(clock(0, 0, 1_000), first, u64::MAX);
        assert_eq!(found, [Some(0), Some(1_000_000)]);
        assert!(note.unwrap().ends_with("the first packet"));
        let (found, note) = times(clock(0, 0, 1_000), 0, u64::MAX);
        assert_eq!((found, note.is_some()), ([Some(0), None], true));
    }
}
