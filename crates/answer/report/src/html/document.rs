//! The JSON part of a page: `hyperscope.report/1`.

use serde::Serialize;
use serde_json::{Value, json};

use super::each_exit::ListDocument;
use super::findings::{self, Finding};
use super::heat::{Heat, HeatRows};
use super::lanes::Timeline;
use super::{PageReport, arrows, critical, each_exit, heat, lanes, profile, requests};
use crate::calls::Most;
use crate::column::Definition;
use crate::{Report, align_summary, boot, cpu, exits, irqs, path};

/// Paths that a page shows: those that took longest, all their requests together.
const MOST_PATHS: usize = 12;

/// Threads, and tasks of guests, that a page shows: those that used CPUs longest.
const MOST_THREADS: usize = 100;

/// Handlers of interrupts that a page shows of each machine: those that took longest.
const MOST_HANDLERS: usize = 40;

/// Functions that a page shows: those that took longest, or were called most.
const MOST_FUNCTIONS: usize = 300;

/// Initcalls that a page shows of each machine: the slowest of those within no other.
const MOST_INITCALLS: usize = 200;

/// All of it, in the order of its fields. Rows that a page doesn't show are never made.
#[derive(Debug, Serialize)]
struct Document<'p, N, A, D> {
    schema: &'static str,
    title: &'p str,
    generator: &'static str,
    sources: Vec<&'p str>,
    nanoseconds: bool,
    origin_ns: u64,
    origin: String,
    length_ns: u64,
    findings: Vec<Value>,
    notes: Vec<Value>,
    exits: exits::Document<'p>,
    exits_columns: Vec<Definition>,
    nested: Option<N>,
    align: Option<A>,
    align_summaries: Vec<String>,
    heat: Option<Heat<'p>>,
    each_exit: Vec<ListDocument<'p>>,
    timeline: Timeline<'p>,
    arrows: Value,
    cpu: cpu::Document<'p>,
    irqs: Option<irqs::Document<'p>>,
    profile: Option<profile::Document<'p>>,
    calls: Option<Value>,
    path: Option<path::Document<'p>>,
    each_request: Option<Value>,
    critical: Option<Value>,
    boot: Option<boot::Document<'p>>,
    diff: Option<D>,
    served: bool,
}

pub(super) fn document<'p>(
    page: &'p PageReport,
    heat_rows: &'p HeatRows,
    origin_ns: u64,
) -> impl Serialize + use<'p> {
    let sources: Vec<&str> = page.exits.sources.iter().map(|one| one.path.as_str()).collect();
    let mut all = page.exits.sources.iter().map(|one| &one.exits);
    let end_ns = page.lanes.range_ns().map_or(0, |(_, end_ns)| end_ns);
    let missing = page.exits.sources.iter().map(|one| (&one.path, one.exits_missing()));
    let most = Most { functions: MOST_FUNCTIONS, threads: MOST_THREADS };
    Document {
        schema: "hyperscope.report/1",
        title: &page.title,
        generator: concat!("hyperscope ", env!("CARGO_PKG_VERSION")),
        nanoseconds: all.all(|exits| exits.nanoseconds),
        origin_ns,
        origin: origin_ns.to_string(),
        length_ns: end_ns.saturating_sub(origin_ns),
        findings: findings::of(page).iter().map(Finding::json).collect(),
        notes: missing.map(|(path, missing)| json!({"source": path, "missing": missing})).collect(),
        exits: page.exits.document_of(),
        exits_columns: page.exits.definitions(),
        nested: page.nested.as_ref().map(Report::document),
        align: page.align.as_ref().map(Report::document),
        align_summaries: page
            .align
            .iter()
            .flat_map(|align| &align.guests)
            .map(align_summary)
            .collect(),
        heat: heat::document(&page.latencies, heat_rows, &sources, origin_ns),
        each_exit: each_exit::documents(&page.each_exit, &sources, origin_ns),
        timeline: lanes::document(&page.lanes),
        arrows: arrows::json(page, MOST_PATHS),
        cpu: page.cpu.document_of(MOST_THREADS),
        irqs: page.irqs.as_ref().map(|irqs| irqs.document_of(MOST_HANDLERS)),
        profile: page.profile.as_ref().map(|profile| profile.document(origin_ns)),
        calls: page.calls.as_ref().map(|calls| calls.document_of(most)),
        path: page.path.as_ref().map(|path| path.document_of(MOST_PATHS)),
        each_request: page.path.as_ref().and_then(|path| requests::json(&path.paths, origin_ns)),
        critical: page.critical.as_ref().map(|one| critical::json(one, &page.arrows.places)),
        boot: page.boot.as_ref().map(|boot| boot.document_of_slowest(MOST_INITCALLS)),
        diff: page.diff.as_ref().map(Report::document),
        served: page.served,
        sources,
    }
}
