//! The report of `hyperscope exits`: how often, how long, and who pays.

mod columns;
mod lines;
mod notes;
mod tables;

use std::collections::HashMap;

use analyses::exits::Exits;
use analyses::group::By;
use serde::Serialize;
use serde_json::Value;

use self::columns::{Row, Whole};
use self::tables::source_text;
use crate::column::{self, Cell, Column, Definition, Rows};
use crate::json::threads_json;
use crate::table::Table;
use crate::{RecorderCost, Report, losses};

/// The exits of one recording.
#[derive(Debug)]
pub struct Source {
    /// The recording, as the user named it.
    pub path: String,
    /// Its exits.
    pub exits: Exits,
    /// It was made inside a guest, whose exits are in its host's recording.
    pub of_guest: bool,
    /// What recording cost, where the recorder reported it.
    pub recorder_cost: Option<RecorderCost>,
    /// Processes of VMs by their vCPU threads, where the recorder reported them.
    pub processes: HashMap<u32, u32>,
}

impl Source {
    fn sort_by(&mut self, name: &str) -> Result<(), String> {
        let columns = columns::columns(&self.exits.by);
        let is_it = |one: &&Column<Row<'_>>| {
            one.is_in_json() && one.flat_name() == name.trim_end_matches("_ns")
        };
        let Some(column) = columns.iter().find(is_it) else {
            let exported = columns.iter().filter(|one| one.is_in_json());
            let names: Vec<String> = exported.map(Column::flat_name).collect();
            return Err(format!("no column {name}; there are {}", names.join(", ")));
        };
        let cells: Vec<Cell> = self.rows().map(|row| column.cell(&row)).collect();
        drop(columns);
        let rows = std::mem::take(&mut self.exits.rows);
        let mut both: Vec<_> = cells.into_iter().zip(rows).collect();
        both.sort_by(|(one, _), (other, _)| column::sorted(one, other));
        self.exits.rows = both.into_iter().map(|(_, row)| row).collect();
        Ok(())
    }

    fn rows(&self) -> impl Iterator<Item = Row<'_>> {
        let whole = Whole::working(&self.exits);
        self.exits.rows.iter().map(move |row| Row::new(self, row, whole))
    }

    /// Parts of exits that there are no events for, and what would record them.
    pub(crate) fn exits_missing(&self) -> Vec<String> {
        notes::missing_parts(&self.exits.recorded)
    }
}

/// The exits of all recordings given.
#[derive(Debug)]
pub struct ExitsReport {
    /// One per recording.
    pub sources: Vec<Source>,
    /// Rows that tables show at most, the first; JSON and CSV have all.
    pub top: Option<usize>,
    /// What rows are sorted by, where [`sort_by`](Self::sort_by) did; else by cost or time.
    pub sorted_by: Option<String>,
}

/// Percentiles shown, in thousandths.
const PERCENTILES: [u64; 4] = [500, 900, 990, 999];

impl Report for ExitsReport {
    fn text(&self, width: Option<usize>) -> String {
        let texts: Vec<String> =
            self.sources.iter().map(|source| source_text(source, self, width)).collect();
        texts.join("\n")
    }

    fn document(&self) -> impl Serialize {
        self.document_of()
    }

    fn csv(&self) -> Table {
        let in_ns: Vec<bool> = self.sources.iter().map(|source| source.exits.nanoseconds).collect();
        column::csv(&self.columns(), &self.rows(), &in_ns)
    }
}

/// The document of `hyperscope exits`.
#[derive(Debug, Serialize)]
pub(crate) struct Document<'r> {
    schema: &'static str,
    sources: Vec<&'r str>,
    span_ns: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    span_cycles: Option<u64>,
    losses: Value,
    switches_unseen: u64,
    recorder_cost: Option<Value>,
    vms: Vec<Vm<'r>>,
    rows: Rows<Row<'r>>,
}

/// A VM as JSON has it.
#[derive(Debug, Serialize)]
struct Vm<'r> {
    source: &'r str,
    vm: &'r str,
    pid: Option<u32>,
    level: u8,
    vcpus: usize,
    comm: Option<&'r str>,
    threads: Vec<Value>,
}

impl ExitsReport {
    /// Sorts rows by a column, which goes by its name in CSV: the greatest numbers come first.
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
            span_ns: span.filter(|_| nanoseconds),
            span_cycles: span.filter(|_| !nanoseconds),
            losses: losses::json(all().map(|exits| &exits.losses), dropped),
            switches_unseen: all().map(|exits| exits.switches_unseen).sum(),
            recorder_cost: self.recorder_cost().map(RecorderCost::json),
            vms: self.sources.iter().flat_map(vms).collect(),
            rows: Rows { columns: self.columns(), rows: self.rows() },
        }
    }

    /// What a page must know of the columns of rows.
    pub(crate) fn definitions(&self) -> Vec<Definition> {
        column::definitions(&self.columns())
    }

    /// That of the first recording that has it: guests are recorded by their hosts' recorder.
    fn recorder_cost(&self) -> Option<&RecorderCost> {
        self.sources.iter().find_map(|source| source.recorder_cost.as_ref())
    }

    /// The columns of all rows: all recordings are grouped alike.
    fn columns<'r>(&self) -> Vec<Column<Row<'r>>> {
        let by = self.sources.first().map_or(&By::DEFAULT[..], |source| &source.exits.by);
        columns::columns(by)
    }

    fn rows(&self) -> Vec<Row<'_>> {
        self.sources.iter().flat_map(Source::rows).collect()
    }
}

fn vms(source: &Source) -> Vec<Vm<'_>> {
    let of = |vm| Vm::new(source, vm);
    source.exits.vms.iter().map(of).collect()
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
            threads: threads_json(vm),
        }
    }
}

fn rounded(value: f64) -> u64 {
    value.round() as u64
}

pub(crate) use notes::not_split;

fn name_of(by: By) -> &'static str {
    By::NAMES.iter().find(|(_, one)| *one == by).map_or("", |(name, _)| name)
}
