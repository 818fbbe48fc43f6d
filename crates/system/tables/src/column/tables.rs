//! Columns in tables: selection and order of a table's columns, and the cells of each row.

use super::{Cell, Column, Presence, Row, Unit};
use crate::table::Table;
use crate::units::{count, signed, time};

impl<R: Row> Column<R> {
    /// The value as a table shows it.
    pub fn drawn(&self, row: &R, missing: &str) -> String {
        if let Some(drawn) = &self.drawn {
            return drawn(row);
        }
        if self.unit == Unit::Time && !row.has_times() {
            return "-".to_owned();
        }
        match (self.cell(row), self.unit) {
            (Cell::Number(Some(value)), Unit::Time) => time(value, row.is_nanoseconds()),
            (Cell::Number(Some(value)), Unit::Level) => format!("L{value}"),
            (Cell::Number(Some(value)), Unit::Hex) => format!("{value:#x}"),
            (Cell::Number(Some(value)), Unit::Count) => count(value),
            (Cell::Signed(Some(value)), Unit::Count) => signed(value),
            (Cell::Ratio(Some(value)), _) => format!("{:.2}%", value * 100.0),
            (cell, _) if cell.is_known() => cell.plain(),
            _ => missing.to_owned(),
        }
    }

    /// Adds the column to the table with this name, if it belongs there.
    fn draw(&self, into: &mut Table, table: &str, rows: &[R]) {
        let Some(place) = self.placements.iter().find(|place| place.table == table) else { return };
        let is_there = match &place.presence {
            Presence::Always => true,
            Presence::If(is_there) => rows.iter().any(is_there),
            Presence::IfKnown => rows.iter().any(|row| self.cell(row).is_known()),
        };
        if !is_there {
            return;
        }
        let cells = rows.iter().map(|row| self.drawn(row, place.missing)).collect();
        if self.is_at_the_right {
            into.numbers(&self.title, place.rank, cells)
        } else {
            into.names(&self.title, place.rank, cells)
        }
    }
}

/// Adds all columns that belong to the table with this name.
pub fn draw<R: Row>(columns: &[Column<R>], into: &mut Table, table: &str, rows: &[R]) {
    draw_after(None, columns, into, table, rows);
}

/// Adds the columns that follow the one with this name, recursively.
fn draw_after<R: Row>(
    name: Option<&str>,
    columns: &[Column<R>],
    into: &mut Table,
    table: &str,
    rows: &[R],
) {
    for column in columns.iter().filter(|column| column.after == name) {
        column.draw(into, table, rows);
        draw_after(Some(&column.name), columns, into, table, rows);
    }
}
