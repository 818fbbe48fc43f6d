//! The columns of a comparison's rows.

use report::column::{self, Cell, Column, Described, Kind, Unit};

use crate::diff::FleetDiff;
use crate::metric::Metric;
use crate::rows::Row;
use crate::shown::{chance, interval, level, times, value};

pub(super) const TABLE: &str = "rows";

/// A row.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shown<'r> {
    pub(super) row: &'r Row,
}

impl column::Row for Shown<'_> {
    fn is_nanoseconds(&self) -> bool {
        true
    }
}

impl<'r> Described for Shown<'r> {
    const MAY_COUNT_TICKS: bool = false;

    fn all_columns() -> Vec<Column<Self>> {
        columns_of("stratum", false, 0.0)
    }
}

/// All columns, in the order of JSON and CSV.
pub(super) fn columns<'r>(diff: &FleetDiff) -> Vec<Column<Shown<'r>>> {
    let has_kinds = diff.rows.iter().any(|row| row.stratum.is_some());
    columns_of(&diff.question.strata, has_kinds, diff.question.alpha)
}

fn columns_of<'r>(strata: &str, has_kinds: bool, alpha: f64) -> Vec<Column<Shown<'r>>> {
    let mut columns = exits(strata, has_kinds);
    columns.extend(sides());
    columns.extend(tests(alpha));
    columns.extend(verdicts());
    columns.extend(totals());
    columns.extend(only_drawn());
    columns
}

fn exits<'r>(strata: &str, has_kinds: bool) -> Vec<Column<Shown<'r>>> {
    let isa = |shown: &Shown<'_>| (!shown.row.isa.is_empty()).then(|| shown.row.isa.clone());
    let reason = |shown: &Shown<'_>| (!shown.row.is_of_all()).then(|| shown.row.reason.clone());
    vec![
        Column::text(("stratum", strata), "Only hosts of this kind.", |shown: &Shown<'_>| {
            shown.row.stratum.clone()
        })
        .null("All hosts.")
        .drawn_as(|shown| shown.row.stratum.clone().unwrap_or_else(|| "all".to_owned()))
        .shown_if(TABLE, 0, move |_| has_kinds),
        Column::number(
            ("level", "level"),
            Unit::Id,
            "Level of the exits: 1 for guests, 2 for nested guests.",
            |shown: &Shown<'_>| u64::try_from(shown.row.level).ok().filter(|level| *level > 0),
        )
        .null("All exits that don't wait, together.")
        .drawn_as(|shown| level(shown.row.level))
        .shown(TABLE, 3),
        Column::text(("isa", "isa"), "Architecture of the exits.", isa).null("Any."),
        Column::text(("reason", "reason"), "Their reason.", reason)
            .null("As level.")
            .drawn_as(|shown| shown.row.reason_shown().to_owned())
            .shown(TABLE, 0),
        Column::flag(
            ("waiting", "waiting"),
            "Exits by which a guest says that it has nothing to do.",
            |shown: &Shown<'_>| shown.row.waiting,
        ),
        Column::text(
            ("metric", "metric"),
            "The metric. Times are in nanoseconds.",
            |shown: &Shown<'_>| Some(shown.row.metric.name().to_owned()),
        )
        .one_of(Metric::ALL.map(Metric::name))
        .shown(TABLE, 0),
    ]
}

fn sides<'r>() -> Vec<Column<Shown<'r>>> {
    vec![
        side(("a", "A"), 0),
        side(("b", "B"), 1),
        hosts_of(("hosts_a", "hosts of A"), "Hosts of A that have the metric.", 0),
        hosts_of(("hosts_b", "hosts of B"), "Hosts of B that have the metric.", 1),
        hosts_of(("paired", "paired"), "Hosts that have the metric on both sides.", 2),
    ]
}

fn side<'r>(names: (&str, &str), at: usize) -> Column<Shown<'r>> {
    let mean = move |shown: &Shown<'_>| shown.row.means.get(at).copied().flatten();
    Column::ratio(names, "Geometric mean over the hosts of the side.", mean)
        .null("No host has the metric.")
        .drawn_as(move |shown| value(shown.row.metric, mean(shown)))
        .shown(TABLE, 2)
}

fn hosts_of<'r>(names: (&str, &str), help: &str, at: usize) -> Column<Shown<'r>> {
    Column::number(names, Unit::Count, help, move |shown: &Shown<'_>| {
        shown.row.hosts.get(at).and_then(|hosts| u64::try_from(*hosts).ok())
    })
}

fn tests<'r>(alpha: f64) -> Vec<Column<Shown<'r>>> {
    let heading = format!("{}% interval", (1.0 - alpha) * 100.0);
    vec![
        Column::text(
            ("design", "design"),
            "How hosts were compared: each with itself, with other hosts of its kind, or its \
                                            change with the change of the controls.",
            |shown: &Shown<'_>| shown.row.change.map(|change| change.design.name().to_owned()),
        )
        .one_of(["paired", "welch", "differences"])
        .null("There are too few hosts."),
        Column::ratio(
            ("ratio", "typical host"),
            "B divided by A on the typical host (geometric mean); with controls, divided by \
                                                  their change. Null: see design.",
            |shown: &Shown<'_>| shown.row.change.map(|change| change.ratio),
        )
        .drawn_as(|shown| shown.row.change.map_or("-".into(), |change| times(change.ratio)))
        .shown(TABLE, 0),
        Column::ratio(
            ("ci_low", &heading),
            "Lower end of the interval, with confidence 1 - alpha.",
            |shown: &Shown<'_>| shown.row.change.map(|change| change.low),
        )
        .null("as design")
        .drawn_as(|shown| {
            shown.row.change.map_or("-".into(), |change| interval(change.low, change.high))
        })
        .shown(TABLE, 1),
        Column::ratio(("ci_high", "high"), "Upper end of the interval.", |shown: &Shown<'_>| {
            shown.row.change.map(|change| change.high)
        })
        .null("as design"),
        Column::ratio(
            ("p_value", "p"),
            "Probability of a change at least this large if the two sides did not differ.",
            |shown: &Shown<'_>| shown.row.change.map(|change| change.p),
        )
        .null("as design"),
        Column::ratio(
            ("p_adjusted", "p adj."),
            "p_value adjusted for the number of rows.",
            |shown: &Shown<'_>| shown.row.p_adjusted,
        )
        .null("as design")
        .drawn_as(|shown| shown.row.p_adjusted.map_or("-".into(), chance))
        .shown(TABLE, 1),
    ]
}

fn verdicts<'r>() -> Vec<Column<Shown<'r>>> {
    vec![
        Column::flag(("significant", "differs"), "p_adjusted is at most alpha, and permutation of the hosts does not contradict it.", |shown: &Shown<'_>| {
            shown.row.significant
        }),
        Column::any(
            ("went_away", "went away"),
            (Unit::Flag, Kind::Flag),
            "At least half of the change has disappeared in the last third of B's time.",
            |shown: &Shown<'_>| shown.row.went_away.map_or(Cell::Text(None), Cell::Flag),
        )
        .null("Not known."),
        Column::text(
            ("shifted_with", "shifted with"),
            "The reason whose sum changed by the same amount in the opposite direction, while the sum of all exits did not change.",
            |shown: &Shown<'_>| shown.row.shifted.clone(),
        )
        .null("None."),
        Column::flag(
            ("finding", "finding"),
            "Significant, still there and not shifted to another reason. --fail-if checks these rows.",
            |shown: &Shown<'_>| shown.row.is_finding(),
        ),
    ]
}

fn totals<'r>() -> Vec<Column<Shown<'r>>> {
    let drawn = |shown: &Shown<'_>| shown.row.total.map_or("-".into(), |total| times(total.0));
    let between =
        |shown: &Shown<'_>| shown.row.total.map_or("-".into(), |total| interval(total.1, total.2));
    vec![
        Column::ratio(
            ("total_ratio", "fleet"),
            "Total of all hosts on B divided by their total on A. Null: percentiles, or not compared.",
            |shown: &Shown<'_>| shown.row.total.map(|total| total.0),
        )
        .drawn_as(drawn)
        .shown(TABLE, 0),
        Column::ratio(
            ("total_low", "interval"),
            "Lower end of the interval, by resampling hosts.",
            |shown: &Shown<'_>| shown.row.total.map(|total| total.1),
        ).null("as total_ratio")
        .drawn_as(between)
        .shown(TABLE, 2),
        Column::ratio(("total_high", "high"), "Upper end of the interval.", |shown: &Shown<'_>| {
            shown.row.total.map(|total| total.2)
        }).null("as total_ratio"),
    ]
}

fn only_drawn<'r>() -> Vec<Column<Shown<'r>>> {
    vec![
        Column::text(("hosts", "hosts"), "Hosts on both sides. Only in significant rows.", |shown: &Shown<'_>| Some(hosts(shown.row)))
            .only_in_tables()
            .at_the_right()
            .shown(TABLE, 0),
        Column::text(("note", "note"), "", |shown: &Shown<'_>| note(shown.row))
            .drawn_as(|shown| note(shown.row).unwrap_or_default())
            .only_in_tables()
            .shown(TABLE, 0),
        Column::text(
            ("carried_by", "carried by"),
            "Hosts that carry the change. Only in significant rows. If no host is on both sides: the hosts of B.",
            |shown: &Shown<'_>| Some(shown.row.carried_by.join(" ")),
        )
        .only_in_csv(),
    ]
}

fn hosts(row: &Row) -> String {
    match row.hosts {
        [a, b, paired] if a == b && b == paired => a.to_string(),
        [a, b, 0] => format!("{a} / {b}"),
        [_, _, paired] => paired.to_string(),
    }
}

/// Why a significant row is no finding.
fn note(row: &Row) -> Option<String> {
    if !row.significant {
        return None;
    }
    if row.went_away == Some(true) {
        return Some("went away".to_owned());
    }
    row.shifted.as_ref().map(|other| format!("moved: offset by {other}"))
}
