//! Writes a table as a Parquet file: collects rows by column, and writes a group when there are enough rows.
//!
//! The same recording always gives the same bytes. Memory is bounded by one group, whatever the number of rows.

use std::io::{self, Write};
use std::sync::Arc;

use parquet::basic::{
    Compression, ConvertedType, Encoding, LogicalType, Repetition, Type as Physical, ZstdLevel,
};
use parquet::column::reader::{ColumnReader, get_typed_column_reader};
use parquet::data_type::{
    BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int32Type, Int64Type,
};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::reader::RowGroupReader;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::{ColumnPath, Type, TypePtr};
use rustc_hash::FxHashMap;

use crate::column::{Column, Kind, Names, Table};
use crate::pseudonyms::Pseudonyms;
use crate::tables::SCHEMA_VERSION;

/// Rows of a group: about 25 MB of memory for the widest table.
const GROUP_ROWS: usize = 1 << 17;

/// A group is written once texts that are not interned have this many bytes.
const GROUP_TEXT_BYTES: usize = 16 << 20;

/// Ids from here on are texts of the current group only.
const OWN_TEXTS: u32 = 1 << 31;

/// The id of an interned text, valid for its table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextId(u32);

/// The values of one column of a group; nullable columns have a level per row (0: null).
#[derive(Debug)]
struct Cells {
    values: Values,
    levels: Option<Vec<i16>>,
}

#[derive(Debug)]
enum Values {
    Long(Vec<i64>),
    Int(Vec<i32>),
    Double(Vec<f64>),
    Bool(Vec<bool>),
    Text(Vec<u32>),
}

impl Cells {
    fn new(column: &Column) -> Self {
        let values = match column.kind {
            Kind::Long => Values::Long(Vec::new()),
            Kind::Int => Values::Int(Vec::new()),
            Kind::Double => Values::Double(Vec::new()),
            Kind::Bool => Values::Bool(Vec::new()),
            Kind::Text => Values::Text(Vec::new()),
        };
        Self { values, levels: column.nullable.then(Vec::new) }
    }

    fn clear(&mut self) {
        match &mut self.values {
            Values::Long(values) => values.clear(),
            Values::Int(values) => values.clear(),
            Values::Double(values) => values.clear(),
            Values::Bool(values) => values.clear(),
            Values::Text(values) => values.clear(),
        }
        if let Some(levels) = &mut self.levels {
            levels.clear();
        }
    }
}

/// Texts of a table: the interned ones, and those of the current group.
#[derive(Debug, Default)]
struct Texts {
    table_texts: Vec<ByteArray>,
    numbers: FxHashMap<Box<str>, u32>,
    group_texts: Vec<ByteArray>,
    own_bytes: usize,
}

impl Texts {
    fn keep(&mut self, text: &str) -> TextId {
        if let Some(&number) = self.numbers.get(text) {
            return TextId(number);
        }
        let number = self.table_texts.len() as u32;
        self.table_texts.push(ByteArray::from(text));
        self.numbers.insert(text.into(), number);
        TextId(number)
    }

    fn once(&mut self, text: &str) -> TextId {
        self.own_bytes += text.len();
        self.group_texts.push(ByteArray::from(text));
        TextId(OWN_TEXTS + (self.group_texts.len() - 1) as u32)
    }

    fn get(&self, number: u32) -> ByteArray {
        let found = match number.checked_sub(OWN_TEXTS) {
            Some(index) => self.group_texts.get(index as usize),
            None => self.table_texts.get(number as usize),
        };
        found.cloned().unwrap_or_default()
    }
}

/// Writes the rows of one table.
pub struct TableWriter<W: Write + Send> {
    file: SerializedFileWriter<W>,
    table: &'static Table,
    columns: Vec<Cells>,
    texts: Texts,
    group_rows: usize,
    rows: u64,
    pseudonyms: Option<Arc<Pseudonyms>>,
}

impl<W: Write + Send> std::fmt::Debug for TableWriter<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TableWriter")
            .field("table", &self.table.name)
            .field("rows", &self.rows)
            .finish()
    }
}

impl<W: Write + Send> TableWriter<W> {
    /// Begins a file.
    ///
    /// # Errors
    /// When it can't be written.
    pub fn new(table: &'static Table, out: W) -> io::Result<Self> {
        let schema = schema(table).map_err(io::Error::other)?;
        let file = SerializedFileWriter::new(out, schema, Arc::new(properties(table)))?;
        let columns = table.columns.iter().map(Cells::new).collect();
        Ok(Self {
            file,
            table,
            columns,
            texts: Texts::default(),
            group_rows: 0,
            rows: 0,
            pseudonyms: None,
        })
    }

    /// The same writer, with hashes instead of names.
    #[must_use]
    pub fn with_pseudonyms(self, pseudonyms: Option<Arc<Pseudonyms>>) -> Self {
        Self { pseudonyms, ..self }
    }

    /// Rows written so far.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Interns a text for any number of rows.
    pub fn keep(&mut self, text: &str) -> TextId {
        self.texts.keep(text)
    }

    /// Begins a row: its values in the order of the table's columns.
    #[inline]
    pub fn row(&mut self) -> Row<'_> {
        Row { cells: self.columns.iter_mut(), texts: &mut self.texts }
    }

    /// Ends the row.
    ///
    /// # Errors
    /// When its group is full and can't be written.
    #[inline]
    pub fn end_row(&mut self) -> io::Result<()> {
        self.rows += 1;
        self.group_rows += 1;
        if self.group_rows < GROUP_ROWS && self.texts.own_bytes < GROUP_TEXT_BYTES {
            return Ok(());
        }
        self.write_group()
    }

    /// Appends the rows of another file's group; `replaced`: texts to exchange.
    ///
    /// # Errors
    /// When they can't be read, belong to another table, or can't be written.
    pub(crate) fn append(
        &mut self,
        group: &dyn RowGroupReader,
        replaced: &dyn Fn(&Column, &str) -> Option<String>,
    ) -> io::Result<()> {
        let rows = usize::try_from(group.metadata().num_rows()).map_err(io::Error::other)?;
        for (at, (column, cells)) in self.table.columns.iter().zip(&mut self.columns).enumerate() {
            append_column(group, at, rows, (column, cells), &mut self.texts, replaced)?;
        }
        self.rows += rows as u64;
        self.group_rows += rows;
        if self.group_rows >= GROUP_ROWS || self.texts.own_bytes >= GROUP_TEXT_BYTES {
            self.write_group()?;
        }
        Ok(())
    }

    #[inline(never)]
    fn write_group(&mut self) -> io::Result<()> {
        if self.group_rows == 0 {
            return Ok(());
        }
        let mut group = self.file.next_row_group()?;
        for (column, cells) in self.table.columns.iter().zip(&mut self.columns) {
            let pseudonyms = self.pseudonyms.as_deref().filter(|_| column.names != Names::None);
            let hashed = pseudonyms.map(|pseudonyms| (pseudonyms, column.names));
            let missing = || io::Error::other("there are more columns than in the schema");
            let out = group.next_column()?.ok_or_else(missing)?;
            write_column(out, cells, &self.texts, hashed)?;
            cells.clear();
        }
        group.close()?;
        self.group_rows = 0;
        self.texts.group_texts.clear();
        self.texts.own_bytes = 0;
        Ok(())
    }

    /// Adds metadata to the file.
    pub fn set_metadata(&mut self, key: String, value: String) {
        self.file.append_key_value_metadata(KeyValue::new(key, value));
    }

    /// Completes the file, and returns the destination.
    ///
    /// # Errors
    /// When it can't be written.
    pub fn finish(mut self) -> io::Result<W> {
        self.write_group()?;
        Ok(self.file.into_inner()?)
    }
}

/// A row that is being written.
pub struct Row<'w> {
    cells: std::slice::IterMut<'w, Cells>,
    texts: &'w mut Texts,
}

impl std::fmt::Debug for Row<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Row").field("left", &self.cells.len()).finish()
    }
}

/// A value without a column of its type is dropped. The file can't be completed then, because its columns differ
/// in length.
macro_rules! cell {
    ($(#[$doc:meta])* $name:ident, $name_or_null:ident, $values:ident, $type:ty) => {
        $(#[$doc])*
        #[inline]
        pub fn $name(&mut self, value: $type) -> &mut Self {
            self.$name_or_null(Some(value))
        }

        /// The value, or null.
        #[inline]
        pub fn $name_or_null(&mut self, value: Option<$type>) -> &mut Self {
            if let Some(Cells { values: Values::$values(values), levels }) = self.cells.next() {
                values.extend(value);
                if let Some(levels) = levels {
                    levels.push(i16::from(value.is_some()));
                }
            }
            self
        }
    };
}

impl Row<'_> {
    cell!(
        /// An INT64.
        long, long_or_null, Long, i64
    );
    cell!(
        /// An INT32.
        int, int_or_null, Int, i32
    );
    cell!(
        /// A DOUBLE.
        double, double_or_null, Double, f64
    );
    cell!(
        /// A BOOLEAN.
        flag, flag_or_null, Bool, bool
    );

    /// An unsigned number, saturated to INT64.
    #[inline]
    pub fn count(&mut self, value: u64) -> &mut Self {
        self.long(saturated(value))
    }

    /// An unsigned number, or null.
    #[inline]
    pub fn count_or_null(&mut self, value: Option<u64>) -> &mut Self {
        self.long_or_null(value.map(saturated))
    }

    /// An interned text.
    #[inline]
    pub fn id(&mut self, text: TextId) -> &mut Self {
        self.id_or_null(Some(text))
    }

    /// An interned text, or null.
    #[inline]
    pub fn id_or_null(&mut self, text: Option<TextId>) -> &mut Self {
        if let Some(Cells { values: Values::Text(values), levels }) = self.cells.next() {
            values.extend(text.map(|text| text.0));
            if let Some(levels) = levels {
                levels.push(i16::from(text.is_some()));
            }
        }
        self
    }

    /// A text, which is interned for later rows.
    pub fn text(&mut self, text: &str) -> &mut Self {
        let id = self.texts.keep(text);
        self.id(id)
    }

    /// A text that is interned, or null.
    pub fn text_or_null(&mut self, text: Option<&str>) -> &mut Self {
        let id = text.map(|text| self.texts.keep(text));
        self.id_or_null(id)
    }

    /// A text that is rarely repeated, not interned.
    pub fn text_once(&mut self, text: &str) -> &mut Self {
        let id = self.texts.once(text);
        self.id(id)
    }
}

/// An unsigned number as INT64, saturated.
#[inline]
#[must_use]
pub fn saturated(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// Not generic over the destination, so that only this crate compiles the encoders.
fn write_column(
    column: SerializedColumnWriter<'_>,
    cells: &Cells,
    texts: &Texts,
    hashed: Option<(&Pseudonyms, Names)>,
) -> io::Result<()> {
    let levels = cells.levels.as_deref();
    match &cells.values {
        Values::Long(values) => write::<Int64Type>(column, values, levels),
        Values::Int(values) => write::<Int32Type>(column, values, levels),
        Values::Double(values) => write::<DoubleType>(column, values, levels),
        Values::Bool(values) => write::<BoolType>(column, values, levels),
        Values::Text(values) => {
            let mut known = FxHashMap::default();
            let mut text = |number: &u32| match hashed {
                None => texts.get(*number),
                Some((pseudonyms, names)) => {
                    let hash = || {
                        let text = texts.get(*number);
                        // Cells of this column come from texts only.
                        let text = text.as_utf8().unwrap_or_default();
                        ByteArray::from(pseudonyms.text(names, text).as_str())
                    };
                    known.entry(*number).or_insert_with(hash).clone()
                }
            };
            let values: Vec<ByteArray> = values.iter().map(&mut text).collect();
            write::<ByteArrayType>(column, &values, levels)
        }
    }
}

fn write<T: DataType>(
    mut column: SerializedColumnWriter<'_>,
    values: &[T::T],
    levels: Option<&[i16]>,
) -> io::Result<()> {
    column.typed::<T>().write_batch(values, levels, None)?;
    column.close()?;
    Ok(())
}

/// The values of a column and, for nullable ones, a level per row.
pub(crate) type ReadColumn<T> = (Vec<T>, Option<Vec<i16>>);

/// Reads a column of a group: its values and, for nullable ones, a level per row.
pub(crate) fn read_column<T: DataType + 'static>(
    reader: ColumnReader,
    rows: usize,
    nullable: bool,
) -> io::Result<ReadColumn<T::T>> {
    let mut reader = get_typed_column_reader::<T>(reader);
    let (mut values, mut levels) = (Vec::new(), Vec::new());
    let mut read = 0;
    while read < rows {
        let (more, ..) =
            reader.read_records(rows - read, nullable.then_some(&mut levels), None, &mut values)?;
        if more == 0 {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "a column has fewer values than rows",
            ));
        }
        read += more;
    }
    Ok((values, nullable.then_some(levels)))
}

fn append_column(
    group: &dyn RowGroupReader,
    at: usize,
    rows: usize,
    (column, cells): (&Column, &mut Cells),
    texts: &mut Texts,
    replaced: &dyn Fn(&Column, &str) -> Option<String>,
) -> io::Result<()> {
    let other = |what: &str| {
        let why = format!("its column {at} is no {} {}: {what}", column.kind.sql(), column.name);
        io::Error::new(io::ErrorKind::InvalidData, why)
    };
    let descriptor = group.metadata().schema_descr();
    let known = (at < descriptor.num_columns()).then(|| descriptor.column(at));
    let known = known.ok_or_else(|| other("there are fewer"))?;
    let matches_schema = known.name() == column.name
        && known.physical_type() == physical(column.kind)
        && (known.max_def_level() > 0) == column.nullable;
    if !matches_schema {
        return Err(other(known.name()));
    }
    let reader = group.get_column_reader(at)?;
    let nullable = column.nullable;
    let levels = match &mut cells.values {
        Values::Long(all) => extend(all, read_column::<Int64Type>(reader, rows, nullable)?),
        Values::Int(all) => extend(all, read_column::<Int32Type>(reader, rows, nullable)?),
        Values::Double(all) => extend(all, read_column::<DoubleType>(reader, rows, nullable)?),
        Values::Bool(all) => extend(all, read_column::<BoolType>(reader, rows, nullable)?),
        Values::Text(all) => {
            let (values, levels) = read_column::<ByteArrayType>(reader, rows, nullable)?;
            // Only this column has texts that are rarely repeated, and they are long.
            let is_once = column.name == "fields";
            for value in &values {
                let text = value.as_utf8()?;
                let other = replaced(column, text);
                let text = other.as_deref().unwrap_or(text);
                all.push(if is_once { texts.once(text).0 } else { texts.keep(text).0 });
            }
            levels
        }
    };
    if let (Some(all), Some(levels)) = (&mut cells.levels, levels) {
        all.extend(levels);
    }
    Ok(())
}

fn extend<T>(all: &mut Vec<T>, (values, levels): ReadColumn<T>) -> Option<Vec<i16>> {
    all.extend(values);
    levels
}

/// The texts of a column that is not nullable.
pub(crate) fn texts_of(group: &dyn RowGroupReader, at: usize) -> io::Result<Vec<String>> {
    let rows = usize::try_from(group.metadata().num_rows()).map_err(io::Error::other)?;
    let descriptor = group.metadata().schema_descr();
    let is_text = at < descriptor.num_columns()
        && descriptor.column(at).physical_type() == Physical::BYTE_ARRAY
        && descriptor.column(at).max_def_level() == 0;
    if !is_text {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "it has other columns"));
    }
    let (values, _) = read_column::<ByteArrayType>(group.get_column_reader(at)?, rows, false)?;
    values.iter().map(|value| Ok(value.as_utf8()?.to_owned())).collect()
}

pub(crate) fn physical(kind: Kind) -> Physical {
    match kind {
        Kind::Long => Physical::INT64,
        Kind::Int => Physical::INT32,
        Kind::Double => Physical::DOUBLE,
        Kind::Bool => Physical::BOOLEAN,
        Kind::Text => Physical::BYTE_ARRAY,
    }
}

fn schema(table: &Table) -> parquet::errors::Result<TypePtr> {
    let fields = table.columns.iter().map(|column| field(column).map(Arc::new));
    let fields = fields.collect::<parquet::errors::Result<Vec<TypePtr>>>()?;
    Type::group_type_builder(table.name).with_fields(fields).build().map(Arc::new)
}

fn field(column: &Column) -> parquet::errors::Result<Type> {
    let repetition = if column.nullable { Repetition::OPTIONAL } else { Repetition::REQUIRED };
    let field = Type::primitive_type_builder(column.name, physical(column.kind))
        .with_repetition(repetition);
    match column.kind {
        Kind::Text => field
            .with_converted_type(ConvertedType::UTF8)
            .with_logical_type(Some(LogicalType::String))
            .build(),
        _ => field.build(),
    }
}

/// Delta encoding for the times that sort the rows. Durations stay plain, because every engine reads that and
/// they compress as well. A dictionary for repeated names and small numbers.
fn properties(table: &Table) -> WriterProperties {
    let level = ZstdLevel::try_new(3).unwrap_or_default();
    let mut properties = WriterProperties::builder()
        .set_created_by(concat!("hyperscope ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_compression(Compression::ZSTD(level))
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_offset_index_disabled(true)
        .set_key_value_metadata(Some(vec![
            KeyValue::new("hyperscope.table".to_owned(), table.name.to_owned()),
            KeyValue::new("hyperscope.schema_version".to_owned(), SCHEMA_VERSION.to_string()),
        ]));
    for column in table.columns {
        let path = ColumnPath::from(column.name);
        if column.name == "ts_ns" {
            properties = properties
                .set_column_dictionary_enabled(path.clone(), false)
                .set_column_encoding(path, Encoding::DELTA_BINARY_PACKED);
        } else if matches!(column.kind, Kind::Long | Kind::Double) && column.name != "slice_ns" {
            properties = properties.set_column_dictionary_enabled(path, false);
        }
    }
    properties.build()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::LABELS;

    #[test]
    fn a_row_that_does_not_fit_its_table_makes_no_file() {
        let mut table = TableWriter::new(&LABELS, Vec::new()).unwrap();
        table.row().text("s").text("i").text("k").long(1);
        table.end_row().unwrap();
        assert!(table.finish().is_err());
        let mut table = TableWriter::new(&LABELS, Vec::new()).unwrap();
        table.row().text("s").text("i").text("k").text("v");
        table.end_row().unwrap();
        assert!(table.finish().is_ok_and(|bytes| bytes.starts_with(b"PAR1")));
    }
}
