//! The data in a page of a fleet: `hyperscope.fleet_page/1`.

use serde_json::{Value, json};

use super::FleetPage;
use crate::diff::{Grid, GridColumn, GridHost, HostSession};
use crate::findings;
use crate::outliers::{Outlier, outliers};
use crate::since::{Curve, FleetSince};
use crate::since_findings;
use crate::sums::Key;

/// Hosts that a page shows by themselves: those that stand apart, and whose numbers changed most.
const MOST_HOSTS: usize = 2_000;

/// Sessions that a page names of a host on either side: the newest.
const MOST_SESSIONS: usize = 10;

/// Hosts that stand apart that a page lists: the farthest.
const MOST_OUTLIERS: usize = 500;

/// All of it.
pub(super) fn of(page: &FleetPage) -> Value {
    let nothing = Grid { hosts: Vec::new(), columns: Vec::new() };
    let grid = page.diff.diff.grid.as_ref().unwrap_or(&nothing);
    let apart = outliers(grid, page.diff.diff.question.alpha);
    let kept = kept(grid, &apart);
    let hosts = kept.iter().filter_map(|at| grid.hosts.get(*at));
    let listed = apart.iter().take(MOST_OUTLIERS);
    let FleetSince { dates, curves, changes, .. } = &page.since.since;
    json!({
        "schema": "hyperscope.fleet_page/1",
        "title": page.title,
        "generator": concat!("hyperscope ", env!("CARGO_PKG_VERSION")),
        "diff": page.diff.object(false),
        "findings": findings::distinct(&page.diff.diff.rows),
        "hosts": hosts.map(host).collect::<Vec<_>>(),
        "hosts_left_out": grid.hosts.len() - kept.len(),
        "grid": grid.columns.iter().map(|one| column(one, &kept)).collect::<Vec<_>>(),
        "outliers": listed.filter_map(|one| outlier(one, grid)).collect::<Vec<_>>(),
        "outliers_left_out": apart.len().saturating_sub(MOST_OUTLIERS),
        "since": page.since.object(false),
        "since_findings": since_findings::distinct(changes),
        "dates": dates,
        "curves": curves.iter().map(curve).collect::<Vec<_>>(),
    })
}

/// Hosts that are shown, in the order of their names.
fn kept(grid: &Grid, apart: &[Outlier]) -> Vec<usize> {
    let mut weights = vec![0.0_f64; grid.hosts.len()];
    for column in &grid.columns {
        for (weight, values) in weights.iter_mut().zip(&column.values) {
            let [a, b] = values.map(|value| value.filter(|value| *value > 0.0));
            let change = a.zip(b).map_or(0.0, |(a, b)| (b / a).ln().abs());
            *weight = weight.max(change);
        }
    }
    for one in apart {
        weights.iter_mut().skip(one.host).take(1).for_each(|weight| *weight = f64::INFINITY);
    }
    let mut order: Vec<(usize, f64)> = weights.into_iter().enumerate().collect();
    order.sort_by(|one, other| other.1.total_cmp(&one.1).then(one.0.cmp(&other.0)));
    let mut kept: Vec<usize> = order.into_iter().take(MOST_HOSTS).map(|one| one.0).collect();
    kept.sort_unstable();
    kept
}

fn host(host: &GridHost) -> Value {
    let [a, b] = &host.sessions;
    json!({
        "host": host.name,
        "stratum": (!host.kind.is_empty()).then_some(&host.kind),
        "control": host.is_control,
        "a": sessions(a),
        "b": sessions(b),
        "sessions": [a.len(), b.len()],
    })
}

fn sessions(sessions: &[HostSession]) -> Vec<Value> {
    let object = |one: &HostSession| json!({ "session_id": one.session, "date": one.date, "kernel_release": one.kernel, "source_uri": one.source });
    sessions.iter().take(MOST_SESSIONS).map(object).collect()
}

/// Which exits a number is of.
fn key(key: &Key) -> Value {
    json!({
        "level": (key.level != 0).then_some(key.level),
        "isa": (!key.isa.is_empty()).then_some(&key.isa),
        "reason": (!key.is_of_all()).then_some(&key.reason),
        "waiting": key.waiting,
    })
}

fn column(column: &GridColumn, kept: &[usize]) -> Value {
    let side = |side: usize| -> Vec<Option<f64>> {
        let of = |host: &usize| column.values.get(*host)?.get(side).copied().flatten();
        kept.iter().map(|host| of(host).map(five_digits)).collect()
    };
    json!({ "key": key(&column.key), "metric": column.metric.name(), "a": side(0), "b": side(1) })
}

fn outlier(one: &Outlier, grid: &Grid) -> Option<Value> {
    let (host, column) = (grid.hosts.get(one.host)?, grid.columns.get(one.column)?);
    Some(json!({
        "host": host.name,
        "key": key(&column.key),
        "metric": column.metric.name(),
        "of": one.of.name(),
        "times": one.times,
        "deviations": one.deviations,
        "peers": one.peers,
    }))
}

fn curve(curve: &Curve) -> Value {
    json!({
        "stratum_column": curve.stratum.as_ref().map(|one| &one.0),
        "stratum": curve.stratum.as_ref().map(|one| &one.1),
        "key": key(&curve.key),
        "metric": curve.metric.name(),
        "steps": curve.steps,
        "levels": curve.levels.iter().copied().map(five_digits).collect::<Vec<_>>(),
    })
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
        for (value, kept) in
            [(123_456.7, 123_460.0), (0.001_234_56, 0.001_234_6), (0.0, 0.0), (9.999_999, 10.0)]
        {
            assert!((five_digits(value) - kept).abs() <= kept * 1e-12, "{value}");
        }
        assert!(five_digits(f64::NAN).is_nan());
    }
}
