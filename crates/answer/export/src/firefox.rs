//! The Firefox Profiler's processed profile format, version 55: tracks become threads, groups their
//! processes, and slices and events become markers.
//!
//! The format stores a thread as columns, one after the other, so all slices stay in memory until
//! the end: 48 bytes each.

mod categories;
mod marks;
mod thread;

use std::io::{self, Write};

use serde_json::{Value, json};

use crate::{Instant, Scene, Slice, TimelineWriter};
use marks::{Data, Mark, Marks};

/// Version of the processed profile format; the profiler upgrades older versions.
const VERSION: u32 = 55;
/// Kinds of markers.
const STATE: &str = "State";
const EVENT: &str = "Event";

/// Writes a profile.
#[derive(Debug)]
pub struct FirefoxWriter<W> {
    out: W,
    tracks: Vec<Marks>,
    data: Data,
}

impl<W: Write + Send> FirefoxWriter<W> {
    /// A writer to `out`.
    pub fn new(out: W) -> Self {
        Self { out, tracks: Vec::new(), data: Data::default() }
    }

    fn meta(&mut self, scene: &Scene) -> Value {
        let categories = categories::CATEGORIES.iter();
        let categories: Vec<Value> = categories
            .map(|(name, color)| json!({"name": name, "color": color, "subcategories": ["Other"]}))
            .collect();
        json!({
            "version": 24,
            "preprocessedProfileVersion": VERSION,
            "product": "Hyperscope",
            "importedFrom": "Hyperscope",
            "interval": 1,
            // Times are on the host's trace clock, whose relation to the wall clock is unknown.
            "startTime": 0,
            "processType": 0,
            "debug": false,
            "stackwalk": 0,
            "symbolicated": true,
            "usesOnlyOneStackType": true,
            "sourceCodeIsNotOnSearchfox": true,
            "pausedRanges": [],
            "extensions": {"length": 0, "id": [], "name": [], "baseURL": []},
            "sampleUnits": {"time": "ms", "eventDelay": "ms", "threadCPUDelta": "ns"},
            "categories": categories,
            "markerSchema": schemas(),
            "extra": extra(scene),
        })
    }
}

/// Schemas by which the profiler displays markers.
fn schemas() -> Value {
    let field = |key: &str, label: &str, format: &str| json!({"key": key, "label": label, "format": format, "searchable": true});
    let fields = json!([
        field("reason", "Exit reason", "string"),
        field("code", "Exit code", "string"),
        field("task", "Guest's task", "string"),
        field("tid", "Thread", "integer"),
        field("level", "Level", "integer"),
        field("cpu", "Host's CPU", "integer"),
    ]);
    let places = ["marker-chart", "marker-table", "timeline-overview"];
    json!([
        {"name": STATE, "display": places, "chartLabel": "{marker.name}",
         "tooltipLabel": "{marker.name}", "tableLabel": "{marker.name}", "fields": fields},
        {"name": EVENT, "display": places, "chartLabel": "{marker.name}",
         "tooltipLabel": "{marker.name}", "tableLabel": "{marker.name} {marker.data.fields}",
         "fields": [field("fields", "Fields", "string")]},
    ])
}

/// Facts that the profiler shows next to the profile: sources and losses.
fn extra(scene: &Scene) -> Value {
    let entry = |(name, fact): (&str, crate::scene::Fact)| {
        let value = match fact {
            crate::scene::Fact::Text(text) => text,
            crate::scene::Fact::Number(number) => number.to_string(),
        };
        json!({"label": name, "format": "string", "value": value})
    };
    let section = |at: usize| {
        let entries: Vec<Value> = scene.facts(at).into_iter().map(entry).collect();
        json!({"label": "Recording", "entries": entries})
    };
    (0..scene.sources.len()).map(section).collect()
}

impl<W: Write + Send> TimelineWriter for FirefoxWriter<W> {
    const OWN_SCHEDULING: bool = false;
    const CALLS: bool = false;
    const FLOWS: bool = false;

    fn begin(&mut self, scene: &Scene) -> io::Result<()> {
        self.tracks.resize_with(scene.tracks.len(), Marks::default);
        Ok(())
    }

    fn slice(&mut self, track: usize, slice: &Slice<'_>) -> io::Result<()> {
        let data = self.data.keep(STATE, slice.args, true);
        let Some(track) = self.tracks.get_mut(track) else { return Ok(()) };
        let (name, state) =
            (track.strings.intern(slice.name), track.strings.intern(slice.category));
        let (from_ns, to_ns) = (slice.from_ns, Some(slice.to_ns));
        let category = categories::index_of(slice.category);
        track.marks.push(Mark { from_ns, to_ns, name, state, category, data });
        Ok(())
    }

    fn instant(&mut self, track: usize, instant: &Instant<'_>) -> io::Result<()> {
        let mut fields = Vec::new();
        crate::json::members(&mut fields, instant.args)?;
        let fields = String::from_utf8_lossy(&fields).into_owned();
        let data = self.data.keep(EVENT, &[("fields", crate::Arg::Text(&fields))], false);
        let Some(track) = self.tracks.get_mut(track) else { return Ok(()) };
        let (name, state) = (track.strings.intern(instant.name), 0);
        let category = categories::index_of(instant.category);
        let from_ns = instant.stamp_ns;
        track.marks.push(Mark { from_ns, to_ns: None, name, state, category, data });
        Ok(())
    }

    fn end(&mut self, scene: &Scene) -> io::Result<()> {
        let begin_ns = scene.span_ns.as_ref().map_or(0, |span| *span.start());
        let meta = self.meta(scene);
        write!(self.out, "{{\"meta\":{meta},\"libs\":[],\"pages\":[],\"profilerOverhead\":[]")?;
        self.out.write_all(b",\"threads\":[")?;
        let tracks = scene.tracks.iter().zip(&mut self.tracks);
        // Skips tracks without marks, such as a host's CPU on which no thread was seen.
        let filled = tracks.filter(|(_, marks)| !marks.marks.is_empty());
        for (at, (track, marks)) in filled.enumerate() {
            self.out.write_all(if at > 0 { b",\n" } else { b"\n" })?;
            marks.marks.sort_by_key(|mark| mark.from_ns);
            thread::write(&mut self.out, (scene, track), marks, &self.data, begin_ns)?;
        }
        self.out.write_all(b"]}\n")?;
        self.out.flush()
    }
}
