//! Decides which rows are findings: those that are significant among all comparisons, last until the end, and are not
//! offset by another reason.

use stats::benjamini_hochberg;

use crate::rows::Row;

/// Adjusts p for the number of rows, and marks significant rows.
pub(crate) fn correct(rows: &mut [Row], alpha: f64) {
    let p: Vec<f64> = rows.iter().filter_map(|row| Some(row.change?.p)).collect();
    let mut adjusted = benjamini_hochberg(&p).into_iter();
    for row in rows {
        let Some(change) = row.change else { continue };
        row.p_adjusted = adjusted.next();
        let stands = row.p_adjusted.is_some_and(|p| p <= alpha);
        row.significant = stands && change.is_not_contradicted(alpha);
    }
}

/// Allowed ratio of two changes that offset each other.
const SAME: std::ops::RangeInclusive<f64> = 0.5..=2.0;

/// Notes reasons whose rate changed while another reason's changed by as much in the other direction, and the sum did
/// not change: work is counted elsewhere.
pub(crate) fn note_shifts(rows: &mut [Row]) {
    let shifted: Vec<Option<String>> = rows.iter().map(|row| made_up_by(row, rows)).collect();
    for (row, shifted) in rows.iter_mut().zip(shifted) {
        row.shifted = shifted;
    }
}

fn made_up_by(row: &Row, rows: &[Row]) -> Option<String> {
    let is_single = row.significant && row.metric.is_rate() && !row.is_of_all();
    let increase = more(row).filter(|_| is_single)?;
    let peer = |other: &&Row| other.stratum == row.stratum && other.metric == row.metric;
    let all = rows.iter().filter(peer).find(|other| other.is_of_all())?;
    if all.significant {
        return None;
    }
    let others = rows.iter().filter(peer).filter(|other| other.significant && !other.is_of(row));
    let found = others.filter(|other| !other.is_of_all() && other.level == row.level);
    let makes_up =
        |other: &&Row| more(other).is_some_and(|more| SAME.contains(&(-more / increase)));
    found.filter(makes_up).map(|other| other.reason.clone()).next()
}

/// Findings, each as indices of its rows: a change that several numbers of the same hosts show is one finding.
pub(crate) fn distinct(rows: &[Row]) -> Vec<Vec<usize>> {
    let findings: Vec<(usize, &Row)> =
        rows.iter().enumerate().filter(|(_, row)| row.is_finding()).collect();
    // A row of all kinds of hosts already names the hosts of each kind.
    let is_covered = |row: &Row| {
        let covers = |other: &&(usize, &Row)| other.1.stratum.is_none() && other.1.is_of(row);
        row.stratum.is_none() || !findings.iter().any(|finding| covers(&finding))
    };
    let mut all: Vec<(&Row, Vec<usize>)> = Vec::new();
    let named = findings.iter().filter(|(_, row)| !row.carried_by.is_empty());
    for (at, row) in named.filter(|(_, row)| is_covered(row)) {
        let is_same = |known: &&mut (&Row, Vec<usize>)| {
            known.0.is_of(row) && known.0.carried_by == row.carried_by
        };
        match all.iter_mut().find(is_same) {
            Some(known) => known.1.push(*at),
            None => all.push((row, vec![*at])),
        }
    }
    all.into_iter().map(|finding| finding.1).collect()
}

/// The increase on the second side.
fn more(row: &Row) -> Option<f64> {
    let [a, b] = row.means;
    Some(b? - a?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::{Change, Design};
    use crate::metric::Metric;
    use crate::sums::Key;

    fn row(reason: &str, a: f64, b: f64, p: f64) -> Row {
        let key =
            Key { level: i32::from(!reason.is_empty()), reason: reason.into(), ..Key::default() };
        let mut row = Row::new(None, &key, Metric::Time);
        row.means = [Some(a), Some(b)];
        let ratio = b / a;
        let (low, high, design) = (ratio, ratio, Design::Paired);
        row.change = Some(Change { design, ratio, low, high, p, permutation: None });
        row
    }

    #[test]
    fn what_only_moves_to_another_reason_is_no_finding() {
        let all = |p| row("", 1000.0, 1001.0, p);
        let rows_with = |all: Row| {
            let mut rows = vec![
                all,
                row("msr", 100.0, 150.0, 1e-6),
                row("io", 100.0, 55.0, 1e-6),
                row("npf", 100.0, 300.0, 1e-6),
            ];
            correct(&mut rows, 0.05);
            note_shifts(&mut rows);
            rows
        };
        let rows = rows_with(all(0.7));
        let shifted: Vec<_> = rows.iter().map(|row| row.shifted.as_deref()).collect();
        assert_eq!(shifted, [None, Some("io"), Some("msr"), None]);
        let findings: Vec<_> = rows.iter().map(Row::is_finding).collect();
        assert_eq!(findings, [false, false, false, true]);
        assert!(rows_with(all(1e-6)).iter().all(Row::is_finding));
    }
}
