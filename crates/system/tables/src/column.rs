//! Columns: the name, meaning, format and source of a report's number, defined once for tables,
//! CSV, JSON, schema and page.

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

/// When a table shows a column.
enum Presence<R> {
    Always,
    /// If the condition holds for at least one row.
    If(Condition<R>),
    /// If at least one cell is known.
    IfKnown,
}

/// The placement of a column in a table.
struct Placement<R> {
    table: &'static str,
    rank: u8,
    presence: Presence<R>,
    /// Text for unknown values.
    missing: &'static str,
}

/// A row of a report.
pub trait Row {
    /// Whether its times are nanoseconds, not ticks.
    fn is_nanoseconds(&self) -> bool;

    /// Whether its times are known; tables show a dash otherwise.
    fn has_times(&self) -> bool {
        true
    }
}

/// Which export formats have a column.
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

/// A column.
pub struct Column<R> {
    /// The JSON object within the row that contains it.
    object: Option<&'static str>,
    /// Its name in JSON and, after the object's name, in CSV; without the unit for times.
    pub name: String,
    /// Its heading.
    pub title: String,
    /// The unit of its values.
    pub unit: Unit,
    /// Its description.
    pub help: String,
    /// The meaning of null.
    null: Option<&'static str>,
    kind: Kind,
    /// All possible texts; empty if any text is possible.
    values: Vec<&'static str>,
    /// Pattern of its texts.
    pattern: Option<&'static str>,
    least: Option<i64>,
    most: Option<i64>,
    /// Some documents lack it.
    is_optional: bool,
    export: Export,
    placements: Vec<Placement<R>>,
    /// Tables show it after the column with this name, independent of its position in JSON.
    after: Option<&'static str>,
    getter: Getter<R>,
    /// The text in tables, if the value and its unit do not determine it.
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

    /// A column of booleans.
    pub fn flag(names: (&str, &str), help: &str, value: impl Fn(&R) -> bool + 'static) -> Self {
        Self::new(names, Unit::Flag, Kind::Flag, help, Box::new(move |row| Cell::Flag(value(row))))
    }

    /// A column of numbers that can be negative.
    pub fn signed(
        names: (&str, &str),
        unit: Unit,
        help: &str,
        value: impl Fn(&R) -> Option<i64> + 'static,
    ) -> Self {
        Self::new(names, unit, Kind::Signed, help, Box::new(move |row| Cell::Signed(value(row))))
    }

    /// A column whose cells do not follow from its unit.
    pub fn any(
        names: (&str, &str),
        (unit, kind): (Unit, Kind),
        help: &str,
        cell: impl Fn(&R) -> Cell + 'static,
    ) -> Self {
        Self::new(names, unit, kind, help, Box::new(cell))
    }

    /// Restricts its texts to these.
    pub fn one_of(mut self, values: impl IntoIterator<Item = &'static str>) -> Self {
        self.values = values.into_iter().collect();
        self
    }

    /// Its texts match this regular expression.
    pub fn matching(mut self, pattern: &'static str) -> Self {
        self.pattern = Some(pattern);
        self
    }

    /// Allows negative numbers.
    pub fn below_zero_too(mut self) -> Self {
        self.least = None;
        self
    }

    /// Sets the minimum of its numbers.
    pub fn at_least(mut self, min: i64) -> Self {
        self.least = Some(min);
        self
    }

    /// Sets the maximum of its numbers.
    pub fn at_most(mut self, max: i64) -> Self {
        self.most = Some(max);
        self
    }

    /// Some documents, or documents of older versions, lack it.
    pub fn optional(mut self) -> Self {
        self.is_optional = true;
        self
    }

    /// Puts it into this object of the row in JSON.
    pub fn within(mut self, object: &'static str) -> Self {
        self.object = Some(object);
        self
    }

    /// Sets the meaning of null.
    pub fn null(mut self, meaning: &'static str) -> Self {
        self.null = Some(meaning);
        self
    }

    /// Always shows it in a table. A narrow terminal omits the highest ranks first, and never rank
    /// 0.
    pub fn shown(self, table: &'static str, rank: u8) -> Self {
        self.placed(Placement { table, rank, presence: Presence::Always, missing: "-" })
    }

    /// Shows it in a table if it is known in at least one row.
    pub fn shown_if_known(self, table: &'static str, rank: u8) -> Self {
        self.placed(Placement { table, rank, presence: Presence::IfKnown, missing: "?" })
    }

    /// Shows it in a table if a condition holds for at least one row.
    pub fn shown_if(
        self,
        table: &'static str,
        rank: u8,
        is_there: impl Fn(&R) -> bool + 'static,
    ) -> Self {
        let presence = Presence::If(Box::new(is_there));
        self.placed(Placement { table, rank, presence, missing: "?" })
    }

    /// Sets the text for unknown values in the table named last.
    pub fn missing(mut self, text: &'static str) -> Self {
        if let Some(place) = self.placements.last_mut() {
            place.missing = text;
        }
        self
    }

    /// Places it after the column with this name in tables.
    pub fn after(mut self, column: &'static str) -> Self {
        self.after = Some(column);
        self
    }

    /// Sets the text that tables show instead of the value.
    pub fn drawn_as(mut self, drawn: impl Fn(&R) -> String + 'static) -> Self {
        self.drawn = Some(Box::new(drawn));
        self
    }

    /// Right-aligns its cells in tables, like numbers.
    pub fn at_the_right(mut self) -> Self {
        self.is_at_the_right = true;
        self
    }

    /// Sets its heading.
    pub fn titled(mut self, title: &str) -> Self {
        self.title = title.to_owned();
        self
    }

    fn placed(mut self, placement: Placement<R>) -> Self {
        self.placements.push(placement);
        self
    }

    /// Only tables have it: it is derived from other columns of JSON.
    pub fn only_in_tables(mut self) -> Self {
        self.export = Export::No;
        self
    }

    /// CSV does not have it.
    pub fn only_in_json(mut self) -> Self {
        self.export = Export::Json;
        self
    }

    /// JSON does not have it.
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

    /// Its name in CSV and for `--sort`, prefixed by the object's name.
    #[must_use]
    pub fn flat_name(&self) -> String {
        match self.object {
            Some(object) => format!("{object}_{}", self.name),
            None => self.name.clone(),
        }
    }
}

/// The ratio of a part to a whole as [`Unit::Ratio`]; `None` if the whole is zero.
#[must_use]
pub fn ratio(part: u64, total: u64) -> Option<f64> {
    (total > 0).then(|| part as f64 / total as f64)
}
