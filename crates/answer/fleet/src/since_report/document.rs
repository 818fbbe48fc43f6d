//! The JSON document of a fleet over time.

use report::column::RowsWith;
use schemars::JsonSchema;
use serde::Serialize;

use super::columns::{Row, columns};
use crate::level_change::LevelChange;
use crate::rows::HostRatio;
use crate::shared_facts::{CameWith, SharedFact};
use crate::since::FleetSince;

/// What `hyperscope fleet since --format json` prints: the days on which the numbers of a lake's hosts changed.
/// docs/fleet.md defines every number.
#[derive(Debug, JsonSchema, Serialize)]
pub(crate) struct Document<'r, L> {
    schema: &'static str,
    /// Only sessions that this holds for, as it was written. Null: all.
    condition: Option<&'r str>,
    /// Hosts with sessions that count.
    hosts: usize,
    /// Their sessions.
    sessions: usize,
    /// The first day of the first step. Null: there are no steps.
    from_day: Option<&'r str>,
    /// The last day of the last step. Null: there are no steps.
    to_day: Option<&'r str>,
    /// Steps from the first to the last.
    steps: u32,
    /// Days of a step.
    #[schemars(extend("minimum" = 1))]
    step_days: u32,
    /// What tells kinds of hosts apart: columns of sessions, or labels.
    strata: &'r [String],
    /// Expected share of false reports among the series reported as changed; the confidence of intervals is 1 - alpha.
    #[schemars(extend("exclusiveMinimum" = 0))]
    alpha: f64,
    /// How p_adjusted accounts for the number of series.
    #[schemars(extend("const" = "benjamini_hochberg"))]
    correction: &'static str,
    /// Sessions that the condition holds for and that don't count.
    left_out: LeftOut,
    /// Series that were looked at: a number of a reason, of all hosts or of one kind.
    series: usize,
    /// The latest first, of a day the greatest.
    changes: RowsWith<Row<'r>, L>,
}

/// Sessions that the condition holds for and that don't count.
#[derive(Debug, JsonSchema, Serialize)]
struct LeftOut {
    /// They lost more events than --most-lost allows.
    lost: usize,
    /// Nothing says which host they are of.
    host_unknown: usize,
    /// Nothing says on which day they were recorded.
    day_unknown: usize,
    /// Of days before the first whole step.
    step_incomplete: usize,
}

/// Hosts that carry a change, and what they share.
#[derive(Debug, JsonSchema, Serialize)]
pub(crate) struct Carriers<'r> {
    /// Hosts that carry the change.
    carried_by: &'r [String],
    /// What nearly all of these have and nearly no other host.
    shared: &'r [SharedFact],
    /// What of nearly all of these became another at the same time.
    came_with: &'r [CameWith],
}

/// The same, and what each host had.
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
    /// Its kind, by stratum_column; else its processor; empty: not known.
    stratum: &'r str,
    /// What it had.
    before: f64,
    /// What it has.
    after: f64,
    /// after divided by before.
    ratio: f64,
}

impl<'r, L: From<&'r LevelChange>> Document<'r, L> {
    /// With these lists of each row.
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
