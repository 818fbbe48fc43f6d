//! The result of the nested report in one sentence: exits of nested guests, and what each makes the host handle.

use analyses::nested::{Nested, NestedRow};
use printable::line;

use crate::greatest::greatest;
use crate::units::{count, plural, share};

/// The sentence about some recordings.
pub(super) fn headline(sources: &[(String, Nested)]) -> String {
    match sources {
        [(path, nested)] => of_source(path, nested),
        sources => {
            let rows = sources.iter().flat_map(|(_, nested)| &nested.rows);
            format!(
                "{}: {}.",
                plural(sources.len() as u64, "recording"),
                result(&rows.collect::<Vec<_>>())
            )
        }
    }
}

/// The sentence about one recording.
pub(super) fn of_source(path: &str, nested: &Nested) -> String {
    format!("{}: {}.", line(path), result(&nested.rows.iter().collect::<Vec<_>>()))
}

fn result(rows: &[&NestedRow]) -> String {
    if rows.is_empty() {
        return "no exits of nested guests".to_owned();
    }
    let exits = sum(rows, |row| row.count);
    let mut out = format!("nested guests (L2) made {}", plural(exits, "exit"));
    // While L2 waits, exits come of whatever else L1 does.
    let working: Vec<&NestedRow> = rows.iter().copied().filter(|row| !row.waiting).collect();
    let working_exits = sum(&working, |row| row.count);
    let without = if working_exits < exits { "without waiting exits, " } else { "" };
    let reflected = sum(&working, |row| row.reflected);
    if reflected == 0 {
        return out + &format!("; {without}none was reflected to L1");
    }
    let caused = sum(&working, NestedRow::ancillary_count);
    out += &format!(
        "; {without}{} ({}) {} reflected to L1, with {:.2} exits of L1 each on average",
        count(reflected),
        share(reflected, working_exits),
        if reflected == 1 { "was" } else { "were" },
        caused as f64 / reflected as f64,
    );
    let most = greatest(working.iter().map(|row| (row.ancillary_count(), row)));
    if let Some((number, row)) = most.filter(|(number, _)| *number > 0) {
        out += &format!(
            "; {} caused most, {} of {}",
            line(&row.reason),
            count(number),
            plural(caused, "exit")
        );
    }
    out
}

fn sum(rows: &[&NestedRow], value_of: impl Fn(&NestedRow) -> u64) -> u64 {
    rows.iter().map(|row| value_of(row)).fold(0, u64::saturating_add)
}
