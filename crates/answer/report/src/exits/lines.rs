//! The lines of an exits table: rows, with a sum below each VM's rows, and the total.

use std::collections::HashMap;

use analyses::exits::ExitRow;
use analyses::group::{By, Group};
use analyses::tally::Tally;

/// The rows of a table, and sums of them.
pub(super) struct Lines<'e> {
    parts: Vec<Part<'e>>,
    pub(super) all: Tally,
}

/// The rows of one VM, or all rows if VMs are not separate.
struct Part<'e> {
    /// `None`: no separate sum is shown.
    sum: Option<Tally>,
    shown: Vec<&'e ExitRow>,
    others: Option<(usize, Tally)>,
    /// A row of the part, which names its VM.
    first: &'e ExitRow,
}

/// One line of a table.
pub(super) struct Line<'l> {
    pub(super) kind: Kind,
    /// The group of the line; for a sum, a group of the same VM.
    pub(super) group: Option<&'l Group>,
    pub(super) tally: &'l Tally,
}

/// The rows that a line counts.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Row,
    /// This many rows that are not shown.
    Others(usize),
    /// All rows of a VM.
    Vm,
    /// All rows.
    All,
}

impl<'e> Lines<'e> {
    /// Creates lines for `rows`, the first `shown` of which get a line each. Rows are grouped by VM, the
    /// one with the greatest `weight` first, unless each row is a VM.
    pub(super) fn new(
        rows: &[&'e ExitRow],
        shown: usize,
        by: &[By],
        weight: impl Fn(&Tally) -> u64,
    ) -> Self {
        let mut parts = Vec::new();
        let mut places: HashMap<Option<&str>, usize> = HashMap::new();
        let vm = |row: &'e ExitRow| row.group.vm.as_deref().filter(|_| by.len() > 1);
        for (at, row) in rows.iter().enumerate() {
            let part = *places.entry(vm(row)).or_insert_with(|| {
                parts.push((Vec::new(), Vec::new()));
                parts.len() - 1
            });
            if let Some((own_rows, rest)) = parts.get_mut(part) {
                if at < shown { own_rows } else { rest }.push(*row);
            }
        }
        let several = parts.len() > 1;
        let parts =
            parts.into_iter().filter_map(|(own_rows, rest)| Part::new(own_rows, &rest, several));
        let mut parts: Vec<_> = parts.collect();
        // Parts with equal weights stay in the order of their greatest rows.
        parts.sort_by_key(|(_, sum)| std::cmp::Reverse(weight(sum)));
        let mut all = Tally::default();
        parts.iter().for_each(|(_, sum)| all.merge(sum));
        Self { parts: parts.into_iter().map(|(part, _)| part).collect(), all }
    }

    /// Whether rows are grouped by VM.
    pub(super) fn are_of_several_vms(&self) -> bool {
        self.parts.len() > 1
    }

    /// The lines in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = Line<'_>> {
        let all = Line { kind: Kind::All, group: None, tally: &self.all };
        self.parts.iter().flat_map(Part::lines).chain([all])
    }

    /// Only the lines of rows.
    pub(super) fn rows(&self) -> impl Iterator<Item = &'e ExitRow> {
        self.parts.iter().flat_map(|part| &part.shown).copied()
    }
}

impl<'e> Part<'e> {
    /// The part, and the sum of its rows.
    fn new(shown: Vec<&'e ExitRow>, rest: &[&'e ExitRow], several: bool) -> Option<(Self, Tally)> {
        let first = *shown.first().or(rest.first())?;
        let others = (!rest.is_empty()).then(|| (rest.len(), sum(rest)));
        let mut all = sum(&shown);
        others.iter().for_each(|(_, others)| all.merge(others));
        // The sum of a single row would repeat it.
        let sum = (several && shown.len() + rest.len() > 1).then(|| all.clone());
        Some((Self { sum, shown, others, first }, all))
    }

    fn lines(&self) -> impl Iterator<Item = Line<'_>> {
        let row = |row: &&'e ExitRow| Line {
            kind: Kind::Row,
            group: Some(&row.group),
            tally: &row.tally,
        };
        let others =
            self.others.iter().map(|(rows, tally)| self.sum_line(Kind::Others(*rows), tally));
        let sum = self.sum.iter().map(|tally| self.sum_line(Kind::Vm, tally));
        self.shown.iter().map(row).chain(others).chain(sum)
    }

    fn sum_line<'l>(&'l self, kind: Kind, tally: &'l Tally) -> Line<'l> {
        Line { kind, group: Some(&self.first.group), tally }
    }
}

fn sum(rows: &[&ExitRow]) -> Tally {
    let mut sum = Tally::default();
    rows.iter().for_each(|row| sum.merge(&row.tally));
    sum
}
