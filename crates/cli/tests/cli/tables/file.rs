//! A table as the parquet crate reads it, column by column.

use std::fs::File;
use std::path::Path;

use parquet::column::reader::ColumnReader;
use parquet::file::reader::{FileReader, SerializedFileReader};

pub(crate) struct TableFile {
    pub(crate) name: String,
    reader: SerializedFileReader<File>,
}

/// The values of a column; none for null.
macro_rules! read {
    ($reader:expr, $rows:expr, $default:expr) => {{
        let (mut values, mut levels) = (Vec::new(), Vec::new());
        let has_levels = {
            let (read, ..) =
                $reader.read_records($rows, Some(&mut levels), None, &mut values).unwrap();
            assert_eq!(read, $rows);
            levels.len() == $rows && $rows > 0 && values.len() != $rows || levels.contains(&0)
        };
        let mut values = values.into_iter();
        if has_levels {
            levels
                .iter()
                .map(|level| (*level > 0).then(|| values.next().unwrap()))
                .collect::<Vec<_>>()
        } else {
            values.map(Some).collect::<Vec<_>>()
        }
    }};
}

impl TableFile {
    pub(crate) fn open(folder: &Path, name: &str) -> Self {
        Self::at(&folder.join(format!("{name}.parquet")), name)
    }

    pub(crate) fn at(path: &Path, name: &str) -> Self {
        let file = File::open(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        Self { name: name.to_owned(), reader: SerializedFileReader::new(file).unwrap() }
    }

    pub(crate) fn len(&self) -> usize {
        self.reader.metadata().file_metadata().num_rows() as usize
    }

    /// A column as text.
    pub(crate) fn shown(&self, column: &str) -> Vec<Option<String>> {
        let schema = self.reader.metadata().file_metadata().schema_descr();
        let at = self.index(column);
        match schema.column(at).physical_type() {
            parquet::basic::Type::BYTE_ARRAY => return self.texts(column),
            parquet::basic::Type::DOUBLE => {
                let in_words = |value: Option<f64>| value.map(|number| number.to_string());
                return self.doubles(column).into_iter().map(in_words).collect();
            }
            parquet::basic::Type::BOOLEAN => {
                return self
                    .flags(column)
                    .into_iter()
                    .map(|value| value.map(|flag| flag.to_string()))
                    .collect();
            }
            _ => {}
        }
        self.numbers(column)
            .into_iter()
            .map(|value| value.map(|number| number.to_string()))
            .collect()
    }

    fn index(&self, column: &str) -> usize {
        let schema = self.reader.metadata().file_metadata().schema_descr();
        let found = (0..schema.num_columns()).find(|at| schema.column(*at).name() == column);
        found.unwrap_or_else(|| panic!("{}: no column {column}", self.name))
    }

    fn columns(&self, column: &str) -> Vec<(ColumnReader, usize)> {
        let at = self.index(column);
        let groups = 0..self.reader.num_row_groups();
        let group = |group: usize| {
            let group = self.reader.get_row_group(group).unwrap();
            let rows = group.metadata().num_rows() as usize;
            (group.get_column_reader(at).unwrap(), rows)
        };
        groups.map(group).collect()
    }

    pub(crate) fn numbers(&self, column: &str) -> Vec<Option<i64>> {
        let mut all = Vec::new();
        for (reader, rows) in self.columns(column) {
            match reader {
                ColumnReader::Int64ColumnReader(mut reader) => all.extend(read!(reader, rows, 0)),
                ColumnReader::Int32ColumnReader(mut reader) => {
                    all.extend(
                        read!(reader, rows, 0).into_iter().map(|value| value.map(i64::from)),
                    );
                }
                _ => panic!("{}: {column} holds no numbers", self.name),
            }
        }
        all
    }

    pub(crate) fn texts(&self, column: &str) -> Vec<Option<String>> {
        let mut all = Vec::new();
        for (reader, rows) in self.columns(column) {
            let ColumnReader::ByteArrayColumnReader(mut reader) = reader else {
                panic!("{}: {column} holds no texts", self.name)
            };
            let texts = read!(reader, rows, 0).into_iter();
            all.extend(texts.map(|value| value.map(|text| text.as_utf8().unwrap().to_owned())));
        }
        all
    }

    pub(crate) fn flags(&self, column: &str) -> Vec<Option<bool>> {
        let mut all = Vec::new();
        for (reader, rows) in self.columns(column) {
            let ColumnReader::BoolColumnReader(mut reader) = reader else {
                panic!("{}: {column} holds no flags", self.name)
            };
            all.extend(read!(reader, rows, false));
        }
        all
    }

    fn doubles(&self, column: &str) -> Vec<Option<f64>> {
        let mut all = Vec::new();
        for (reader, rows) in self.columns(column) {
            let ColumnReader::DoubleColumnReader(mut reader) = reader else {
                panic!("{}: {column} holds no numbers with a fraction", self.name)
            };
            all.extend(read!(reader, rows, 0.0));
        }
        all
    }

    pub(crate) fn sum(&self, column: &str) -> u64 {
        self.numbers(column).into_iter().flatten().map(|value| u64::try_from(value).unwrap()).sum()
    }

    /// Its schema: name, type and whether it can be null.
    pub(crate) fn columns_of_schema(&self) -> Vec<(String, String, bool)> {
        let schema = self.reader.metadata().file_metadata().schema_descr();
        let column = |at: usize| {
            let column = schema.column(at);
            let physical = column.physical_type().to_string();
            (column.name().to_owned(), physical, column.max_def_level() > 0)
        };
        (0..schema.num_columns()).map(column).collect()
    }
}
