//! The JSON document of nested exits.

use analyses::msr_names::msr_name;
use analyses::nested::{AncillaryRow, Nested, NestedRow};
use serde::Serialize;
use serde_json::Value;

use super::{NestedReport, per_exit};
use crate::json::{Times, code_json};
use crate::losses;

/// Docs/formats/nested.md says what each field is.
#[derive(Debug, Serialize)]
pub(super) struct Document<'n> {
    schema: &'static str,
    sources: Vec<&'n str>,
    losses: Value,
    levels: Vec<Level<'n>>,
    rows: Vec<Row<'n>>,
}

#[derive(Debug, Serialize)]
struct Level<'n> {
    source: &'n str,
    vm: &'n str,
    level1: u64,
    level2: u64,
}

#[derive(Debug, Serialize)]
struct Row<'n> {
    source: &'n str,
    vm: &'n str,
    level: u8,
    isa: &'static str,
    reason: &'n str,
    code: Value,
    count: u64,
    reflected: u64,
    handled_by_host: u64,
    injected_as: Vec<Injected<'n>>,
    #[serde(flatten)]
    times: Times<7>,
    waiting: bool,
    round_trips: u64,
    unfinished: u64,
    ancillary: Vec<Ancillary<'n>>,
    factor: Option<f64>,
}

#[derive(Debug, Serialize)]
struct Injected<'n> {
    reason: &'n str,
    code: Value,
    count: u64,
}

#[derive(Debug, Serialize)]
struct Ancillary<'n> {
    reason: &'n str,
    code: Value,
    count: u64,
    per_exit: Option<f64>,
    #[serde(flatten)]
    time: Times<3>,
    msrs: Vec<Msr>,
    vmcb_runs: u64,
    vmcb_changed: Vec<VmcbGroup>,
}

#[derive(Debug, Serialize)]
struct Msr {
    msr: u64,
    name: Option<&'static str>,
    count: u64,
}

#[derive(Debug, Serialize)]
struct VmcbGroup {
    group: &'static str,
    count: u64,
}

impl<'n> Document<'n> {
    pub(super) fn of(report: &'n NestedReport) -> Self {
        let all = || report.sources.iter().map(|(_, nested)| nested);
        let dropped = all().map(|nested| nested.dropped).sum();
        let sources = report.sources.iter();
        Self {
            schema: "hyperscope.nested/1",
            sources: sources.clone().map(|(path, _)| path.as_str()).collect(),
            losses: losses::json(all().map(|nested| &nested.losses), dropped),
            levels: sources.clone().flat_map(|(path, nested)| levels(path, nested)).collect(),
            rows: sources.flat_map(|(path, nested)| rows(path, nested)).collect(),
        }
    }
}

fn levels<'n>(source: &'n str, nested: &'n Nested) -> impl Iterator<Item = Level<'n>> {
    let levels = nested.levels.iter();
    levels.map(move |one| Level { source, vm: &one.vm, level1: one.level1, level2: one.level2 })
}

fn rows<'n>(source: &'n str, nested: &'n Nested) -> impl Iterator<Item = Row<'n>> {
    nested.rows.iter().map(move |row| Row::of(source, row, nested.nanoseconds))
}

impl<'n> Row<'n> {
    fn of(source: &'n str, row: &'n NestedRow, ns: bool) -> Self {
        let trips = &row.round_trips;
        let injected = row.injected_as.iter();
        let injected = injected.map(|(reason, code, count)| Injected {
            reason,
            code: code_json(code),
            count: *count,
        });
        Self {
            source,
            vm: &row.vm,
            level: 2,
            isa: row.isa.name(),
            reason: &row.reason,
            code: code_json(&row.code),
            count: row.count,
            reflected: row.reflected,
            handled_by_host: row.count - row.reflected,
            injected_as: injected.collect(),
            times: Times(
                ns,
                [
                    ("time", Some(row.time_ns())),
                    ("own", Some(row.durations.sum())),
                    ("cost", row.cost().cost_ns),
                    ("waited", row.cost().waited_ns),
                    ("level1_guest", Some(row.level1_ns)),
                    ("round_trip_mean", trips.mean().map(|mean| mean.round() as u64)),
                    ("round_trip_max", trips.max()),
                ],
            ),
            waiting: row.waiting,
            round_trips: trips.count(),
            unfinished: row.unfinished,
            ancillary: row.ancillary.iter().map(|one| Ancillary::of(row, one, ns)).collect(),
            factor: row.factor(),
        }
    }
}

impl<'n> Ancillary<'n> {
    fn of(row: &NestedRow, one: &'n AncillaryRow, ns: bool) -> Self {
        let msr = |&(msr, count): &(u64, u64)| Msr { msr, name: msr_name(msr), count };
        let group = |(group, count)| VmcbGroup { group, count };
        Self {
            reason: &one.reason,
            code: code_json(&one.code),
            count: one.count,
            per_exit: per_exit(row, one),
            time: Times(
                ns,
                [
                    ("time", Some(one.durations.sum())),
                    ("cost", one.cost.cost_ns),
                    ("waited", one.cost.waited_ns),
                ],
            ),
            msrs: one.msrs.iter().map(msr).collect(),
            vmcb_runs: one.vmcb.runs,
            vmcb_changed: one.vmcb.groups().into_iter().map(group).collect(),
        }
    }
}
