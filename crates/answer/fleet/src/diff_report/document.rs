//! The JSON document of a comparison of two parts of a fleet.

use report::column::RowsWith;
use schemars::JsonSchema;
use serde::Serialize;

use super::columns::{Shown, columns};
use crate::diff::{FleetDiff, SideFacts};
use crate::rows::{HostRatio, Row};
use crate::selection::Selection;

/// Output of `hyperscope fleet diff --format json`: two parts of a lake, compared host by host. docs/fleet.md
/// defines every number.
#[derive(Debug, JsonSchema, Serialize)]
pub(crate) struct Document<'r, L> {
    schema: &'static str,
    /// Side A.
    a: Side<'r>,
    /// Side B.
    b: Side<'r>,
    /// Hosts on both sides.
    paired: usize,
    /// Condition on sessions of B; hosts whose sessions all meet it are controls. Null: there are no controls.
    control: Option<&'r str>,
    /// Hosts that are controls.
    controls: usize,
    /// The definition of kinds of hosts: a column of sessions, or a label.
    strata: &'r str,
    /// A row is significant if its p_adjusted is at most this; the confidence of intervals is 1 - alpha.
    #[schemars(extend("exclusiveMinimum" = 0))]
    alpha: f64,
    /// Seed of the resamples.
    seed: u64,
    /// Method by which p_adjusted accounts for the number of rows.
    #[schemars(extend("const" = "benjamini_hochberg"))]
    correction: &'static str,
    /// Sessions that meet a condition but were left out.
    left_out: LeftOut,
    /// Rows; significant ones first, by the size of their change.
    rows: RowsWith<Shown<'r>, L>,
}

/// A side.
#[derive(Debug, JsonSchema, Serialize)]
struct Side<'r> {
    /// Its condition, as written.
    condition: &'r str,
    /// Hosts with sessions on it.
    hosts: usize,
    /// Their sessions.
    sessions: usize,
    /// Time that was recorded without a loss, in slices with exits.
    covered_ns: u64,
}

/// Sessions that meet a condition but were left out.
#[derive(Debug, JsonSchema, Serialize)]
struct LeftOut {
    /// They lost more events than --most-lost allows.
    lost: usize,
    /// Their host is unknown.
    host_unknown: usize,
    /// They meet both conditions.
    on_both_sides: usize,
    /// They belong to hosts for which --control holds only for a part of B's sessions.
    control_in_part: usize,
}

/// Hosts that carry the change of a row.
#[derive(Debug, JsonSchema, Serialize)]
pub(crate) struct Carriers<'r> {
    /// Hosts that carry the change. Only in significant rows. If no host is on both sides: the hosts of B.
    carried_by: &'r [String],
}

/// Hosts that carry the change, and the values of each host.
#[derive(Debug, JsonSchema, Serialize)]
pub(crate) struct CarriersAndHosts<'r> {
    #[serde(flatten)]
    carriers: Carriers<'r>,
    /// Hosts on both sides. Only in significant rows.
    hosts: Vec<Host<'r>>,
}

#[derive(Debug, JsonSchema, Serialize)]
struct Host<'r> {
    /// The host.
    host: &'r str,
    /// Its kind; empty: unknown.
    stratum: &'r str,
    /// Its value on A.
    a: f64,
    /// Its value on B.
    b: f64,
    /// B over A.
    #[schemars(with = "Option<f64>")]
    ratio: f64,
}

impl<'r, L: From<&'r Row>> Document<'r, L> {
    /// Creates the document, with these lists in each row.
    pub(crate) fn new(diff: &'r FleetDiff) -> Self {
        let question = &diff.question;
        let ([a, b], [facts_of_a, facts_of_b]) = (&question.sides, &diff.sides);
        let [lost, host_unknown, on_both_sides, control_in_part] = diff.left_out;
        let row = |row: &'r Row| (Shown { row }, L::from(row));
        Self {
            schema: "hyperscope.fleet_diff/1",
            a: Side::new(facts_of_a, a),
            b: Side::new(facts_of_b, b),
            paired: diff.paired,
            control: question.control.as_ref().map(|selection| selection.text()),
            controls: diff.controls,
            strata: &question.strata,
            alpha: question.alpha,
            seed: question.seed,
            correction: "benjamini_hochberg",
            left_out: LeftOut { lost, host_unknown, on_both_sides, control_in_part },
            rows: RowsWith { columns: columns(diff), rows: diff.rows.iter().map(row).collect() },
        }
    }
}

impl<'r> Side<'r> {
    fn new(facts: &SideFacts, selection: &'r Selection) -> Self {
        Self {
            condition: selection.text(),
            hosts: facts.hosts,
            sessions: facts.sessions,
            covered_ns: facts.covered_ns,
        }
    }
}

impl<'r> From<&'r Row> for Carriers<'r> {
    fn from(row: &'r Row) -> Self {
        Self { carried_by: &row.carried_by }
    }
}

impl<'r> From<&'r Row> for CarriersAndHosts<'r> {
    fn from(row: &'r Row) -> Self {
        let hosts = row.host_ratios.iter().map(Host::new).collect();
        Self { carriers: row.into(), hosts }
    }
}

impl<'r> Host<'r> {
    fn new(host: &'r HostRatio) -> Self {
        let HostRatio { host, stratum, a, b } = host;
        Self { host, stratum, a: *a, b: *b, ratio: b / a }
    }
}
