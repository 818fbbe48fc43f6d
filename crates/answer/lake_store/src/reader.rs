//! Reads columns of a table's file, one row group at a time.

use std::io;

use parquet::basic::Type as Physical;
use parquet::data_type::{
    BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int32Type, Int64Type,
};
use parquet::file::reader::{ChunkReader, FileReader, RowGroupReader};
use parquet::file::serialized_reader::SerializedFileReader;

use crate::column::{Column, Kind, Table};
use crate::writer::{physical, read_column};

/// The values of one column in a group of rows.
#[derive(Clone, Debug)]
pub enum Values {
    /// INT64 and INT32.
    Number(Vec<Option<i64>>),
    /// DOUBLE.
    Double(Vec<Option<f64>>),
    /// BOOLEAN.
    Flag(Vec<Option<bool>>),
    /// STRING.
    Text(Vec<Option<ByteArray>>),
}

impl Values {
    /// The integer of a row; `None`: null, or the column has no integers.
    #[must_use]
    pub fn number(&self, row: usize) -> Option<i64> {
        if let Self::Number(values) = self { values.get(row).copied().flatten() } else { None }
    }

    /// The floating-point number of a row.
    #[must_use]
    pub fn double(&self, row: usize) -> Option<f64> {
        if let Self::Double(values) = self { values.get(row).copied().flatten() } else { None }
    }

    /// The boolean of a row.
    #[must_use]
    pub fn flag(&self, row: usize) -> Option<bool> {
        if let Self::Flag(values) = self { values.get(row).copied().flatten() } else { None }
    }

    /// The text of a row.
    #[must_use]
    pub fn text(&self, row: usize) -> Option<&str> {
        let Self::Text(values) = self else { return None };
        values.get(row)?.as_ref()?.as_utf8().ok()
    }
}

/// A group of rows: the requested columns, in that order.
#[derive(Clone, Debug)]
pub struct Group {
    /// Number of rows.
    pub rows: usize,
    columns: Vec<Values>,
}

impl Group {
    /// All columns, in the requested order.
    #[must_use]
    pub fn all(&self) -> &[Values] {
        &self.columns
    }

    /// The columns.
    ///
    /// # Errors
    /// When another number of columns was requested.
    pub fn columns<const N: usize>(&self) -> io::Result<&[Values; N]> {
        self.columns
            .as_slice()
            .try_into()
            .map_err(|_| io::Error::other("the file's columns changed while it was read"))
    }
}

/// Reads columns of a table's file. A column that an older file lacks is null.
///
/// # Errors
/// When the table has no such column, the file can't be read or belongs to another table, or `emit`
/// fails.
pub fn each_group<R: ChunkReader + 'static>(
    file: R,
    table: &Table,
    columns: &[&str],
    emit: &mut dyn FnMut(&Group) -> io::Result<()>,
) -> io::Result<()> {
    let wanted = |name: &&str| {
        let found = table.columns.iter().find(|column| column.name == *name);
        found.ok_or_else(|| io::Error::other(format!("{} has no column {name}", table.name)))
    };
    let wanted = columns.iter().map(wanted).collect::<io::Result<Vec<_>>>()?;
    let reader = SerializedFileReader::new(file)?;
    for at in 0..reader.num_row_groups() {
        let group = reader.get_row_group(at)?;
        let rows = usize::try_from(group.metadata().num_rows()).map_err(io::Error::other)?;
        let columns = wanted.iter().map(|column| values(&*group, column, rows));
        emit(&Group { rows, columns: columns.collect::<io::Result<_>>()? })?;
    }
    Ok(())
}

fn values(group: &dyn RowGroupReader, column: &Column, rows: usize) -> io::Result<Values> {
    let schema = group.metadata().schema_descr();
    let at = (0..schema.num_columns()).find(|at| schema.column(*at).name() == column.name);
    let Some(at) = at else { return nulls(column, rows) };
    let known = schema.column(at);
    if known.physical_type() != physical(column.kind) || known.max_def_level() > 1 {
        let why = format!("its column {} is not of type {}", column.name, column.kind.sql());
        return Err(io::Error::new(io::ErrorKind::InvalidData, why));
    }
    let source = Source { group, at, rows, nullable: known.max_def_level() > 0 };
    Ok(match known.physical_type() {
        Physical::INT32 => {
            let values = source.read::<Int32Type>()?;
            Values::Number(values.into_iter().map(|value| value.map(i64::from)).collect())
        }
        Physical::INT64 => Values::Number(source.read::<Int64Type>()?),
        Physical::DOUBLE => Values::Double(source.read::<DoubleType>()?),
        Physical::BOOLEAN => Values::Flag(source.read::<BoolType>()?),
        _ => Values::Text(source.read::<ByteArrayType>()?),
    })
}

/// The values of a column that is newer than the file.
fn nulls(column: &Column, rows: usize) -> io::Result<Values> {
    if !column.nullable {
        let why = format!("it has no column {}", column.name);
        return Err(io::Error::new(io::ErrorKind::InvalidData, why));
    }
    Ok(match column.kind {
        Kind::Long | Kind::Int => Values::Number(vec![None; rows]),
        Kind::Double => Values::Double(vec![None; rows]),
        Kind::Bool => Values::Flag(vec![None; rows]),
        Kind::Text => Values::Text(vec![None; rows]),
    })
}

/// The source of a column's values.
struct Source<'g> {
    group: &'g dyn RowGroupReader,
    at: usize,
    rows: usize,
    nullable: bool,
}

impl Source<'_> {
    fn read<T: DataType + 'static>(&self) -> io::Result<Vec<Option<T::T>>> {
        let reader = self.group.get_column_reader(self.at)?;
        let (values, levels) = read_column::<T>(reader, self.rows, self.nullable)?;
        let mut values = values.into_iter();
        Ok(match levels {
            None => values.map(Some).collect(),
            Some(levels) => {
                levels.iter().map(|level| if *level > 0 { values.next() } else { None }).collect()
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::{EXITS, LOSSES};
    use crate::writer::TableWriter;

    #[test]
    fn columns_are_read_as_they_were_written() {
        let mut table = TableWriter::new(&LOSSES, tempfile::tempfile().unwrap()).unwrap();
        for (cpu, from_ns) in [(0, None), (3, Some(-7))] {
            let mut row = table.row();
            row.text("s").text("i").text("host").int(cpu).long_or_null(from_ns);
            row.long_or_null(Some(9)).long_or_null(None);
            table.end_row().unwrap();
        }
        let file = table.finish().unwrap();
        let file = || file.try_clone().unwrap();
        let mut seen = 0;
        let columns = ["from_ns", "machine", "cpu"];
        each_group(file(), &LOSSES, &columns, &mut |group| {
            let [from, machine, cpu] = group.columns()?;
            assert_eq!((from.number(0), from.number(1), from.number(2)), (None, Some(-7), None));
            assert_eq!(
                (machine.text(1), cpu.number(1), cpu.text(1)),
                (Some("host"), Some(3), None)
            );
            assert!(group.columns::<2>().is_err());
            seen += group.rows;
            Ok(())
        })
        .unwrap();
        assert_eq!(seen, 2);
        let other = each_group(file(), &LOSSES, &["reason"], &mut |_| Ok(()));
        assert!(other.unwrap_err().to_string().contains("no column reason"));
        let older = each_group(file(), &EXITS, &["machine", "time_ns"], &mut |group| {
            let [_, time] = group.columns()?;
            assert_eq!(time.number(0), None);
            Ok(())
        });
        assert!(older.is_ok(), "{older:?}");
    }
}
