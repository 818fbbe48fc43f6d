//! Rows whose columns are known without a report: those of a schema.

use super::{Column, Row};

/// A row whose columns are known without a report.
pub trait Described: Row + Sized {
    /// Whether the clock of its times may count ticks.
    const MAY_COUNT_TICKS: bool = true;

    /// What a row is.
    const ABOUT: Option<&'static str> = None;

    /// All columns that a document may have, in their order.
    fn all_columns() -> Vec<Column<Self>>;

    /// What an object within a row is.
    fn about(object: &str) -> Option<&'static str> {
        let _ = object;
        None
    }
}
