//! Arguments of `sql`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;

use super::tables::TableArgs;
use super::{FormatArg, MethodArgs, PartArgs};
use crate::args::memory::MemoryArgs;

/// Arguments of `sql`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    hyperscope sql \"SELECT reason, SUM(cost_ns) AS cost_ns FROM exits GROUP BY reason\" trace.dat\n  \
    hyperscope sql @slow-exits /srv/lake\n  \
    hyperscope sql --engine trino=https://coordinator:8443/hive @slow-exits /srv/lake\n  \
    hyperscope sql --list\n  \
    hyperscope sql '\\d exits' trace.dat\n  \
    hyperscope sql \"SELECT * FROM vcpu_states WHERE state = 'preempted'\" NAME.hscope -o out.parquet\n  \
    hyperscope sql /srv/lake                         a prompt\n\n\
    docs/formats/lake.md describes the tables, docs/sql.md the views. The command runs hyperscope-sql,\n\
    which make sql builds, from the folder of hyperscope or from the PATH.")]
pub(crate) struct SqlArgs {
    /// A query, or @NAME of a predefined one, then its data: a lake, a folder of tables, or
    /// recordings of a host and its guests. Without a query, a prompt reads them
    #[arg(value_name = "QUERY|SOURCE", required_unless_present = "list")]
    pub(crate) asked: Vec<OsString>,
    /// Output format
    #[arg(long, value_name = "FORMAT", default_value = "table")]
    pub(crate) format: FormatArg,
    /// Write to this file instead of standard output; as Parquet if its name ends in .parquet
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Memory that a query may take before it uses the disk, in MiB
    #[arg(long, value_name = "MIB", default_value = "1024", help_heading = "Limits")]
    pub(crate) memory: u32,
    /// Run the query in another engine, which reads the files of the tables: duckdb,
    /// duckdb=PROGRAM, duckdb=PYTHON with its module, spark=MASTER by spark-sql, or
    /// trino=https://HOST:PORT/CATALOG (passwords: docs/sql.md)
    #[arg(long, value_name = "ENGINE")]
    pub(crate) engine: Option<String>,
    /// List the predefined queries
    #[arg(long)]
    pub(crate) list: bool,
    #[command(flatten)]
    pub(crate) reading: MemoryArgs,
    #[command(flatten)]
    pub(crate) part: PartArgs,
    #[command(flatten)]
    pub(crate) tables: TableArgs,
    #[command(flatten)]
    pub(crate) method: MethodArgs,
}
