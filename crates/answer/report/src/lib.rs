//! Results as tables, JSON, CSV and pages.
//!
//! An analysis gives numbers; this crate formats them. JSON follows the schemas in `docs/formats`, which scripts rely
//! on; tables may change.
//!
//! `html` puts numbers into `web/dist/report.html`, at its one place for data: JSON for tables, packed columns for
//! drawings (`docs/formats/report.md`). In the page, `web/src/data` reads the columns, `web/src/views` draws, and only
//! `web/src/dom.ts` makes elements, from text. A lane keeps running sums of its states at every 16th span, so the
//! shares of any interval cost one search and a few additions. `cargo xtask page` compares the built page with a hash
//! of its sources.
//!
//! `events` prints lines where pages are decoded, in parallel; merging copies finished lines. On the way it learns
//! names of threads that the kernel did not save (`events::names`).

#![forbid(unsafe_code)]
#![deny(clippy::print_stdout, clippy::print_stderr)]

mod ab;
mod advice;
mod align;
mod boot;
mod calls;
mod cpu;
mod critical;
mod diff;
pub mod events;
mod exits;
mod figures;
mod flame;
mod folded;
mod greatest;
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
#[cfg(test)]
mod schemas;
mod sensitivity;
mod virtio;
mod vmm;
mod why;
mod xml;

use tables::{sentences, table, units};

pub use ab::AbReport;
pub use advice::{AdviceReport, Seen};
pub use align::{AlignReport, summary as align_summary};
pub use boot::{BootReport, boot_svg};
pub use calls::{CallSort, CallsReport, CallsSource, TreeLimits};
pub use cpu::{CpuBy, CpuReport};
pub use critical::{BusiestReport, CriticalReport};
pub use diff::{DiffReport, diff_verdict};
pub use exits::{ExitsReport, Source};
pub use info::{Covered, FileInfo, InfoReport};
pub use irqs::IrqsReport;
pub use json::OtherDocument;
pub use losses::lost as losses_notes;
pub use nested::NestedReport;
pub use part::{RangeRead, SelectedReport, SelectionRead};
pub use path::PathReport;
pub use profile::{ProfileBy, ProfileReport};
pub use recorder_cost::{AgentCost, RecorderCost};
pub use sensitivity::SensitivityReport;
pub use tables::units::{count, counted, plural, share, time};
pub use tables::{Format, Legend, Report, Table, column};
pub use virtio::VirtioReport;
pub use vmm::{VmmReport, VmmSource};
pub use why::{WhyQuestion, WhyReport};
