//! Converts recorded times to times on one clock, as `trace-cmd report` does.

use crate::TraceDat;
use crate::buffers::Buffer;
use crate::peers::Tsc2Nsec;
use crate::time_shift::{ShiftSample, TimeShift};

pub use pieces::{ClockPiece, ClockPieces};

mod pieces;

/// The clock to which a recording's times are converted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    /// The recording's own clock: ignores TIME_SHIFT.
    Own,
    /// The clock of the recording with this trace id, if a TIME_SHIFT option refers to it.
    ToPeer(u64),
    /// The clock of the peer in the last TIME_SHIFT option. trace-cmd always uses it, even for a
    /// guest's file alone (`tracecmd_enable_tsync`), so comparisons with `trace-cmd report` need
    /// this variant.
    ToAnyPeer,
}

/// The unit of a corrected time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeUnit {
    /// Nanoseconds.
    Nanoseconds,
    /// Other units: ticks of a counter with unknown frequency, jiffies, or events.
    Ticks,
}

/// Clocks in nanoseconds: `in_ns` of `trace_clocks[]` in `kernel/trace/trace.c`, and trace-cmd's
/// name for a TSC with a TSC2NSEC conversion. `uptime` counts clock ticks, although trace-cmd
/// prints it like nanoseconds.
const NANOSECOND_CLOCKS: [&str; 8] =
    ["local", "global", "perf", "mono", "mono_raw", "boot", "tai", "tsc2nsec"];

/// The correction of a buffer's times: TIME_SHIFT, then TSC2NSEC, then DATE and OFFSET; or instead
/// of TIME_SHIFT and after the others, pieces that were derived from events.
///
/// This is the order of `timestamp_calc()` in trace-cmd. If trace-cmd's 64-bit products overflow (a
/// guest with TSC scaling has 48 fraction bits, so any real time does), the result here is exact.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Correction {
    shift: Option<TimeShift>,
    tsc: Option<Tsc2Nsec>,
    added: i64,
    unit: TimeUnit,
    /// Whether the buffer uses the recording's own clock.
    on_recording_clock: bool,
    pieces: Option<ClockPieces>,
}

impl Correction {
    /// The correction for a buffer of a recording.
    ///
    /// An instance can use another clock than the recording. Then only DATE and OFFSET apply to it,
    /// because the other options refer to the recording's clock. (trace-cmd applies TSC2NSEC to all
    /// instances, TIME_SHIFT to none.)
    #[must_use]
    pub fn new(recording: &TraceDat, buffer: &Buffer, align: Align) -> Self {
        let metadata = &recording.metadata;
        let recording_clock = recording.clock();
        let clock = buffer.clock.as_deref().or(recording_clock);
        let applies = recording_clock.is_none_or(|recording_clock| {
            clock.is_some_and(|clock| same_clock(clock, recording_clock))
        });
        let shifts = metadata.time_shifts.iter().rev().filter(|_| applies);
        let shift = match align {
            Align::Own => None,
            Align::ToPeer(peer) => shifts.into_iter().find(|shift| shift.peer == peer),
            Align::ToAnyPeer => shifts.into_iter().next(),
        };
        let tsc = metadata.tsc2nsec.filter(|tsc| applies && tsc.mult != 0 && tsc.shift < u64::BITS);
        let unit = if tsc.is_some() { TimeUnit::Nanoseconds } else { TimeUnit::for_clock(clock) };
        let shift = shift.filter(|shift| !shift.cpus.iter().all(Vec::is_empty)).cloned();
        let added = metadata.added_ns();
        Self { shift, tsc, added, unit, on_recording_clock: applies, pieces: None }
    }

    /// A correction that does not change times, in nanoseconds.
    #[must_use]
    pub const fn identity() -> Self {
        Self {
            shift: None,
            tsc: None,
            added: 0,
            unit: TimeUnit::Nanoseconds,
            on_recording_clock: true,
            pieces: None,
        }
    }

    /// A correction that does not change times, for a clock with this name.
    #[must_use]
    pub fn of_clock(clock: Option<&str>) -> Self {
        Self { unit: TimeUnit::for_clock(clock), ..Self::identity() }
    }

    /// The corrected time of a raw time that was recorded on `cpu`, in units of
    /// [`unit`](Self::unit).
    ///
    /// Sums wrap at 64 bits, as in trace-cmd.
    #[inline]
    #[must_use]
    pub fn ns(&self, raw: u64, cpu: u32) -> u64 {
        let mut time = raw;
        if let Some(shift) = &self.shift {
            time = shift.apply(time, cpu);
        }
        if let Some(tsc) = self.tsc {
            time = scaled(time, tsc.mult.into(), tsc.shift);
        }
        time = time.wrapping_add_signed(self.added);
        if let Some(pieces) = &self.pieces {
            time = time.wrapping_add_signed(pieces.offset(time, cpu));
        }
        time
    }

    /// The same correction without TIME_SHIFT and pieces, for the recording's own clock.
    #[must_use]
    pub fn on_own_clock(&self) -> Self {
        Self { shift: None, pieces: None, ..self.clone() }
    }

    /// The correction with `pieces` instead of TIME_SHIFT; does not change a buffer on another
    /// clock than the recording's.
    #[must_use]
    pub fn by(&self, pieces: &ClockPieces) -> Self {
        if !self.on_recording_clock {
            return self.clone();
        }
        Self { pieces: Some(pieces.clone()), ..self.on_own_clock() }
    }

    /// Whether the buffer uses the clock of the recording's top-level buffer.
    #[must_use]
    pub fn is_on_recording_clock(&self) -> bool {
        self.on_recording_clock
    }

    /// Whether raw times are not changed.
    #[must_use]
    pub fn is_identity(&self) -> bool {
        self.shift.is_none() && self.tsc.is_none() && self.added == 0 && self.pieces.is_none()
    }

    /// The unit of corrected times.
    #[must_use]
    pub fn unit(&self) -> TimeUnit {
        self.unit
    }

    /// Trace id of the recording to whose clock times are converted; `None` for the own clock.
    #[must_use]
    pub fn peer(&self) -> Option<u64> {
        self.shift.as_ref().map(|shift| shift.peer)
    }
}

impl TimeUnit {
    /// The unit of a clock; nanoseconds if its name is unknown, as for most clocks.
    fn for_clock(clock: Option<&str>) -> Self {
        let in_ns = clock.is_none_or(|clock| NANOSECOND_CLOCKS.contains(&clock));
        if in_ns { Self::Nanoseconds } else { Self::Ticks }
    }
}

/// trace-cmd calls the same clock `x86-tsc` in TRACECLOCK and `tsc2nsec` in the buffer option if it
/// also writes TSC2NSEC.
fn same_clock(first: &str, other: &str) -> bool {
    let name = |clock| if clock == "tsc2nsec" { "x86-tsc" } else { clock };
    name(first) == name(other)
}

/// `time * factor >> bits`, exactly; the maximum if it exceeds 64 bits.
fn scaled(time: u64, factor: u64, bits: u32) -> u64 {
    let product = u128::from(time).wrapping_mul(factor.into());
    u64::try_from(product.checked_shr(bits).unwrap_or(0)).unwrap_or(u64::MAX)
}

impl TimeShift {
    /// The time on the peer's clock; unchanged for a CPU without samples.
    fn apply(&self, time: u64, cpu: u32) -> u64 {
        let samples = usize::try_from(cpu).ok().and_then(|cpu| self.cpus.get(cpu));
        match samples.map(Vec::as_slice).unwrap_or_default() {
            [] => time,
            // trace-cmd ignores the scaling of a single sample.
            [only] => time.wrapping_add_signed(only.offset),
            many => {
                let (low, high) = around(many, time);
                let offset = match high.filter(|_| self.interpolates()) {
                    Some(high) => interpolated(low, high, time),
                    None => low.offset,
                };
                low.scale(time).wrapping_add_signed(offset)
            }
        }
    }
}

/// The two samples around a time; before the first and after the last sample, the nearest two.
fn around(samples: &[ShiftSample], time: u64) -> (&ShiftSample, Option<&ShiftSample>) {
    let not_after = samples.partition_point(|sample| sample.time <= time);
    let last_pair = samples.len().saturating_sub(2);
    let low = not_after.saturating_sub(1).min(last_pair);
    let pair = samples.get(low..).unwrap_or_default();
    match pair {
        [low, high, ..] => (low, Some(high)),
        [low] => (low, None),
        [] => (&ShiftSample { time: 0, offset: 0, scaling: 1, fraction: 0 }, None),
    }
}

/// The offset at `time` on the line through two samples.
///
/// Rounds as trace-cmd does: it adds half a step and truncates towards zero, which gives one too
/// much below the start of the line.
fn interpolated(low: &ShiftSample, high: &ShiftSample, time: u64) -> i64 {
    let exact = || {
        let delta = i128::from(high.time).checked_sub(low.time.into())?;
        let gap = i128::from(high.offset).checked_sub(low.offset.into())?;
        let rise = i128::from(time).checked_sub(low.time.into())?.checked_mul(gap)?;
        let offset = rise.checked_add(delta.checked_div(2)?)?.checked_div(delta)?;
        i64::try_from(offset.checked_add(low.offset.into())?).ok()
    };
    exact().unwrap_or(low.offset)
}

impl ShiftSample {
    /// The time multiplied by the ratio of the clocks.
    ///
    /// A ratio of zero, or with more fraction bits than a time has, is not a measurement, and is
    /// ignored.
    fn scale(&self, time: u64) -> u64 {
        match u32::try_from(self.fraction) {
            Ok(bits) if bits < u64::BITS && self.scaling != 0 => scaled(time, self.scaling, bits),
            _ => time,
        }
    }
}

#[cfg(test)]
mod tests;
