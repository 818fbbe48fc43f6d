//! Reads the recording's trace clock together with the monotonic clock, which BPF programs and perf events use.

use hypertrace::collected::ClockPair;
use sys::{ClockId, clock_ns};

use crate::clock::TSC;
use crate::error::{Result, TracefsError};
use crate::marks::{Mark, Marks};
use crate::mounted::Tracefs;

/// Number of readings; the quickest one counts, because an interrupt in between makes a reading slow.
pub(crate) const READINGS: usize = 5;

/// A trace clock that can be read.
#[derive(Debug)]
pub struct TraceClock(Kind);

#[derive(Debug)]
enum Kind {
    /// The TSC.
    Tsc,
    /// `mono`: the monotonic clock itself.
    Same,
    /// A clock that `clock_gettime` has, too.
    System(ClockId),
    /// Only the kernel can read it.
    Marks(Box<ByMarks>),
}

/// Marks, and their tracefs.
#[derive(Debug)]
struct ByMarks {
    // Dropped first: its instance is in `_tracefs`.
    marks: Marks,
    name: String,
    _tracefs: Tracefs,
}

impl TraceClock {
    /// Opens the clock of this name.
    ///
    /// # Errors
    /// When only the kernel can read it, and marks are not available.
    pub fn open(name: &str) -> Result<Self> {
        if let Some(readable) = Self::readable(name) {
            return Ok(readable);
        }
        let tracefs = Tracefs::find()?;
        let marks = Marks::make(&tracefs, name)?;
        let name = name.to_owned();
        Ok(Self(Kind::Marks(Box::new(ByMarks { marks, name, _tracefs: tracefs }))))
    }

    /// The clock of this name, if programs can read it.
    pub(crate) fn readable(name: &str) -> Option<Self> {
        match name {
            TSC if sys::tsc().is_some() => Some(Self(Kind::Tsc)),
            "mono" => Some(Self(Kind::Same)),
            "mono_raw" => Some(Self(Kind::System(ClockId::MonotonicRaw))),
            "boot" => Some(Self(Kind::System(ClockId::Boottime))),
            _ => None,
        }
    }

    /// Its time now, in its own unit; `None` if only the kernel can read it.
    pub(crate) fn now(&self) -> Option<u64> {
        match self.0 {
            Kind::Tsc => sys::tsc(),
            Kind::Same => Some(mono_ns()),
            Kind::System(id) => Some(clock_ns(id)),
            Kind::Marks(_) => None,
        }
    }

    /// Reads both clocks, as closely together as possible.
    ///
    /// # Errors
    /// When only the kernel can read the clock, and a mark fails.
    pub fn pair(&mut self) -> Result<ClockPair> {
        let readings = match &mut self.0 {
            Kind::Same => {
                let now = mono_ns();
                vec![ClockPair { mono_before_ns: now, trace: now, mono_after_ns: now }]
            }
            Kind::Tsc => readings(|| sys::tsc().unwrap_or(0)),
            Kind::System(id) => readings(|| clock_ns(*id)),
            Kind::Marks(by) => by.readings()?,
        };
        let gap_ns = |pair: &ClockPair| pair.mono_after_ns.saturating_sub(pair.mono_before_ns);
        Ok(readings.into_iter().min_by_key(gap_ns).unwrap_or_default())
    }
}

impl ByMarks {
    fn readings(&mut self) -> Result<Vec<ClockPair>> {
        let failed =
            |error| TracefsError::io("make a mark with the clock", self.name.as_ref())(error);
        let mut around = Vec::with_capacity(READINGS);
        for number in 0..READINGS as u32 {
            let before_ns = mono_ns();
            self.marks.make_mark(number).map_err(failed)?;
            around.push((number, before_ns, mono_ns()));
        }
        let made = self.marks.take().map_err(failed)?;
        let pair = |mark: Mark| {
            let (_, before_ns, after_ns) = *around.iter().find(|(at, ..)| *at == mark.number)?;
            let (mono_before_ns, mono_after_ns) = (before_ns, after_ns);
            Some(ClockPair { mono_before_ns, trace: mark.time, mono_after_ns })
        };
        Ok(made.into_iter().filter_map(pair).collect())
    }
}

fn readings(clock: impl Fn() -> u64) -> Vec<ClockPair> {
    let reading =
        || ClockPair { mono_before_ns: mono_ns(), trace: clock(), mono_after_ns: mono_ns() };
    std::iter::repeat_with(reading).take(READINGS).collect()
}

fn mono_ns() -> u64 {
    clock_ns(ClockId::Monotonic)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_are_read_between_two_looks_and_go_forward() {
        for name in ["x86-tsc", "mono", "mono_raw", "boot", "local"] {
            let mut clock = match TraceClock::open(name) {
                Ok(clock) => clock,
                Err(error) => {
                    testkit::skip!("{name}: {error}");
                    continue;
                }
            };
            let (first, other) = (clock.pair().unwrap(), clock.pair().unwrap());
            assert!(first.mono_before_ns <= first.mono_after_ns, "{name}");
            assert!(first.mono_after_ns <= other.mono_before_ns, "{name}");
            assert!(first.trace < other.trace, "{name}");
        }
    }
}
