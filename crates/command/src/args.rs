//! Options that several programs share: destination of results, and the method of alignment.

use std::path::{Path, PathBuf};

use analyses::align::Method;
use clap::builder::PossibleValue;
use clap::{Args, ValueEnum};

pub mod memory;
pub mod part;
pub mod size;
pub mod time;

/// Output format of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FormatArg {
    /// Tables for people
    Table,
    /// One JSON document
    Json,
    /// Comma-separated values with a header line
    Csv,
}

/// Format and destination of the output.
#[derive(Debug, Args)]
pub struct OutputArgs {
    /// Output format
    #[arg(long, value_name = "FORMAT", default_value = "table")]
    pub format: FormatArg,
    /// Write to this file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

impl OutputArgs {
    /// Whether to write an HTML page: no format is given and the file name ends in .html.
    pub fn is_page(&self) -> bool {
        let kind = self.output.as_deref().and_then(Path::extension);
        self.format == FormatArg::Table && kind.is_some_and(|kind| kind == "html")
    }
}

/// Method that aligns guests to their host's clock.
#[derive(Debug, Args)]
pub struct MethodArgs {
    /// Align guests to the host's clock by this method [default: the first one without violations,
    /// otherwise windows]
    #[arg(long, value_name = "METHOD")]
    method: Option<MethodArg>,
}

impl MethodArgs {
    /// The requested method.
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

/// Reads a share: above 0, below 1.
pub fn share(text: &str) -> Result<f64, String> {
    let value = text.parse::<f64>().ok().filter(|value| *value > 0.0 && *value < 1.0);
    value.ok_or_else(|| "expected a number between 0 and 1, such as 0.05".to_owned())
}
