//! Writes the result of a query row by row as it arrives; a text table needs all rows first.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use ::tables::Table;
use datafusion::arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use datafusion::arrow::datatypes::{DataType, Float64Type, Int32Type, Int64Type, UInt64Type};
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::common::DFSchema;
use datafusion::dataframe::{DataFrame, DataFrameWriteOptions};
use datafusion::error::{DataFusionError, Result};
use futures::StreamExt;
use serde_json::{Map, Value};
use tempfile::TempDir;

use crate::Format;

/// Max rows of a text table; the other formats have all.
const MAX_SHOWN: usize = 10_000;

/// Writes the rows of `frame` in a format, to a file or to standard output.
///
/// # Errors
/// When the query fails, or its result can't be written.
pub(crate) async fn write(frame: DataFrame, format: Format, output: Option<&Path>) -> Result<()> {
    let Some(path) = output else {
        return to(frame, format, &mut BufWriter::new(io::stdout().lock())).await;
    };
    let file = Place::of(path)?;
    if path.extension().is_some_and(|kind| kind == "parquet") {
        let options = DataFrameWriteOptions::new().with_single_file_output(true);
        let name = file.begun.display().to_string();
        frame.write_parquet(&name, options, None).await?;
    } else {
        to(frame, format, &mut BufWriter::new(File::create(&file.begun)?)).await?;
    }
    Ok(file.complete()?)
}

/// The destination: a file in a separate folder next to its place until it is complete. A target that can't be
/// replaced, such as a pipe, is written in place.
struct Place {
    path: PathBuf,
    begun: PathBuf,
    _folder: Option<TempDir>,
}

impl Place {
    fn of(path: &Path) -> io::Result<Self> {
        let path = path.to_owned();
        if fs::metadata(&path).is_ok_and(|one| !one.is_file()) {
            return Ok(Self { begun: path.clone(), path, _folder: None });
        }
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        let folder = tempfile::Builder::new()
            .prefix(".hyperscope-sql-")
            .tempdir_in(parent.unwrap_or(Path::new(".")))?;
        let begun = folder.path().join("answer.parquet");
        Ok(Self { path, begun, _folder: Some(folder) })
    }

    fn complete(&self) -> io::Result<()> {
        if self.path != self.begun { fs::rename(&self.begun, &self.path) } else { Ok(()) }
    }
}

async fn to(frame: DataFrame, format: Format, out: &mut dyn Write) -> Result<()> {
    let names = names(frame.schema());
    let numeric = frame.schema().fields().iter().map(|one| one.data_type().is_numeric()).collect();
    let mut writer: Box<dyn Writer> = match format {
        Format::Table => Box::new(Shown::new(names, numeric)),
        Format::Json => Box::new(Document { names, rows: 0 }),
        Format::Csv => Box::new(Values { names }),
    };
    writer.begin(out)?;
    let mut batches = frame.execute_stream().await?;
    while let Some(batch) = batches.next().await {
        writer.rows(&batch?, out)?;
    }
    writer.end(out)?;
    Ok(out.flush()?)
}

/// Names of columns; with their table if two have the same name.
fn names(schema: &DFSchema) -> Vec<String> {
    let (mut seen, mut twice) = (BTreeSet::new(), BTreeSet::new());
    for field in schema.fields() {
        if !seen.insert(field.name()) {
            twice.insert(field.name());
        }
    }
    let name = |(table, field): (Option<&datafusion::common::TableReference>, _)| {
        let field: &datafusion::arrow::datatypes::FieldRef = field;
        match table.filter(|_| twice.contains(field.name())) {
            Some(table) => format!("{table}.{}", field.name()),
            None => field.name().clone(),
        }
    };
    schema.iter().map(name).collect()
}

/// Writes rows in one format.
trait Writer {
    fn begin(&mut self, out: &mut dyn Write) -> Result<()>;
    fn rows(&mut self, batch: &RecordBatch, out: &mut dyn Write) -> Result<()>;
    fn end(&mut self, out: &mut dyn Write) -> Result<()>;
}

/// The cells of one batch as texts; `None`: null.
struct Texts<'b> {
    columns: Vec<(&'b ArrayRef, ArrayFormatter<'b>)>,
}

impl<'b> Texts<'b> {
    fn of(batch: &'b RecordBatch, options: &'b FormatOptions<'b>) -> Result<Self> {
        let shown = |array: &'b ArrayRef| Ok((array, ArrayFormatter::try_new(array, options)?));
        Ok(Self { columns: batch.columns().iter().map(shown).collect::<Result<_>>()? })
    }

    fn row(&self, row: usize) -> impl Iterator<Item = Option<String>> {
        self.columns
            .iter()
            .map(move |(array, shown)| (!is_null(array, row)).then(|| shown.value(row).to_string()))
    }
}

/// A text table.
struct Shown {
    names: Vec<String>,
    numeric: Vec<bool>,
    cells: Vec<Vec<String>>,
    left_out: usize,
}

impl Shown {
    fn new(names: Vec<String>, numeric: Vec<bool>) -> Self {
        let cells = vec![Vec::new(); names.len()];
        Self { names, numeric, cells, left_out: 0 }
    }
}

impl Writer for Shown {
    fn begin(&mut self, _: &mut dyn Write) -> Result<()> {
        Ok(())
    }

    fn rows(&mut self, batch: &RecordBatch, _: &mut dyn Write) -> Result<()> {
        let room = MAX_SHOWN - self.cells.first().map_or(0, Vec::len);
        let shown = room.min(batch.num_rows());
        self.left_out += batch.num_rows() - shown;
        let options = FormatOptions::default();
        let texts = Texts::of(batch, &options)?;
        for row in 0..shown {
            for (cells, text) in self.cells.iter_mut().zip(texts.row(row)) {
                cells.push(text.unwrap_or_else(|| "-".to_owned()));
            }
        }
        Ok(())
    }

    fn end(&mut self, out: &mut dyn Write) -> Result<()> {
        let mut table = Table::default();
        for ((name, numeric), cells) in
            self.names.iter().zip(&self.numeric).zip(std::mem::take(&mut self.cells))
        {
            if *numeric { table.numbers(name, 0, cells) } else { table.names(name, 0, cells) }
        }
        out.write_all(table.draw(None).0.as_bytes())?;
        if self.left_out > 0 {
            printable::print_message(format_args!(
                "hyperscope-sql: rows that are not shown: {}; --format csv and json have all",
                self.left_out
            ));
        }
        Ok(())
    }
}

/// One JSON document, one row per line.
struct Document {
    names: Vec<String>,
    rows: u64,
}

impl Document {
    fn row(&self, batch: &RecordBatch, row: usize) -> Result<Value> {
        let mut object = Map::new();
        for (name, array) in self.names.iter().zip(batch.columns()) {
            object.insert(name.clone(), value(array, row)?);
        }
        Ok(Value::Object(object))
    }
}

impl Writer for Document {
    fn begin(&mut self, out: &mut dyn Write) -> Result<()> {
        let names = Value::from(self.names.clone());
        write!(
            out,
            "{{\n  \"schema\": \"hyperscope.sql/1\",\n  \"columns\": {names},\n  \"rows\": ["
        )?;
        Ok(())
    }

    fn rows(&mut self, batch: &RecordBatch, out: &mut dyn Write) -> Result<()> {
        for row in 0..batch.num_rows() {
            let separator = if self.rows == 0 { "" } else { "," };
            let text = self.row(batch, row)?.to_string();
            write!(out, "{separator}\n    {}", printable::json(&text))?;
            self.rows += 1;
        }
        Ok(())
    }

    fn end(&mut self, out: &mut dyn Write) -> Result<()> {
        let before = if self.rows == 0 { "" } else { "\n  " };
        Ok(writeln!(out, "{before}]\n}}")?)
    }
}

/// `SELECT NULL` has a type of its own, whose array does not mark null values.
fn is_null(array: &ArrayRef, row: usize) -> bool {
    *array.data_type() == DataType::Null || array.is_null(row)
}

fn value(array: &ArrayRef, row: usize) -> Result<Value> {
    if is_null(array, row) {
        return Ok(Value::Null);
    }
    Ok(match array.data_type() {
        DataType::Int64 => array.as_primitive::<Int64Type>().value(row).into(),
        DataType::UInt64 => array.as_primitive::<UInt64Type>().value(row).into(),
        DataType::Int32 => array.as_primitive::<Int32Type>().value(row).into(),
        DataType::Float64 => array.as_primitive::<Float64Type>().value(row).into(),
        DataType::Boolean => array.as_boolean().value(row).into(),
        _ => {
            let options = FormatOptions::default();
            ArrayFormatter::try_new(array, &options)?.value(row).to_string().into()
        }
    })
}

/// Comma-separated values with a header line; null is an empty cell.
struct Values {
    names: Vec<String>,
}

fn csv_line(cells: impl Iterator<Item = String>, out: &mut dyn Write) -> Result<()> {
    let failed = |error: csv::Error| DataFusionError::External(error.into());
    let mut writer = csv::Writer::from_writer(out);
    writer
        .write_record(cells.map(|cell| printable::csv_cell(&cell).into_owned()))
        .map_err(failed)?;
    Ok(writer.flush()?)
}

impl Writer for Values {
    fn begin(&mut self, out: &mut dyn Write) -> Result<()> {
        csv_line(self.names.iter().cloned(), out)
    }

    fn rows(&mut self, batch: &RecordBatch, out: &mut dyn Write) -> Result<()> {
        let options = FormatOptions::default();
        let texts = Texts::of(batch, &options)?;
        let failed = |error: csv::Error| DataFusionError::External(error.into());
        let mut writer = csv::Writer::from_writer(out);
        for row in 0..batch.num_rows() {
            let cell =
                |text: Option<String>| printable::csv_cell(&text.unwrap_or_default()).into_owned();
            writer.write_record(texts.row(row).map(cell)).map_err(failed)?;
        }
        Ok(writer.flush()?)
    }

    fn end(&mut self, _: &mut dyn Write) -> Result<()> {
        Ok(())
    }
}
