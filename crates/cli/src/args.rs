//! Options of verbs, and their help.

use std::path::{Path, PathBuf};

use analyses::align::Method;
use clap::builder::PossibleValue;
use clap::{Args, ValueEnum};

pub(crate) use lab::{LabArgs, LabVerb};
pub(crate) use memory::MemoryArgs;
pub(crate) use page::PageArgs;
pub(crate) use part::{NameArgs, PartArgs, RangeArgs};

pub(crate) mod ab;
pub(crate) mod bench;
pub(crate) mod boot;
pub(crate) mod calls;
pub(crate) mod cpu;
pub(crate) mod critical;
pub(crate) mod debug_files;
pub(crate) mod diff;
pub(crate) mod export;
pub(crate) mod fleet;
pub(crate) mod flight;
pub(crate) mod hypertrace;
pub(crate) mod irqs;
pub(crate) mod keys;
pub(crate) mod lab;
pub(crate) mod lab_workload;
pub(crate) mod lake;
pub(crate) mod listen;
pub(crate) mod mark;
pub(crate) mod memory;
pub(crate) mod page;
pub(crate) mod part;
pub(crate) mod path;
pub(crate) mod profile;
pub(crate) mod publish;
pub(crate) mod record;
pub(crate) mod sensitivity;
pub(crate) mod serve;
pub(crate) mod size;
pub(crate) mod sql;
pub(crate) mod tables;
pub(crate) mod top;
pub(crate) mod tracer;
pub(crate) mod virtio;
pub(crate) mod vmm;

/// Output format of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum FormatArg {
    /// Tables for people
    Table,
    /// One JSON document
    Json,
    /// Comma-separated values with a header line
    Csv,
}

/// Format and destination of the output.
#[derive(Debug, Args)]
pub(crate) struct OutputArgs {
    /// Output format
    #[arg(long, value_name = "FORMAT", default_value = "table")]
    pub(crate) format: FormatArg,
    /// Write to this file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

impl OutputArgs {
    /// Whether to write an HTML page: no format is given and the file name ends in .html.
    pub(crate) fn is_page(&self) -> bool {
        let kind = self.output.as_deref().and_then(Path::extension);
        self.format == FormatArg::Table && kind.is_some_and(|kind| kind == "html")
    }
}

/// Arguments of reports without options of their own.
#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    /// Recordings: trace.dat files, sessions, or folders with ring-buffer pages
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) memory: MemoryArgs,
    #[command(flatten)]
    pub(crate) part: PartArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// Maximum number of rows; 0 means all.
pub(crate) const fn unless_zero(top: usize) -> usize {
    if top == 0 { usize::MAX } else { top }
}

/// Method that aligns guests to their host's clock.
#[derive(Debug, Args)]
pub(crate) struct MethodArgs {
    /// Align guests to the host's clock by this method [default: the first one without violations,
    /// otherwise windows]
    #[arg(long, value_name = "METHOD")]
    method: Option<MethodArg>,
}

impl MethodArgs {
    /// The requested method.
    pub(crate) fn method(&self) -> Option<Method> {
        self.method.map(|method| method.0)
    }
}

/// A method of alignment under its command-line name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MethodArg(pub(crate) Method);

impl ValueEnum for MethodArg {
    fn value_variants<'a>() -> &'a [Self] {
        const ALL: [MethodArg; 3] = [
            MethodArg(Method::TscOffset),
            MethodArg(Method::TimeShift),
            MethodArg(Method::Windows),
        ];
        &ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        let help = match self.0 {
            Method::TscOffset => {
                "TSC offsets set by KVM; host and guest must use the clock x86-tsc"
            }
            Method::TimeShift => "Offsets measured by the recorder (TIME_SHIFT)",
            Method::Windows => {
                "Guest events must fall between an entry and the next exit of their vCPU"
            }
        };
        Some(PossibleValue::new(self.0.name()).help(help))
    }
}

/// Output format of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum EventsFormatArg {
    /// Lines in the format of trace-cmd report
    Text,
    /// One JSON object per line
    Jsonl,
}
