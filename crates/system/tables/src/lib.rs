//! Output formats: tables for people, JSON and CSV for programs, and the units of numbers.
//!
//! A [`Report`] is a result that can be written in every [`Format`]. Its rows are described once,
//! as [`column::Column`]s, for tables, JSON, CSV and schema. The crate does not depend on the
//! meaning of the numbers.

#![forbid(unsafe_code)]
#![deny(clippy::print_stdout, clippy::print_stderr)]

pub mod column;
mod legend;
pub mod sentences;
pub mod table;
pub mod units;

use serde::Serialize;

pub use legend::{Legend, legend_text};
pub use table::Table;

/// The output format of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Tables for people; `width` is that of the terminal, if there is one.
    Table {
        /// Width of the terminal in columns; `None` for no limit.
        width: Option<usize>,
    },
    /// One JSON document.
    Json,
    /// One table with a header line.
    Csv,
}

/// A result that can be written in every format.
pub trait Report {
    /// The result in one sentence with its numbers, which people read first. It ends with a period, also where there
    /// is no data, and says nothing that the recording cannot show.
    fn headline(&self) -> String;
    /// What people read below it: tables, and what to know about them.
    fn tables(&self, width: Option<usize>) -> String;
    /// What titles of columns mean that do not say it themselves. People read this last.
    fn legend(&self) -> Legend {
        Legend::new()
    }
    /// The document scripts read.
    fn document(&self) -> impl Serialize;
    /// The rows spreadsheets read.
    fn csv(&self) -> Table;

    /// All that people read.
    fn text(&self, width: Option<usize>) -> String {
        let tables = self.tables(width);
        let legend = legend_text(&self.legend(), &tables);
        format!("{}\n{tables}{legend}", self.headline())
    }

    /// The report in a format, with a line break at its end.
    fn render(&self, format: Format) -> String {
        match format {
            Format::Table { width } => {
                let text = self.text(width);
                sentences::broken_at(&printable::lines(&text), width).into_owned()
            }
            Format::Json => json(&self.document()),
            Format::Csv => self.csv().to_csv(),
        }
    }
}

/// A document as JSON text, with a line break at its end.
pub fn json(document: &impl Serialize) -> String {
    // Writing into memory cannot fail, and keys are strings.
    let text = serde_json::to_string_pretty(document).unwrap_or_default();
    printable::json(&(text + "\n")).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Result;

    impl Report for Result {
        fn headline(&self) -> String {
            "1 exit took 2 ns.".to_owned()
        }

        fn tables(&self, _width: Option<usize>) -> String {
            "reason   ±\nhlt     1%\n".to_owned()
        }

        fn legend(&self) -> Legend {
            vec![("±", "standard error"), ("p50", "median")]
        }

        fn document(&self) -> impl Serialize {
            0
        }

        fn csv(&self) -> Table {
            Table::default()
        }
    }

    #[test]
    fn people_read_the_result_first_and_the_legend_last() {
        let text = "1 exit took 2 ns.\nreason   ±\nhlt     1%\n\n± = standard error\n";
        assert_eq!(Result.render(Format::Table { width: None }), text);
        assert_eq!(Result.render(Format::Json), "0\n", "programs read neither");
    }
}
