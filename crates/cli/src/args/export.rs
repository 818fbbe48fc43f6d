//! Arguments of `export`.

use std::path::PathBuf;
use std::str::FromStr;

use clap::builder::NonEmptyStringValueParser;
use clap::{Args, ValueEnum};
use timeline::event_filter::CpuSet;

use super::MethodArgs;
use super::tables::{NeededArgs, TableArg, TableArgs};
use crate::args::memory::MemoryArgs;
use crate::args::part::{PART, VmArgs};
use session::{NoTime, Selection, When};

/// What files are written for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportFormatArg {
    /// Perfetto's trace format: ui.perfetto.dev, trace_processor
    Perfetto,
    /// Chrome's trace events (JSON): chrome://tracing and others
    Chrome,
    /// A profile for profiler.firefox.com (JSON)
    Firefox,
    /// Events as comma-separated values: pandas, DuckDB, spreadsheets
    Csv,
    /// Events as JSON, one per line
    Jsonl,
    /// trace.dat of version 7: trace-cmd report, KernelShark
    Tracedat,
    /// Tables for SQL, one Parquet file per table: DuckDB, DataFusion, Spark, Trino, pandas
    Parquet,
}

impl ExportFormatArg {
    /// Whether the format shows tracks instead of single events.
    pub(crate) fn is_timeline(self) -> bool {
        matches!(self, Self::Perfetto | Self::Chrome | Self::Firefox)
    }
}

/// What stands after `--to`: the end of a range of time, or a format, as before there was `--format`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ToArg {
    Time(When),
    Format(ExportFormatArg),
}

impl FromStr for ToArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.starts_with(|character: char| character.is_ascii_alphabetic()) {
            let format = ExportFormatArg::from_str(text, false).map(Self::Format);
            return format.map_err(|_| {
                let all = ExportFormatArg::value_variants().iter();
                let names = all
                    .filter_map(|variant| Some(variant.to_possible_value()?.get_name().to_owned()));
                let names: Vec<String> = names.collect();
                format!("expected a time or a format, not {}", names.join(", "))
            });
        }
        text.parse().map(Self::Time).map_err(|error: NoTime| error.to_string())
    }
}

/// Arguments of `export`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    hyperscope export --format perfetto -o out.pftrace host.dat guest.dat   open at ui.perfetto.dev\n  \
    hyperscope export --format perfetto --critical dd -o out.pftrace NAME.hscope    the waits of dd\n  \
    hyperscope export --format firefox -o profile.json NAME.hscope          open at profiler.firefox.com\n  \
    hyperscope export --format csv -e kvm:kvm_exit --columns exit_reason,vcpu_id trace.dat\n  \
    hyperscope export --format tracedat --from 42.3 --to 42.5 -o cut.dat trace.dat\n  \
    hyperscope export --format tracedat -o merged.hscope host.dat guest.dat\n  \
    hyperscope export --format parquet -o tables NAME.hscope\n  \
    duckdb -c \"SELECT reason, SUM(cost_ns) FROM 'tables/exits.parquet' GROUP BY reason\"\n\n\
    perfetto, chrome and firefox show what every vCPU, guest task and CPU did. parquet has exits,\n\
    states, requests and their sums. The other formats hold events. Several recordings are put on one\n\
    clock; tracedat writes one file per recording to the folder given by -o.")]
pub(crate) struct ExportArgs {
    /// Recordings of a host and its guests, or sessions
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) memory: MemoryArgs,
    /// What to write
    #[arg(long, value_name = "FORMAT", required_unless_present = "to")]
    format: Option<ExportFormatArg>,
    /// Only these events: SYSTEM:NAME, NAME or SYSTEM, with * and ?. Formats with tracks show them
    /// as marks [default there: devices, interrupts, nested guests]
    #[arg(short, long = "event", value_name = "EVENT")]
    pub(crate) events: Vec<String>,
    /// Only these CPUs, such as 0,2-3; for csv, jsonl and tracedat
    #[arg(long, value_name = "LIST", value_parser = CpuSet::parse)]
    pub(crate) cpu: Option<CpuSet>,
    /// Write only events from this time on: in seconds as printed by events, or with a unit (500ms,
    /// 2m); +TIME counts from the beginning
    #[arg(long, value_name = "TIME", allow_negative_numbers = true, help_heading = PART)]
    pub(crate) from: Option<When>,
    /// Write only events before this time. The older --to FORMAT still works
    #[arg(long, value_name = "TIME", alias = "until", allow_negative_numbers = true, help_heading = PART)]
    to: Vec<ToArg>,
    #[command(flatten)]
    pub(crate) vms: VmArgs,
    /// For perfetto and chrome: draw arrows along the longest waits of the threads with this name
    /// or number; hyperscope critical lists these waits
    #[arg(long, value_name = "NAME|PID", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) critical: Option<String>,
    /// For csv: one column per field, instead of one column with all fields as JSON
    #[arg(long, value_name = "FIELD,…", value_delimiter = ',')]
    pub(crate) columns: Vec<String>,
    #[command(flatten)]
    pub(crate) method: MethodArgs,
    #[command(flatten)]
    pub(crate) tables: TableArgs,
    /// Write only this table, with the identities of all tables; used by hyperscope-sql
    #[arg(long, value_name = "TABLE", hide = true)]
    pub(crate) only: Option<TableArg>,
    #[command(flatten)]
    pub(crate) needed: NeededArgs,
    /// Write to this file instead of standard output; for parquet and several trace.dat: to this
    /// folder
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

impl ExportArgs {
    /// What to write.
    pub(crate) fn format(&self) -> ExportFormatArg {
        // [`conflict`](Self::conflict) refuses command lines that name none.
        self.formats().next().unwrap_or(ExportFormatArg::Perfetto)
    }

    /// The part of the recordings that is exported.
    pub(crate) fn selection(&self) -> Selection {
        self.vms.selection(self.from, self.until())
    }

    /// The end of the range of time.
    pub(crate) fn until(&self) -> Option<When> {
        self.ends().next()
    }

    fn formats(&self) -> impl Iterator<Item = ExportFormatArg> {
        let before = self.to.iter().filter_map(|to| match to {
            ToArg::Format(format) => Some(*format),
            ToArg::Time(_) => None,
        });
        self.format.into_iter().chain(before)
    }

    fn ends(&self) -> impl Iterator<Item = When> {
        self.to.iter().filter_map(|to| match to {
            ToArg::Time(time) => Some(*time),
            ToArg::Format(_) => None,
        })
    }

    /// Why these arguments conflict.
    pub(crate) fn conflict(&self) -> Option<&'static str> {
        match (self.formats().count(), self.ends().count()) {
            (0, _) => return Some("choose what to write with --format, such as --format perfetto"),
            (1, 0 | 1) => {}
            (1, _) => return Some("--to was given twice: a range has one end"),
            _ => return Some("only one format can be written: give --format once"),
        }
        let to = self.format();
        let is_timeline = to.is_timeline();
        if self.cpu.is_some() && is_timeline {
            return Some("--cpu works only with --format csv, jsonl and tracedat");
        }
        if self.critical.is_some()
            && !matches!(to, ExportFormatArg::Perfetto | ExportFormatArg::Chrome)
        {
            return Some("--critical works only with --format perfetto and chrome");
        }
        if !self.columns.is_empty() && to != ExportFormatArg::Csv {
            return Some("--columns works only with --format csv");
        }
        if to == ExportFormatArg::Parquet {
            if self.cpu.is_some() {
                return Some("--cpu works only with --format csv, jsonl and tracedat");
            }
            if self.output.as_deref().is_none_or(|path| path.as_os_str() == "-") {
                return Some("--format parquet needs -o FOLDER: each table is a file");
            }
        } else if !self.tables.is_default() {
            return Some(
                "--tables, --details, --host, --begun and --label work only with --format parquet",
            );
        }
        if self.output.is_none() && to == ExportFormatArg::Tracedat {
            return Some("--format tracedat needs -o: a trace.dat can't be written to a pipe");
        }
        None
    }
}
