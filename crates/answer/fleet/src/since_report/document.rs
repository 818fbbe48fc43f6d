//! The JSON document of a fleet over time.

use report::column::RowsWith;
use schemars::JsonSchema;
use serde::Serialize;

use super::columns::{Row, columns};
use crate::level_change::LevelChange;
use crate::rows::HostRatio;
use crate::shared_facts::{CameWith, SharedFact};
use crate::since::FleetSince;

/// Output of `hyperscope fleet since --format json`: the days on which the numbers of a lake's hosts changed.
/// docs/fleet.md defines every number.
#[derive(Debug, JsonSchema, Serialize)]
pub(crate) struct Document<'r, L> {
    schema: &'static str,
    /// Only sessions for which this condition holds, as written. Null: all.
    condition: Option<&'r str>,
    /// Hosts with sessions that are used.
    hosts: usize,
    /// Their sessions.
    sessions: usize,
    /// The first day of the first step. Null: there are no steps.
    from_day: Option<&'r str>,
    /// The last day of the last step. Null: there are no steps.
    to_day: Option<&'r str>,
    /// Number of steps.
    steps: u32,
    /// Days of a step.
    #[schemars(extend("minimum" = 1))]
    step_days: u32,
    /// The definitions of kinds of hosts: columns of sessions, or labels.
    strata: &'r [String],
    /// Expected share of false reports among the series reported as changed; the confidence of intervals is 1 - alpha.
    #[schemars(extend("exclusiveMinimum" = 0))]
    alpha: f64,
    /// Method by which p_adjusted accounts for the number of series.
    #[schemars(extend("const" = "benjamini_hochberg"))]
    correction: &'static str,
    /// Sessions that meet the condition but were left out.
    left_out: LeftOut,
    /// Series that were examined: a number of a reason, for all hosts or for one kind.
    series: usize,
    /// Changes, the latest first; on the same day the greatest first.
    changes: RowsWith<Row<'r>, L>,
}

/// Sessions that meet the condition but were left out.
#[derive(Debug, JsonSchema, Serialize)]
struct LeftOut {
    /// They lost more events than --most-lost allows.
    lost: usize,
    /// Their host is unknown.
    host_unknown: usize,
    /// Their day is unknown.
    day_unknown: usize,
    /// They are of days before the first complete step.
    step_incomplete: usize,
}

/// Hosts that carry a change, and what they share.
#[derive(Debug, JsonSchema, Serialize)]
pub(crate) struct Carriers<'r> {
    /// Hosts that carry the change.
    carried_by: &'r [String],
    /// Facts that nearly all carriers have, and nearly no other host.
    shared: &'r [SharedFact],
    /// Facts that changed on nearly all carriers at the same time.
    came_with: &'r [CameWith],
}

/// Carriers and their facts, and the values of each host.
#[derive(Debug, JsonSchema, Serialize)]
pub(crate) struct CarriersAndHosts<'r> {
    #[serde(flatten)]
    carriers: Carriers<'r>,
    /// Hosts that have the metric before and after the change.
    hosts: Vec<Host<'r>>,
}

#[derive(Debug, JsonSchema, Serialize)]
struct Host<'r> {
    /// The host.
    host: &'r str,
    /// Its kind by stratum_column, otherwise its processor; empty: unknown.
    stratum: &'r str,
    /// Its value before.
    before: f64,
    /// Its value after.
    after: f64,
    /// after divided by before.
    ratio: f64,
}

impl<'r, L: From<&'r LevelChange>> Document<'r, L> {
    /// Creates the document, with these lists in each row.
    pub(crate) fn new(since: &'r FleetSince) -> Self {
        let question = &since.question;
        let [lost, host_unknown, day_unknown, step_incomplete] = since.left_out;
        let day = |at: usize| since.days.get(at).filter(|day| !day.is_empty()).map(String::as_str);
        let change = |change: &'r LevelChange| (Row { change }, L::from(change));
        Self {
            schema: "hyperscope.fleet_since/1",
            condition: question.selection.as_ref().map(|selection| selection.text()),
            hosts: since.hosts,
            sessions: since.sessions,
            from_day: day(0),
            to_day: day(1),
            steps: since.steps,
            step_days: question.step_days,
            strata: &question.strata,
            alpha: question.alpha,
            correction: "benjamini_hochberg",
            left_out: LeftOut { lost, host_unknown, day_unknown, step_incomplete },
            series: since.series,
            changes: RowsWith {
                columns: columns(question),
                rows: since.changes.iter().map(change).collect(),
            },
        }
    }
}

impl<'r> From<&'r LevelChange> for Carriers<'r> {
    fn from(change: &'r LevelChange) -> Self {
        let LevelChange { carried_by, shared, came_with, .. } = change;
        Self { carried_by, shared, came_with }
    }
}

impl<'r> From<&'r LevelChange> for CarriersAndHosts<'r> {
    fn from(change: &'r LevelChange) -> Self {
        let hosts = change.host_ratios.iter().map(Host::new).collect();
        Self { carriers: change.into(), hosts }
    }
}

impl<'r> Host<'r> {
    fn new(host: &'r HostRatio) -> Self {
        let HostRatio { host, stratum, a, b } = host;
        Self { host, stratum, before: *a, after: *b, ratio: b / a }
    }
}
