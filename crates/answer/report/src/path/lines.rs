//! The lines of the path report, for tables and CSV: paths and their hops, and their columns.

use analyses::distribution::Distribution;
use analyses::path::{ExampleOf, ExampleStep, Hop, Path, Paths};

use super::PER_MILLE;
use crate::column::{self, Column, Unit};

/// The hops of a path.
pub(super) const HOPS: &str = "hops";

/// Columns of the chart of one request.
const DRAWN: u64 = 28;

/// A complete path, or one of its hops.
#[derive(Clone, Debug)]
pub(super) struct Line<'p> {
    nanoseconds: bool,
    path: &'p Path,
    /// The path's number, from 1.
    number: usize,
    /// The hop and its number, from 1.
    hop: Option<(usize, &'p Hop)>,
    /// The hop of one request, as a bar.
    bar: String,
}

impl column::Row for Line<'_> {
    fn is_nanoseconds(&self) -> bool {
        self.nanoseconds
    }
}

/// The line of a path, and the lines of its hops.
pub(super) fn lines<'p>(
    paths: &Paths,
    path: &'p Path,
    number: usize,
) -> impl Iterator<Item = Line<'p>> {
    let nanoseconds = paths.nanoseconds;
    let make_line = move |hop, bar| Line { nanoseconds, path, number, hop, bar };
    let mut bars = drawing(path).into_iter();
    let hops = (1..).zip(&path.hops);
    std::iter::once(make_line(None, String::new()))
        .chain(hops.map(move |hop| make_line(Some(hop), bars.next().unwrap_or_default())))
}

impl<'p> Line<'p> {
    pub(super) fn is_hop(&self) -> bool {
        self.hop.is_some()
    }

    fn times(&self) -> &'p Distribution {
        self.hop.map_or(&self.path.total, |(_, hop)| &hop.times)
    }

    fn to(&self) -> Option<String> {
        let last = self.path.hops.last().map(|hop| &hop.to);
        self.hop.map(|(_, hop)| &hop.to).or(last).cloned()
    }
}

/// All columns, in the order of CSV.
pub(super) fn columns<'p>() -> Vec<Column<Line<'p>>> {
    let mut columns = names();
    columns.extend(times());
    columns.extend(counts());
    columns
}

fn names<'p>() -> Vec<Column<Line<'p>>> {
    let text = |name, help, text_of: fn(&Line<'_>) -> Option<String>| {
        Column::text((name, name), help, move |line: &Line<'p>| text_of(line))
    };
    vec![
        text("vm", "Name of the VM.", |line| line.path.vm.clone()),
        text("name", "The path in words.", |line| Some(line.path.name.clone())),
        Column::number(
            ("hop", "hop"),
            Unit::Id,
            "Number of the hop, from 1; null for the path as a whole.",
            |line: &Line<'_>| Some(line.hop?.0 as u64),
        ),
        text("from", "The step that it begins with.", |line| {
            Some(line.hop.map_or(&line.path.start, |(_, hop)| &hop.from).clone())
        }),
        text("to", "The step that it ends with.", |line| line.to())
            .drawn_as(|line| line.hop.map_or_else(String::new, |(_, hop)| marked(hop, line.path)))
            .shown(HOPS, 0),
        text("on", "What runs during the hop.", |line| Some(line.hop?.1.on.name().to_owned()))
            .shown(HOPS, 0),
        Column::flag(
            ("returns", "returns"),
            "Whether it ends where it began.",
            |line: &Line<'_>| line.path.returns,
        ),
        Column::number(
            ("count", "requests"),
            Unit::Count,
            "Requests of the path.",
            |line: &Line<'_>| Some(line.path.total.count()),
        ),
    ]
}

fn times<'p>() -> Vec<Column<Line<'p>>> {
    let percentile = |(at, name): (usize, &'static str)| {
        Column::time((name, name), "Percentile of the time.", move |line: &Line<'p>| {
            line.times().percentiles(PER_MILLE).get(at).copied().flatten().or(Some(0))
        })
        .shown(HOPS, u8::from(at > 0))
    };
    ["p50", "p90", "p99"].into_iter().enumerate().map(percentile).collect()
}

fn counts<'p>() -> Vec<Column<Line<'p>>> {
    let all = |line: &Line<'_>| line.path.hops.iter().map(|hop| hop.times.sum()).sum();
    vec![
        Column::ratio(("share", "share"), "Share of the path's time.", move |line: &Line<'_>| {
            column::ratio(line.times().sum(), all(line))
        })
        .only_in_tables()
        .shown(HOPS, 1),
        Column::text(("one of them", "one of them"), "A request.", |line: &Line<'_>| {
            Some(line.bar.clone())
        })
        .only_in_tables()
        .shown(HOPS, 2),
        Column::number(
            ("taken", "taken"),
            Unit::Count,
            "Requests that took it.",
            |line: &Line<'_>| Some(line.times().count()),
        ),
        Column::number(
            ("variants", "variants"),
            Unit::Count,
            "Variants of the path that differ by optional steps.",
            |line: &Line<'_>| Some(line.path.variants),
        ),
        Column::number(("path", "path"), Unit::Id, "Number of the path.", |line: &Line<'_>| {
            Some(line.number as u64)
        }),
    ]
}

/// The step at a hop's end, and the number of requests with it if that is not all.
fn marked(hop: &Hop, path: &Path) -> String {
    let (some, all) = (u128::from(hop.times.count()), u128::from(path.total.count()));
    if some == all {
        return hop.to.clone();
    }
    let per_cent = match (200 * some + all) / (2 * all).max(1) {
        0 => "<1".to_owned(),
        100 => ">99".to_owned(),
        other => other.to_string(),
    };
    format!("{} (in {per_cent}%)", hop.to)
}

/// The hops of one request as bars, at their position between begin and end; empty for hops that it did
/// not take.
fn drawing(path: &Path) -> Vec<String> {
    let Some(request) = path.example(ExampleOf::Median) else { return Vec::new() };
    let example = &request.steps;
    let (Some(first), Some(last)) = (example.first(), example.last()) else { return Vec::new() };
    let length_ns = last.ts_ns.saturating_sub(first.ts_ns).max(1);
    let column = |ts_ns: u64| {
        let at = u128::from(ts_ns.saturating_sub(first.ts_ns)) * u128::from(DRAWN);
        (at / u128::from(length_ns)) as usize
    };
    let bar = |two: &[ExampleStep]| match two {
        [from, to] => {
            let (begin, end) = (column(from.ts_ns), column(to.ts_ns));
            let sign = if begin == end { "▏".to_owned() } else { "█".repeat(end - begin) };
            format!("{}{sign}", " ".repeat(begin))
        }
        _ => String::new(),
    };
    let mut bars = vec![String::new(); path.hops.len()];
    for (two, at) in example.windows(2).zip(&request.hops) {
        if let Some(place) = bars.get_mut(*at) {
            *place = bar(two);
        }
    }
    bars
}
