//! Columns: what a number of a report is called, what it means, how it is shown and where it comes
//! from, defined once for table, CSV, JSON, schema and page.

mod export;

use std::cmp::Ordering;

use serde::ser::{Serialize, Serializer};

use crate::table::Table;
use crate::units::{count, time};

pub(crate) use export::{Definition, Rows, csv, definitions};

/// A value of a row as JSON has it; `None` where it was not recorded.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Cell {
    Text(Option<String>),
    Number(Option<u64>),
    Ratio(Option<f64>),
    Flag(bool),
}

impl Serialize for Cell {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Text(value) => value.serialize(serializer),
            Self::Number(value) => value.serialize(serializer),
            Self::Ratio(value) => value.serialize(serializer),
            Self::Flag(value) => value.serialize(serializer),
        }
    }
}

impl Cell {
    pub(crate) fn is_known(&self) -> bool {
        !matches!(self, Self::Text(None) | Self::Number(None) | Self::Ratio(None))
    }

    /// The value in CSV: empty where it was not recorded.
    pub(crate) fn plain(&self) -> String {
        match self {
            Self::Text(value) => value.clone().unwrap_or_default(),
            Self::Number(value) => value.map_or_else(String::new, |value| value.to_string()),
            // As JSON writes it.
            Self::Ratio(value) => value.map_or_else(String::new, |value| {
                serde_json::Number::from_f64(value).map_or_else(String::new, |one| one.to_string())
            }),
            Self::Flag(value) => value.to_string(),
        }
    }
}

/// In the order of `--sort`: the greatest numbers first, names from a to z, what is not known last.
pub(crate) fn sorted(one: &Cell, other: &Cell) -> Ordering {
    let unknown_last = other.is_known().cmp(&one.is_known());
    unknown_last.then_with(|| match (one, other) {
        (Cell::Number(one), Cell::Number(other)) => other.cmp(one),
        (Cell::Ratio(one), Cell::Ratio(other)) => {
            other.unwrap_or(0.0).total_cmp(&one.unwrap_or(0.0))
        }
        (Cell::Flag(one), Cell::Flag(other)) => other.cmp(one),
        (one, other) => one.plain().cmp(&other.plain()),
    })
}

/// What a column's values are, which says how tables show them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    Text,
    /// A level of virtualisation.
    Level,
    /// An address, a port, the number of a register.
    Hex,
    /// A plain number, such as an id.
    Id,
    Count,
    /// A share, a relative error: 1 is 100%.
    Ratio,
    Flag,
    /// Nanoseconds, or ticks of the recording's clock.
    Time,
}

impl Unit {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Level | Self::Hex | Self::Id => "number",
            Self::Count => "count",
            Self::Ratio => "ratio",
            Self::Flag => "flag",
            Self::Time => "time",
        }
    }
}

/// When a table has a column.
enum Presence<R> {
    Always,
    /// When this holds for one of the rows.
    If(Condition<R>),
    /// When one of its cells is known.
    IfKnown,
}

/// Where a table shows a column.
struct Placement<R> {
    table: &'static str,
    rank: u8,
    presence: Presence<R>,
    /// In place of what is not known.
    missing: &'static str,
}

/// A row of a report.
pub(crate) trait Row {
    /// Whether its times are nanoseconds, not ticks.
    fn is_nanoseconds(&self) -> bool;

    /// Whether its times are of anything at all: tables show a dash where not.
    fn has_times(&self) -> bool {
        true
    }
}

type Getter<R> = Box<dyn Fn(&R) -> Cell>;
type Condition<R> = Box<dyn Fn(&R) -> bool>;
type Drawing<R> = Box<dyn Fn(&R) -> String>;

/// One column.
pub(crate) struct Column<R> {
    /// The JSON object within the row that holds it.
    object: Option<&'static str>,
    /// Its name in JSON, in CSV behind that of the object; times without their unit.
    pub(crate) name: String,
    /// Its heading.
    pub(crate) title: String,
    pub(crate) unit: Unit,
    /// What it is, in words.
    pub(crate) help: String,
    /// What null means.
    null: Option<&'static str>,
    /// JSON and CSV have it, too.
    is_exported: bool,
    placements: Vec<Placement<R>>,
    /// Tables have it after the column of this name, wherever it is in JSON.
    after: Option<&'static str>,
    of: Getter<R>,
    /// What tables show, where the value and its unit don't say it.
    drawn: Option<Drawing<R>>,
    is_at_the_right: bool,
}

impl<R> std::fmt::Debug for Column<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Column").field("name", &self.name).field("unit", &self.unit).finish()
    }
}

impl<R> Column<R> {
    fn new(name: &str, title: &str, unit: Unit, help: &str, of: Getter<R>) -> Self {
        Self {
            object: None,
            name: name.to_owned(),
            title: title.to_owned(),
            unit,
            help: help.to_owned(),
            null: None,
            is_exported: true,
            placements: Vec::new(),
            after: None,
            of,
            drawn: None,
            is_at_the_right: unit != Unit::Text,
        }
    }

    /// A column of names.
    pub(crate) fn text(
        (name, title): (&str, &str),
        help: &str,
        of: impl Fn(&R) -> Option<String> + 'static,
    ) -> Self {
        Self::new(name, title, Unit::Text, help, Box::new(move |row| Cell::Text(of(row))))
    }

    /// A column of whole numbers.
    pub(crate) fn number(
        (name, title): (&str, &str),
        unit: Unit,
        help: &str,
        of: impl Fn(&R) -> Option<u64> + 'static,
    ) -> Self {
        Self::new(name, title, unit, help, Box::new(move |row| Cell::Number(of(row))))
    }

    /// A column of times.
    pub(crate) fn time(
        names: (&str, &str),
        help: &str,
        of: impl Fn(&R) -> Option<u64> + 'static,
    ) -> Self {
        Self::number(names, Unit::Time, help, of)
    }

    /// A column of ratios.
    pub(crate) fn ratio(
        (name, title): (&str, &str),
        help: &str,
        of: impl Fn(&R) -> Option<f64> + 'static,
    ) -> Self {
        Self::new(name, title, Unit::Ratio, help, Box::new(move |row| Cell::Ratio(of(row))))
    }

    /// A column of what is so or not.
    pub(crate) fn flag(
        (name, title): (&str, &str),
        help: &str,
        of: impl Fn(&R) -> bool + 'static,
    ) -> Self {
        Self::new(name, title, Unit::Flag, help, Box::new(move |row| Cell::Flag(of(row))))
    }

    /// A column whose cells are of one kind or another.
    pub(crate) fn any(
        (name, title): (&str, &str),
        unit: Unit,
        help: &str,
        of: impl Fn(&R) -> Cell + 'static,
    ) -> Self {
        Self::new(name, title, unit, help, Box::new(of))
    }

    /// In JSON it is within this object of the row.
    pub(crate) fn within(mut self, object: &'static str) -> Self {
        self.object = Some(object);
        self
    }

    /// What null means.
    pub(crate) fn null(mut self, meaning: &'static str) -> Self {
        self.null = Some(meaning);
        self
    }

    /// A table always shows it. A narrow terminal leaves out the highest ranks first, and rank 0 never.
    pub(crate) fn shown(self, table: &'static str, rank: u8) -> Self {
        self.placed(Placement { table, rank, presence: Presence::Always, missing: "-" })
    }

    /// A table shows it if it is known in one of the rows.
    pub(crate) fn shown_if_known(self, table: &'static str, rank: u8) -> Self {
        self.placed(Placement { table, rank, presence: Presence::IfKnown, missing: "?" })
    }

    /// A table shows it if something holds for one of the rows.
    pub(crate) fn shown_if(
        self,
        table: &'static str,
        rank: u8,
        is_there: impl Fn(&R) -> bool + 'static,
    ) -> Self {
        let presence = Presence::If(Box::new(is_there));
        self.placed(Placement { table, rank, presence, missing: "?" })
    }

    /// The table named last has this in place of what is not known.
    pub(crate) fn missing(mut self, text: &'static str) -> Self {
        if let Some(place) = self.placements.last_mut() {
            place.missing = text;
        }
        self
    }

    /// Tables have it after the column of this name.
    pub(crate) fn after(mut self, column: &'static str) -> Self {
        self.after = Some(column);
        self
    }

    /// Tables show this in place of the value.
    pub(crate) fn drawn_as(mut self, drawn: impl Fn(&R) -> String + 'static) -> Self {
        self.drawn = Some(Box::new(drawn));
        self
    }

    /// Tables have its cells at the right, as those of numbers.
    pub(crate) fn at_the_right(mut self) -> Self {
        self.is_at_the_right = true;
        self
    }

    /// Its heading is this one.
    pub(crate) fn titled(mut self, title: &str) -> Self {
        self.title = title.to_owned();
        self
    }

    fn placed(mut self, placement: Placement<R>) -> Self {
        self.placements.push(placement);
        self
    }

    /// Tables alone have it: it is made of what JSON has in other columns.
    pub(crate) fn only_in_tables(mut self) -> Self {
        self.is_exported = false;
        self
    }

    /// Its value in a row.
    pub(crate) fn cell(&self, row: &R) -> Cell {
        (self.of)(row)
    }

    /// Whether JSON and CSV have it.
    pub(crate) fn is_exported(&self) -> bool {
        self.is_exported
    }

    /// Its name in CSV and for `--sort`, with the object's before it.
    pub(crate) fn flat_name(&self) -> String {
        match self.object {
            Some(object) => format!("{object}_{}", self.name),
            None => self.name.clone(),
        }
    }

    /// Its name in JSON, and what a schema says of it; `None` if JSON doesn't have it.
    #[cfg(test)]
    pub(crate) fn in_schema(&self) -> Option<(String, String)> {
        let null = self.null.map_or_else(String::new, |null| format!(" Null: {null}."));
        let (unit, suffix) =
            if self.unit == Unit::Time { (" Nanoseconds.", "_ns") } else { ("", "") };
        let object = self.object.map_or_else(String::new, |object| format!("{object}."));
        let name = format!("{object}{}{suffix}", self.name);
        self.is_exported.then(|| (name, format!("{}{null}{unit}", self.help)))
    }
}

impl<R: Row> Column<R> {
    /// The value as a table shows it.
    pub(crate) fn drawn(&self, row: &R, missing: &str) -> String {
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
            (Cell::Ratio(Some(value)), _) => format!("{:.2}%", value * 100.0),
            (cell, _) if cell.is_known() => cell.plain(),
            _ => missing.to_owned(),
        }
    }

    /// Adds the column to the table of that name, if it belongs there.
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
        match self.is_at_the_right {
            false => into.names(&self.title, place.rank, cells),
            true => into.numbers(&self.title, place.rank, cells),
        }
    }
}

/// Adds all columns that belong to the table of that name.
pub(crate) fn draw<R: Row>(columns: &[Column<R>], into: &mut Table, table: &str, rows: &[R]) {
    draw_after(None, columns, into, table, rows);
}

/// Adds the columns that stand after the one of that name, each with those after it.
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

/// A part of a whole as [`Unit::Ratio`]; `None` where there is no whole.
pub(crate) fn ratio(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}
