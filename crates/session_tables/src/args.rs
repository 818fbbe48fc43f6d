//! Options for the tables of a recording, and for facts that it lacks.

use std::str::FromStr;

use clap::Args;
use fleet::lake::Table;
use fleet::lake::tables::{EVENTS, EXIT_DETAILS, TABLES, table};

use session::Seconds;

/// The heading of these options in help.
const HEADING: &str = "Tables";

/// Tables, and facts that a recording doesn't have.
#[derive(Clone, Debug, Default, Args)]
pub struct TableArgs {
    /// Only these tables, separated by commas [default: all but exit_details and events]
    #[arg(long, value_name = "TABLE,…", value_delimiter = ',', help_heading = HEADING)]
    pub tables: Vec<TableArg>,
    /// Also write the table exit_details (ports, addresses, registers); it reveals guests'
    /// addresses
    #[arg(long, help_heading = HEADING)]
    pub details: bool,
    /// Name of the host in the fleet [default: its host name]
    #[arg(long, value_name = "NAME", help_heading = HEADING)]
    pub host: Option<String>,
    /// Time of the first event, in seconds of Unix time [default: from session.json; without it,
    /// tables have trace clock times]
    #[arg(long, value_name = "SECONDS", value_parser = unix_time, help_heading = HEADING)]
    pub begun: Option<Seconds>,
    /// Label of the session, such as pool=canary or cpu_model=EPYC-9654
    #[arg(long = "label", value_name = "KEY=VALUE", help_heading = HEADING)]
    pub labels: Vec<LabelArg>,
}

impl TableArgs {
    /// Whether none of these options was given.
    pub fn is_default(&self) -> bool {
        let Self { tables, details, host, begun: start, labels } = self;
        tables.is_empty() && !details && host.is_none() && start.is_none() && labels.is_empty()
    }

    /// The tables to write, including events if any are requested.
    pub fn wanted(&self, with_events: bool) -> Vec<&'static Table> {
        let named: Vec<_> = self.tables.iter().map(|table| table.0).collect();
        let is_wanted = |table: &&'static Table| {
            let is_requested =
                self.details && **table == EXIT_DETAILS || with_events && **table == EVENTS;
            let usual = named.is_empty() && !table.on_request;
            is_requested || usual || named.contains(table)
        };
        TABLES.into_iter().filter(is_wanted).collect()
    }
}

/// Seconds of Unix time that INT64 has nanoseconds for.
fn unix_time(text: &str) -> Result<Seconds, String> {
    const END_S: u64 = i64::MAX.unsigned_abs() / 1_000_000_000;
    let seconds: Seconds = text.parse().map_err(|error| format!("{error}"))?;
    if seconds.integer < END_S {
        Ok(seconds)
    } else {
        Err("a time after the year 2262: write whole seconds of Unix time".to_owned())
    }
}

/// The name of a table.
#[derive(Clone, Copy, Debug)]
pub struct TableArg(pub &'static Table);

impl FromStr for TableArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let names = || TABLES.map(|table| table.name).join(", ");
        let found = table(text).filter(|table| TABLES.contains(table));
        found.map(Self).ok_or_else(|| format!("unknown table {text}; use one of: {}", names()))
    }
}

/// A label.
#[derive(Clone, Debug)]
pub struct LabelArg(pub String, pub String);

impl FromStr for LabelArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.split_once('=') {
            Some((key, value)) if !key.is_empty() => Ok(Self(key.to_owned(), value.to_owned())),
            _ => Err(format!("{text} is not a label: write KEY=VALUE")),
        }
    }
}

/// What a query needs of a table, by which hyperscope-sql has less of a recording read.
#[derive(Clone, Debug, Default, Args)]
pub struct NeededArgs {
    /// Of events: rows of this time, as tables have it, and later ones
    #[arg(long, value_name = "NS", hide = true, allow_hyphen_values = true)]
    pub needed_from: Option<i64>,
    /// Of events: rows before this time
    #[arg(long, value_name = "NS", hide = true, allow_hyphen_values = true)]
    pub needed_to: Option<i64>,
    /// Of events: rows with these names
    #[arg(long, value_name = "SYSTEM:NAME", hide = true)]
    pub needed_event: Vec<String>,
    /// Of events: the columns that are read; other columns may have any content
    #[arg(long, value_name = "COLUMN,…", value_delimiter = ',', hide = true)]
    pub needed_columns: Option<Vec<String>>,
    /// Of exits: rows of these VMs
    #[arg(long, value_name = "VM", hide = true)]
    pub needed_vm: Vec<String>,
}

impl NeededArgs {
    /// Whether all events are needed.
    pub fn is_all_events(&self) -> bool {
        let Self { needed_from, needed_to, needed_event, needed_columns, needed_vm: _ } = self;
        needed_from.is_none()
            && needed_to.is_none()
            && needed_event.is_empty()
            && needed_columns.is_none()
    }

    /// Whether a column is read.
    pub fn has(&self, column: &str) -> bool {
        self.needed_columns.as_ref().is_none_or(|all| all.iter().any(|needed| needed == column))
    }
}
