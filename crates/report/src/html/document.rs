//! The JSON part of a page: `hyperscope.report/1`.

use serde_json::{Value, json};

use super::{PageReport, findings, heat, lanes};
use crate::{PathReport, Report, align_summary};

/// Paths that a page shows: those that took longest, all their requests together.
const MOST_PATHS: usize = 12;

pub(super) fn json(page: &PageReport, origin_ns: u64) -> Value {
    let sources: Vec<&str> = page.exits.sources.iter().map(|one| one.path.as_str()).collect();
    let all = || page.exits.sources.iter().map(|one| &one.exits);
    let end_ns = page.lanes.range_ns().map_or(0, |(_, end_ns)| end_ns);
    let summaries: Vec<String> = page
        .align
        .iter()
        .flat_map(|align| &align.guests)
        .map(|guest| align_summary(guest).replace(" us;", " µs;"))
        .collect();
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
        "path": page.path.as_ref().map(path),
        "diff": page.diff.as_ref().map(Report::json),
    })
}

fn path(path: &PathReport) -> Value {
    let mut document = path.json();
    if let Some(paths) = document.get_mut("paths").and_then(Value::as_array_mut) {
        paths.truncate(MOST_PATHS);
    }
    document
}
