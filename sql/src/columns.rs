//! The columns of tables in the engine's types.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use lake_store::{Column, Kind, Table};

/// The schema of a table, for files of every version. A column that older files lack is null.
pub(crate) fn schema_of(table: &Table) -> SchemaRef {
    Arc::new(Schema::new(table.columns.iter().map(field).collect::<Vec<_>>()))
}

fn field(column: &Column) -> Field {
    let kind = match column.kind {
        Kind::Long => DataType::Int64,
        Kind::Int => DataType::Int32,
        Kind::Double => DataType::Float64,
        Kind::Bool => DataType::Boolean,
        Kind::Text => DataType::Utf8View,
    };
    Field::new(column.name, kind, column.nullable)
}
