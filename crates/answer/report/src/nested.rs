//! The report of `hyperscope nested`: each reason of level 2 with the level-1 exits under it.

mod headline;
mod json;
mod lines;

use analyses::nested::{AncillaryRow, Nested, NestedRow};
use printable::line;
use serde::Serialize;

pub(crate) use self::json::Document;
use self::lines::{Line, TABLE, columns, lines};
use crate::column;
use crate::table::Table;
use crate::units::{count, plural};
use crate::{Legend, Report, losses};

/// The nested exits of all given recordings.
#[derive(Debug)]
pub struct NestedReport {
    /// Path and nested exits of each recording.
    pub sources: Vec<(String, Nested)>,
}

impl Report for NestedReport {
    fn headline(&self) -> String {
        headline::headline(&self.sources)
    }

    fn tables(&self, width: Option<usize>) -> String {
        let is_alone = self.sources.len() == 1;
        let text = |(path, nested): &(String, Nested)| {
            let result = headline::of_source(path, nested);
            let result = if is_alone { String::new() } else { format!("\n{result}\n") };
            result + &source_text(path, nested, width)
        };
        self.sources.iter().map(text).collect()
    }

    fn legend(&self) -> Legend {
        vec![
            ("per exit", "exits of L1 per reflected exit of L2, until L2 runs again"),
            ("factor", "exits that the host handled per exit of L2, including that exit"),
        ]
    }

    fn document(&self) -> impl Serialize {
        self.document_of()
    }

    fn csv(&self) -> Table {
        let lines: Vec<Line<'_>> =
            self.sources.iter().flat_map(|(path, nested)| lines(path, nested)).collect();
        let in_ns: Vec<bool> = self.sources.iter().map(|(_, nested)| nested.nanoseconds).collect();
        column::csv(&columns(false), &lines, &in_ns)
    }
}

impl NestedReport {
    pub(crate) fn document_of(&self) -> Document<'_> {
        Document::new(self)
    }
}

/// Mean number of ancillary exits of one reason per reflected exit.
fn per_exit(row: &NestedRow, ancillary: &AncillaryRow) -> Option<f64> {
    (row.reflected > 0).then(|| ancillary.count as f64 / row.reflected as f64)
}

fn source_text(path: &str, nested: &Nested, width: Option<usize>) -> String {
    let (mut out, path) = (String::new(), line(path));
    for level in &nested.levels {
        out += &format!(
            "{path}: {}: {} of the guest (L1), {} of nested guests (L2)\n",
            line(&level.vm),
            plural(level.level1, "exit"),
            count(level.level2),
        );
    }
    if nested.rows.is_empty() {
        out += "Record kvm:kvm_nested_vmexit, kvm:kvm_nested_vmexit_inject and kvm:kvm_nested_vmenter to see exits of nested \
                guests.\n";
        return out + &losses_text(nested);
    }
    let mut table = Table::default();
    let lines: Vec<Line<'_>> = lines(&path, nested).collect();
    column::draw(&columns(nested.levels.len() > 1), &mut table, TABLE, &lines);
    let (text, left_out) = table.draw(width);
    out += "\n";
    out += &format!("{text}\n");
    let waiting: Vec<_> =
        nested.rows.iter().filter(|row| row.waiting).map(|row| line(&row.reason)).collect();
    if !waiting.is_empty() {
        out += &format!(
            "{}: level 2 waits for work, so this is idle time of level 1 and not a cost; listed below the others\n",
            waiting.join(", ")
        );
    }
    for row in nested.rows.iter().filter(|row| row.unfinished > 0) {
        out += &format!(
            "{}: after {} of them, level 2 was not seen to run again; all exits up to that point count\n",
            line(&row.reason),
            count(row.unfinished),
        );
    }
    if !left_out.is_empty() {
        out +=
            &format!("hidden to fit the width: {}; csv and json show all\n", left_out.join(", "));
    }
    out + &losses_text(nested)
}

fn losses_text(nested: &Nested) -> String {
    let repeats = losses::repeats(&nested.repeated_buffers);
    let notes = repeats.into_iter().chain(losses::notes(&nested.losses, nested.dropped));
    notes.map(|note| format!("{}\n", line(&note))).collect()
}
