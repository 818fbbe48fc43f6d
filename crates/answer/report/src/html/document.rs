//! The JSON part of a page: `hyperscope.report/1`.

use schemars::JsonSchema;
use serde::Serialize;

use super::PageReport;
use super::arrows::ArrowSet;
use super::critical::Critical;
use super::each_exit::ListedExits;
use super::findings::{Finding, FindingDocument};
use super::heat::{HeatMap, HeatRows};
use super::lanes::Timeline;
use super::profile::ProfileDocument;
use super::requests::ListedRequests;
use crate::calls::Most;
use crate::column::Definition;
use crate::json::OtherDocument;
use crate::{AlignReport, DiffReport, NestedReport};
use crate::{align, align_summary, boot, calls, cpu, diff, exits, irqs, nested, path};

/// Max paths in a page: those with the longest time over all their requests.
const MAX_PATHS: usize = 12;

/// Max threads, and max tasks of guests, in a page: those with the longest CPU time.
const MAX_THREADS: usize = 100;

/// Max handlers of interrupts per machine in a page: those with the longest time.
const MAX_HANDLERS: usize = 40;

/// Max functions in a page: those with the longest time, or with most calls.
const MAX_FUNCTIONS: usize = 300;

/// Max initcalls per machine in a page: the slowest outermost ones.
const MAX_INITCALLS: usize = 200;

/// The JSON part of a page that `hyperscope report` writes. Its columns are described in docs/formats/report.md.
#[derive(JsonSchema, Serialize)]
pub(crate) struct Document<'p> {
    schema: &'static str,
    /// The page's heading.
    title: &'p str,
    /// Program and version that wrote the page.
    generator: &'static str,
    /// Paths of the recordings, as they were named.
    sources: Vec<&'p str>,
    /// Whether times are nanoseconds; otherwise they are ticks of the recording's clock, whatever their names
    /// say.
    nanoseconds: bool,
    /// The time on the host's clock that times in the page are relative to.
    origin_ns: u64,
    /// origin_ns as decimal digits, for readers whose numbers are not exact in that range.
    origin: String,
    /// Duration from there to the end of the last span.
    length_ns: u64,
    /// Findings in words, the most important first.
    findings: Vec<FindingDocument<'p>>,
    /// Events that recordings lack.
    notes: Vec<Note<'p>>,
    /// As exits.schema.json.
    #[schemars(with = "OtherDocument")]
    exits: exits::Document<'p>,
    /// The columns of exits.rows in their order, as the page names them.
    exits_columns: Vec<Definition>,
    /// As nested.schema.json; null: no nested guest ran.
    #[schemars(with = "Option<OtherDocument>")]
    nested: Option<nested::Document<'p>>,
    /// As align.schema.json; null: no guest's recording was given.
    #[schemars(with = "Option<OtherDocument>")]
    align: Option<align::Document<'p>>,
    /// A sentence about each guest's alignment.
    align_summaries: Vec<String>,
    /// The heat map of exits; null if no exit has a time.
    heat: Option<HeatMap<'p>>,
    /// Individual exits, for recordings that do not have too many.
    each_exit: Vec<ListedExits<'p>>,
    /// The lanes.
    timeline: Timeline<'p>,
    /// Wake-ups between threads, as arrows between lanes.
    arrows: ArrowSet,
    /// CPU use: the JSON output of `hyperscope cpu`, with the threads and tasks that ran longest.
    #[schemars(with = "OtherDocument")]
    cpu: cpu::Document<'p>,
    /// Handlers of interrupts: the JSON output of `hyperscope irqs`, with the longest-running handlers of each
    /// machine; null: no events.
    #[schemars(with = "Option<OtherDocument>")]
    irqs: Option<irqs::Document<'p>>,
    /// The code that vCPUs ran, as in `hyperscope profile --threads`; null: there are no vCPUs.
    profile: Option<ProfileDocument<'p>>,
    /// As `hyperscope calls --tree --format json` prints: functions with the longest time, and stacks with at
    /// least 0.1%; null: no calls were recorded.
    #[schemars(with = "Option<OtherDocument>")]
    calls: Option<calls::Document<'p>>,
    /// As `hyperscope path --format json` prints: paths with the longest time; null: there are none.
    #[schemars(with = "Option<OtherDocument>")]
    path: Option<path::Document<'p>>,
    /// Individual requests; null: there are too many, or none.
    each_request: Option<ListedRequests<'p>>,
    /// The waits of a task (`--critical`); null: not requested.
    critical: Option<Critical<'p>>,
    /// As `hyperscope boot --format json` prints: of the initcalls, the slowest outermost ones; null: no guest's
    /// boot or shutdown was recorded.
    #[schemars(with = "Option<OtherDocument>")]
    boot: Option<boot::Document<'p>>,
    /// As `hyperscope diff --format json` prints; null: there is no comparison.
    #[schemars(with = "Option<OtherDocument>")]
    diff: Option<diff::Document<'p>>,
    /// Whether the page comes from hyperscope report --serve, which answers its requests.
    served: bool,
}

/// One recording.
#[derive(Debug, JsonSchema, Serialize)]
struct Note<'p> {
    /// Its path.
    source: &'p str,
    /// Parts of exits without events, and the events that would record them.
    missing: Vec<String>,
}

pub(super) fn document<'p>(
    page: &'p PageReport,
    findings: &'p [Finding],
    heat_rows: &'p HeatRows,
    origin_ns: u64,
) -> Document<'p> {
    let sources: Vec<&str> = page.exits.sources.iter().map(|source| source.path.as_str()).collect();
    let mut all = page.exits.sources.iter().map(|source| &source.exits);
    let end_ns = page.lanes.range_ns().map_or(0, |(_, end_ns)| end_ns);
    let missing = page
        .exits
        .sources
        .iter()
        .map(|source| Note { source: &source.path, missing: source.exits_missing() });
    let most = Most { functions: MAX_FUNCTIONS, threads: MAX_THREADS };
    Document {
        schema: "hyperscope.report/1",
        title: &page.title,
        generator: concat!("hyperscope ", env!("CARGO_PKG_VERSION")),
        nanoseconds: all.all(|exits| exits.nanoseconds),
        origin_ns,
        origin: origin_ns.to_string(),
        length_ns: end_ns.saturating_sub(origin_ns),
        findings: findings.iter().map(Finding::document).collect(),
        notes: missing.collect(),
        exits: page.exits.document_of(),
        exits_columns: page.exits.definitions(),
        nested: page.nested.as_ref().map(NestedReport::document_of),
        align: page.align.as_ref().map(AlignReport::document_of),
        align_summaries: page
            .align
            .iter()
            .flat_map(|align| &align.guests)
            .map(align_summary)
            .collect(),
        heat: HeatMap::new((&page.latencies, heat_rows), &sources, origin_ns),
        each_exit: ListedExits::of_all(&page.each_exit, &sources, origin_ns),
        timeline: Timeline::new(&page.lanes),
        arrows: ArrowSet::new(page, MAX_PATHS),
        cpu: page.cpu.document_of(MAX_THREADS),
        irqs: page.irqs.as_ref().map(|irqs| irqs.document_of(MAX_HANDLERS)),
        profile: page.profile.as_ref().map(|profile| profile.document(origin_ns)),
        calls: page.calls.as_ref().map(|calls| calls.document_of(most)),
        path: page.path.as_ref().map(|path| path.document_of(MAX_PATHS)),
        each_request: page
            .path
            .as_ref()
            .and_then(|path| ListedRequests::new(&path.paths, origin_ns)),
        critical: page
            .critical
            .as_ref()
            .map(|critical| Critical::new(critical, &page.arrows.places)),
        boot: page.boot.as_ref().map(|boot| boot.document_of_slowest(MAX_INITCALLS)),
        diff: page.diff.as_ref().map(DiffReport::document_of),
        served: page.served,
        sources,
    }
}
