//! The clock of a recording, and how its ticks become nanoseconds.

use tracedat::Tsc2Nsec;

use crate::error::{RecordError, Result};
use crate::instance::Instance;

/// The processor's own counter: the same on all CPUs, and what guests' clocks are made from.
const TSC: &str = "x86-tsc";
/// Clocks that are the same on all CPUs, the cheapest first; each kernel has some.
const COMMON: [&str; 3] = ["mono", "boot", "global"];

/// A clock that was selected.
#[derive(Clone, Debug)]
pub(crate) struct Clock {
    /// The kernel's name of it.
    pub(crate) name: String,
    /// The kernel's line of all clocks.
    pub(crate) line: String,
    /// The conversion of a TSC.
    pub(crate) tsc2nsec: Option<Tsc2Nsec>,
}

/// Selects the clock that was asked for, else the best that there is.
pub(crate) fn select(instance: &Instance, asked: Option<&str>) -> Result<Clock> {
    let line = instance.get("trace_clock")?;
    let available: Vec<&str> =
        line.split_whitespace().map(|name| name.trim_matches(['[', ']'])).collect();
    let name = match asked {
        Some(name) if available.contains(&name) => name,
        Some(name) => {
            let text = format!("there is no clock {name}: there are {}", available.join(", "));
            return Err(RecordError::Usage(text));
        }
        None => best(&available),
    };
    instance.set("trace_clock", name)?;
    let tsc2nsec = (name == TSC).then(tsc2nsec).flatten();
    Ok(Clock {
        name: name.to_owned(),
        line: instance.get("trace_clock")?.trim().to_owned(),
        tsc2nsec,
    })
}

fn best<'a>(available: &[&'a str]) -> &'a str {
    let has_tsc = available.contains(&TSC) && tsc2nsec().is_some();
    let wanted = has_tsc.then_some(TSC).into_iter().chain(COMMON);
    let mut found = wanted.filter_map(|name| available.iter().copied().find(|&one| one == name));
    found.next().or(available.first().copied()).unwrap_or("local")
}

/// The kernel's own conversion, where it says that its counter never stops or changes speed.
fn tsc2nsec() -> Option<Tsc2Nsec> {
    let (mult, shift, offset) = sys::tsc_conversion()?;
    Some(Tsc2Nsec { mult, shift: shift.into(), offset })
}
