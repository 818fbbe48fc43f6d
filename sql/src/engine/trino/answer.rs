//! Writes rows of Trino's JSON result as a Parquet file, so that numbers keep their types.

use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;

use datafusion::arrow::array::{
    ArrayRef, BooleanArray, Float64Array, Int32Array, Int64Array, RecordBatch, StringArray,
};
use datafusion::arrow::datatypes::{DataType, Field, Schema};
use datafusion::error::{DataFusionError, Result};
use datafusion::parquet::arrow::ArrowWriter;
use serde_json::Value;

use super::client::{Column, Rows};
use super::failed;

/// Writes a result.
pub(super) struct Writer {
    path: PathBuf,
    /// Set once its columns are known.
    file_writer: Option<ArrowWriter<File>>,
}

impl Writer {
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path, file_writer: None }
    }

    /// Writes rows.
    ///
    /// # Errors
    /// When they don't match these columns, or can't be written.
    pub(super) fn write(&mut self, columns: &[Column], rows: Rows) -> Result<()> {
        if let Some(row) = rows.iter().find(|row| row.len() != columns.len()) {
            return Err(failed(format!(
                "Trino: a row of {} values for {} columns",
                row.len(),
                columns.len()
            )));
        }
        let kinds: Vec<DataType> = columns.iter().map(|column| type_of(&column.kind)).collect();
        let arrays = kinds.iter().enumerate().map(|(at, kind)| {
            array(kind, rows.iter().map(move |row| row.get(at).unwrap_or(&Value::Null)))
        });
        let arrays = arrays.collect::<Result<Vec<_>>>()?;
        let fields = columns.iter().zip(&kinds);
        let fields = fields.map(|(column, kind)| Field::new(&column.name, kind.clone(), true));
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let batch = RecordBatch::try_new(Arc::clone(&schema), arrays)?;
        let writer = match &mut self.file_writer {
            Some(writer) => writer,
            file_writer => {
                let file = File::create_new(&self.path)?;
                file_writer.insert(ArrowWriter::try_new(file, schema, None)?)
            }
        };
        Ok(writer.write(&batch)?)
    }

    /// Completes the file.
    ///
    /// # Errors
    /// When there is no result, or it can't be written.
    pub(super) fn end(self) -> Result<()> {
        let Some(writer) = self.file_writer else {
            return Err(failed("Trino answers without columns: is it a query?".to_owned()));
        };
        writer.close().map(drop).map_err(DataFusionError::from)
    }
}

/// The Arrow type for a type of Trino; all other types are shown as text.
fn type_of(kind: &str) -> DataType {
    match kind.split('(').next().unwrap_or_default() {
        "bigint" => DataType::Int64,
        "integer" | "smallint" | "tinyint" => DataType::Int32,
        // All numbers with a fraction become doubles, whatever the engine's type.
        "double" | "real" | "decimal" => DataType::Float64,
        "boolean" => DataType::Boolean,
        _ => DataType::Utf8,
    }
}

fn array<'v>(kind: &DataType, values: impl Iterator<Item = &'v Value>) -> Result<ArrayRef> {
    /// Null, or the value that `of` returns; otherwise the value does not match its type.
    fn each<'v, T>(
        values: impl Iterator<Item = &'v Value>,
        convert: impl Fn(&Value) -> Option<T>,
    ) -> Result<Vec<Option<T>>> {
        let nullable = |value: &Value| match value {
            Value::Null => Ok(None),
            value => convert(value)
                .map(Some)
                .ok_or_else(|| failed(format!("Trino: {value} is no value of its column's type"))),
        };
        values.map(nullable).collect()
    }
    Ok(match kind {
        DataType::Int64 => Arc::new(Int64Array::from(each(values, Value::as_i64)?)),
        DataType::Int32 => {
            let number = |value: &Value| i32::try_from(value.as_i64()?).ok();
            Arc::new(Int32Array::from(each(values, number)?))
        }
        DataType::Float64 => {
            // Values that JSON numbers can't represent are texts, and so are decimals.
            let number = |value: &Value| match value {
                Value::String(text) => text.parse().ok(),
                value => value.as_f64(),
            };
            Arc::new(Float64Array::from(each(values, number)?))
        }
        DataType::Boolean => Arc::new(BooleanArray::from(each(values, Value::as_bool)?)),
        _ => {
            let text = |value: &Value| {
                Some(value.as_str().map_or_else(|| value.to_string(), str::to_owned))
            };
            Arc::new(StringArray::from(each(values, text)?))
        }
    })
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::AsArray;
    use datafusion::arrow::datatypes::{Float64Type, Int64Type};
    use serde_json::json;

    use super::*;

    #[test]
    fn numbers_stay_what_they_are() {
        let values = [json!(i64::MAX), Value::Null];
        let found = array(&type_of("bigint"), values.iter()).unwrap();
        assert_eq!(
            found.as_primitive::<Int64Type>().iter().collect::<Vec<_>>(),
            [Some(i64::MAX), None]
        );
        let values = [json!(0.1), json!("NaN"), json!("-Infinity")];
        let found = array(&type_of("double"), values.iter()).unwrap();
        let found = found.as_primitive::<Float64Type>().values().to_vec();
        assert!(found[0] == 0.1 && found[1].is_nan() && found[2] == f64::NEG_INFINITY);
        let found = array(&type_of("decimal(2, 1)"), [json!("1.5")].iter()).unwrap();
        assert_eq!(found.as_primitive::<Float64Type>().value(0), 1.5);
        let found = array(&type_of("array(bigint)"), [json!([1, 2])].iter()).unwrap();
        assert_eq!(found.as_string::<i32>().value(0), "[1,2]");
        for (kind, value) in [("integer", json!(1_i64 << 40)), ("boolean", json!("x"))] {
            assert!(array(&type_of(kind), [value].iter()).is_err(), "{kind}");
        }
    }

    #[test]
    fn an_answer_without_rows_has_columns() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.parquet");
        let columns = [Column { name: "a".into(), kind: "bigint".into() }];
        let mut writer = Writer::new(path.clone());
        writer.write(&columns, Vec::new()).unwrap();
        writer.end().unwrap();
        assert!(path.metadata().unwrap().len() > 0);
        let mut writer = Writer::new(folder.path().join("y.parquet"));
        assert!(writer.write(&columns, vec![vec![json!(1), json!(2)]]).is_err());
        assert!(Writer::new(folder.path().join("z.parquet")).end().is_err());
    }
}
