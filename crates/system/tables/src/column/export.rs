//! Exports rows as JSON and CSV, and the descriptions of columns for the page.

use schemars::JsonSchema;
use serde::Serialize;
use serde::ser::{SerializeMap, SerializeSeq, Serializer};

use super::{Cell, Column, Described, Row, Unit};
use crate::table::Table;

/// Rows as an array of JSON objects.
#[derive(Debug)]
pub struct Rows<R> {
    /// Its keys.
    pub columns: Vec<Column<R>>,
    /// The objects.
    pub rows: Vec<R>,
}

impl<R: Row> Rows<R> {
    /// The same rows as comma-separated values; see [`csv`].
    pub fn csv(&self, in_ns: &[bool]) -> Table {
        csv(&self.columns, &self.rows, in_ns)
    }
}

impl<R: Row> Serialize for Rows<R> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut rows = serializer.serialize_seq(Some(self.rows.len()))?;
        for row in &self.rows {
            rows.serialize_element(&Exported { columns: &self.columns, row })?;
        }
        rows.end()
    }
}

/// One row as a JSON object.
#[derive(Debug)]
pub struct Exported<'r, R> {
    /// Its keys.
    pub columns: &'r [Column<R>],
    /// The row.
    pub row: &'r R,
}

impl<R: Row> Serialize for Exported<'_, R> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let columns: Vec<_> = self.columns.iter().filter(|column| column.is_in_json()).collect();
        Object { columns: &columns, row: self.row, is_inner: false }.serialize(serializer)
    }
}

/// Rows with additional fields after the columns, such as lists or objects.
#[derive(Debug)]
pub struct RowsWith<R, M> {
    /// Keys of each.
    pub columns: Vec<Column<R>>,
    /// The rows with their additional fields.
    pub rows: Vec<(R, M)>,
}

impl<R: Row, M: Serialize> Serialize for RowsWith<R, M> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let columns = &self.columns[..];
        let rows = self.rows.iter();
        serializer.collect_seq(
            rows.map(|(row, more)| RowWith { columns: Exported { columns, row }, more }),
        )
    }
}

/// A row, and what it has besides.
#[derive(JsonSchema, Serialize)]
#[serde(bound = "R: Row, M: Serialize")]
#[schemars(bound = "R: Described, M: JsonSchema", inline)]
pub(super) struct RowWith<'c, R, M> {
    #[serde(flatten)]
    columns: Exported<'c, R>,
    #[serde(flatten)]
    more: &'c M,
}

/// A row, or an object within it.
struct Object<'c, R> {
    columns: &'c [&'c Column<R>],
    row: &'c R,
    is_inner: bool,
}

impl<R: Row> Serialize for Object<'_, R> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (row, mut map) = (self.row, serializer.serialize_map(None)?);
        let same = |column: &&Column<R>, other: &&Column<R>| {
            column.object.is_some() && column.object == other.object && !self.is_inner
        };
        for columns in self.columns.chunk_by(same) {
            let Some(first) = columns.first() else { continue };
            match first.object {
                Some(object) if !self.is_inner => {
                    map.serialize_entry(object, &Object { columns, row, is_inner: true })?;
                }
                _ => first.serialize_into(row, &mut map)?,
            }
        }
        map.end()
    }
}

impl<R: Row> Column<R> {
    /// Times have the name `NAME_ns`; if they are ticks, that is null, and `NAME_cycles` has them.
    fn serialize_into<M: SerializeMap>(&self, row: &R, map: &mut M) -> Result<(), M::Error> {
        if self.unit != Unit::Time {
            return map.serialize_entry(&self.name, &self.cell(row));
        }
        let in_ns = format!("{}_ns", self.name);
        if row.is_nanoseconds() {
            return map.serialize_entry(&in_ns, &self.cell(row));
        }
        map.serialize_entry(&in_ns, &Cell::Number(None))?;
        map.serialize_entry(&format!("{}_cycles", self.name), &self.cell(row))
    }
}

/// Rows as comma-separated values. `in_ns` states for each recording whether its times are
/// nanoseconds: the headings cover all of them, even without rows.
pub fn csv<R: Row>(columns: &[Column<R>], rows: &[R], in_ns: &[bool]) -> Table {
    // Headings, each with the unit of the rows that use it.
    let mut headings: Vec<(String, &Column<R>, Option<bool>)> = Vec::new();
    for is_ns in in_ns {
        for column in columns.iter().filter(|column| column.is_in_csv()) {
            let name = column.flat_name();
            let wanted = match (column.unit, is_ns) {
                (Unit::Time, true) => vec![(format!("{name}_ns"), Some(true))],
                (Unit::Time, false) => {
                    vec![
                        (format!("{name}_ns"), Some(true)),
                        (format!("{name}_cycles"), Some(false)),
                    ]
                }
                _ => vec![(name, None)],
            };
            for (name, unit) in wanted {
                if headings.iter().all(|(known, ..)| *known != name) {
                    headings.push((name, column, unit));
                }
            }
        }
    }
    let mut table = Table::default();
    for (name, column, unit) in headings {
        let cell = |row: &R| {
            if unit.is_none_or(|in_ns| in_ns == row.is_nanoseconds()) {
                column.cell(row).plain()
            } else {
                String::new()
            }
        };
        table.names(&name, 0, rows.iter().map(cell).collect());
    }
    table
}

/// The description of a column for the page: its name, heading, unit and meaning.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct Definition {
    /// Its name as CSV has it; times without _ns or _cycles.
    name: String,
    /// Its heading in tables.
    title: String,
    /// What its values are: time is in nanoseconds, or ticks where the recording has none.
    #[schemars(extend("enum" = ["text", "number", "count", "ratio", "flag", "time"]))]
    unit: &'static str,
    /// What it means.
    help: String,
}

/// The columns of JSON in order.
#[must_use]
pub fn definitions<R>(columns: &[Column<R>]) -> Vec<Definition> {
    let exported = columns.iter().filter(|column| column.is_in_json());
    let definition = |column: &Column<R>| Definition {
        name: column.flat_name(),
        title: column.title.clone(),
        unit: column.unit.name(),
        help: column.help.clone(),
    };
    exported.map(definition).collect()
}
