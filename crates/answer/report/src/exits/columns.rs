//! The columns of the exits report.

mod times;

use analyses::exits::{ExitRow, Exits};
use analyses::group::{By, Group};
use analyses::known_parts::KnownParts;
use analyses::recorded::RecordedParts;
use analyses::tally::Tally;
use timeline::reasons::Code;

use super::lines::{Kind, Line};
use super::{PERCENTILES, Source, name_of};
use crate::column::{self, Cell, Column, Described, Kind as CellKind, Unit};
use crate::json::RawCode;

/// The table of durations.
pub(super) const HOW_LONG: &str = "how long";
/// The table of parts.
pub(super) const WHO_PAYS: &str = "who pays";

/// The totals for shares: all exits of the table.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Whole {
    pub(super) count: u64,
    pub(super) time_ns: u64,
    /// `None`: unknown.
    pub(super) cost_ns: Option<u64>,
}

impl Whole {
    /// All exits of a sum.
    pub(super) fn from_tally(tally: &Tally, recorded: &RecordedParts) -> Self {
        let cost_ns = KnownParts::new(tally, recorded).cost_ns;
        Self { count: tally.count, time_ns: tally.durations.sum(), cost_ns }
    }

    /// The sort key of VMs: cost if it is known, otherwise time.
    pub(super) fn weight_ns(&self) -> u64 {
        self.cost_ns.unwrap_or(self.time_ns)
    }

    /// All exits of a recording that don't wait.
    pub(super) fn working(exits: &Exits) -> Self {
        let mut sum = Tally::default();
        let working = exits.rows.iter().filter(|row| !row.waiting);
        working.for_each(|row| sum.merge(&row.tally));
        Self::from_tally(&sum, &exits.recorded)
    }
}

/// A group of exits, or the sum of several.
#[derive(Debug)]
pub(crate) struct Row<'r> {
    source: &'r Source,
    /// `None`: the sum of several groups.
    group: Option<&'r Group>,
    waiting: bool,
    tally: &'r Tally,
    percentiles: [Option<u64>; 4],
    cost_percentiles: [Option<u64>; 2],
    parts: KnownParts,
    totals: Whole,
}

impl<'r> Row<'r> {
    pub(super) fn new(source: &'r Source, row: &'r ExitRow, totals: Whole) -> Self {
        let group = Some(&row.group);
        Self { group, ..Self::of_several(source, &row.tally, row.waiting, totals) }
    }

    /// A line of a table.
    pub(super) fn of_line(
        source: &'r Source,
        line: &Line<'r>,
        waiting: bool,
        totals: Whole,
    ) -> Self {
        let group = line.group.filter(|_| line.kind == Kind::Row);
        Self { group, ..Self::of_several(source, line.tally, waiting, totals) }
    }

    /// The sum of several groups.
    fn of_several(source: &'r Source, tally: &'r Tally, waiting: bool, totals: Whole) -> Self {
        Self {
            source,
            group: None,
            waiting,
            tally,
            percentiles: tally.durations.percentiles(PERCENTILES),
            cost_percentiles: tally.costs.percentiles([500, 990]),
            parts: KnownParts::new(tally, &source.exits.recorded),
            totals,
        }
    }

    fn exits(&self) -> &Exits {
        &self.source.exits
    }

    /// Whether these are waiting exits without a record of when they ran.
    fn halted(&self) -> bool {
        self.waiting && !self.exits().recorded.off_cpu
    }

    /// Its exits are of a guest inside the VM.
    pub(super) fn is_nested(&self) -> bool {
        self.group.and_then(|group| group.level).is_some_and(|level| level > 1)
    }

    /// Exits that were handled, if the handler was recorded.
    fn handled(&self, number: u64) -> Option<u64> {
        self.exits().recorded.user.then_some(number)
    }
}

impl column::Row for Row<'_> {
    fn is_nanoseconds(&self) -> bool {
        self.exits().nanoseconds
    }

    fn has_times(&self) -> bool {
        self.tally.paired() > 0
    }
}

impl<'r> Described for Row<'r> {
    const ABOUT: Option<&'static str> = Some(
        "Exits of one group. The non-null parts among kernel_ns, user_ns (or user_and_return_ns), off_cpu_ns, halt_poll_ns and \
         not_split_ns add up to exactly time_ns.",
    );
    fn all_columns() -> Vec<Column<Self>> {
        let details: Vec<By> = By::NAMES.iter().map(|(_, by)| *by).collect();
        columns(&details)
    }

    fn about(object: &str) -> Option<&'static str> {
        (object == "handled").then_some("Paired exits by handler.")
    }
}

/// All columns of exits grouped by `by`, in the order of JSON and CSV.
pub(crate) fn columns<'r>(by: &[By]) -> Vec<Column<Row<'r>>> {
    let mut columns = names();
    let details = by.iter().filter(|by| !FIXED.contains(by));
    columns.extend(details.map(|&by| detail(by).optional()));
    columns.extend(counts());
    columns.extend(times::durations());
    columns.extend(times::parts());
    columns.extend(times::costs());
    columns
}

/// Properties that JSON always has; null if rows are not grouped by them.
const FIXED: [By; 4] = [By::Vm, By::Level, By::Reason, By::Code];

/// The column that shows a property that rows are grouped by.
pub(super) fn named_by<'c, 'r>(
    columns: &'c [Column<Row<'r>>],
    by: By,
) -> Option<&'c Column<Row<'r>>> {
    columns.iter().find(|column| column.name == name_of(by))
}

fn names<'r>() -> Vec<Column<Row<'r>>> {
    let group = |row: &Row<'r>| row.group;
    vec![
        Column::text(
            ("source", "recording"),
            "Path of the recording, as given.",
            |row: &Row<'_>| Some(row.source.path.clone()),
        ),
        Column::text(
            ("vm", "VM"),
            "Name of the VM; null if rows are not grouped by vm.",
            move |row| group(row)?.vm.clone(),
        ),
        Column::number(
            ("level", "level"),
            Unit::Level,
            "1: guests of the recorded machine; 2: any guest inside those. Null if rows are not grouped by level.",
            move |row| group(row)?.level.map(u64::from),
        ).at_least(1)
        .at_most(2),
        Column::text(
            ("isa", "isa"),
            "Architecture of the exit reason: vmx (Intel), svm (AMD), arm64, s390, riscv, powerpc, loongarch; unknown if the \
             exit event has an unknown layout. Null if rows are grouped neither by reason nor by code.",
            move |row| group(row)?.isa.map(|isa| isa.name().to_owned()),
        ).one_of(["vmx", "svm", "arm64", "s390", "riscv", "powerpc", "loongarch", "unknown"]),
        Column::text(
            ("reason", "reason"),
            "The kernel's symbol for the reason, from the recording's print fmt, or the raw code if there is none. Null if rows \
             are grouped neither by reason nor by code.",
            move |row| group(row)?.reason.clone(),
        ),
        Column::any(
            ("code", "code"),
            (Unit::Text, CellKind::NumberOrText),
            "The raw code: exit_reason on x86, icptcode on s390, scause on RISC-V as a number; \"ret:esr_ec\" as a string on \
             arm64. Null in text recordings, which contain only names, and if rows are grouped neither by reason nor by code.",
            move |row| match group(row).and_then(|group| group.code.as_ref()) {
                Some(Code::Number(code)) => Cell::Number(Some(*code)),
                Some(pair @ Code::Pair(..)) => Cell::Text(Some(pair.to_string())),
                Some(Code::NotRecorded) | None => Cell::Text(None),
            },
        ).matching(RawCode::PAIR),
    ]
}

/// The column of a property that JSON has only if rows are grouped by it.
fn detail<'r>(by: By) -> Column<Row<'r>> {
    let name = name_of(by);
    let names = (name, name);
    let number = |help: &str| {
        Column::number(names, Unit::Hex, help, move |row: &Row<'r>| {
            let (kind, value) = row.group?.detail?;
            (Some(kind) == by.detail()).then_some(value)
        })
    };
    match by {
        By::Vcpu => Column::number(
            names,
            Unit::Id,
            "Id of the vCPU within its VM; only with --by vcpu.",
            |row: &Row<'r>| row.group?.vcpu.map(u64::from),
        )
        .null("unknown"),
        By::Task => Column::text(
            names,
            "The vCPU thread as comm-tid; only with --by task.",
            |row: &Row<'r>| row.group?.task.clone(),
        )
        .null("unknown"),
        By::Symbol => Column::text(
            names,
            "Guest function at the exit, or its address if no symbol is known; only with --by symbol.",
            |row: &Row<'r>| row.group?.symbol.clone(),
        )
        .null("the recording has no addresses"),
        By::Msr => {
            number("Model-specific register, null for exits without one; only with --by msr.")
        }
        By::Port => number("I/O port, null for exits without one; only with --by port."),
        By::Gpa => {
            number("Guest physical address, null for exits without one; only with --by gpa.")
        }
        By::Hypercall => {
            number("Hypercall number, null for exits without one; only with --by hypercall.")
        }
        By::CpuidLeaf | By::Vm | By::Level | By::Reason | By::Code => {
            number("CPUID leaf, null for exits without one; only with --by cpuid_leaf.")
        }
    }
}

fn counts<'r>() -> Vec<Column<Row<'r>>> {
    let not_recorded = "kvm_userspace_exit was not recorded";
    vec![
        Column::number(
            ("kernel", "by kernel"),
            Unit::Count,
            "Exits that the recorded machine's kernel handled without the VMM.",
            |row: &Row<'r>| row.handled(row.tally.by_kernel),
        )
        .within("handled")
        .null(not_recorded),
        Column::number(
            ("user", "by user space"),
            Unit::Count,
            "Exits that the VMM handled in user space.",
            |row: &Row<'r>| row.handled(row.tally.by_user),
        )
        .within("handled")
        .null(not_recorded),
        Column::number(
            ("l1", "by level 1"),
            Unit::Count,
            "Exits of a nested guest that were injected into its parent, the level-1 guest.",
            |row: &Row<'r>| Some(row.tally.by_l1),
        )
        .within("handled"),
        Column::flag(
            ("waiting", "waits"),
            "By these exits the guest says that it has nothing to do (HLT, WFx, …). Their time is not a cost.",
            |row: &Row<'r>| row.waiting,
        ),
        Column::number(
            ("count", "exits"),
            Unit::Count,
            "Exit events, whether or not an entry followed.",
            |row: &Row<'r>| Some(row.tally.count),
        )
        .shown(HOW_LONG, 0),
        Column::ratio(
            ("exits_share", "exits%"),
            "Share of the exits of the table.",
            |row: &Row<'r>| column::ratio(row.tally.count, row.totals.count),
        )
        .only_in_tables()
        .shown(HOW_LONG, 7),
        Column::number(
            ("paired", "timed"),
            Unit::Count,
            "Exits with a time: an entry was seen, and no events were lost in between.",
            |row: &Row<'r>| Some(row.tally.paired()),
        ),
    ]
}
