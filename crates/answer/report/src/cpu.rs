//! The report of `hyperscope cpu`: who used the CPUs, with idling told apart.

mod known;
mod rows;
mod tables;

use analyses::{CpuUse, HostCpuUse, TaskUse, ThreadUse, VcpuUse, VmUse};
use serde::Serialize;
use serde_json::{Value, json};

use self::rows::{cpu_json, guest_json, task_json, thread_json, vcpu_json, vm_json};
use crate::json::Object;
use crate::table::Table;
use crate::{RecorderCost, Report, losses};

/// Whose use is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CpuBy {
    /// VMs.
    Vm,
    /// vCPUs.
    Vcpu,
    /// Threads of hosts.
    Thread,
    /// Threads of guests.
    Task,
    /// CPUs of hosts.
    Cpu,
}

impl CpuBy {
    /// All, in the order of a report.
    pub const ALL: [Self; 5] = [Self::Vm, Self::Vcpu, Self::Thread, Self::Task, Self::Cpu];

    /// Its name in options.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Vm => "vm",
            Self::Vcpu => "vcpu",
            Self::Thread => "thread",
            Self::Task => "task",
            Self::Cpu => "cpu",
        }
    }
}

/// The use of CPUs in recordings read as one.
#[derive(Debug)]
pub struct CpuReport {
    /// Paths of the recordings, as the user named them.
    pub sources: Vec<String>,
    /// The numbers.
    pub cpu: CpuUse,
    /// Tables that are shown; JSON has all.
    pub by: Vec<CpuBy>,
    /// Idle threads are shown, too.
    pub idle: bool,
    /// Rows that tables show at most.
    pub top: Option<usize>,
    /// What recording cost, where the recorder reported it.
    pub recorder_cost: Option<RecorderCost>,
}

impl Report for CpuReport {
    fn text(&self, width: Option<usize>) -> String {
        tables::text(self, width)
    }

    fn document(&self) -> impl Serialize {
        self.document_of(usize::MAX)
    }

    fn csv(&self) -> Table {
        let by = self.by.first().copied().unwrap_or(CpuBy::Vcpu);
        let rows: Vec<_> = self.rows(by, usize::MAX).iter().map(flattened).collect();
        let mut table = Table::default();
        for (title, _) in flattened(&self.blank(by)) {
            let cell = |row: &Vec<(String, String)>| {
                let cell = row.iter().find(|(key, _)| *key == title);
                cell.map_or_else(String::new, |(_, value)| value.clone())
            };
            table.names(&title, 0, rows.iter().map(cell).collect());
        }
        table
    }
}

impl CpuReport {
    /// The document with the first `most` threads, and tasks.
    pub(crate) fn document_of(&self, most: usize) -> Value {
        let cpu = &self.cpu;
        let mut document = Object::default();
        document
            .set("schema", "hyperscope.cpu/1")
            .set("sources", self.sources.clone())
            .time("span", cpu.nanoseconds, Some(cpu.span_ns))
            .set("losses", losses::json(cpu.losses.iter(), 0))
            .set(
                "recorder_cost",
                self.recorder_cost.as_ref().map_or(Value::Null, RecorderCost::json),
            )
            .set("guests", cpu.guests.iter().map(|one| guest_json(self, one)).collect::<Vec<_>>());
        for by in CpuBy::ALL {
            document.set(&format!("{}s", by.name()), self.rows(by, most));
        }
        document.done()
    }

    fn rows(&self, by: CpuBy, most: usize) -> Vec<Value> {
        let cpu = &self.cpu;
        match by {
            CpuBy::Vm => cpu.vms.iter().map(|one| vm_json(self, one)).collect(),
            CpuBy::Vcpu => cpu.vcpus.iter().map(|one| vcpu_json(self, one)).collect(),
            CpuBy::Thread => {
                cpu.threads.iter().take(most).map(|one| thread_json(self, one)).collect()
            }
            CpuBy::Task => cpu.tasks.iter().take(most).map(|one| task_json(self, one)).collect(),
            CpuBy::Cpu => cpu.cpus.iter().map(|one| cpu_json(self, one)).collect(),
        }
    }

    /// A row of nothing: its keys are those of all rows.
    fn blank(&self, by: CpuBy) -> Value {
        match by {
            CpuBy::Vm => vm_json(self, &VmUse::default()),
            CpuBy::Vcpu => vcpu_json(self, &VcpuUse::default()),
            CpuBy::Thread => thread_json(self, &ThreadUse::default()),
            CpuBy::Task => task_json(self, &TaskUse::default()),
            CpuBy::Cpu => cpu_json(self, &HostCpuUse::default()),
        }
    }

    fn source(&self, recording: usize) -> &str {
        self.sources.get(recording).map_or("", String::as_str)
    }

    fn vm_name(&self, recording: usize, vm: usize) -> Option<&str> {
        let mut of_recording = self.cpu.vms.iter().filter(|one| one.recording == recording);
        of_recording.nth(vm).map(|one| one.name.as_str())
    }

    /// The VM that a guest's recording was made in.
    fn vm_of_guest(&self, recording: usize) -> Option<&str> {
        let guest = self.cpu.guests.iter().find(|(guest, ..)| *guest == recording);
        guest.map(|(_, _, name)| name.as_str())
    }
}

/// Keys and values of a row, those of objects in it with its name before theirs.
fn flattened(row: &Value) -> Vec<(String, String)> {
    let plain = |value: &Value| match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let mut cells = Vec::new();
    for (key, value) in row.as_object().unwrap_or(&serde_json::Map::new()) {
        match value {
            Value::Object(inner) => {
                cells.extend(
                    inner.iter().map(|(name, value)| (format!("{key}_{name}"), plain(value))),
                );
            }
            value => cells.push((key.clone(), plain(value))),
        }
    }
    cells
}

/// A name, or null.
fn optional(name: Option<&str>) -> Value {
    name.map_or(Value::Null, |name| json!(name))
}
