//! Durations of handlers, as bars by power of two.

use analyses::distribution::Distribution;

use crate::units::{count, time};

/// Characters of the longest bar.
const BAR: usize = 40;

/// One line per power of two, from the shortest time to the longest.
pub(super) fn draw(distribution: &Distribution, nanoseconds: bool) -> String {
    let rows = distribution.by_power_of_two();
    let max = rows.iter().map(|(_, count)| *count).max().unwrap_or(0).max(1);
    let mut out = String::new();
    for (below, number) in rows {
        let from = time(u64::try_from(below / 2).unwrap_or(u64::MAX), nanoseconds);
        let to = time(u64::try_from(below).unwrap_or(u64::MAX), nanoseconds);
        let length = (u128::from(number) * BAR as u128).div_ceil(max.into());
        let bar = "#".repeat(usize::try_from(length).unwrap_or(BAR));
        let line = format!("  {from:>9} to {to:>9} {:>12}  {bar}", count(number));
        out += line.trim_end();
        out.push('\n');
    }
    out
}
