//! The columns of changes over time.

use report::column::{self, Column, Described, Unit};

use crate::level_change::LevelChange;
use crate::metric::Metric;
use crate::shown::{chance, interval, level, times, value};
use crate::since::SinceQuestion;

pub(super) const TABLE: &str = "changes";

/// A change.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row<'r> {
    pub(super) change: &'r LevelChange,
}

impl column::Row for Row<'_> {
    fn is_nanoseconds(&self) -> bool {
        true
    }
}

impl<'r> Described for Row<'r> {
    const MAY_COUNT_TICKS: bool = false;

    fn all_columns() -> Vec<Column<Self>> {
        columns_of(&[], 0.0)
    }
}

/// All columns, in the order of JSON and CSV.
pub(super) fn columns<'r>(question: &SinceQuestion) -> Vec<Column<Row<'r>>> {
    columns_of(&question.strata, question.alpha)
}

fn columns_of<'r>(strata: &[String], alpha: f64) -> Vec<Column<Row<'r>>> {
    let mut columns = days();
    columns.extend(kinds(strata));
    columns.extend(exits());
    columns.extend(levels());
    columns.extend(tests(alpha));
    columns.extend(hosts());
    columns
}

fn days<'r>() -> Vec<Column<Row<'r>>> {
    vec![
        Column::text(("day", "day"), "The first day of the new level.", |row: &Row<'_>| {
            Some(row.change.day.clone())
        })
        .shown(TABLE, 0),
        Column::text(
            ("last_before", "last before"),
            "The last day of the level before.",
            |row: &Row<'_>| Some(row.change.last_before.clone()),
        ),
    ]
}

fn kinds<'r>(strata: &[String]) -> Vec<Column<Row<'r>>> {
    let is_of_kind = |row: &Row<'_>| row.change.stratum.is_some();
    let title = match strata {
        [name] => name.clone(),
        _ => "kind".to_owned(),
    };
    let is_one = strata.len() == 1;
    let drawn = move |row: &Row<'_>| match &row.change.stratum {
        None => "all".to_owned(),
        Some((_, kind)) if is_one => kind.clone(),
        Some((name, kind)) => format!("{name} {kind}"),
    };
    vec![
        Column::text(
            ("stratum_column", "column"),
            "The column that groups hosts into kinds.",
            |row: &Row<'_>| row.change.stratum.as_ref().map(|stratum| stratum.0.clone()),
        )
        .null("All hosts."),
        Column::text(("stratum", &title), "Only hosts of this kind.", |row: &Row<'_>| {
            row.change.stratum.as_ref().map(|stratum| stratum.1.clone())
        })
        .null("See stratum_column.")
        .drawn_as(drawn)
        .shown_if(TABLE, 0, is_of_kind),
    ]
}

fn exits<'r>() -> Vec<Column<Row<'r>>> {
    let of_one = |row: &Row<'_>| (!row.change.is_of_all()).then(|| row.change.reason.clone());
    let isa = |row: &Row<'_>| (!row.change.isa.is_empty()).then(|| row.change.isa.clone());
    vec![
        Column::number(
            ("level", "level"),
            Unit::Id,
            "Level of the exits: 1 for guests, 2 for nested guests.",
            |row: &Row<'_>| u64::try_from(row.change.level).ok().filter(|level| *level > 0),
        )
        .null("All exits that don't wait, together.")
        .drawn_as(|row| level(row.change.level))
        .shown(TABLE, 3),
        Column::text(("isa", "isa"), "Architecture of the exits.", isa).null("Any."),
        Column::text(("reason", "reason"), "Their reason.", of_one)
            .null("As level.")
            .drawn_as(|row| row.change.reason_shown().to_owned())
            .shown(TABLE, 0),
        Column::flag(
            ("waiting", "waiting"),
            "Exits by which a guest says that it has nothing to do.",
            |row: &Row<'_>| row.change.waiting,
        ),
        Column::text(
            ("metric", "metric"),
            "The metric. Times are in nanoseconds.",
            |row: &Row<'_>| Some(row.change.metric.name().to_owned()),
        )
        .one_of(Metric::ALL.map(Metric::name))
        .shown(TABLE, 0),
    ]
}

fn levels<'r>() -> Vec<Column<Row<'r>>> {
    let steps = |at: usize| {
        move |row: &Row<'_>| row.change.steps.get(at).and_then(|steps| u64::try_from(*steps).ok())
    };
    vec![
        Column::ratio(
            ("before", "before"),
            "Value on the typical host since the previous change, or since the beginning.",
            |row: &Row<'_>| Some(row.change.before),
        )
        .drawn_as(|row| value(row.change.metric, Some(row.change.before)))
        .shown(TABLE, 2),
        Column::ratio(
            ("after", "after"),
            "Value on the typical host up to the next change, or to the end.",
            |row: &Row<'_>| Some(row.change.after),
        )
        .drawn_as(|row| value(row.change.metric, Some(row.change.after)))
        .shown(TABLE, 2),
        Column::number(
            ("steps_before", "steps before"),
            Unit::Count,
            "Steps with a value before the change.",
            steps(0),
        ),
        Column::number(
            ("steps_after", "steps after"),
            Unit::Count,
            "Steps with a value after the change.",
            steps(1),
        ),
    ]
}

fn tests<'r>(alpha: f64) -> Vec<Column<Row<'r>>> {
    let heading = format!("{}% interval", (1.0 - alpha) * 100.0);
    vec![
        Column::ratio(("ratio", "typical host"), "after divided by before.", |row: &Row<'_>| {
            Some(row.change.ratio)
        })
        .drawn_as(|row| times(row.change.ratio))
        .shown(TABLE, 0),
        Column::ratio(
            ("ci_low", &heading),
            "Lower end of the interval, with confidence 1 - alpha.",
            |row: &Row<'_>| Some(row.change.low),
        )
        .drawn_as(|row| interval(row.change.low, row.change.high))
        .shown(TABLE, 1),
        Column::ratio(("ci_high", "high"), "Upper end of the interval.", |row: &Row<'_>| {
            Some(row.change.high)
        }),
        Column::ratio(
            ("p_value", "p"),
            "Probability of a change at least this large anywhere in a series without a change.",
            |row: &Row<'_>| Some(row.change.p),
        ),
        Column::ratio(
            ("p_adjusted", "p adj."),
            "p_value adjusted for the number of series.",
            |row: &Row<'_>| Some(row.change.p_adjusted),
        )
        .drawn_as(|row| chance(row.change.p_adjusted))
        .shown(TABLE, 1),
    ]
}

fn hosts<'r>() -> Vec<Column<Row<'r>>> {
    vec![
        Column::number(
            ("hosts_compared", "hosts"),
            Unit::Count,
            "Hosts that have the metric before and after the change.",
            |row: &Row<'_>| u64::try_from(row.change.hosts).ok(),
        )
        .shown(TABLE, 0),
        Column::number(
            ("hosts_of_all", "of all"),
            Unit::Count,
            "Hosts of all kinds that have the metric before and after the change.",
            |row: &Row<'_>| u64::try_from(row.change.hosts_of_all).ok(),
        ),
        Column::flag(
            ("went_away", "went away"),
            "At least half of the change has disappeared at the end of the series.",
            |row: &Row<'_>| row.change.went_away,
        ),
        Column::text(
            ("shifted_with", "shifted with"),
            "The reason whose sum changed at the same time by the same amount in the opposite direction, while the sum of all \
             exits did not change.",
            |row: &Row<'_>| row.change.moved.clone(),
        )
        .null("None."),
        Column::flag(
            ("finding", "finding"),
            "Still there and not shifted to another reason. --fail-if checks these rows.",
            |row: &Row<'_>| row.change.is_finding(),
        ),
        Column::text(("note", "note"), "", note)
            .drawn_as(|row| note(row).unwrap_or_default())
            .only_in_tables()
            .shown(TABLE, 0),
        Column::text(
            ("carried_by", "carried by"),
            "Hosts that carry the change.",
            |row: &Row<'_>| Some(row.change.carried_by.join(" ")),
        )
        .only_in_csv(),
    ]
}

/// Why a change is no finding.
fn note(row: &Row<'_>) -> Option<String> {
    if row.change.went_away {
        return Some("went away".to_owned());
    }
    row.change.moved.as_ref().map(|other| format!("moved: offset by {other}"))
}
