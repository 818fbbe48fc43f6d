//! Tables: columns have a rank, so that a narrow terminal omits the least important ones.

use std::borrow::Cow;

use comfy_table::{CellAlignment, ContentArrangement, Table as Drawing, presets};

/// A column of a table.
#[derive(Clone, Debug)]
pub struct Column {
    /// Its heading.
    pub title: String,
    /// Right-aligned, as for numbers.
    pub right: bool,
    /// 0: always shown. A narrow terminal omits the highest ranks first.
    pub rank: u8,
    /// Its cells, from the top.
    pub cells: Vec<String>,
}

/// A table, column by column.
#[derive(Clone, Debug, Default)]
pub struct Table {
    columns: Vec<Column>,
}

impl Table {
    /// Adds a column of names.
    pub fn names(&mut self, title: &str, rank: u8, cells: Vec<String>) {
        self.columns.push(Column { title: title.to_owned(), right: false, rank, cells });
    }

    /// Adds a column of numbers.
    pub fn numbers(&mut self, title: &str, rank: u8, cells: Vec<String>) {
        self.columns.push(Column { title: title.to_owned(), right: true, rank, cells });
    }

    /// Whether it has a column with this title, which a narrow terminal may omit.
    #[must_use]
    pub fn has(&self, title: &str) -> bool {
        self.columns.iter().any(|column| column.title == title)
    }

    fn rows(&self) -> usize {
        self.columns.iter().map(|column| column.cells.len()).max().unwrap_or(0)
    }

    /// The table for a terminal of `width` columns, and the titles of the omitted columns. Cells
    /// cannot break their row.
    #[must_use]
    pub fn draw(&self, width: Option<usize>) -> (String, Vec<String>) {
        self.printable().draw_as_it_is(width)
    }

    fn printable(&self) -> Cow<'_, Self> {
        let line = |text: &String| printable::line(text).into_owned();
        let column = |column: &Column| Column {
            title: line(&column.title),
            cells: column.cells.iter().map(line).collect(),
            ..*column
        };
        let cells =
            || self.columns.iter().flat_map(|column| column.cells.iter().chain([&column.title]));
        if cells().all(|cell| matches!(printable::line(cell), Cow::Borrowed(_))) {
            return Cow::Borrowed(self);
        }
        Cow::Owned(Self { columns: self.columns.iter().map(column).collect() })
    }

    fn draw_as_it_is(&self, width: Option<usize>) -> (String, Vec<String>) {
        let (shown, left_out) = self.fitting(width);
        let shown = shortened(shown, width);
        let mut drawing = Drawing::new();
        drawing.load_style(presets::NOTHING);
        drawing.set_content_arrangement(ContentArrangement::Disabled);
        drawing.set_header(shown.iter().map(|column| &column.title));
        for row in 0..self.rows() {
            drawing.add_row(shown.iter().map(|column| cell(column, row)));
        }
        for (column, drawn) in shown.iter().zip(drawing.column_iter_mut()) {
            drawn.set_padding((0, GAP as u16));
            if column.right {
                drawn.set_cell_alignment(CellAlignment::Right);
            }
        }
        let lines: Vec<String> = drawing.lines().map(|line| line.trim_end().to_owned()).collect();
        (lines.join("\n") + "\n", left_out)
    }

    /// The columns that fit, and the titles of the others, of which the lowest rank comes first. Columns of a higher
    /// rank fill room that is too little for wider ones of a lower.
    fn fitting(&self, width: Option<usize>) -> (Vec<&Column>, Vec<String>) {
        let Some(width) = width else { return (self.columns.iter().collect(), Vec::new()) };
        let mut by_rank: Vec<(usize, &Column)> = self.columns.iter().enumerate().collect();
        by_rank.sort_by_key(|(_, column)| column.rank);
        let (mut shown, mut left_out, mut used) = (Vec::new(), Vec::new(), 0);
        for (at, column) in by_rank {
            let needed = used + width_of(column);
            if column.rank == 0 || needed <= width + GAP {
                used = needed;
                shown.push((at, column));
            } else {
                left_out.push(column.title.clone());
            }
        }
        shown.sort_by_key(|(at, _)| *at);
        (shown.into_iter().map(|(_, column)| column).collect(), left_out)
    }

    /// The titles, then the cells of each row.
    #[must_use]
    pub fn lines(&self) -> Vec<Vec<String>> {
        let titles = self.columns.iter().map(|column| column.title.clone()).collect();
        let line = |row| self.columns.iter().map(|column| cell(column, row).to_owned()).collect();
        std::iter::once(titles).chain((0..self.rows()).map(line)).collect()
    }

    /// The table as comma-separated values with a header line.
    #[must_use]
    pub fn to_csv(&self) -> String {
        let mut writer = csv::Writer::from_writer(Vec::new());
        let mut write = |fields: Vec<Cow<'_, str>>| {
            writer.write_record(fields.iter().map(|field| field.as_bytes())).is_ok()
        };
        write(self.columns.iter().map(|column| printable::csv_cell(&column.title)).collect());
        for row in 0..self.rows() {
            write(self.columns.iter().map(|column| csv_cell(column, row)).collect());
        }
        // Writing into memory can't fail.
        let bytes = writer.into_inner().unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

/// Minimum width of shortened names.
const MIN_NAME: usize = 12;

/// Shortens the columns with the longest names as far as a terminal of `width` columns requires.
fn shortened(shown: Vec<&Column>, width: Option<usize>) -> Vec<Cow<'_, Column>> {
    let mut widths: Vec<usize> = shown.iter().map(|column| width_of(column)).collect();
    let mut over =
        width.map_or(0, |width| widths.iter().sum::<usize>().saturating_sub(width + GAP));
    while over > 0 {
        let names = shown.iter().zip(&mut widths).filter(|(column, _)| !column.right);
        let widest = names.map(|(_, width)| width).max_by_key(|width| **width);
        let Some(widest) = widest.filter(|width| **width > MIN_NAME + GAP) else { break };
        (*widest, over) = (*widest - 1, over - 1);
    }
    let fit = |(column, width): (_, usize)| fitted(column, width - GAP);
    shown.into_iter().zip(widths).map(fit).collect()
}

/// The column with cells of at most `max` characters: longer ones lose their middle.
fn fitted(column: &Column, max: usize) -> Cow<'_, Column> {
    if width_of(column) <= max + GAP {
        return Cow::Borrowed(column);
    }
    let fit = |cell: &String| {
        let number = cell.chars().count();
        if number <= max {
            return cell.clone();
        }
        let head = max / 2;
        let tail = cell.chars().skip(number + head + 1 - max);
        cell.chars().take(head).chain(['…']).chain(tail).collect()
    };
    let cells = column.cells.iter().map(fit).collect();
    Cow::Owned(Column { title: fit(&column.title), cells, ..*column })
}

fn cell(column: &Column, row: usize) -> &str {
    column.cells.get(row).map_or("", String::as_str)
}

/// A cell in CSV: protected so that a spreadsheet does not run a name as a formula.
fn csv_cell(column: &Column, row: usize) -> Cow<'_, str> {
    let cell = cell(column, row);
    if column.right { cell.into() } else { printable::csv_cell(cell) }
}

/// Spaces between columns.
const GAP: usize = 2;

/// The width of a column on a terminal, including the gap after it.
fn width_of(column: &Column) -> usize {
    let cells = column.cells.iter().chain([&column.title]);
    cells.map(|cell| cell.chars().count()).max().unwrap_or(0) + GAP
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Table {
        let mut table = Table::default();
        table.names("reason", 0, vec!["hlt".into(), "npf".into()]);
        table.numbers("exits", 1, vec!["1".into(), "20".into()]);
        table.numbers("p99", 2, vec!["3 us".into(), "4 us".into()]);
        table
    }

    #[test]
    fn numbers_stand_at_the_right() {
        let (text, left_out) = sample().draw(None);
        assert_eq!(text, "reason  exits   p99\nhlt         1  3 us\nnpf        20  4 us\n");
        assert!(left_out.is_empty());
    }

    #[test]
    fn a_narrow_terminal_loses_the_highest_rank() {
        let (text, left_out) = sample().draw(Some(13));
        assert_eq!(left_out, ["p99"]);
        assert!(text.lines().all(|line| line.chars().count() <= 13), "{text}");
        let (_, left_out) = sample().draw(Some(1));
        assert_eq!(left_out, ["exits", "p99"]);
    }

    #[test]
    fn a_narrow_column_of_a_high_rank_fills_the_room_that_a_wide_one_leaves() {
        let mut table = sample();
        table.names("handled by", 1, vec!["kernel 99%, user space 1%".into(), "kernel".into()]);
        let (text, left_out) = table.draw(Some(22));
        assert!(text.starts_with("reason  exits   p99\n"), "{text}");
        assert_eq!(left_out, ["handled by"]);
    }

    #[test]
    fn long_names_lose_their_middle_when_no_column_can_go() {
        let mut table = Table::default();
        table.names("function", 0, vec!["kvm_vcpu_gfn_to_hva_prot".into(), "do_exit".into()]);
        table.numbers("calls", 0, vec!["369".into(), "1".into()]);
        let (text, left_out) = table.draw(Some(24));
        assert_eq!(
            text,
            "function           calls\nkvm_vcpu…hva_prot    369\ndo_exit                1\n"
        );
        assert!(left_out.is_empty());
        let fits = |width| table.draw(Some(width)).0.contains("kvm_vcpu_gfn_to_hva_prot");
        assert!(fits(31) && !fits(30));
        assert!(table.draw(Some(3)).0.contains("kvm_vc…_prot"), "no less than a name needs");
    }

    #[test]
    fn a_cell_adds_no_row_and_moves_no_cursor() {
        let mut table = Table::default();
        table.names("vm", 0, vec!["web\nvm-2\u{1b}[31m".into(), "\u{202e}db".into()]);
        table.numbers("exits", 0, vec!["1".into(), "2".into()]);
        let (text, _) = table.draw(None);
        let wanted =
            "vm                 exits\nweb\\nvm-2\\x1b[31m      1\n\\u{202e}db             2\n";
        assert_eq!(text, wanted);
    }

    #[test]
    fn a_spreadsheet_takes_no_name_for_a_formula() {
        let mut table = Table::default();
        table.names("name", 0, vec!["=1+1".into(), "-3".into(), "@x".into()]);
        table.numbers("change", 0, vec!["-1".into(), "+2".into(), "3".into()]);
        assert_eq!(table.to_csv(), "name,change\n'=1+1,-1\n-3,+2\n'@x,3\n");
    }

    #[test]
    fn csv_quotes_what_needs_it() {
        let mut table = Table::default();
        table.names("name", 0, vec!["a,b".into()]);
        assert_eq!(table.to_csv(), "name\n\"a,b\"\n");
    }
}
