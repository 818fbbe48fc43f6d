//! The report of `hyperscope exits`: how often exits happen, how long they take, and where that time goes.

mod columns;
mod headline;
mod lines;
mod notes;
mod tables;

use std::collections::HashMap;

use analyses::exits::Exits;
use analyses::group::By;
use schemars::JsonSchema;
use serde::Serialize;

use self::columns::{Row, Whole};
use self::tables::source_text;
use crate::column::{self, Cell, Column, Definition, Rows};
use crate::json::{Span, VcpuThread, threads};
use crate::losses::LossSums;
use crate::recorder_cost::CostDocument;
use crate::table::Table;
use crate::{Legend, RecorderCost, Report};

/// The exits of one recording.
#[derive(Debug)]
pub struct Source {
    /// The recording, as the user named it.
    pub path: String,
    pub exits: Exits,
    /// Whether it was made inside a guest, whose exits are in its host's recording.
    pub of_guest: bool,
    /// The cost of recording, if the recorder reported it.
    pub recorder_cost: Option<RecorderCost>,
    /// Processes of VMs by their vCPUs' threads, if the recorder reported them.
    pub processes: HashMap<u32, u32>,
}

impl Source {
    fn sort_by(&mut self, name: &str) -> Result<(), String> {
        let columns = columns::columns(&self.exits.by);
        let matches_name = |column: &&Column<Row<'_>>| {
            column.is_in_json() && column.flat_name() == name.trim_end_matches("_ns")
        };
        let Some(column) = columns.iter().find(matches_name) else {
            let exported = columns.iter().filter(|column| column.is_in_json());
            let names: Vec<String> = exported.map(Column::flat_name).collect();
            return Err(format!("no column {name}; the columns are {}", names.join(", ")));
        };
        let cells: Vec<Cell> = self.rows().map(|row| column.cell(&row)).collect();
        drop(columns);
        let rows = std::mem::take(&mut self.exits.rows);
        let mut both: Vec<_> = cells.into_iter().zip(rows).collect();
        both.sort_by(|(cell, _), (other, _)| column::sorted(cell, other));
        self.exits.rows = both.into_iter().map(|(_, row)| row).collect();
        Ok(())
    }

    fn rows(&self) -> impl Iterator<Item = Row<'_>> {
        let totals = Whole::working(&self.exits);
        self.exits.rows.iter().map(move |row| Row::new(self, row, totals))
    }

    /// Parts of exits without events, and the events that would record them.
    pub(crate) fn exits_missing(&self) -> Vec<String> {
        notes::missing_parts(&self.exits.recorded)
    }
}

/// The exits of all given recordings.
#[derive(Debug)]
pub struct ExitsReport {
    /// One per recording.
    pub sources: Vec<Source>,
    /// Max rows of tables; JSON and CSV have all.
    pub top: Option<usize>,
    /// The column that rows are sorted by after [`sort_by`](Self::sort_by); otherwise cost or time.
    pub sorted_by: Option<String>,
}

/// Percentiles shown, in thousandths.
const PERCENTILES: [u64; 4] = [500, 900, 990, 999];

impl Report for ExitsReport {
    fn headline(&self) -> String {
        headline::headline(&self.sources)
    }

    fn tables(&self, width: Option<usize>) -> String {
        let headline = self.headline();
        let text = |source| source_text(source, self, (&headline, width));
        self.sources.iter().map(text).collect()
    }

    fn legend(&self) -> Legend {
        vec![
            ("before exit", "host work before kvm_exit"),
            ("run queue", "runnable, without a CPU"),
            ("blocked", "asleep"),
            ("halt poll", "the kernel polled before it slept"),
            ("sd", "standard deviation"),
            ("±", "standard error of the mean"),
        ]
    }

    fn document(&self) -> impl Serialize {
        self.document_of()
    }

    fn csv(&self) -> Table {
        let in_ns: Vec<bool> = self.sources.iter().map(|source| source.exits.nanoseconds).collect();
        column::csv(&self.columns(), &self.rows(), &in_ns)
    }
}

/// Output of `hyperscope exits --format json`: VM exits, grouped. docs/formats/exits.md defines every number.
#[derive(Debug, JsonSchema, Serialize)]
pub(crate) struct Document<'r> {
    schema: &'static str,
    /// Paths of the recordings, as they were named.
    sources: Vec<&'r str>,
    #[serde(flatten)]
    span: Span,
    /// Losses of all sources.
    losses: LossSums,
    /// Switches of vCPUs' threads that must have happened but are not in the recording, although no event was lost:
    /// the time around each may be in another part. Linux 6.18 does not trace one in some hundreds.
    switches_unseen: u64,
    /// Cost of the recording itself, if the recorder reported it (sessions of hyperscope record). Null: not
    /// measured.
    recorder_cost: Option<CostDocument<'r>>,
    /// The VMs in the recordings.
    vms: Vec<Vm<'r>>,
    /// Groups: first those that don't wait, in descending order of cost, or of time if cost is unknown; then
    /// waiting exits, in descending order of time. --sort sorts them by a column.
    rows: Rows<Row<'r>>,
}

/// A VM as JSON has it.
#[derive(Debug, JsonSchema, Serialize)]
struct Vm<'r> {
    /// Path of the recording.
    source: &'r str,
    /// The guest's name if the recording has it, otherwise vm- and the thread id of its first vCPU.
    vm: &'r str,
    /// Process id of the VMM. Null: not recorded.
    pid: Option<u32>,
    /// 1: a guest of the recorded machine.
    #[schemars(extend("const" = 1))]
    level: u8,
    /// Number of vCPUs seen.
    vcpus: usize,
    /// The VMM's comm, as recorded for the first vCPU thread. Null: not recorded.
    comm: Option<&'r str>,
    /// Its vCPUs.
    threads: Vec<VcpuThread>,
}

impl ExitsReport {
    /// Sorts rows by the column with this name in CSV: the greatest numbers come first.
    ///
    /// # Errors
    /// In a sentence, when there is no such column.
    pub fn sort_by(&mut self, name: &str) -> Result<(), String> {
        for source in &mut self.sources {
            source.sort_by(name)?;
        }
        self.sorted_by = Some(name.to_owned());
        Ok(())
    }

    pub(crate) fn document_of(&self) -> Document<'_> {
        let all = || self.sources.iter().map(|source| &source.exits);
        let nanoseconds = all().all(|exits| exits.nanoseconds);
        let span = all().map(|exits| exits.span_ns).max();
        let dropped = all().flat_map(|exits| &exits.rows).map(|row| row.tally.dropped).sum();
        Document {
            schema: "hyperscope.exits/1",
            sources: self.sources.iter().map(|source| source.path.as_str()).collect(),
            span: Span { in_ns: nanoseconds, span },
            losses: LossSums::new(all().map(|exits| &exits.losses), dropped),
            switches_unseen: all().map(|exits| exits.switches_unseen).sum(),
            recorder_cost: self.recorder_cost().map(RecorderCost::document),
            vms: self.sources.iter().flat_map(vms).collect(),
            rows: Rows { columns: self.columns(), rows: self.rows() },
        }
    }

    /// The definitions of the rows' columns, for a page.
    pub(crate) fn definitions(&self) -> Vec<Definition> {
        column::definitions(&self.columns())
    }

    /// The cost from the first recording that has it: the host's recorder also records its guests.
    fn recorder_cost(&self) -> Option<&RecorderCost> {
        self.sources.iter().find_map(|source| source.recorder_cost.as_ref())
    }

    /// The columns of all rows: all recordings are grouped in the same way.
    fn columns<'r>(&self) -> Vec<Column<Row<'r>>> {
        let by = self.sources.first().map_or(&By::DEFAULT[..], |source| &source.exits.by);
        columns::columns(by)
    }

    fn rows(&self) -> Vec<Row<'_>> {
        self.sources.iter().flat_map(Source::rows).collect()
    }
}

fn vms(source: &Source) -> Vec<Vm<'_>> {
    let new_vm = |vm| Vm::new(source, vm);
    source.exits.vms.iter().map(new_vm).collect()
}

impl<'r> Vm<'r> {
    fn new(source: &'r Source, vm: &'r timeline::Vm) -> Self {
        let pid = vm.vcpus.iter().find_map(|vcpu| source.processes.get(&vcpu.thread));
        Self {
            source: &source.path,
            vm: &vm.name,
            pid: pid.copied(),
            level: 1,
            vcpus: vm.vcpus.len(),
            comm: vm.comm.as_deref(),
            threads: threads(vm),
        }
    }
}

fn rounded(value: f64) -> u64 {
    value.round() as u64
}

pub(crate) use notes::not_split;

fn name_of(by: By) -> &'static str {
    By::NAMES.iter().find(|(_, candidate)| *candidate == by).map_or("", |(name, _)| name)
}
