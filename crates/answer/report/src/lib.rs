//! Results as tables, JSON, CSV and pages.
//!
//! An analysis gives numbers; this crate says how they look. JSON follows the schemas in
//! `docs/formats`, which scripts rely on; tables may change.

#![forbid(unsafe_code)]
#![deny(clippy::print_stdout, clippy::print_stderr)]

mod ab;
mod advice;
mod align;
mod boot;
mod calls;
pub mod column;
mod cpu;
mod critical;
mod diff;
pub mod events;
mod exits;
mod figures;
mod flame;
mod folded;
pub mod html;
mod info;
mod irqs;
mod json;
mod losses;
mod nested;
mod part;
mod path;
mod profile;
mod recorder_cost;
mod sensitivity;
mod sentences;
mod table;
mod units;
mod virtio;
mod vmm;
mod xml;

use serde::Serialize;

pub use ab::AbReport;
pub use advice::{AdviceReport, Seen};
pub use align::{AlignReport, summary as align_summary};
pub use boot::{BootReport, boot_svg};
pub use calls::{CallSort, CallsReport, CallsSource, TreeLimits};
pub use cpu::{CpuBy, CpuReport};
pub use critical::{BusiestReport, CriticalReport};
pub use diff::{DiffReport, diff_verdict};
pub use exits::{ExitsReport, Source};
pub use info::{FileInfo, InfoReport};
pub use irqs::IrqsReport;
pub use losses::lost as losses_notes;
pub use nested::NestedReport;
pub use part::{OfPart, PartRead, RangeRead};
pub use path::PathReport;
pub use profile::{ProfileBy, ProfileReport};
pub use recorder_cost::{AgentCost, RecorderCost};
pub use sensitivity::SensitivityReport;
pub use table::{Column, Table};
pub use units::{count, plural, share, time};
pub use virtio::VirtioReport;
pub use vmm::{VmmReport, VmmSource};

/// How a report is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Tables for people; `width` is that of the terminal, if there is one.
    Table {
        /// Columns of the terminal; `None` where lines may be as long as they like.
        width: Option<usize>,
    },
    /// One JSON document.
    Json,
    /// One table with a header line.
    Csv,
}

/// A result that can be written in every format.
pub trait Report {
    /// The tables people read.
    fn text(&self, width: Option<usize>) -> String;
    /// The document scripts read.
    fn document(&self) -> impl Serialize;
    /// The rows spreadsheets read.
    fn csv(&self) -> Table;

    /// The report in a format, with a line break at its end.
    fn render(&self, format: Format) -> String {
        match format {
            Format::Table { width } => {
                let text = self.text(width);
                sentences::broken_at(&printable::lines(&text), width).into_owned()
            }
            Format::Json => json::text(&self.document()),
            Format::Csv => self.csv().to_csv(),
        }
    }
}
