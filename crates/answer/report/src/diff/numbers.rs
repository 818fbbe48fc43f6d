//! Formats values, changes and p-values of a comparison.

use analyses::diff::{DiffRow, Scale, Unit};

use crate::units::{count, time};

/// The ratio, or the difference where there is none.
pub(super) fn change(row: &DiffRow, unit: Unit, nanoseconds: bool) -> Option<String> {
    match (row.ratio, row.a.value, row.b.value) {
        (Some(ratio), ..) => Some(times(ratio)),
        (None, Some(a), Some(b)) if a != b => Some(signed(b - a, unit, nanoseconds)),
        _ => None,
    }
}

pub(super) fn interval(row: &DiffRow, unit: Unit, nanoseconds: bool) -> String {
    match row.interval {
        None => "-".to_owned(),
        Some((Scale::Ratio, low, high)) => format!("{} … {}", times(low), times(high)),
        Some((Scale::Difference, low, high)) => {
            format!("{} … {}", signed(low, unit, nanoseconds), signed(high, unit, nanoseconds))
        }
    }
}

fn signed(value: f64, unit: Unit, nanoseconds: bool) -> String {
    let sign = if value < 0.0 { "-" } else { "+" };
    format!("{sign}{}", number(value.abs(), unit, nanoseconds))
}

fn times(ratio: f64) -> String {
    match ratio {
        ratio if ratio >= 1e6 => format!("{ratio:.1e}x"),
        ratio if ratio >= 99.95 => format!("{ratio:.0}x"),
        ratio if ratio >= 9.995 => format!("{ratio:.1}x"),
        ratio if ratio >= 0.0995 => format!("{ratio:.2}x"),
        ratio => format!("{ratio:.3}x"),
    }
}

/// A value with its unit.
pub(super) fn number(value: f64, unit: Unit, nanoseconds: bool) -> String {
    let few = |value: f64| match value {
        value if value >= 999.5 => count(value.round() as u64),
        value if value >= 99.95 => format!("{value:.0}"),
        value if value >= 9.995 => format!("{value:.1}"),
        value => format!("{value:.2}"),
    };
    match unit {
        Unit::Time => time(value.round() as u64, nanoseconds),
        Unit::TimePerSecond if nanoseconds => percent(value / 1e7),
        Unit::TimePerSecond => format!("{}/s", time(value.round() as u64, nanoseconds)),
        Unit::CountPerSecond => format!("{}/s", few(value)),
        Unit::Share => format!("{:.2}%", value * 100.0),
        Unit::Times => few(value),
    }
}

/// A percentage, to at most three significant digits.
fn percent(value: f64) -> String {
    match value {
        0.0 => "0%".to_owned(),
        value if value < 0.0005 => "<0.001%".to_owned(),
        value if value < 0.9995 => format!("{value:.3}%"),
        value if value < 9.995 => format!("{value:.2}%"),
        value if value < 99.95 => format!("{value:.1}%"),
        value => format!("{value:.0}%"),
    }
}

/// A p-value, to two digits.
pub(super) fn p_value(p: f64) -> String {
    match p {
        p if p < 1e-9 => "<1e-9".to_owned(),
        p if p < 0.001 => format!("{p:.0e}"),
        p if p < 0.0995 => format!("{p:.3}"),
        p => format!("{p:.2}"),
    }
}
