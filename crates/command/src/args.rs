//! Options of several programs: where results go, and how guests' times are brought to their host's clock.

use std::path::{Path, PathBuf};

use analyses::align::Method;
use clap::builder::PossibleValue;
use clap::{Args, ValueEnum};

pub mod memory;
pub mod part;
pub mod size;
pub mod time;

/// How a report is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FormatArg {
    /// Tables for people
    Table,
    /// One JSON document
    Json,
    /// Comma-separated values with a header line
    Csv,
}

/// Where results go.
#[derive(Debug, Args)]
pub struct OutputArgs {
    /// How the report is written
    #[arg(long, value_name = "FORMAT", default_value = "table")]
    pub format: FormatArg,
    /// Write to this file in place of standard output
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

impl OutputArgs {
    /// Whether a page is asked for: by the file's name, where no format is.
    pub fn is_page(&self) -> bool {
        let kind = self.output.as_deref().and_then(Path::extension);
        self.format == FormatArg::Table && kind.is_some_and(|kind| kind == "html")
    }
}

/// How guests' times are brought to their host's clock.
#[derive(Debug, Args)]
pub struct MethodArgs {
    /// Bring guests' times to their host's clock by this [default: the first without violations,
    /// else windows]
    #[arg(long, value_name = "METHOD")]
    method: Option<MethodArg>,
}

impl MethodArgs {
    /// The method that was asked for.
    pub fn method(&self) -> Option<Method> {
        self.method.map(|method| method.0)
    }
}

/// A method of alignment under its command-line name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MethodArg(pub Method);

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
            Method::TscOffset => "TSC offsets that KVM set; both sides recorded x86-tsc",
            Method::TimeShift => "What the recorder measured (TIME_SHIFT)",
            Method::Windows => "Guest events lie between entries and exits of their vCPU",
        };
        Some(PossibleValue::new(self.0.name()).help(help))
    }
}

/// Reads a share: more than nothing, less than all.
pub fn share(text: &str) -> Result<f64, String> {
    let value = text.parse::<f64>().ok().filter(|value| *value > 0.0 && *value < 1.0);
    value.ok_or_else(|| "a number between 0 and 1, such as 0.05".to_owned())
}
