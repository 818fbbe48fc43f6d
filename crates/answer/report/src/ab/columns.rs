//! The columns of metrics under A and another configuration.

use analyses::Comparison;
use analyses::ab::{Ab, AbMetric};
use analyses::diff::Scale;

use super::number;
use crate::column::{self, Column, Described, Unit};

pub(super) const TABLE: &str = "metrics";

/// A metric.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row<'r> {
    pub(super) ab: &'r Ab,
    pub(super) metric: &'r AbMetric,
}

impl column::Row for Row<'_> {
    fn is_nanoseconds(&self) -> bool {
        true
    }
}

impl<'r> Described for Row<'r> {
    const ABOUT: Option<&'static str> =
        Some("A metric under A and under one other configuration, called b here.");
    const MAY_COUNT_TICKS: bool = false;

    fn all_columns() -> Vec<Column<Self>> {
        columns(2)
    }
}

/// A column of numbers of any size.
fn value<'r>(
    names: (&str, &str),
    help: &str,
    value_of: impl Fn(&Row<'r>) -> Option<f64> + Copy + 'static,
) -> Column<Row<'r>> {
    Column::ratio(names, help, value_of).below_zero_too().drawn_as(move |row| {
        value_of(row).map_or("-".to_owned(), |value| number(row.metric, value))
    })
}

/// All columns, in the order of JSON and CSV, for this number of configurations.
pub(super) fn columns<'r>(sides: usize) -> Vec<Column<Row<'r>>> {
    let has_several = sides > 2;
    let mut columns = self::sides(has_several);
    columns.extend(change(if has_several { "of A" } else { "B / A" }));
    columns.extend(runs());
    columns
}

/// Numbers of both sides; `has_several`: A is compared with several configurations.
fn sides<'r>(has_several: bool) -> Vec<Column<Row<'r>>> {
    let one_run = "There was only one run.";
    let b = if has_several { "other" } else { "B" };
    vec![
        Column::text(
            ("name", "metric"),
            "Name of the metric. Times end in _ns and are in nanoseconds.",
            |row: &Row<'_>| Some(row.metric.name.clone()),
        )
        .shown(TABLE, 0),
        Column::text(
            ("configuration", "with"),
            "The configuration that is compared with A: b, c and so on.",
            |row: &Row<'_>| Some(row.metric.side.name().to_owned()),
        )
        .shown_if(TABLE, 0, move |_| has_several),
        value(("a_mean", "A"), "Mean of the runs under A.", |row| Some(row.metric.means[0]))
            .shown(TABLE, 0),
        value(("a_sd", "sd"), "Standard deviation of these runs.", |row| row.metric.deviations[0])
            .null(one_run)
            .shown(TABLE, 2),
        value(("b_mean", b), "Mean of the runs under B.", |row| Some(row.metric.means[1]))
            .shown(TABLE, 0),
        value(("b_sd", "sd"), "Standard deviation of these runs.", |row| row.metric.deviations[1])
            .null(one_run)
            .shown(TABLE, 2),
    ]
}

fn change<'r>(title: &'static str) -> Vec<Column<Row<'r>>> {
    let ratio = |value_of: fn(&Comparison) -> f64| {
        move |row: &Row<'_>| {
            let change =
                row.metric.change.as_ref().filter(|comparison| comparison.scale == Scale::Ratio)?;
            Some(value_of(change))
        }
    };
    let times = |value: Option<f64>| value.map_or("-".to_owned(), |value| super::times(value, 4));
    let none = "There were fewer than two blocks, or a value was not positive.";
    let less = "There were fewer than two blocks.";
    vec![
        Column::ratio(
            ("ratio", title),
            "B divided by A: the geometric mean of the blocks' ratios.",
            ratio(|comparison| comparison.change),
        )
        .below_zero_too()
        .null(none)
        .drawn_as(move |row| times(ratio(|comparison| comparison.change)(row)))
        .shown(TABLE, 0),
        Column::ratio(
            ("ci_low", "from"),
            "Lower end of the 95% interval of the ratio.",
            ratio(|comparison| comparison.low),
        )
        .below_zero_too()
        .null(none)
        .drawn_as(move |row| times(ratio(|comparison| comparison.low)(row)))
        .shown(TABLE, 0),
        Column::ratio(
            ("ci_high", "to"),
            "Upper end of the interval.",
            ratio(|comparison| comparison.high),
        )
        .below_zero_too()
        .null(none)
        .drawn_as(move |row| times(ratio(|comparison| comparison.high)(row)))
        .shown(TABLE, 0),
        Column::ratio(
            ("p_value", "p"),
            "Probability of a change at least this large if A and B did not differ.",
            |row: &Row<'_>| row.metric.change.as_ref().map(|comparison| comparison.p),
        )
        .below_zero_too()
        .null(less)
        .drawn_as(|row| chance(row.metric.change.as_ref().map(|comparison| comparison.p)))
        .shown(TABLE, 1),
        Column::ratio(
            ("p_adjusted", "p adj."),
            "p_value adjusted for the number of comparisons (false discovery rate).",
            |row: &Row<'_>| row.metric.p_adjusted,
        )
        .below_zero_too()
        .null(less)
        .drawn_as(|row| chance(row.metric.p_adjusted))
        .shown(TABLE, 0),
        Column::flag(
            ("significant", "differs"),
            "Whether p_adjusted is below 0.05.",
            |row: &Row<'_>| row.metric.is_significant(),
        )
        .shown(TABLE, 1),
    ]
}

pub(super) fn chance(p: Option<f64>) -> String {
    p.map_or("-".to_owned(), |p| match p {
        // Smaller values come from the range of doubles.
        p if p < 1e-99 => "<1e-99".to_owned(),
        p if p < 0.001 => format!("{p:.0e}"),
        p => format!("{p:.3}"),
    })
}

fn runs<'r>() -> Vec<Column<Row<'r>>> {
    vec![
        Column::number(("runs", "runs"), Unit::Count, "Runs of each configuration.", |row: &Row<'_>| {
            Some(row.ab.blocks() as u64)
        })
        .shown(TABLE, 3),
        Column::number(("outliers", "outliers"), Unit::Count, "Runs more than five median deviations away from the median of \
                                                               their configuration. They are included in the results.", |row: &Row<'_>| {
            Some(row.metric.outliers.len() as u64)
        })
        .shown_if(TABLE, 3, |row| !row.metric.outliers.is_empty()),
        Column::ratio(("drift", "drift"), "Growth from the first block to the last, as a share of the mean.", |row: &Row<'_>| {
            row.metric.drift
        }).below_zero_too()
        .null("The drift is within chance, or there were fewer than three blocks.")
        .shown_if_known(TABLE, 3)
        .missing("-"),
    ]
}
