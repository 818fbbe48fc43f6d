//! The report of `hyperscope path`: each way that requests take, hop by hop, with one of them drawn.

use analyses::{Distribution, ExampleStep, Hop, Path, Paths};
use printable::line;
use serde::Serialize;
use serde_json::Value;

use crate::json::Object;
use crate::table::Table;
use crate::units::{count, plural, share, time, unit};
use crate::{Report, losses};

/// Paths through all recordings given, on one clock.
#[derive(Debug)]
pub struct PathReport {
    /// Paths of all recordings.
    pub sources: Vec<String>,
    /// How the guests among them were aligned, a line each.
    pub alignment: Vec<String>,
    /// What was found.
    pub paths: Paths,
    /// Ways that people are shown: those that took longest, all their requests together.
    pub top: usize,
}

/// Columns of the drawing of one request.
const DRAWN: u64 = 28;

impl Report for PathReport {
    fn text(&self, width: Option<usize>) -> String {
        let mut out = self.heading();
        for path in self.shown() {
            out += &self.path_text(path, width);
        }
        out + &self.notes()
    }

    fn document(&self) -> impl Serialize {
        self.document_of(usize::MAX)
    }

    fn csv(&self) -> Table {
        let rows: Vec<(usize, &Path, NumberedHop<'_>)> = (1..)
            .zip(&self.paths.paths)
            .flat_map(|(number, path)| {
                let hops = (1..).zip(&path.hops).map(move |hop| (number, path, Some(hop)));
                std::iter::once((number, path, None)).chain(hops)
            })
            .collect();
        let mut table = Table::default();
        let mut add = |title: &str, of: &dyn Fn(&Path, NumberedHop<'_>) -> String| {
            table.names(title, 0, rows.iter().map(|(_, path, hop)| of(path, *hop)).collect());
        };
        let unit = unit(self.paths.nanoseconds);
        add("vm", &|path, _| path.vm.clone().unwrap_or_default());
        add("name", &|path, _| path.name.clone());
        add("hop", &|_, hop| hop.map_or_else(String::new, |(at, _)| at.to_string()));
        add("from", &|path, hop| hop.map_or(&path.start, |(_, hop)| &hop.from).clone());
        add("to", &|path, hop| {
            let last = path.hops.last().map(|hop| &hop.to);
            hop.map(|(_, hop)| &hop.to).or(last).cloned().unwrap_or_default()
        });
        add("on", &|_, hop| hop.map_or("", |(_, hop)| hop.on.name()).to_owned());
        add("returns", &|path, _| path.returns.to_string());
        add("count", &|path, _| path.total.count().to_string());
        for (at, name) in ["p50", "p90", "p99"].into_iter().enumerate() {
            add(&format!("{name}_{unit}"), &|path, hop| {
                let times = hop.map_or(&path.total, |(_, hop)| &hop.times);
                let [p50, p90, p99] = times.percentiles(PER_MILLE).map(Option::unwrap_or_default);
                [p50, p90, p99].get(at).map_or_else(String::new, u64::to_string)
            });
        }
        add("taken", &|path, hop| {
            let times = hop.map_or(&path.total, |(_, hop)| &hop.times);
            times.count().to_string()
        });
        add("variants", &|path, _| path.variants.to_string());
        let numbers = rows.iter().map(|(number, ..)| number.to_string()).collect();
        table.names("path", 0, numbers);
        table
    }
}

/// A hop and its number, from 1; none for a path as a whole.
type NumberedHop<'p> = Option<(usize, &'p Hop)>;

const PER_MILLE: [u64; 3] = [500, 900, 990];

impl PathReport {
    /// The document with the first `most` paths.
    pub(crate) fn document_of(&self, most: usize) -> Value {
        let ns = self.paths.nanoseconds;
        let paths = self.paths.paths.iter().take(most).map(|path| path_json(path, ns));
        Object::default()
            .set("schema", "hyperscope.path/1")
            .set("sources", self.sources.clone())
            .set("alignment", self.alignment.clone())
            .set("losses", losses::json(self.paths.losses.iter(), self.paths.interrupted))
            .set("unfinished", self.paths.unfinished)
            .set("interrupted", self.paths.interrupted)
            .set("others", self.paths.others)
            .set("requests", self.paths.requests)
            .set("paths", paths.collect::<Vec<_>>())
            .done()
    }

    fn heading(&self) -> String {
        let paths = &self.paths.paths;
        let mut out: String =
            self.sources.iter().map(|source| format!("{}\n", line(source))).collect();
        let variants = sum(paths, |path| path.variants);
        out += &format!(
            "{} on {}, with {} by optional steps",
            plural(self.paths.requests, "request"),
            plural(paths.len() as u64, "path"),
            plural(variants, "variant"),
        );
        let shown: Vec<&Path> = self.shown().collect();
        if !shown.is_empty() {
            out += &format!("; shown: {} with {}", shown.len(), self.part(shown));
        }
        out += "\n";
        self.alignment.iter().for_each(|text| out += &format!("{}\n", line(text)));
        out
    }

    /// The paths that people are shown; rare ones are summed up after them.
    fn shown(&self) -> impl Iterator<Item = &Path> {
        self.paths.paths.iter().filter(|path| !path.is_rare).take(self.top)
    }

    /// How much of all requests and of their time some paths are.
    fn part<'p>(&self, some: impl IntoIterator<Item = &'p Path>) -> String {
        let (mut requests, mut time) = (0, 0_u64);
        for path in some {
            requests += path.total.count();
            time = time.saturating_add(path.total.sum());
        }
        let all = sum(&self.paths.paths, |path| path.total.sum());
        let (requests, time) = (share(requests, self.paths.requests), share(time, all));
        format!("{requests} of requests, {time} of their time")
    }

    fn path_text(&self, path: &Path, width: Option<usize>) -> String {
        let ns = self.paths.nanoseconds;
        let all = sum(&self.paths.paths, |path| path.total.sum());
        let vm = path.vm.as_deref().map_or_else(String::new, |vm| format!("{}: ", line(vm)));
        let [p50, p90, p99] = quantiles(&path.total, ns);
        let mut out = format!(
            "\n{vm}{}\n{} requests ({}), {} of all time; all of it: p50 {p50}, p90 {p90}, p99 {p99}\n",
            line(&path.name),
            count(path.total.count()),
            share(path.total.count(), self.paths.requests),
            share(path.total.sum(), all),
        );
        let (drawn, _) = hops(path, ns).draw(width);
        out += &drawn;
        out
    }

    fn notes(&self) -> String {
        let mut notes = Vec::new();
        let paths = &self.paths;
        let more = || paths.paths.iter().filter(|path| !path.is_rare).skip(self.top);
        if more().count() > 0 {
            notes.push(format!(
                "{} more paths of {} requests ({}): --top 0 shows them",
                count(more().count() as u64),
                count(sum(more(), |path| path.total.count())),
                self.part(more()),
            ));
        }
        let rare = || paths.paths.iter().filter(|path| path.is_rare);
        if rare().count() > 0 {
            notes.push(format!(
                "{} rare paths of {} requests ({}), each less than 1% of both: json and csv have them",
                count(rare().count() as u64),
                count(sum(rare(), |path| path.total.count())),
                self.part(rare()),
            ));
        }
        if paths.unfinished > 0 {
            notes.push(format!(
                "{} handed on without an end that was seen: still under way, or the events that end them \
                 were not recorded",
                plural(paths.unfinished, "request")
            ));
        }
        if paths.others > 0 {
            notes.push(format!("{} on ways of their own", plural(paths.others, "request")));
        }
        if paths.interrupted > 0 {
            notes.push(format!("{} under way at a loss", plural(paths.interrupted, "request")));
        }
        paths.losses.iter().for_each(|one| notes.extend(losses::notes(one, 0)));
        if paths.paths.is_empty() {
            notes.push(
                "no request was seen to come back: record at least kvm and sched_switch, \
                 sched_waking; hyperscope info shows what there is"
                    .to_owned(),
            );
        }
        if notes.is_empty() { String::new() } else { format!("\n{}\n", notes.join("\n")) }
    }
}

fn sum<'p>(paths: impl IntoIterator<Item = &'p Path>, of: impl Fn(&Path) -> u64) -> u64 {
    paths.into_iter().map(of).fold(0, u64::saturating_add)
}

fn quantiles(times: &Distribution, ns: bool) -> [String; 3] {
    times.percentiles(PER_MILLE).map(|value| time(value.unwrap_or(0), ns))
}

/// A line for each hop; the first one says where it begins.
fn hops(path: &Path, ns: bool) -> Table {
    let mut table = Table::default();
    let each = |of: &dyn Fn(&Hop) -> String| -> Vec<String> { path.hops.iter().map(of).collect() };
    let drawing = drawing(path);
    table.names("to", 0, each(&|hop| marked(hop, path)));
    table.names("on", 0, each(&|hop| hop.on.name().to_owned()));
    for (at, name) in ["p50", "p90", "p99"].into_iter().enumerate() {
        let cell = |hop: &Hop| quantiles(&hop.times, ns).get(at).cloned().unwrap_or_default();
        table.numbers(name, u8::from(at > 0), each(&cell));
    }
    let total: u64 = path.hops.iter().map(|hop| hop.times.sum()).sum();
    table.numbers("share", 1, each(&|hop| share(hop.times.sum(), total)));
    table.names("one of them", 2, drawing);
    table
}

/// What a hop ends with, and in how many of the path's requests, where that is not all.
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

/// The hops of one request as bars, each where it was between the beginning and the end; nothing of a hop
/// that it didn't take.
fn drawing(path: &Path) -> Vec<String> {
    let example = &path.example;
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
    for (two, at) in example.windows(2).zip(&path.example_hops) {
        if let Some(place) = bars.get_mut(*at) {
            *place = bar(two);
        }
    }
    bars
}

fn path_json(path: &Path, ns: bool) -> Value {
    let quantiles = |object: &mut Object, times: &Distribution| {
        let [p50, p90, p99] = times.percentiles(PER_MILLE);
        object.time("p50", ns, p50).time("p90", ns, p90).time("p99", ns, p99);
        object.time("mean", ns, times.mean().map(|mean| mean.round() as u64)).done()
    };
    let hop = |hop: &Hop| {
        let mut object = Object::default();
        object.set("from", hop.from.clone()).set("to", hop.to.clone()).set("on", hop.on.name());
        object.set("count", hop.times.count());
        quantiles(&mut object, &hop.times)
    };
    // The first step ends no hop.
    let places = std::iter::once(None).chain(path.example_hops.iter().copied().map(Some));
    let step = |(step, hop): (&ExampleStep, Option<usize>)| {
        Object::default()
            .set("hop", hop)
            .time("ts", ns, Some(step.ts_ns))
            .set("what", step.what.clone())
            .set("on", step.on.name())
            .done()
    };
    Object::default()
        .set("name", path.name.clone())
        .set("vm", path.vm.clone())
        .set("start", path.start.clone())
        .set("returns", path.returns)
        .set("count", path.total.count())
        .set("variants", path.variants)
        .set("rare", path.is_rare)
        .set("total", quantiles(&mut Object::default(), &path.total))
        .set("hops", path.hops.iter().map(hop).collect::<Vec<_>>())
        .set("example", path.example.iter().zip(places).map(step).collect::<Vec<_>>())
        .done()
}
