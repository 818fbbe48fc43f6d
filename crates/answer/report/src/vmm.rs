//! The report of `hyperscope vmm`: where time goes while VMMs handle exits, and in their threads.

mod calls;
mod code;
mod exits;
mod locks;
mod page;
mod row;
mod threads;

use std::path::Path;

use analyses::vmm::Vmm;
use printable::line;
use schemars::JsonSchema;
use serde::Serialize;

use self::row::Row;
use crate::column::{self, Column, Rows};
use crate::losses::LossSums;
use crate::recorder_cost::CostDocument;
use crate::table::Table;
use crate::units::{count, plural, share, time};
use crate::{Legend, RecorderCost, Report, losses};

/// Titles of the tables after the first one.
const CODE_TITLE: &str = "Code that VMMs ran while they handled exits, by samples";
const CALL_TITLE: &str = "System calls";
const LOCK_TITLE: &str = "Waits for locks and conditions (futex)";
const THREAD_TITLE: &str = "Threads that run no vCPU";

/// The VMMs of one recording.
#[derive(Debug)]
pub struct VmmSource {
    /// Path of the recording, as the user named it.
    pub path: String,
    /// The numbers.
    pub vmm: Vmm,
}

/// The VMMs of all recordings.
#[derive(Debug)]
pub struct VmmReport {
    /// By recording.
    pub sources: Vec<VmmSource>,
    /// Max rows of each table in the text.
    pub top: usize,
    /// The cost of recording, if the recorder reported it.
    pub recorder_cost: Option<RecorderCost>,
}

impl Report for VmmReport {
    fn headline(&self) -> String {
        match self.sources.as_slice() {
            [source] => of_source(source),
            sources => {
                let groups = sources.iter().flat_map(|source| &source.vmm.exits);
                let exits = groups.map(|group| group.exits).fold(0, u64::saturating_add);
                let recordings = plural(sources.len() as u64, "recording");
                format!("{recordings}: VMMs handled {}.", plural(exits, "exit"))
            }
        }
    }

    fn tables(&self, width: Option<usize>) -> String {
        let mut out = String::new();
        for source in &self.sources {
            out += &self.source(source, width);
        }
        let cost = self.recorder_cost.as_ref().map(RecorderCost::note);
        out + &cost.map_or_else(String::new, |note| format!("\n{note}\n"))
    }

    fn legend(&self) -> Legend {
        vec![
            ("ran", "on CPUs in the VMM"),
            ("return", "from the exit to the first instruction of the VMM"),
            ("way back", "from the last one to the kernel"),
            ("?", "not recorded"),
        ]
    }

    fn document(&self) -> impl Serialize {
        Document {
            schema: "hyperscope.vmm/1",
            sources: self.sources.iter().map(|source| source.path.as_str()).collect(),
            losses: LossSums::new(self.sources.iter().map(|source| &source.vmm.losses), 0),
            recorder_cost: self.recorder_cost.as_ref().map(RecorderCost::document),
            syscalls_recorded: self.sources.iter().map(|source| source.vmm.has_calls).collect(),
            exits: self.rows(exits::columns(), |vmm| &vmm.exits),
            calls: self.rows(calls::columns(), |vmm| &vmm.calls),
            code: self.rows(code::columns(), |vmm| &vmm.code),
            samples_recorded: self.sources.iter().map(|source| source.vmm.has_samples).collect(),
            locks: self.rows(locks::columns(), |vmm| &vmm.locks),
            threads: self.rows(threads::columns(), |vmm| &vmm.threads),
        }
    }

    fn csv(&self) -> Table {
        let Rows { columns, rows } = self.rows(exits::columns(), |vmm| &vmm.exits);
        let in_ns: Vec<bool> = self.sources.iter().map(|source| source.vmm.nanoseconds).collect();
        let mut units = in_ns.clone();
        units.sort_unstable();
        units.dedup();
        column::csv(&columns, &rows, &units)
    }
}

/// Output of `hyperscope vmm --format json`: where time goes while VMMs handle exits, and in their threads. See
/// docs/vmm.md.
#[derive(Debug, JsonSchema, Serialize)]
pub(crate) struct Document<'r> {
    schema: &'static str,
    /// Paths of the recordings, as they were named.
    sources: Vec<&'r str>,
    /// Losses of all sources.
    losses: LossSums,
    /// Cost of the recording itself, if the recorder reported it (sessions of hyperscope record). Null: not
    /// measured.
    recorder_cost: Option<CostDocument<'r>>,
    /// By source: whether system calls were recorded (record --profile vmm).
    syscalls_recorded: Vec<bool>,
    /// Exits that VMMs handled, by VM, level, reason and address; in descending order of time.
    exits: Rows<exits::Of<'r>>,
    /// System calls of VMMs; in descending order of time.
    calls: Rows<calls::Of<'r>>,
    /// Code that ran while VMMs handled exits, by samples of the host; in descending order of time. Empty without
    /// samples.
    code: Rows<code::Of<'r>>,
    /// By source, whether the host was sampled.
    samples_recorded: Vec<bool>,
    /// Waits for futexes, by the thread that ended them; the longest first.
    locks: Rows<locks::Of<'r>>,
    /// Threads of VMMs that run no vCPU; the busiest first. Empty if system calls or switches of threads were not
    /// recorded.
    threads: Rows<threads::Of<'r>>,
}

impl VmmReport {
    fn rows<'r, T>(
        &'r self,
        columns: Vec<Column<Row<'r, T>>>,
        rows_of: impl Fn(&'r Vmm) -> &'r Vec<T>,
    ) -> Rows<Row<'r, T>> {
        let sources = self.sources.iter();
        let rows = sources
            .flat_map(|source| rows_of(&source.vmm).iter().map(|subject| Row { source, subject }));
        Rows { columns, rows: rows.collect() }
    }

    fn source(&self, source: &VmmSource, width: Option<usize>) -> String {
        let vmm = &source.vmm;
        let mut out = String::new();
        if self.sources.len() > 1 {
            out += &format!("\n{}\n", of_source(source));
        }
        let (top, exits) = (self.top, exits::columns());
        out += &table(source, &vmm.exits, (&exits, exits::TABLE), top, width);
        let code = code::columns();
        out += &titled(CODE_TITLE, &table(source, &vmm.code, (&code, code::TABLE), top, width));
        if vmm.has_calls {
            let (calls, locks, threads) = (calls::columns(), locks::columns(), threads::columns());
            let calls = table(source, &vmm.calls, (&calls, calls::TABLE), top, width);
            out += &titled(CALL_TITLE, &calls);
            let locks = table(source, &vmm.locks, (&locks, locks::TABLE), top, width);
            out += &titled(LOCK_TITLE, &locks);
            let threads = table(source, &vmm.threads, (&threads, threads::TABLE), top, width);
            out += &titled(THREAD_TITLE, &threads);
        }
        for note in notes(vmm) {
            out += &format!("{note}\n");
        }
        out
    }
}

fn titled(title: &str, table: &str) -> String {
    if table.is_empty() { String::new() } else { format!("\n{title}\n{table}") }
}

fn table<'r, T>(
    source: &'r VmmSource,
    all: &'r [T],
    (columns, name): (&[Column<Row<'r, T>>], &'static str),
    top: usize,
    width: Option<usize>,
) -> String {
    if all.is_empty() {
        return String::new();
    }
    let rows: Vec<Row<'r, T>> =
        all.iter().take(top).map(|subject| Row { source, subject }).collect();
    let mut table = Table::default();
    column::draw(columns, &mut table, name, &rows);
    let (drawn, left_out) = table.draw(width);
    let mut out = format!("\n{drawn}");
    if all.len() > rows.len() {
        out += &format!("{} more: --top 0 shows them\n", count((all.len() - rows.len()) as u64));
    }
    if !left_out.is_empty() {
        out += &format!("hidden to fit the width: {}; json shows all\n", left_out.join(", "));
    }
    out
}

/// Why there are no exits.
fn without_exits(source: &VmmSource) -> String {
    if !source.vmm.has_exits {
        let host = match sources::guest_named(Path::new(&source.path)) {
            Some(_) => "give the recording of its host, host.dat in the same folder",
            None => "give the recording of the VMMs' host",
        };
        return format!("the recording has no vCPU exits and may be a guest's own: {host}");
    }
    "no VMM handled an exit".to_owned()
}

/// The result of one recording in a sentence.
fn of_source(source: &VmmSource) -> String {
    format!("{}: {}.", line(&source.path), head(source))
}

/// The sums of all exits.
fn head(source: &VmmSource) -> String {
    let vmm = &source.vmm;
    let exits: u64 = vmm.exits.iter().map(|group| group.exits).sum();
    if exits == 0 {
        return without_exits(source);
    }
    let exits = plural(exits, "exit");
    if !vmm.is_split {
        return format!("VMMs handled {exits}; how long they ran for them was not recorded");
    }
    let mut all = analyses::vmm::ExitSplit::default();
    vmm.exits.iter().for_each(|group| all += group.split);
    let user_ns = all.user_ns();
    let parts = [
        ("return", all.return_ns),
        ("signals", all.signals_ns),
        ("device", all.device_ns),
        ("locks", all.lock_ns),
        ("calls", all.calls_ns),
        ("way back", all.back_ns),
        ("not split", all.not_split_ns),
    ];
    let named = |(name, ns): &(&str, u64)| format!("{name} {}", share(*ns, user_ns));
    let shown: Vec<String> = parts.iter().filter(|(_, ns)| *ns > 0).map(named).collect();
    format!(
        "VMMs handled {exits}, ran {} for them ({}), and waited {}",
        time(user_ns, vmm.nanoseconds),
        shown.join(", "),
        time(all.waited_ns(), vmm.nanoseconds)
    )
}

fn notes(vmm: &Vmm) -> Vec<String> {
    let mut notes = Vec::new();
    if !vmm.has_calls && !vmm.exits.is_empty() {
        notes.push(
            "\nno system calls were recorded, so the VMMs' work is not split: record with --profile vmm".to_owned(),
        );
    }
    if !vmm.is_split {
        notes.push(
            "time in user space is not separate from the rest: record kvm:kvm_userspace_exit and sched:sched_switch"
                .to_owned(),
        );
    }
    let can_own = vmm.has_calls && vmm.has_switches && !vmm.exits.is_empty();
    if can_own && !vmm.has_owners && vmm.threads.is_empty() {
        notes.push("the VMMs' threads are unknown: use a session of hyperscope record".to_owned());
    }
    notes.extend(losses::notes(&vmm.losses, 0));
    notes
}
