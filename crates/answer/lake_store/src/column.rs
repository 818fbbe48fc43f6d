//! Definitions of tables and columns: names, types and meanings.

/// The type of a column. There are no unsigned, nested or timestamp types, because query engines disagree on
/// them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// INT64.
    Long,
    /// INT32.
    Int,
    /// DOUBLE.
    Double,
    /// BOOLEAN.
    Bool,
    /// STRING (UTF-8).
    Text,
}

impl Kind {
    /// Its name in SQL.
    #[must_use]
    pub const fn sql(self) -> &'static str {
        match self {
            Self::Long => "BIGINT",
            Self::Int => "INT",
            Self::Double => "DOUBLE",
            Self::Bool => "BOOLEAN",
            Self::Text => "STRING",
        }
    }
}

/// A column of a table.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// Its name; times end in `_ns`.
    pub name: &'static str,
    /// Its type.
    pub kind: Kind,
    /// Whether it can be null: not recorded, or unknown.
    pub nullable: bool,
    /// Its meaning in a sentence; for nullable columns, also the meaning of null.
    pub about: &'static str,
    /// The names in its texts.
    pub names: Names,
}

/// Names of hosts, VMs and threads in the texts of a column; hashed if pseudonyms are requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Names {
    /// None.
    None,
    /// Each is a name.
    Name,
    /// `host`, or a guest's name.
    Machine,
    /// A step of a request: a thread that wakes another, or that runs.
    Step,
    /// A request's path: its first step, and the threads on its way.
    Path,
    /// A thread's name and id, or a name that the kernel defines.
    Track,
}

impl Column {
    const fn new(name: &'static str, kind: Kind, about: &'static str) -> Self {
        Self { name, kind, nullable: false, about, names: Names::None }
    }

    /// The same column, nullable.
    #[must_use]
    pub const fn or_null(self) -> Self {
        Self { nullable: true, ..self }
    }

    /// The same column, with these names in its texts.
    #[must_use]
    pub const fn with(self, names: Names) -> Self {
        Self { names, ..self }
    }
}

pub(crate) const fn long(name: &'static str, about: &'static str) -> Column {
    Column::new(name, Kind::Long, about)
}

pub(crate) const fn int(name: &'static str, about: &'static str) -> Column {
    Column::new(name, Kind::Int, about)
}

pub(crate) const fn double(name: &'static str, about: &'static str) -> Column {
    Column::new(name, Kind::Double, about)
}

pub(crate) const fn flag(name: &'static str, about: &'static str) -> Column {
    Column::new(name, Kind::Bool, about)
}

pub(crate) const fn text(name: &'static str, about: &'static str) -> Column {
    Column::new(name, Kind::Text, about)
}

/// A table.
#[derive(Debug)]
pub struct Table {
    /// Its name, also used for its files.
    pub name: &'static str,
    /// The meaning of a row, in a sentence.
    pub about: &'static str,
    /// Its columns, in order. New columns are added at the end and are nullable.
    pub columns: &'static [Column],
    /// Whether it is written only on request.
    pub on_request: bool,
}

impl PartialEq for Table {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Table {}
