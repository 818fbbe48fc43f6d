//! The data in a page of a fleet: `hyperscope.fleet_page/1`.

use report::OtherDocument;
use schemars::JsonSchema;
use serde::Serialize;

use super::FleetPage;
use crate::diff::{Grid, GridColumn, GridHost, HostSession};
use crate::findings;
use crate::metric::Metric;
use crate::outliers::{Outlier, outliers};
use crate::since::Curve;
use crate::since_findings;
use crate::sums::Key;
use crate::{diff_report, since_report};

/// Hosts that a page shows by themselves: those that stand apart, and whose numbers changed most.
const MAX_HOSTS: usize = 2_000;

/// Sessions that a page names of a host on either side: the newest.
const MAX_SESSIONS: usize = 10;

/// Hosts that stand apart that a page lists: the farthest.
const MAX_OUTLIERS: usize = 500;

/// The data in a page of `hyperscope fleet diff … -o page.html`: the element hyperscope-fleet. docs/fleet.md says
/// what the page shows.
#[derive(Debug, JsonSchema, Serialize)]
pub(crate) struct Document<'p> {
    schema: &'static str,
    /// The page's heading: the name of the lake's folder.
    title: &'p str,
    /// Program and version that wrote the page.
    generator: &'static str,
    /// As fleet_diff.schema.json, without `hosts` of its rows.
    #[schemars(with = "OtherDocument")]
    diff: diff_report::Document<'p, diff_report::Carriers<'p>>,
    /// Each finding as the places of its rows in diff.rows: what several numbers of the same exits and hosts show
    /// is one.
    findings: Vec<Vec<usize>>,
    /// Hosts that are shown by themselves, in the order of their names.
    hosts: Vec<Host<'p>>,
    /// Hosts that are not shown: those whose numbers changed least.
    hosts_left_out: usize,
    /// Numbers that three hosts have.
    grid: Vec<Column<'p>>,
    /// Hosts that stand apart from others of their kind, the farthest first.
    outliers: Vec<OutlierRow<'p>>,
    /// Of these that are not listed: the nearest.
    outliers_left_out: usize,
    /// What `hyperscope fleet since --format json` prints of the sessions of both sides, without `hosts` of its
    /// changes.
    #[schemars(with = "OtherDocument")]
    since: since_report::Document<'p, since_report::Carriers<'p>>,
    /// Each finding over days as the places of its changes in since.changes, the surest first.
    since_findings: Vec<Vec<usize>>,
    /// The days that curves go over.
    dates: &'p [String],
    /// Series over days that were looked at.
    curves: Vec<CurveRow<'p>>,
}

/// A host.
#[derive(Debug, JsonSchema, Serialize)]
struct Host<'p> {
    /// Its name.
    host: &'p str,
    /// Its kind. Null: not known.
    stratum: Option<&'p str>,
    /// It was left as it is.
    control: bool,
    /// Its sessions of A, the newest first, ten at most.
    a: Vec<Session<'p>>,
    /// Its sessions of B.
    b: Vec<Session<'p>>,
    /// How many sessions of A and of B there are.
    sessions: [usize; 2],
}

/// A session.
#[derive(Debug, JsonSchema, Serialize)]
struct Session<'p> {
    /// As in the table sessions.
    session_id: &'p str,
    /// The UTC day on which it began. Null: not known.
    date: Option<&'p str>,
    /// The host's kernel. Null: not known.
    kernel_release: Option<&'p str>,
    /// Where its recording was read from; `simulated: ` before it: exits are like those. Null: not known.
    source_uri: Option<&'p str>,
}

/// Which exits.
#[derive(Debug, JsonSchema, Serialize)]
struct Exits<'p> {
    /// Level of the exits. Null: all exits that don't wait, together.
    level: Option<i32>,
    /// Architecture of the exits. Null: any.
    isa: Option<&'p str>,
    /// Their reason. Null: as level.
    reason: Option<&'p str>,
    /// Exits by which a guest says that it has nothing to do.
    waiting: bool,
}

/// A number of one kind of exits.
#[derive(Debug, JsonSchema, Serialize)]
struct Column<'p> {
    /// Which exits.
    key: Exits<'p>,
    /// The metric. Times are in nanoseconds.
    #[schemars(extend("enum" = Metric::ALL.map(Metric::name)))]
    metric: &'static str,
    /// What each of hosts has on A, to five digits. Null: too few exits.
    a: Vec<Option<f64>>,
    /// What each has on B.
    b: Vec<Option<f64>>,
}

/// A host and a number of it.
#[derive(Debug, JsonSchema, Serialize)]
struct OutlierRow<'p> {
    /// The host.
    host: &'p str,
    /// Which exits.
    key: Exits<'p>,
    /// The metric. Times are in nanoseconds.
    #[schemars(extend("enum" = Metric::ALL.map(Metric::name)))]
    metric: &'static str,
    /// What it stands apart in: how much the number is another on B, or what it has on B.
    #[schemars(extend("enum" = ["change", "level"]))]
    of: &'static str,
    /// That, over the geometric mean of the others of its kind.
    #[schemars(extend("exclusiveMinimum" = 0))]
    times: f64,
    /// Its logarithm, in standard deviations of the others. Null: these are alike.
    #[schemars(with = "Option<f64>")]
    deviations: f64,
    /// Hosts of its kind that have the number, with it.
    peers: usize,
}

/// A number of the typical host over days.
#[derive(Debug, JsonSchema, Serialize)]
struct CurveRow<'p> {
    /// What tells kinds of hosts apart. Null: of all hosts.
    stratum_column: Option<&'p str>,
    /// The kind. Null: of all hosts.
    stratum: Option<&'p str>,
    /// Which exits.
    key: Exits<'p>,
    /// The metric. Times are in nanoseconds.
    #[schemars(extend("enum" = Metric::ALL.map(Metric::name)))]
    metric: &'static str,
    /// Places in dates of days with enough hosts.
    steps: &'p [u32],
    /// What the typical host had on each of them.
    levels: Vec<f64>,
}

impl<'p> Document<'p> {
    pub(super) fn new(page: &'p FleetPage) -> Self {
        let (diff, since) = (&page.diff.diff, &page.since.since);
        let grid = diff.grid.as_ref().unwrap_or(&NO_GRID);
        let apart = outliers(grid, diff.question.alpha);
        let places = shown_hosts(grid, &apart);
        let hosts = places.iter().filter_map(|at| grid.hosts.get(*at));
        let listed = apart.iter().take(MAX_OUTLIERS);
        Self {
            schema: "hyperscope.fleet_page/1",
            title: &page.title,
            generator: concat!("hyperscope ", env!("CARGO_PKG_VERSION")),
            diff: diff_report::Document::new(diff),
            findings: findings::distinct(&diff.rows),
            hosts: hosts.map(Host::new).collect(),
            hosts_left_out: grid.hosts.len() - places.len(),
            grid: grid.columns.iter().map(|column| Column::new(column, &places)).collect(),
            outliers: listed.filter_map(|outlier| OutlierRow::new(outlier, grid)).collect(),
            outliers_left_out: apart.len().saturating_sub(MAX_OUTLIERS),
            since: since_report::Document::new(since),
            since_findings: since_findings::distinct(&since.changes),
            dates: &since.dates,
            curves: since.curves.iter().map(CurveRow::new).collect(),
        }
    }
}

/// Of a comparison that kept none.
static NO_GRID: Grid = Grid { hosts: Vec::new(), columns: Vec::new() };

/// Hosts that are shown, in the order of their names.
fn shown_hosts(grid: &Grid, apart: &[Outlier]) -> Vec<usize> {
    let mut weights = vec![0.0_f64; grid.hosts.len()];
    for column in &grid.columns {
        for (weight, values) in weights.iter_mut().zip(&column.values) {
            let [a, b] = values.map(|value| value.filter(|value| *value > 0.0));
            let change = a.zip(b).map_or(0.0, |(a, b)| (b / a).ln().abs());
            *weight = weight.max(change);
        }
    }
    for outlier in apart {
        weights.iter_mut().skip(outlier.host).take(1).for_each(|weight| *weight = f64::INFINITY);
    }
    let mut order: Vec<(usize, f64)> = weights.into_iter().enumerate().collect();
    order.sort_by(|host, other| other.1.total_cmp(&host.1).then(host.0.cmp(&other.0)));
    let mut places: Vec<usize> = order.into_iter().take(MAX_HOSTS).map(|host| host.0).collect();
    places.sort_unstable();
    places
}

impl<'p> Host<'p> {
    fn new(host: &'p GridHost) -> Self {
        let [a, b] = &host.sessions;
        let newest = |sessions: &'p [HostSession]| {
            sessions.iter().take(MAX_SESSIONS).map(Session::new).collect()
        };
        Self {
            host: &host.name,
            stratum: known(&host.kind),
            control: host.is_control,
            a: newest(a),
            b: newest(b),
            sessions: [a.len(), b.len()],
        }
    }
}

impl<'p> Session<'p> {
    fn new(session: &'p HostSession) -> Self {
        Self {
            session_id: &session.session,
            date: session.date.as_deref(),
            kernel_release: session.kernel.as_deref(),
            source_uri: session.source.as_deref(),
        }
    }
}

impl<'p> Exits<'p> {
    /// Which exits a number is of.
    fn new(key: &'p Key) -> Self {
        Self {
            level: (key.level != 0).then_some(key.level),
            isa: known(&key.isa),
            reason: (!key.is_of_all()).then_some(&key.reason),
            waiting: key.waiting,
        }
    }
}

fn known(text: &str) -> Option<&str> {
    (!text.is_empty()).then_some(text)
}

impl<'p> Column<'p> {
    fn new(column: &'p GridColumn, places: &[usize]) -> Self {
        let side = |side: usize| -> Vec<Option<f64>> {
            let value = |host: &usize| column.values.get(*host)?.get(side).copied().flatten();
            places.iter().map(|host| value(host).map(five_digits)).collect()
        };
        let (a, b) = (side(0), side(1));
        Self { key: Exits::new(&column.key), metric: column.metric.name(), a, b }
    }
}

impl<'p> OutlierRow<'p> {
    fn new(outlier: &Outlier, grid: &'p Grid) -> Option<Self> {
        let column = grid.columns.get(outlier.column)?;
        Some(Self {
            host: &grid.hosts.get(outlier.host)?.name,
            key: Exits::new(&column.key),
            metric: column.metric.name(),
            of: outlier.aspect.name(),
            times: outlier.times,
            deviations: outlier.deviations,
            peers: outlier.peers,
        })
    }
}

impl<'p> CurveRow<'p> {
    fn new(curve: &'p Curve) -> Self {
        let stratum = curve.stratum.as_ref();
        Self {
            stratum_column: stratum.map(|(column, _)| column.as_str()),
            stratum: stratum.map(|(_, kind)| kind.as_str()),
            key: Exits::new(&curve.key),
            metric: curve.metric.name(),
            steps: &curve.steps,
            levels: curve.levels.iter().copied().map(five_digits).collect(),
        }
    }
}

/// As many digits as a picture can show, so that a page of thousands of hosts stays small.
fn five_digits(value: f64) -> f64 {
    if value <= 0.0 || !value.is_finite() {
        return value;
    }
    let scale = 10_f64.powi(4 - value.log10().floor() as i32);
    (value * scale).round() / scale
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_keep_five_digits() {
        for (value, expected) in
            [(123_456.7, 123_460.0), (0.001_234_56, 0.001_234_6), (0.0, 0.0), (9.999_999, 10.0)]
        {
            assert!((five_digits(value) - expected).abs() <= expected * 1e-12, "{value}");
        }
        assert!(five_digits(f64::NAN).is_nan());
    }
}
