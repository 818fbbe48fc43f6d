//! Arguments of `lake`.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::{Args, Subcommand};
use fleet::lake::Table;

use super::tables::{TableArg, TableArgs};
use super::{MethodArgs, OutputArgs};
use crate::args::memory::MemoryArgs;
use crate::args::part::NameArgs;

/// Arguments of `lake`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    hyperscope lake add /srv/lake --host web7 --label pool=canary NAME.hscope\n  \
    hyperscope lake list /srv/lake\n  \
    hyperscope lake compact /srv/lake --before 2026-11-22\n  \
    hyperscope lake gc /srv/lake --keep exits=7 --keep vcpu_states=7\n  \
    hyperscope lake verify /srv/lake\n\n\
    A lake is a folder with the tables of many recordings (docs/fleet.md), or s3://BUCKET/FOLDER of a\n\
    store, whose address (AWS_ENDPOINT_URL) and keys come from the environment. A recording is added\n\
    completely or not at all, even if a command is killed.")]
pub(crate) struct LakeArgs {
    #[command(subcommand)]
    pub(crate) verb: LakeVerb,
}

/// What to do with a lake.
#[derive(Debug, Subcommand)]
pub(crate) enum LakeVerb {
    /// Add recordings, each FILE as one session; existing sessions stay
    Add(Box<AddArgs>),
    /// Merge the files of each day's sessions
    Compact(CompactArgs),
    /// Remove rows that belong to no session, and rows past their retention
    Gc(GcArgs),
    /// Show the sessions of a lake
    List(ListArgs),
    /// Read a whole lake, and report damage
    Verify(VerifyArgs),
}

/// Arguments of `lake add`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    hyperscope lake add /srv/lake one.dat two.dat              two sessions\n  \
    hyperscope lake add /srv/lake --host web7 NAME.hscope      a host and its guests: one session\n  \
    hyperscope lake add /srv/lake --begun 1795305600 trace.dat   a trace-cmd file, which has no date\n  \
    hyperscope lake add /srv/lake --pseudonymize /etc/hyperscope/lake.key NAME.hscope\n\n\
    Recordings that can't be read are listed in the table rejected. All others are added, and the\n\
    command exits with code 1.")]
pub(crate) struct AddArgs {
    /// The lake: a folder, created if it is missing, or s3://BUCKET/FOLDER
    #[arg(value_name = "LAKE")]
    pub(crate) lake: PathBuf,
    /// Recordings, or sessions of a host and its guests
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) memory: MemoryArgs,
    #[command(flatten)]
    pub(crate) tables: TableArgs,
    /// Also write the table events, with these events: SYSTEM:NAME, NAME or SYSTEM, with * and ?
    #[arg(short, long = "event", value_name = "EVENT")]
    pub(crate) events: Vec<String>,
    /// Replace names of hosts, VMs, threads and files by keyed hashes; KEYFILE is created if it is
    /// missing
    #[arg(long, value_name = "KEYFILE", conflicts_with = "events")]
    pub(crate) pseudonymize: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) names: NameArgs,
    #[command(flatten)]
    pub(crate) method: MethodArgs,
}

/// Arguments of `lake compact`.
#[derive(Debug, Args)]
pub(crate) struct CompactArgs {
    /// The lake: a folder, or s3://BUCKET/FOLDER
    #[arg(value_name = "LAKE")]
    pub(crate) lake: PathBuf,
    /// Only days before this one, such as 2026-11-22 [default: today]
    #[arg(long, value_name = "DATE")]
    pub(crate) before: Option<Date>,
    #[command(flatten)]
    pub(crate) memory: MemoryArgs,
}

/// Arguments of `lake gc`.
#[derive(Debug, Args)]
pub(crate) struct GcArgs {
    /// The lake: a folder, or s3://BUCKET/FOLDER
    #[arg(value_name = "LAKE")]
    pub(crate) lake: PathBuf,
    /// Keep rows that belong to no session for this many hours, since a query may still read them
    #[arg(long, value_name = "HOURS", default_value = "24")]
    pub(crate) grace: u32,
    /// Remove rows of a table that are older than this many days
    #[arg(long, value_name = "TABLE=DAYS")]
    pub(crate) keep: Vec<Keep>,
}

impl GcArgs {
    /// Retention of rows without a session.
    pub(crate) fn grace(&self) -> Duration {
        Duration::from_secs(u64::from(self.grace) * 3600)
    }
}

/// Arguments of `lake list`.
#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// The lake: a folder, or s3://BUCKET/FOLDER
    #[arg(value_name = "LAKE")]
    pub(crate) lake: PathBuf,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// Arguments of `lake verify`.
#[derive(Debug, Args)]
pub(crate) struct VerifyArgs {
    /// The lake: a folder, or s3://BUCKET/FOLDER
    #[arg(value_name = "LAKE")]
    pub(crate) lake: PathBuf,
    /// Tables from which gc removed days, separated by commas; sessions may lack rows in them
    #[arg(long, value_name = "TABLE,…", value_delimiter = ',')]
    pub(crate) expired: Vec<TableArg>,
    #[command(flatten)]
    pub(crate) memory: MemoryArgs,
}

/// A day, as folders of lakes are named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Date(pub(crate) String);

impl FromStr for Date {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let shape = |(at, character): (usize, char)| {
            if matches!(at, 4 | 7) { character == '-' } else { character.is_ascii_digit() }
        };
        let within = |at: std::ops::Range<usize>, days: std::ops::RangeInclusive<u8>| {
            text.get(at).and_then(|part| part.parse().ok()).is_some_and(|part| days.contains(&part))
        };
        let is_shaped = text.len() == 10 && text.char_indices().all(shape);
        if is_shaped && within(5..7, 1..=12) && within(8..10, 1..=31) {
            Ok(Self(text.to_owned()))
        } else {
            Err(format!("{text} is not a date: write 2026-11-22"))
        }
    }
}

/// Number of days of a table are kept.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Keep {
    pub(crate) table: &'static Table,
    pub(crate) days: u32,
}

impl FromStr for Keep {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = || format!("{text} is not TABLE=DAYS, such as exits=7");
        let (table, days) = text.split_once('=').ok_or_else(wrong)?;
        let TableArg(table) = table.parse()?;
        if ["sessions", "buckets"].contains(&table.name) {
            return Err(format!("{} has no retention: other tables need it", table.name));
        }
        Ok(Self { table, days: days.parse().map_err(|_| wrong())? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_and_retentions_are_read_or_refused() {
        assert_eq!("2026-11-22".parse(), Ok(Date("2026-11-22".to_owned())));
        for wrong in
            ["", "2026-11-2", "2026/11/22", "today", "2026-13-01", "2026-11-32", "2026-00-10"]
        {
            assert!(wrong.parse::<Date>().is_err(), "{wrong}");
        }
        assert!("exits=7".parse::<Keep>().is_ok_and(|keep| keep.days == 7));
        for wrong in ["exits", "exits=x", "exit=7", "sessions=7"] {
            assert!(wrong.parse::<Keep>().is_err(), "{wrong}");
        }
    }
}
