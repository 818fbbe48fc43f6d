//! The report of `hyperscope path`: each way that requests take, hop by hop, with one of them drawn.

mod lines;

use analyses::distribution::Distribution;
use analyses::path::{Actor, Example, ExampleOf, ExampleStep, Hop, Path, Paths, Place};
use printable::line;
use serde::Serialize;
use serde_json::Value;

use self::lines::{HOPS, Line, columns, lines};
use crate::column;
use crate::json::Object;
use crate::table::Table;
use crate::units::{count, plural, share, time};
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
        let paths = &self.paths;
        let all: Vec<Line<'_>> =
            (1..).zip(&paths.paths).flat_map(|(at, path)| lines(paths, path, at)).collect();
        column::csv(&columns(), &all, &[paths.nanoseconds])
    }
}

const PER_MILLE: [u64; 3] = [500, 900, 990];

impl PathReport {
    /// The document with the first `most` paths.
    pub(crate) fn document_of(&self, most: usize) -> Value {
        let ns = self.paths.nanoseconds;
        let paths = (1..).zip(&self.paths.paths).take(most);
        let paths = paths.map(|path| path_json(path, ns, &self.sources));
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
        let hops: Vec<Line<'_>> = lines(&self.paths, path, 0).filter(Line::is_hop).collect();
        let mut table = Table::default();
        column::draw(&columns(), &mut table, HOPS, &hops);
        out += &table.draw(width).0;
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

fn path_json((at, path): (usize, &Path), ns: bool, sources: &[String]) -> Value {
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
    let median = path.example(ExampleOf::Median).into_iter().flat_map(steps);
    let examples = path.examples.iter().map(|example| example_json(example, (ns, at), sources));
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
        .set("example", median.map(|one| step_json(one, ns).done()).collect::<Vec<_>>())
        .set("examples", examples.collect::<Vec<_>>())
        .done()
}

/// The steps of a request, each with the place of the hop that it ends.
fn steps(example: &Example) -> impl Iterator<Item = (&ExampleStep, Option<usize>)> {
    // The first step ends no hop.
    example.steps.iter().zip(std::iter::once(None).chain(example.hops.iter().copied().map(Some)))
}

fn step_json((step, hop): (&ExampleStep, Option<usize>), ns: bool) -> Object {
    let mut object = Object::default();
    object.set("hop", hop).time("ts", ns, Some(step.ts_ns));
    object.set("what", step.what.clone()).set("on", step.on.name());
    object
}

fn example_json(example: &Example, (ns, path): (bool, usize), sources: &[String]) -> Value {
    let step = |one: (&ExampleStep, Option<usize>)| {
        let Place { recording, cpu, thread } = one.0.place;
        // An interrupt's work is not that of the thread that it hit.
        let thread = (one.0.on != Actor::Interrupt).then_some(thread);
        step_json(one, ns)
            .set("source", sources.get(usize::from(recording)).cloned())
            .set("cpu", cpu)
            .set("tid", thread)
            .done()
    };
    Object::default()
        .set("id", format!("{path}:{}", example.of.name()))
        .set("of", example.of.name())
        .time("total", ns, Some(example.total_ns()))
        .set("steps", steps(example).map(step).collect::<Vec<_>>())
        .done()
}
