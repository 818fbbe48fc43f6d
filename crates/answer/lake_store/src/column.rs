//! What a table and its columns are: names, types, and what they mean.

/// What a column holds. Nothing unsigned, nothing nested and no timestamps: engines disagree on those.
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
    /// What it holds.
    pub kind: Kind,
    /// Whether it can be null: not recorded, or not known.
    pub nullable: bool,
    /// What it is, in a sentence; of nullable ones, what null means.
    pub about: &'static str,
    /// Which names its texts have.
    pub names: Names,
}

/// Names of hosts, VMs and threads in the texts of a column, which are left out where pseudonyms are asked for.
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
    /// A request's path: its first step, and who it goes over.
    Path,
    /// A thread's name and its id, or what the kernel has by itself.
    Track,
}

impl Column {
    const fn new(name: &'static str, kind: Kind, about: &'static str) -> Self {
        Self { name, kind, nullable: false, about, names: Names::None }
    }

    /// The same, where it can be null.
    #[must_use]
    pub const fn or_null(self) -> Self {
        Self { nullable: true, ..self }
    }

    /// The same, with these names in its texts.
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
    /// Its name, and that of its files.
    pub name: &'static str,
    /// What a row is, in a sentence.
    pub about: &'static str,
    /// Its columns, in order. New ones come at the end and can be null.
    pub columns: &'static [Column],
    /// Whether it is written only where it is asked for.
    pub on_request: bool,
}

impl PartialEq for Table {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Table {}
