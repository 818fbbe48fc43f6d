//! The columns of a comparison's rows.

use report::column::{self, Cell, Column, Described, Kind, Unit};

use crate::diff::FleetDiff;
use crate::metric::Metric;
use crate::rows::Row;
use crate::shown::{chance, interval, level, times, value};

/// The one table there is.
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
    let isa = |one: &Shown<'_>| (!one.row.isa.is_empty()).then(|| one.row.isa.clone());
    let reason = |one: &Shown<'_>| (!one.row.is_of_all()).then(|| one.row.reason.clone());
    vec![
        Column::text(("stratum", strata), "Only hosts of this kind.", |one: &Shown<'_>| {
            one.row.stratum.clone()
        })
        .null("All hosts.")
        .drawn_as(|one| one.row.stratum.clone().unwrap_or_else(|| "all".to_owned()))
        .shown_if(TABLE, 0, move |_| has_kinds),
        Column::number(("level", "level"), Unit::Id, "Level of the exits.", |one: &Shown<'_>| {
            u64::try_from(one.row.level).ok().filter(|level| *level > 0)
        })
        .null("All exits that don't wait, together.")
        .drawn_as(|one| level(one.row.level))
        .shown(TABLE, 3),
        Column::text(("isa", "isa"), "Architecture of the exits.", isa).null("Any."),
        Column::text(("reason", "reason"), "Their reason.", reason)
            .null("As level.")
            .drawn_as(|one| one.row.reason_shown().to_owned())
            .shown(TABLE, 0),
        Column::flag(
            ("waiting", "waiting"),
            "By these exits a guest says that it has nothing to do.",
            |one: &Shown<'_>| one.row.waiting,
        ),
        Column::text(
            ("metric", "metric"),
            "The number. Times are nanoseconds.",
            |one: &Shown<'_>| Some(one.row.metric.name().to_owned()),
        )
        .one_of(Metric::ALL.map(Metric::name))
        .shown(TABLE, 0),
    ]
}

fn sides<'r>() -> Vec<Column<Shown<'r>>> {
    vec![
        side(("a", "A"), 0),
        side(("b", "B"), 1),
        hosts_of(("hosts_a", "hosts of A"), "Hosts of A that have it.", 0),
        hosts_of(("hosts_b", "hosts of B"), "Hosts of B that have it.", 1),
        hosts_of(("paired", "paired"), "Hosts that have it on both sides.", 2),
    ]
}

fn side<'r>(names: (&str, &str), at: usize) -> Column<Shown<'r>> {
    let mean = move |one: &Shown<'_>| one.row.means.get(at).copied().flatten();
    Column::ratio(names, "Its geometric mean over the hosts of the side.", mean)
        .null("No host has it.")
        .drawn_as(move |one| value(one.row.metric, mean(one)))
        .shown(TABLE, 2)
}

fn hosts_of<'r>(names: (&str, &str), help: &str, at: usize) -> Column<Shown<'r>> {
    Column::number(names, Unit::Count, help, move |one: &Shown<'_>| {
        one.row.hosts.get(at).and_then(|hosts| u64::try_from(*hosts).ok())
    })
}

fn tests<'r>(alpha: f64) -> Vec<Column<Shown<'r>>> {
    let heading = format!("{}% interval", (1.0 - alpha) * 100.0);
    vec![
        Column::text(("design", "design"), "How hosts were compared: each with itself, with others of its kind, or its change with that of controls.", |one: &Shown<'_>| {
            one.row.change.map(|change| change.design.name().to_owned())
        }).one_of(["paired", "welch", "differences"])
        .null("There are too few."),
        Column::ratio(("ratio", "typical host"), "What B is of A on the typical host: geometric mean; with controls, what is left of it without their change. Null: as design.", |one: &Shown<'_>| {
            one.row.change.map(|change| change.ratio)
        })
        .drawn_as(|one| one.row.change.map_or("-".into(), |change| times(change.ratio)))
        .shown(TABLE, 0),
        Column::ratio(
            ("ci_low", &heading),
            "Lower end of its interval, of confidence 1 - alpha.",
            |one: &Shown<'_>| one.row.change.map(|change| change.low),
        ).null("as design")
        .drawn_as(|one| one.row.change.map_or("-".into(), |one| interval(one.low, one.high)))
        .shown(TABLE, 1),
        Column::ratio(("ci_high", "high"), "Upper end of it.", |one: &Shown<'_>| {
            one.row.change.map(|change| change.high)
        }).null("as design"),
        Column::ratio(
            ("p_value", "p"),
            "Probability of a change at least this large if the two sides did not differ.",
            |one: &Shown<'_>| one.row.change.map(|change| change.p),
        ).null("as design"),
        Column::ratio(
            ("p_adjusted", "p adj."),
            "The same, adjusted for the number of rows.",
            |one: &Shown<'_>| one.row.p_adjusted,
        ).null("as design")
        .drawn_as(|one| one.row.p_adjusted.map_or("-".into(), chance))
        .shown(TABLE, 1),
    ]
}

fn verdicts<'r>() -> Vec<Column<Shown<'r>>> {
    vec![
        Column::flag(("significant", "differs"), "p_adjusted is at most alpha, and permuting hosts does not contradict.", |one: &Shown<'_>| {
            one.row.significant
        }),
        Column::any(
            ("went_away", "went away"),
            (Unit::Flag, Kind::Flag),
            "In the last third of B's time the change is gone by half or more.",
            |one: &Shown<'_>| one.row.went_away.map_or(Cell::Text(None), Cell::Flag),
        )
        .null("Not known."),
        Column::text(
            ("shifted_with", "shifted with"),
            "The reason whose sum changed by as much the other way, while that of all exits did not.",
            |one: &Shown<'_>| one.row.shifted.clone(),
        )
        .null("None."),
        Column::flag(
            ("finding", "finding"),
            "Significant, did not go away and was not shifted: what --fail-if looks at.",
            |one: &Shown<'_>| one.row.is_finding(),
        ),
    ]
}

fn totals<'r>() -> Vec<Column<Shown<'r>>> {
    let drawn = |one: &Shown<'_>| one.row.total.map_or("-".into(), |total| times(total.0));
    let between =
        |one: &Shown<'_>| one.row.total.map_or("-".into(), |total| interval(total.1, total.2));
    vec![
        Column::ratio(
            ("total_ratio", "fleet"),
            "What the totals of all hosts on B are of those on A. Null: of percentiles, or not compared.",
            |one: &Shown<'_>| one.row.total.map(|total| total.0),
        )
        .drawn_as(drawn)
        .shown(TABLE, 0),
        Column::ratio(
            ("total_low", "interval"),
            "Lower end of its interval, by drawing hosts again.",
            |one: &Shown<'_>| one.row.total.map(|total| total.1),
        ).null("as total_ratio")
        .drawn_as(between)
        .shown(TABLE, 2),
        Column::ratio(("total_high", "high"), "Upper end of it.", |one: &Shown<'_>| {
            one.row.total.map(|total| total.2)
        }).null("as total_ratio"),
    ]
}

fn only_drawn<'r>() -> Vec<Column<Shown<'r>>> {
    vec![
        Column::text(("hosts", "hosts"), "Hosts on both sides, of significant rows.", |one: &Shown<'_>| Some(hosts(one.row)))
            .only_in_tables()
            .at_the_right()
            .shown(TABLE, 0),
        Column::text(("note", "note"), "", |one: &Shown<'_>| note(one.row))
            .drawn_as(|one| note(one.row).unwrap_or_default())
            .only_in_tables()
            .shown(TABLE, 0),
        Column::text(
            ("carried_by", "carried by"),
            "Hosts that carry the change; of significant rows. Where no host is on both sides: those of B.",
            |one: &Shown<'_>| Some(one.row.carried_by.join(" ")),
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

/// Why a row that differs is no finding.
fn note(row: &Row) -> Option<String> {
    if !row.significant {
        return None;
    }
    if row.went_away == Some(true) {
        return Some("went away".to_owned());
    }
    row.shifted.as_ref().map(|other| format!("moved: {other} makes up for it"))
}
