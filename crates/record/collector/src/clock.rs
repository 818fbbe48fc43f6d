//! The recording's trace clock, read together with the one that BPF programs have.

use rustix::time::{ClockId, clock_gettime};
use tracefs::{Marks, Tracefs};

use hypertrace::collected::ClockPair;

use crate::error::{CollectError, Result};

/// Readings of which the quickest counts: an interrupt in between makes one slow.
const READINGS: usize = 5;

/// A trace clock, and how it is read.
#[derive(Debug)]
pub(crate) enum TraceClock {
    /// The processor's counter.
    Tsc,
    /// `mono`: the very clock that BPF programs read.
    Same,
    /// One that the system gives programs, too.
    System(ClockId),
    /// Only the kernel can read it.
    Marks(Box<ByMarks>),
}

/// Marks, and the tracefs that they are in.
#[derive(Debug)]
pub(crate) struct ByMarks {
    // Dropped first: it is mounted in the other.
    marks: Marks,
    name: String,
    _tracefs: Tracefs,
}

impl TraceClock {
    /// The clock that is so called.
    pub(crate) fn open(name: &str) -> Result<Self> {
        match name {
            "x86-tsc" if sys::tsc().is_some() => return Ok(Self::Tsc),
            "mono" => return Ok(Self::Same),
            "mono_raw" => return Ok(Self::System(ClockId::MonotonicRaw)),
            "boot" => return Ok(Self::System(ClockId::Boottime)),
            _ => {}
        }
        let failed =
            |source| CollectError::Clock { name: name.to_owned(), source: Box::new(source) };
        let tracefs = Tracefs::find().map_err(failed)?;
        let marks = Marks::make(&tracefs, name).map_err(failed)?;
        let name = name.to_owned();
        Ok(Self::Marks(Box::new(ByMarks { marks, name, _tracefs: tracefs })))
    }

    /// Both clocks now, as closely together as can be had.
    pub(crate) fn pair(&mut self) -> Result<ClockPair> {
        let readings = match self {
            Self::Same => {
                let now = mono_ns();
                vec![ClockPair { mono_before_ns: now, trace: now, mono_after_ns: now }]
            }
            Self::Tsc => readings(|| sys::tsc().unwrap_or(0)),
            Self::System(id) => readings(|| ns(*id)),
            Self::Marks(by) => by.readings()?,
        };
        let gap_ns = |pair: &ClockPair| pair.mono_after_ns.saturating_sub(pair.mono_before_ns);
        Ok(readings.into_iter().min_by_key(gap_ns).unwrap_or_default())
    }
}

impl ByMarks {
    fn readings(&mut self) -> Result<Vec<ClockPair>> {
        let failed =
            |error| CollectError::io("make a mark with the clock", self.name.as_ref())(error);
        let mut around = Vec::with_capacity(READINGS);
        for number in 0..READINGS as u32 {
            let before_ns = mono_ns();
            self.marks.make_mark(number).map_err(failed)?;
            around.push((number, before_ns, mono_ns()));
        }
        let made = self.marks.take().map_err(failed)?;
        let pair = |mark: tracefs::Mark| {
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
    ns(ClockId::Monotonic)
}

fn ns(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    let whole = u64::try_from(time.tv_sec).unwrap_or(0).saturating_mul(1_000_000_000);
    whole.saturating_add(u64::try_from(time.tv_nsec).unwrap_or(0))
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
            let (one, other) = (clock.pair().unwrap(), clock.pair().unwrap());
            assert!(one.mono_before_ns <= one.mono_after_ns, "{name}");
            assert!(one.mono_after_ns <= other.mono_before_ns, "{name}");
            assert!(one.trace < other.trace, "{name}");
        }
    }
}
