//! Selects events by name, CPU, time and field values.

use std::fmt;

use ftrace::eventfmt::EventFormat;
use raw_bytes::Abi;

pub use crate::event_condition::{CompiledCondition, Condition, FilterError, Unfit};

/// A set of CPU numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CpuSet(Vec<(u32, u32)>);

impl fmt::Display for CpuSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (first, last)) in self.0.iter().enumerate() {
            let comma = if at == 0 { "" } else { "," };
            if first == last {
                write!(f, "{comma}{first}")?
            } else {
                write!(f, "{comma}{first}-{last}")?
            }
        }
        Ok(())
    }
}

impl CpuSet {
    /// Parses a list such as `0,2-3`.
    ///
    /// # Errors
    /// If a part is neither a number nor a range.
    pub fn parse(text: &str) -> Result<Self, FilterError> {
        let wrong = || FilterError::Cpus(text.to_owned());
        let number = |part: &str| part.trim().parse::<u32>().map_err(|_| wrong());
        let ranges = text.split(',').map(|part| match part.split_once('-') {
            Some((first, last)) => Ok((number(first)?, number(last)?)),
            None => number(part).map(|cpu| (cpu, cpu)),
        });
        let ranges = ranges.collect::<Result<Vec<_>, _>>()?;
        if ranges.iter().any(|(first, last)| first > last) {
            return Err(wrong());
        }
        Ok(Self(ranges))
    }

    /// Whether the CPU is in the set.
    #[must_use]
    pub fn contains(&self, cpu: u32) -> bool {
        self.0.iter().any(|(first, last)| (*first..=*last).contains(&cpu))
    }
}

/// A selection of events; the default selects all.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// Patterns; an event's name must match one of them. Empty: any name.
    pub events: Vec<String>,
    /// CPUs; `None`: all.
    pub cpus: Option<CpuSet>,
    /// Start of the time range.
    pub from_ns: Option<u64>,
    /// End of the time range, exclusive.
    pub to_ns: Option<u64>,
    /// Conditions on fields; an event without the field does not meet them.
    pub conditions: Vec<Condition>,
}

impl Filter {
    /// Whether events of a CPU can pass.
    #[must_use]
    pub fn wants_cpu(&self, cpu: u32) -> bool {
        self.cpus.as_ref().is_none_or(|cpus| cpus.contains(cpu))
    }

    /// The conditions for events of a format; `None` if no such event can pass.
    #[must_use]
    pub fn compile(&self, format: &EventFormat, abi: Abi) -> Option<Vec<CompiledCondition>> {
        let by_name =
            self.events.is_empty() || self.events.iter().any(|pattern| format.is_named(pattern));
        let compiled = || {
            self.conditions.iter().map(|condition| condition.compile(format, abi).ok()).collect()
        };
        if by_name { compiled() } else { None }
    }

    /// Whether events at this time pass.
    #[inline]
    #[must_use]
    pub fn wants_time(&self, stamp_ns: u64) -> bool {
        self.from_ns.is_none_or(|from_ns| stamp_ns >= from_ns)
            && self.to_ns.is_none_or(|to_ns| stamp_ns < to_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_lists_are_read() {
        let cpus = CpuSet::parse("0,2-3").unwrap();
        assert_eq!([0, 1, 2, 3, 4].map(|cpu| cpus.contains(cpu)), [true, false, true, true, false]);
        assert!(CpuSet::parse("3-2").is_err());
        assert!(CpuSet::parse("x").is_err());
    }
}
