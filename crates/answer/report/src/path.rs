//! The report of `hyperscope path`: each path of requests, hop by hop, with a chart of one request.

mod json;
mod lines;

use analyses::distribution::Distribution;
use analyses::path::{Actor, Hop, Path, Paths};
use printable::line;
use serde::Serialize;

pub(crate) use self::json::Document;
use self::lines::{HOPS, Line, columns, lines};
use crate::column;
use crate::greatest::greatest;
use crate::table::Table;
use crate::units::{plural, share, them, time};
use crate::{Legend, Report, losses};

/// Paths through all given recordings, on one clock.
#[derive(Debug)]
pub struct PathReport {
    /// Paths of all recordings.
    pub sources: Vec<String>,
    /// How guests were aligned, one line per guest.
    pub alignment: Vec<String>,
    /// The paths.
    pub paths: Paths,
    /// Max paths in the text: those with the longest time over all their requests.
    pub top: usize,
}

impl Report for PathReport {
    fn headline(&self) -> String {
        let (ns, mut total) = (self.paths.nanoseconds, Distribution::default());
        self.paths.paths.iter().for_each(|path| total.merge(&path.total));
        if total.count() == 0 {
            return "No complete request was found.".to_owned();
        }
        let [p50, _, p99] = quantiles(&total, ns);
        let requests = plural(total.count(), "request");
        let mut out = format!("{requests} took {p50} at p50 and {p99} at p99");
        if let Some((took_ns, actor)) = self.longest_on() {
            let share = share(took_ns, total.sum());
            out += &format!("; {} had the largest part of their time ({share})", actor.name());
        }
        out + "."
    }

    fn tables(&self, width: Option<usize>) -> String {
        let mut out = self.heading();
        for path in self.shown() {
            out += &self.path_text(path, width);
        }
        out + &self.notes()
    }

    fn legend(&self) -> Legend {
        vec![
            ("to", "what a hop ends with (in which share of requests, if not in all)"),
            ("on", "what runs during it"),
            ("share", "of the path's time"),
            ("one of them", "when a typical request was in each hop"),
        ]
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
    /// The document with the first `max` paths.
    pub(crate) fn document_of(&self, max: usize) -> Document<'_> {
        Document::new(self, max)
    }

    /// What hops took most time on, all requests together.
    fn longest_on(&self) -> Option<(u64, Actor)> {
        let hops = || self.paths.paths.iter().flat_map(|path| &path.hops);
        let took_ns = |actor: Actor| {
            let on_actor = hops().filter(|hop| hop.on == actor).map(|hop| hop.times.sum());
            (on_actor.fold(0, u64::saturating_add), actor)
        };
        greatest(Actor::ALL.map(took_ns)).filter(|(ns, _)| *ns > 0)
    }

    fn heading(&self) -> String {
        let paths = &self.paths.paths;
        let mut out: String =
            self.sources.iter().map(|source| format!("{}\n", line(source))).collect();
        let variants = sum(paths, |path| path.variants);
        out += &format!(
            "{} in {} on {}, with {} that differ by optional steps",
            plural(self.paths.requests, "request"),
            time(self.paths.span_ns, self.paths.nanoseconds),
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

    /// The paths in the text; rare ones are summed after them.
    fn shown(&self) -> impl Iterator<Item = &Path> {
        self.paths.paths.iter().filter(|path| !path.is_rare).take(self.top)
    }

    /// The share of some paths in all requests and their time.
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
            "\n{vm}{}\n{} ({}), {} of all time; whole request: p50 {p50}, p90 {p90}, p99 {p99}\n",
            line(&path.name),
            plural(path.total.count(), "request"),
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
                "{} of {} ({}): --top 0 shows {}",
                plural(more().count() as u64, "more path"),
                plural(sum(more(), |path| path.total.count()), "request"),
                self.part(more()),
                them(more().count()),
            ));
        }
        notes.extend(self.recording_itself());
        let rare = || paths.paths.iter().filter(|path| path.is_rare);
        if rare().count() > 0 {
            notes.push(format!(
                "{} of {} ({}), each less than 1% of both: json and csv show {}",
                plural(rare().count() as u64, "rare path"),
                plural(sum(rare(), |path| path.total.count()), "request"),
                self.part(rare()),
                them(rare().count()),
            ));
        }
        if paths.unfinished > 0 {
            notes.push(format!(
                "{} unfinished: still in progress, or their last events were not recorded",
                plural(paths.unfinished, "request")
            ));
        }
        if paths.others > 0 {
            notes.push(format!("{} on rare paths", plural(paths.others, "request")));
        }
        if paths.interrupted > 0 {
            notes.push(format!(
                "{} in progress during a loss",
                plural(paths.interrupted, "request")
            ));
        }
        paths.losses.iter().for_each(|loss| notes.extend(losses::notes(loss, 0)));
        if paths.paths.is_empty() {
            notes.push(
                "record at least kvm, sched_switch and sched_waking; hyperscope info shows the recorded events"
                    .to_owned(),
            );
        }
        if notes.is_empty() { String::new() } else { format!("\n{}\n", notes.join("\n")) }
    }

    /// Hops that exist only because of the recording.
    fn recording_itself(&self) -> Option<String> {
        let is_recorder = |hop: &&Hop| hop.on == Actor::Recorder;
        let hops = self.paths.paths.iter().flat_map(|path| path.hops.iter().filter(is_recorder));
        let took_ns = hops.map(|hop| hop.times.sum()).fold(0, u64::saturating_add);
        let all_ns = sum(&self.paths.paths, |path| path.total.sum());
        (took_ns > 0).then(|| {
            format!(
                "hops on \"recorder\" are the recording itself: {} of {} ({}); this time is only spent while recording",
                time(took_ns, self.paths.nanoseconds),
                time(all_ns, self.paths.nanoseconds),
                share(took_ns, all_ns)
            )
        })
    }
}

fn sum<'p>(paths: impl IntoIterator<Item = &'p Path>, value_of: impl Fn(&Path) -> u64) -> u64 {
    paths.into_iter().map(value_of).fold(0, u64::saturating_add)
}

fn quantiles(times: &Distribution, ns: bool) -> [String; 3] {
    times.percentiles(PER_MILLE).map(|value| time(value.unwrap_or(0), ns))
}
