//! The JSON document of nested exits.

use analyses::msr_names::msr_name;
use analyses::nested::{AncillaryRow, Nested, NestedRow};
use schemars::JsonSchema;
use serde::Serialize;

use super::{NestedReport, per_exit};
use crate::json::{RawCode, times};
use crate::losses::LossSums;

/// Output of `hyperscope nested --format json`: exits of nested guests and their cost. See docs/formats/nested.md.
#[derive(Debug, JsonSchema, Serialize)]
pub(crate) struct Document<'n> {
    schema: &'static str,
    /// Paths of the recordings, as they were named.
    sources: Vec<&'n str>,
    /// Losses of all sources.
    losses: LossSums,
    /// Exits per VM and level.
    levels: Vec<Level<'n>>,
    /// One per VM and reason, in descending order of cost; then waiting exits; last, those after which level 2 was
    /// not seen to run again.
    rows: Vec<Row<'n>>,
}

/// One VM.
#[derive(Debug, JsonSchema, Serialize)]
struct Level<'n> {
    /// Path of the recording.
    source: &'n str,
    /// Its name.
    vm: &'n str,
    /// Its own exits.
    level1: u64,
    /// Exits of guests inside it.
    level2: u64,
}

/// Exits of level 2 of one VM and one hardware reason.
#[derive(Debug, JsonSchema, Serialize)]
struct Row<'n> {
    /// Path of the recording.
    source: &'n str,
    /// The VM that has guests of its own.
    vm: &'n str,
    #[schemars(extend("const" = 2))]
    level: u8,
    /// Instruction set; see hyperscope.exits/1.
    #[schemars(extend("enum" = ["vmx", "svm", "arm64", "s390", "riscv", "powerpc", "loongarch", "unknown"]))]
    isa: &'static str,
    /// The kernel's symbol for the hardware's reason.
    reason: &'n str,
    /// The raw code: a number, or "ret:esr_ec" on arm64.
    code: RawCode<'n>,
    /// Exits.
    count: u64,
    /// Exits injected into level 1, which has to handle them.
    reflected: u64,
    /// The other exits: count less reflected.
    handled_by_host: u64,
    /// The injected reasons of reflected exits, the most frequent first; often the hardware's reason.
    injected_as: Vec<Injected<'n>>,
    #[serde(flatten)]
    times: RowTimes,
    /// Whether they are waiting exits: their times are how long level 1 and the host idled, and factor counts exits
    /// of level 1 meanwhile.
    waiting: bool,
    /// Reflected exits with a complete way back into level 2.
    round_trips: u64,
    /// Reflected exits after which level 2 was not seen to run again.
    unfinished: u64,
    /// Level-1 exits between the injection and level 2 running again, by reason, the most frequent first.
    ancillary: Vec<Ancillary<'n>>,
    /// Exits the host took for each level-2 exit, including itself.
    #[schemars(extend("minimum" = 0))]
    factor: Option<f64>,
}

/// An injected reason.
#[derive(Debug, JsonSchema, Serialize)]
struct Injected<'n> {
    /// The kernel's symbol.
    reason: &'n str,
    /// The raw code: a number, or "ret:esr_ec" on arm64.
    code: RawCode<'n>,
    /// Exits.
    count: u64,
}

/// Level-1 exits of one reason.
#[derive(Debug, JsonSchema, Serialize)]
struct Ancillary<'n> {
    /// The kernel's symbol for the reason.
    reason: &'n str,
    /// The raw code: a number, or "ret:esr_ec" on arm64.
    code: RawCode<'n>,
    /// Exits.
    count: u64,
    /// count divided by the row's reflected.
    #[schemars(extend("minimum" = 0))]
    per_exit: Option<f64>,
    #[serde(flatten)]
    time: AncillaryTimes,
    /// Model-specific registers that these exits read or wrote, the most frequent first; requires kvm:kvm_msr, and
    /// includes the first 256 registers.
    msrs: Vec<Msr>,
    /// Exits by which level 1 had level 2 run and whose changes to level 2's control block are known; requires a
    /// probe on enter_svm_guest_mode (record --nested-writes).
    vmcb_runs: u64,
    /// Groups of fields of the control block that level 1 marked as changed, the most frequent first; then the two
    /// that KVM always marks.
    vmcb_changed: Vec<VmcbGroup>,
}

/// One register.
#[derive(Debug, JsonSchema, Serialize)]
struct Msr {
    /// Its number.
    msr: u64,
    /// Its name in the processors' manuals. Null: unknown.
    name: Option<&'static str>,
    /// Exits.
    count: u64,
}

/// One group.
#[derive(Debug, JsonSchema, Serialize)]
struct VmcbGroup {
    /// The group: one of the clean bits of AMD's manual.
    group: &'static str,
    /// Runs before which it had changed, out of vmcb_runs.
    count: u64,
}

times! {
    /// Times of exits of one reason.
    struct RowTimes {
        /// own_ns and the times of all ancillary exits: the total time on the host.
        time = "time",
        /// Sum of the times from exit to entry of the level-2 exits themselves.
        own_time = "own",
        /// Of the level-2 exits and of the level-1 exits they caused, the time in which the CPU worked on them,
        /// including the work before the exit events. Nanoseconds. Null: the recording doesn't separate it from
        /// waiting.
        cost = "cost",
        /// Part of time_ns off the CPU and in halt polling before that. Nanoseconds. Null: the recording doesn't
        /// show it.
        waited = "waited",
        /// Time level 1 ran between its ancillary exits, in complete round trips.
        level1_guest = "level1_guest",
        /// Mean time from a reflected exit until level 2 runs again; null: no complete round trip.
        round_trip_mean = "round_trip_mean",
        /// Longest of those.
        round_trip_max = "round_trip_max",
    }
}

times! {
    /// Times of ancillary exits of one reason.
    struct AncillaryTimes {
        /// Sum of their times from exit to entry.
        time = "time",
        /// Time in which the CPU worked on them, including the work before the exit events. Nanoseconds. Null: the
        /// recording doesn't separate it from waiting.
        cost = "cost",
        /// Part of time_ns off the CPU and in halt polling before that. Nanoseconds. Null: the recording doesn't
        /// show it.
        waited = "waited",
    }
}

impl<'n> Document<'n> {
    pub(super) fn new(report: &'n NestedReport) -> Self {
        let all = || report.sources.iter().map(|(_, nested)| nested);
        let dropped = all().map(|nested| nested.dropped).sum();
        let sources = report.sources.iter();
        Self {
            schema: "hyperscope.nested/1",
            sources: sources.clone().map(|(path, _)| path.as_str()).collect(),
            losses: LossSums::new(all().map(|nested| &nested.losses), dropped),
            levels: sources.clone().flat_map(|(path, nested)| levels(path, nested)).collect(),
            rows: sources.flat_map(|(path, nested)| rows(path, nested)).collect(),
        }
    }
}

fn levels<'n>(source: &'n str, nested: &'n Nested) -> impl Iterator<Item = Level<'n>> {
    let levels = nested.levels.iter();
    levels.map(move |level| Level {
        source,
        vm: &level.vm,
        level1: level.level1,
        level2: level.level2,
    })
}

fn rows<'n>(source: &'n str, nested: &'n Nested) -> impl Iterator<Item = Row<'n>> {
    nested.rows.iter().map(move |row| Row::new(source, row, nested.nanoseconds))
}

impl<'n> Row<'n> {
    fn new(source: &'n str, row: &'n NestedRow, ns: bool) -> Self {
        let trips = &row.round_trips;
        let injected = row.injected_as.iter();
        let injected = injected.map(|(reason, code, count)| Injected {
            reason,
            code: RawCode(code),
            count: *count,
        });
        Self {
            source,
            vm: &row.vm,
            level: 2,
            isa: row.isa.name(),
            reason: &row.reason,
            code: RawCode(&row.code),
            count: row.count,
            reflected: row.reflected,
            handled_by_host: row.count - row.reflected,
            injected_as: injected.collect(),
            times: RowTimes {
                in_ns: ns,
                time: Some(row.time_ns()),
                own_time: Some(row.durations.sum()),
                cost: row.cost().cost_ns,
                waited: row.cost().waited_ns,
                level1_guest: Some(row.level1_ns),
                round_trip_mean: trips.mean().map(|mean| mean.round() as u64),
                round_trip_max: trips.max(),
            },
            waiting: row.waiting,
            round_trips: trips.count(),
            unfinished: row.unfinished,
            ancillary: row
                .ancillary
                .iter()
                .map(|ancillary| Ancillary::new(row, ancillary, ns))
                .collect(),
            factor: row.factor(),
        }
    }
}

impl<'n> Ancillary<'n> {
    fn new(row: &NestedRow, ancillary: &'n AncillaryRow, ns: bool) -> Self {
        let msr = |&(msr, count): &(u64, u64)| Msr { msr, name: msr_name(msr), count };
        let group = |(group, count)| VmcbGroup { group, count };
        Self {
            reason: &ancillary.reason,
            code: RawCode(&ancillary.code),
            count: ancillary.count,
            per_exit: per_exit(row, ancillary),
            time: AncillaryTimes {
                in_ns: ns,
                time: Some(ancillary.durations.sum()),
                cost: ancillary.cost.cost_ns,
                waited: ancillary.cost.waited_ns,
            },
            msrs: ancillary.msrs.iter().map(msr).collect(),
            vmcb_runs: ancillary.vmcb.runs,
            vmcb_changed: ancillary.vmcb.groups().into_iter().map(group).collect(),
        }
    }
}
