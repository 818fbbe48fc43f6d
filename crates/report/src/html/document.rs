//! The JSON part of a page: `hyperscope.report/1`.

use serde_json::{Value, json};

use super::{PageReport, findings, heat, lanes};
use crate::{BootReport, CallsReport, CpuReport, PathReport, Report, align_summary};

/// Paths that a page shows: those that took longest, all their requests together.
const MOST_PATHS: usize = 12;

/// Threads, and tasks of guests, that a page shows: those that used CPUs longest.
const MOST_THREADS: usize = 100;

/// Functions that a page shows: those that took longest, or were called most.
const MOST_FUNCTIONS: usize = 300;

pub(super) fn json(page: &PageReport, origin_ns: u64) -> Value {
    let sources: Vec<&str> = page.exits.sources.iter().map(|one| one.path.as_str()).collect();
    let all = || page.exits.sources.iter().map(|one| &one.exits);
    let end_ns = page.lanes.range_ns().map_or(0, |(_, end_ns)| end_ns);
    let summaries: Vec<String> =
        page.align.iter().flat_map(|align| &align.guests).map(align_summary).collect();
    let notes: Vec<Value> = page
        .exits
        .sources
        .iter()
        .map(|one| json!({"source": one.path, "missing": one.exits_missing()}))
        .collect();
    json!({
        "schema": "hyperscope.report/1",
        "title": page.title,
        "generator": concat!("hyperscope ", env!("CARGO_PKG_VERSION")),
        "sources": sources,
        "nanoseconds": all().all(|exits| exits.nanoseconds),
        "origin_ns": origin_ns,
        "origin": origin_ns.to_string(),
        "length_ns": end_ns.saturating_sub(origin_ns),
        "findings": findings::of(page).iter().map(findings::Finding::json).collect::<Vec<_>>(),
        "notes": notes,
        "exits": page.exits.json(),
        "nested": page.nested.as_ref().map(Report::json),
        "align": page.align.as_ref().map(Report::json),
        "align_summaries": summaries,
        "heat": heat::json(&page.latencies, &sources, origin_ns),
        "timeline": lanes::json(&page.lanes),
        "cpu": cpu(&page.cpu),
        "calls": page.calls.as_ref().map(calls),
        "path": page.path.as_ref().map(path),
        "boot": page.boot.as_ref().map(boot),
        "diff": page.diff.as_ref().map(Report::json),
    })
}

fn cpu(cpu: &CpuReport) -> Value {
    let mut document = cpu.json();
    for table in ["threads", "tasks"] {
        if let Some(rows) = document.get_mut(table).and_then(Value::as_array_mut) {
            rows.truncate(MOST_THREADS);
        }
    }
    document
}

/// The document of `calls`, without what only scripts want of it.
fn calls(calls: &CallsReport) -> Value {
    let mut document = calls.json();
    let sources = document.get_mut("sources").and_then(Value::as_array_mut);
    for source in sources.into_iter().flatten() {
        for (table, most) in [("functions", MOST_FUNCTIONS), ("threads", MOST_THREADS)] {
            if let Some(rows) = source.get_mut(table).and_then(Value::as_array_mut) {
                rows.truncate(most);
            }
        }
    }
    document
}

/// Initcalls that a page shows of each machine: the slowest of those within no other.
const MOST_INITCALLS: usize = 200;

fn boot(boot: &BootReport) -> Value {
    let mut document = boot.json();
    let machines = document.get_mut("machines").and_then(Value::as_array_mut);
    for machine in machines.into_iter().flatten() {
        let Some(calls) = machine.get_mut("initcalls").and_then(Value::as_array_mut) else {
            continue;
        };
        calls.retain(|one| one.get("depth").and_then(Value::as_u64) == Some(0));
        let lasts = |one: &Value| {
            let of = |key| one.get(key).and_then(Value::as_u64);
            of("duration_ns").or_else(|| of("duration_cycles"))
        };
        calls.sort_by_key(|one| std::cmp::Reverse(lasts(one)));
        calls.truncate(MOST_INITCALLS);
    }
    document
}

fn path(path: &PathReport) -> Value {
    let mut document = path.json();
    if let Some(paths) = document.get_mut("paths").and_then(Value::as_array_mut) {
        paths.truncate(MOST_PATHS);
    }
    document
}
