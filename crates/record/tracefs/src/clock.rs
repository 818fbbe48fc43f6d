//! The trace clock of a recording, and the conversion of its ticks to nanoseconds.

use crate::error::{Result, TracefsError};
use crate::instance::Instance;

/// The TSC: the same on all CPUs, and the base of guests' clocks.
pub(crate) const TSC: &str = "x86-tsc";
/// Clocks that are the same on all CPUs, cheapest first. No kernel has all of them.
const COMMON: [&str; 3] = ["mono", "boot", "global"];

/// Conversion of TSC ticks to nanoseconds: `zero_ns + (ticks * mult >> shift)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TscConversion {
    pub mult: u32,
    /// Right shift.
    pub shift: u32,
    /// Time at tick 0.
    pub zero_ns: u64,
}

/// A trace clock.
#[derive(Clone, Debug)]
pub struct Clock {
    /// Its name in `trace_clock`.
    pub name: String,
    /// The text of `trace_clock`, which lists all clocks.
    pub line: String,
    pub tsc_conversion: Option<TscConversion>,
}

impl Clock {
    /// Reads the selected clock.
    ///
    /// # Errors
    /// When the instance is gone.
    pub fn current(instance: &Instance) -> Result<Self> {
        let line = instance.get("trace_clock")?;
        let selected = line.split_whitespace().find_map(|name| name.strip_prefix('['));
        let name = selected.unwrap_or("local").trim_end_matches(']').to_owned();
        let tsc_conversion = (name == TSC).then(tsc_conversion).flatten();
        Ok(Self { name, line: line.trim().to_owned(), tsc_conversion })
    }

    /// Selects the requested clock, or the best available one.
    ///
    /// # Errors
    /// When the requested clock does not exist, or the kernel refuses it.
    pub fn select(instance: &Instance, requested_name: Option<&str>) -> Result<Self> {
        let line = instance.get("trace_clock")?;
        let available: Vec<&str> =
            line.split_whitespace().map(|name| name.trim_matches(['[', ']'])).collect();
        let name = match requested_name {
            Some(name) if available.contains(&name) => name,
            Some(name) => {
                let (name, available) = (name.to_owned(), available.join(", "));
                return Err(TracefsError::NoSuchClock { name, available });
            }
            None => best(&available),
        };
        instance.set("trace_clock", name)?;
        let tsc_conversion = (name == TSC).then(tsc_conversion).flatten();
        Ok(Self {
            name: name.to_owned(),
            line: instance.get("trace_clock")?.trim().to_owned(),
            tsc_conversion,
        })
    }
}

fn best<'a>(available: &[&'a str]) -> &'a str {
    let has_tsc = available.contains(&TSC) && tsc_conversion().is_some();
    let wanted = has_tsc.then_some(TSC).into_iter().chain(COMMON);
    let mut found =
        wanted.filter_map(|name| available.iter().copied().find(|&candidate| candidate == name));
    found.next().or(available.first().copied()).unwrap_or("local")
}

/// The kernel's own conversion, if the kernel considers the TSC stable.
fn tsc_conversion() -> Option<TscConversion> {
    let (mult, shift, zero_ns) = sys::tsc_conversion()?;
    Some(TscConversion { mult, shift: shift.into(), zero_ns })
}
