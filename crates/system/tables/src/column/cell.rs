//! A cell: a value of a row, and the unit that decides how tables show it.

use std::cmp::Ordering;

use serde::ser::{Serialize, Serializer};

/// A value of a row as in JSON; `None` if it was not recorded.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// A name.
    Text(Option<String>),
    /// A whole number.
    Number(Option<u64>),
    /// A number that can be negative.
    Signed(Option<i64>),
    /// A number with a fraction.
    Ratio(Option<f64>),
    /// A boolean.
    Flag(bool),
}

impl Serialize for Cell {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Text(value) => value.serialize(serializer),
            Self::Number(value) => value.serialize(serializer),
            Self::Signed(value) => value.serialize(serializer),
            Self::Ratio(value) => value.serialize(serializer),
            Self::Flag(value) => value.serialize(serializer),
        }
    }
}

impl Cell {
    /// Whether it was recorded.
    #[must_use]
    pub fn is_known(&self) -> bool {
        !matches!(
            self,
            Self::Text(None) | Self::Number(None) | Self::Signed(None) | Self::Ratio(None)
        )
    }

    /// The value in CSV; empty if it was not recorded.
    #[must_use]
    pub fn plain(&self) -> String {
        match self {
            Self::Text(value) => value.clone().unwrap_or_default(),
            Self::Number(value) => value.map_or_else(String::new, |value| value.to_string()),
            Self::Signed(value) => value.map_or_else(String::new, |value| value.to_string()),
            // The same format as in JSON.
            Self::Ratio(value) => value.map_or_else(String::new, |value| {
                serde_json::Number::from_f64(value)
                    .map_or_else(String::new, |number| number.to_string())
            }),
            Self::Flag(value) => value.to_string(),
        }
    }
}

/// The order of `--sort`: largest numbers first, names from a to z, unknown values last.
#[must_use]
pub fn sorted(first: &Cell, other: &Cell) -> Ordering {
    let unknown_last = other.is_known().cmp(&first.is_known());
    unknown_last.then_with(|| match (first, other) {
        (Cell::Number(first), Cell::Number(other)) => other.cmp(first),
        (Cell::Signed(first), Cell::Signed(other)) => other.cmp(first),
        (Cell::Ratio(first), Cell::Ratio(other)) => {
            other.unwrap_or(0.0).total_cmp(&first.unwrap_or(0.0))
        }
        (Cell::Flag(first), Cell::Flag(other)) => other.cmp(first),
        (first, other) => first.plain().cmp(&other.plain()),
    })
}

/// The unit of a column's values, which decides how tables show them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Names, without a unit.
    Text,
    /// A level of virtualisation.
    Level,
    /// An address, a port, or a register number.
    Hex,
    /// A plain number, such as an id.
    Id,
    /// A count.
    Count,
    /// A share, a relative error: 1 is 100%.
    Ratio,
    /// A boolean, without a unit.
    Flag,
    /// Nanoseconds, or ticks of the recording's clock.
    Time,
}

impl Unit {
    /// Its name in documents.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Level | Self::Hex | Self::Id => "number",
            Self::Count => "count",
            Self::Ratio => "ratio",
            Self::Flag => "flag",
            Self::Time => "time",
        }
    }
}
