//! Columns: the name of a report's number, its meaning, how it is shown and where it comes
//! from, defined once for table, CSV, JSON, schema and page.

mod cell;
mod described;
mod export;
mod schema;
mod tables;

pub use cell::{Cell, Unit, sorted};
pub use described::Described;
pub use export::{Definition, Exported, Rows, RowsWith, csv, definitions};
pub use schema::{Kind, ticks};
pub use tables::draw;

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
pub trait Row {
    /// Whether its times are nanoseconds, not ticks.
    fn is_nanoseconds(&self) -> bool;

    /// Whether its times are of anything at all: tables show a dash where not.
    fn has_times(&self) -> bool {
        true
    }
}

/// Which documents for programs have a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Export {
    JsonAndCsv,
    Json,
    Csv,
    No,
}

type Getter<R> = Box<dyn Fn(&R) -> Cell>;
type Condition<R> = Box<dyn Fn(&R) -> bool>;
type Drawing<R> = Box<dyn Fn(&R) -> String>;

/// One column.
pub struct Column<R> {
    /// The JSON object within the row that holds it.
    object: Option<&'static str>,
    /// Its name in JSON, in CSV behind that of the object; times without their unit.
    pub name: String,
    /// Its heading.
    pub title: String,
    /// What its values are.
    pub unit: Unit,
    /// What it is, in words.
    pub help: String,
    /// What null means.
    null: Option<&'static str>,
    kind: Kind,
    /// All texts that it may be; none: any.
    values: Vec<&'static str>,
    /// What its texts look like.
    pattern: Option<&'static str>,
    least: Option<i64>,
    most: Option<i64>,
    /// Not all documents have it.
    is_optional: bool,
    export: Export,
    placements: Vec<Placement<R>>,
    /// Tables have it after the column of this name, wherever it is in JSON.
    after: Option<&'static str>,
    getter: Getter<R>,
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
    fn new(
        (name, title): (&str, &str),
        unit: Unit,
        kind: Kind,
        help: &str,
        getter: Getter<R>,
    ) -> Self {
        Self {
            object: None,
            name: name.to_owned(),
            title: title.to_owned(),
            unit,
            help: help.to_owned(),
            null: None,
            kind,
            values: Vec::new(),
            pattern: None,
            least: matches!(kind, Kind::Number | Kind::NumberOrText | Kind::Ratio).then_some(0),
            most: None,
            is_optional: false,
            export: Export::JsonAndCsv,
            placements: Vec::new(),
            after: None,
            getter,
            drawn: None,
            is_at_the_right: unit != Unit::Text,
        }
    }

    /// A column of names.
    pub fn text(
        names: (&str, &str),
        help: &str,
        value: impl Fn(&R) -> Option<String> + 'static,
    ) -> Self {
        let cell = move |row: &R| Cell::Text(value(row));
        Self::new(names, Unit::Text, Kind::Text, help, Box::new(cell))
    }

    /// A column of whole numbers.
    pub fn number(
        names: (&str, &str),
        unit: Unit,
        help: &str,
        value: impl Fn(&R) -> Option<u64> + 'static,
    ) -> Self {
        Self::new(names, unit, Kind::Number, help, Box::new(move |row| Cell::Number(value(row))))
    }

    /// A column of times.
    pub fn time(
        names: (&str, &str),
        help: &str,
        value: impl Fn(&R) -> Option<u64> + 'static,
    ) -> Self {
        Self::number(names, Unit::Time, help, value)
    }

    /// A column of ratios.
    pub fn ratio(
        names: (&str, &str),
        help: &str,
        value: impl Fn(&R) -> Option<f64> + 'static,
    ) -> Self {
        let cell = move |row: &R| Cell::Ratio(value(row));
        Self::new(names, Unit::Ratio, Kind::Ratio, help, Box::new(cell))
    }

    /// A column of what is so or not.
    pub fn flag(names: (&str, &str), help: &str, value: impl Fn(&R) -> bool + 'static) -> Self {
        Self::new(names, Unit::Flag, Kind::Flag, help, Box::new(move |row| Cell::Flag(value(row))))
    }

    /// A column of numbers that may lie before a zero.
    pub fn signed(
        names: (&str, &str),
        unit: Unit,
        help: &str,
        value: impl Fn(&R) -> Option<i64> + 'static,
    ) -> Self {
        Self::new(names, unit, Kind::Signed, help, Box::new(move |row| Cell::Signed(value(row))))
    }

    /// A column whose cells are what its unit doesn't say.
    pub fn any(
        names: (&str, &str),
        (unit, kind): (Unit, Kind),
        help: &str,
        cell: impl Fn(&R) -> Cell + 'static,
    ) -> Self {
        Self::new(names, unit, kind, help, Box::new(cell))
    }

    /// It has no other texts than these.
    pub fn one_of(mut self, values: impl IntoIterator<Item = &'static str>) -> Self {
        self.values = values.into_iter().collect();
        self
    }

    /// Its texts match this regular expression.
    pub fn matching(mut self, pattern: &'static str) -> Self {
        self.pattern = Some(pattern);
        self
    }

    /// Its numbers may lie below zero.
    pub fn below_zero_too(mut self) -> Self {
        self.least = None;
        self
    }

    /// Its numbers are this or more.
    pub fn at_least(mut self, min: i64) -> Self {
        self.least = Some(min);
        self
    }

    /// Its numbers are this or less.
    pub fn at_most(mut self, max: i64) -> Self {
        self.most = Some(max);
        self
    }

    /// Not all documents have it, or not those of older versions.
    pub fn optional(mut self) -> Self {
        self.is_optional = true;
        self
    }

    /// In JSON it is within this object of the row.
    pub fn within(mut self, object: &'static str) -> Self {
        self.object = Some(object);
        self
    }

    /// What null means.
    pub fn null(mut self, meaning: &'static str) -> Self {
        self.null = Some(meaning);
        self
    }

    /// A table always shows it. A narrow terminal leaves out the highest ranks first, and rank 0 never.
    pub fn shown(self, table: &'static str, rank: u8) -> Self {
        self.placed(Placement { table, rank, presence: Presence::Always, missing: "-" })
    }

    /// A table shows it if it is known in one of the rows.
    pub fn shown_if_known(self, table: &'static str, rank: u8) -> Self {
        self.placed(Placement { table, rank, presence: Presence::IfKnown, missing: "?" })
    }

    /// A table shows it if something holds for one of the rows.
    pub fn shown_if(
        self,
        table: &'static str,
        rank: u8,
        is_there: impl Fn(&R) -> bool + 'static,
    ) -> Self {
        let presence = Presence::If(Box::new(is_there));
        self.placed(Placement { table, rank, presence, missing: "?" })
    }

    /// The table named last has this in place of what is not known.
    pub fn missing(mut self, text: &'static str) -> Self {
        if let Some(place) = self.placements.last_mut() {
            place.missing = text;
        }
        self
    }

    /// Tables have it after the column of this name.
    pub fn after(mut self, column: &'static str) -> Self {
        self.after = Some(column);
        self
    }

    /// Tables show this in place of the value.
    pub fn drawn_as(mut self, drawn: impl Fn(&R) -> String + 'static) -> Self {
        self.drawn = Some(Box::new(drawn));
        self
    }

    /// Tables have its cells at the right, as those of numbers.
    pub fn at_the_right(mut self) -> Self {
        self.is_at_the_right = true;
        self
    }

    /// Its heading is this one.
    pub fn titled(mut self, title: &str) -> Self {
        self.title = title.to_owned();
        self
    }

    fn placed(mut self, placement: Placement<R>) -> Self {
        self.placements.push(placement);
        self
    }

    /// Tables alone have it: it is made of what JSON has in other columns.
    pub fn only_in_tables(mut self) -> Self {
        self.export = Export::No;
        self
    }

    /// CSV doesn't have it.
    pub fn only_in_json(mut self) -> Self {
        self.export = Export::Json;
        self
    }

    /// JSON doesn't have it.
    pub fn only_in_csv(mut self) -> Self {
        self.export = Export::Csv;
        self
    }

    /// Its value in a row.
    pub fn cell(&self, row: &R) -> Cell {
        (self.getter)(row)
    }

    /// Whether JSON has it.
    #[must_use]
    pub fn is_in_json(&self) -> bool {
        matches!(self.export, Export::JsonAndCsv | Export::Json)
    }

    /// Whether CSV has it.
    #[must_use]
    pub fn is_in_csv(&self) -> bool {
        matches!(self.export, Export::JsonAndCsv | Export::Csv)
    }

    /// Its name in CSV and for `--sort`, with the object's before it.
    #[must_use]
    pub fn flat_name(&self) -> String {
        match self.object {
            Some(object) => format!("{object}_{}", self.name),
            None => self.name.clone(),
        }
    }
}

/// A part of a whole as [`Unit::Ratio`]; `None` where there is no whole.
#[must_use]
pub fn ratio(part: u64, total: u64) -> Option<f64> {
    (total > 0).then(|| part as f64 / total as f64)
}
