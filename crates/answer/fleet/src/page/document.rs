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

/// Max hosts that a page shows individually: outliers, and those with the greatest changes.
const MAX_HOSTS: usize = 2_000;

/// Max sessions per host and side on a page: the newest.
const MAX_SESSIONS: usize = 10;

/// Max outliers on a page: the farthest.
const MAX_OUTLIERS: usize = 500;

/// The data in a page of `hyperscope fleet diff … -o page.html`, in the element hyperscope-fleet. docs/fleet.md
/// describes the page.
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
    /// Each finding as the indices of its rows in diff.rows: several numbers of the same exits and hosts are one
    /// finding.
    findings: Vec<Vec<usize>>,
    /// Hosts that are shown individually, in the order of their names.
    hosts: Vec<Host<'p>>,
    /// Number of hosts that are not shown: those with the smallest changes.
    hosts_left_out: usize,
    /// Numbers that at least three hosts have.
    grid: Vec<Column<'p>>,
    /// Outliers among hosts of the same kind, the farthest first.
    outliers: Vec<OutlierRow<'p>>,
    /// Number of outliers that are not listed: the nearest.
    outliers_left_out: usize,
    /// The output of `hyperscope fleet since --format json` for the sessions of both sides, without `hosts` of
    /// its changes.
    #[schemars(with = "OtherDocument")]
    since: since_report::Document<'p, since_report::Carriers<'p>>,
    /// Each finding over time as the indices of its changes in since.changes, the most certain first.
    since_findings: Vec<Vec<usize>>,
    /// The days of the curves.
    dates: &'p [String],
    /// Series over time that were examined.
    curves: Vec<CurveRow<'p>>,
}

/// A host.
#[derive(Debug, JsonSchema, Serialize)]
struct Host<'p> {
    /// Its name.
    host: &'p str,
    /// Its kind. Null: unknown.
    stratum: Option<&'p str>,
    /// Whether it is a control.
    control: bool,
    /// Its sessions of A, the newest first, at most ten.
    a: Vec<Session<'p>>,
    /// Its sessions of B, the newest first, at most ten.
    b: Vec<Session<'p>>,
    /// Number of all its sessions of A and of B.
    sessions: [usize; 2],
}

/// A session.
#[derive(Debug, JsonSchema, Serialize)]
struct Session<'p> {
    /// As in the table sessions.
    session_id: &'p str,
    /// The UTC day of its start. Null: unknown.
    date: Option<&'p str>,
    /// The host's kernel. Null: unknown.
    kernel_release: Option<&'p str>,
    /// The path of its recording; after `simulated: `, the path of the recording that the exits were simulated
    /// from. Null: unknown.
    source_uri: Option<&'p str>,
}

/// A selection of exits.
#[derive(Debug, JsonSchema, Serialize)]
struct Exits<'p> {
    /// Level of the exits. Null: all exits except waiting ones, together.
    level: Option<i32>,
    /// Architecture of the exits. Null: any.
    isa: Option<&'p str>,
    /// Their reason. Null: as for level.
    reason: Option<&'p str>,
    /// Whether they are waiting exits.
    waiting: bool,
}

/// A number of one kind of exits.
#[derive(Debug, JsonSchema, Serialize)]
struct Column<'p> {
    /// The exits.
    key: Exits<'p>,
    /// The metric. Times are in nanoseconds.
    #[schemars(extend("enum" = Metric::ALL.map(Metric::name)))]
    metric: &'static str,
    /// Each host's value on A, to five digits. Null: too few exits.
    a: Vec<Option<f64>>,
    /// Each host's value on B.
    b: Vec<Option<f64>>,
}

/// An outlying host, with the number in which it is one.
#[derive(Debug, JsonSchema, Serialize)]
struct OutlierRow<'p> {
    /// The host.
    host: &'p str,
    /// The exits.
    key: Exits<'p>,
    /// The metric. Times are in nanoseconds.
    #[schemars(extend("enum" = Metric::ALL.map(Metric::name)))]
    metric: &'static str,
    /// The quantity in which it is an outlier: the change of the number, or its value on B.
    #[schemars(extend("enum" = ["change", "level"]))]
    of: &'static str,
    /// That quantity divided by the geometric mean of the others of its kind.
    #[schemars(extend("exclusiveMinimum" = 0))]
    times: f64,
    /// Its logarithm, in standard deviations of the others. Null: the others are equal.
    #[schemars(with = "Option<f64>")]
    deviations: f64,
    /// Hosts of its kind that have the number, including it.
    peers: usize,
}

/// A number of the typical host over time.
#[derive(Debug, JsonSchema, Serialize)]
struct CurveRow<'p> {
    /// The column that defines kinds of hosts. Null: all hosts.
    stratum_column: Option<&'p str>,
    /// The kind. Null: all hosts.
    stratum: Option<&'p str>,
    /// The exits.
    key: Exits<'p>,
    /// The metric. Times are in nanoseconds.
    #[schemars(extend("enum" = Metric::ALL.map(Metric::name)))]
    metric: &'static str,
    /// Indices in dates of the days with enough hosts.
    steps: &'p [u32],
    /// The typical host's value on each of these days.
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

/// For a comparison that kept no grid.
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
    /// The exits of a number.
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

/// Rounds to the digits that a chart can show, so that a page of thousands of hosts stays small.
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
