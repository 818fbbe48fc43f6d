//! Which events are meant: by name, CPU, time and field values.

use std::fmt;

use eventfmt::{EventFormat, NumberAt, Value, glob};
use raw_bytes::ByteOrder;

/// A filter that can't be understood.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FilterError {
    /// A list of CPUs that is none.
    #[error("\"{0}\" is no list of CPUs; write 0,2-3")]
    Cpus(String),
    /// A condition that is none.
    #[error("\"{0}\" is no condition; write FIELD OP VALUE with one of == != < <= > >= & ~")]
    Condition(String),
    /// A number where text is compared, or the other way round.
    #[error("\"{0}\": only == != and ~ compare text")]
    TextOrder(String),
}

/// A set of CPU numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CpuSet(Vec<(u32, u32)>);

impl fmt::Display for CpuSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (first, last)) in self.0.iter().enumerate() {
            let comma = if at == 0 { "" } else { "," };
            match first == last {
                true => write!(f, "{comma}{first}")?,
                false => write!(f, "{comma}{first}-{last}")?,
            }
        }
        Ok(())
    }
}

impl CpuSet {
    /// Reads a list such as `0,2-3`.
    ///
    /// # Errors
    /// When a part is no number and no range.
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

/// Which events are meant; the default means all.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// Patterns of which an event's name must match one; empty: any.
    pub events: Vec<String>,
    /// CPUs; `None`: all.
    pub cpus: Option<CpuSet>,
    /// First time.
    pub from_ns: Option<u64>,
    /// First time past the end.
    pub to_ns: Option<u64>,
    /// Conditions on fields; an event that lacks the field does not meet it.
    pub conditions: Vec<Condition>,
}

impl Filter {
    /// Whether events of a CPU can pass.
    #[must_use]
    pub fn wants_cpu(&self, cpu: u32) -> bool {
        self.cpus.as_ref().is_none_or(|cpus| cpus.contains(cpu))
    }

    /// Whether events of a format can pass.
    #[must_use]
    pub fn wants_event(&self, format: &EventFormat) -> bool {
        let by_name =
            self.events.is_empty() || self.events.iter().any(|pattern| format.is_named(pattern));
        by_name && self.conditions.iter().all(|one| format.field(&one.field).is_some())
    }

    /// Whether events of that time pass.
    #[inline]
    #[must_use]
    pub fn wants_time(&self, stamp_ns: u64) -> bool {
        self.from_ns.is_none_or(|from_ns| stamp_ns >= from_ns)
            && self.to_ns.is_none_or(|to_ns| stamp_ns < to_ns)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Compare {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    HasBits,
    Matches,
}

/// Operators, the longer before those they begin with.
const OPERATORS: [(&str, Compare); 9] = [
    ("==", Compare::Equal),
    ("!=", Compare::NotEqual),
    ("<=", Compare::LessOrEqual),
    (">=", Compare::GreaterOrEqual),
    ("<", Compare::Less),
    (">", Compare::Greater),
    ("&", Compare::HasBits),
    ("~", Compare::Matches),
    ("=", Compare::Equal),
];

/// A condition on one field: `FIELD OP VALUE`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    field: String,
    compare: Compare,
    wanted: Wanted,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Wanted {
    Number(i128),
    Text(String),
}

impl Condition {
    /// Reads a condition such as `exit_reason == 12` or `comm ~ qemu*`.
    ///
    /// # Errors
    /// When there is no operator, no field or no value, or text is to be greater than text.
    pub fn parse(text: &str) -> Result<Self, FilterError> {
        let wrong = || FilterError::Condition(text.to_owned());
        let (at, sign, compare) = OPERATORS
            .iter()
            .filter_map(|(sign, compare)| Some((text.find(sign)?, *sign, *compare)))
            .min_by_key(|(at, sign, _)| (*at, std::cmp::Reverse(sign.len())))
            .ok_or_else(wrong)?;
        let (field, rest) = text.split_at_checked(at).ok_or_else(wrong)?;
        let value = rest.strip_prefix(sign).ok_or_else(wrong)?.trim();
        let field = field.trim().to_owned();
        if field.is_empty() || value.is_empty() {
            return Err(wrong());
        }
        let wanted = match number(value) {
            Some(number) if compare != Compare::Matches => Wanted::Number(number),
            _ => Wanted::Text(value.trim_matches('"').to_owned()),
        };
        let on_text = matches!(compare, Compare::Equal | Compare::NotEqual | Compare::Matches);
        if matches!(wanted, Wanted::Text(_)) && !on_text {
            return Err(FilterError::TextOrder(text.to_owned()));
        }
        Ok(Self { field, compare, wanted })
    }

    /// The field it is about.
    #[must_use]
    pub fn field(&self) -> &str {
        &self.field
    }

    /// Makes the condition ready for events of a format that has its field; none, where it has not.
    #[must_use]
    pub fn compile(&self, format: &EventFormat) -> Option<CompiledCondition> {
        let field = format.field(&self.field)?;
        Some(CompiledCondition {
            condition: self.clone(),
            number: field.number(),
            field: field.clone(),
        })
    }
}

fn number(text: &str) -> Option<i128> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    let value = match digits.strip_prefix("0x") {
        Some(hex) => i128::from(u64::from_str_radix(hex, 16).ok()?),
        None => i128::from(digits.parse::<u64>().ok()?),
    };
    Some(if negative { -value } else { value })
}

/// A condition with the place of its field.
#[derive(Clone, Debug)]
pub struct CompiledCondition {
    condition: Condition,
    number: Option<NumberAt>,
    field: eventfmt::Field,
}

impl CompiledCondition {
    /// Whether a record meets the condition; one that is too short does not.
    #[must_use]
    pub fn holds(&self, record: &[u8], order: ByteOrder) -> bool {
        match (&self.condition.wanted, self.number) {
            (Wanted::Number(wanted), Some(at)) => {
                let value = if at.signed {
                    at.read_signed(record, order).map(i128::from)
                } else {
                    at.read(record, order).map(i128::from)
                };
                value.is_some_and(|value| self.compare(value, *wanted))
            }
            (Wanted::Text(wanted), _) => match self.field.value(record, order) {
                Some(Value::Text(text)) => {
                    self.compare_text(&String::from_utf8_lossy(text), wanted)
                }
                _ => false,
            },
            (Wanted::Number(_), None) => false,
        }
    }

    fn compare(&self, value: i128, wanted: i128) -> bool {
        match self.condition.compare {
            Compare::Equal => value == wanted,
            Compare::NotEqual => value != wanted,
            Compare::Less => value < wanted,
            Compare::LessOrEqual => value <= wanted,
            Compare::Greater => value > wanted,
            Compare::GreaterOrEqual => value >= wanted,
            Compare::HasBits => value & wanted != 0,
            Compare::Matches => false,
        }
    }

    fn compare_text(&self, text: &str, wanted: &str) -> bool {
        match self.condition.compare {
            Compare::Equal => text == wanted,
            Compare::NotEqual => text != wanted,
            Compare::Matches => glob(wanted, text),
            _ => false,
        }
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

    #[test]
    fn conditions_name_field_operator_and_value() {
        assert!(Condition::parse("exit_reason == 12").is_ok());
        assert!(Condition::parse("error_code>=0x10").is_ok());
        assert_eq!(Condition::parse("a<=1").unwrap().compare, Compare::LessOrEqual);
        assert!(Condition::parse("exit_reason").is_err());
        assert!(Condition::parse("== 12").is_err());
        assert!(Condition::parse("comm < qemu").is_err());
        assert!(Condition::parse("comm ~ qemu*").is_ok());
    }
}
