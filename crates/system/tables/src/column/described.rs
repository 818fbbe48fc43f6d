//! Rows whose columns are known without a report, for schemas.

use super::{Column, Row};

/// A row whose columns are known without a report.
pub trait Described: Row + Sized {
    /// Whether its times can be ticks.
    const MAY_COUNT_TICKS: bool = true;

    /// Description of a row.
    const ABOUT: Option<&'static str> = None;

    /// All columns that a document can have, in order.
    fn all_columns() -> Vec<Column<Self>>;

    /// Description of an object within a row.
    fn about(object: &str) -> Option<&'static str> {
        let _ = object;
        None
    }
}
