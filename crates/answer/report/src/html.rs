//! The report as one page: tables, figures and timelines in a file that a browser opens offline.
//!
//! The page is built from `web/` and kept in `web/dist`; this module inserts the data.
//! `docs/formats/report.md` defines that data, byte by byte. No text of a recording becomes part of the
//! page's markup: strings are in JSON without any `<`, and everything else is base64.

mod arrows;
mod columns;
mod critical;
mod document;
mod each_exit;
mod findings;
mod gzip;
mod heat;
mod lanes;
mod profile;
mod requests;

use std::io::{self, Write};

use self::lanes::Timeline;
use analyses::advice::Advice;
use analyses::each_exit::ExitList;
use analyses::lanes::{Arrows, LaneSet};
use analyses::latencies::Latencies;
use serde::Serialize;
use sources::TimeRange;

use crate::{
    AlignReport, BootReport, CallsReport, CpuReport, CriticalReport, DiffReport, ExitsReport,
    IrqsReport, NestedReport, PathReport,
};

#[cfg(test)]
pub(crate) use document::Document;
pub use findings::{Finding, Link, Piece, Weight};
pub use profile::PageProfile;

/// The page without data, as `make web` built it.
const PAGE: &str = include_str!("../../../../web/dist/report.html");

/// The page's policy for connections: none, or its own server if it is served.
const ASKS_NOTHING: &str = "default-src 'none'";
const ASKS_ITS_SERVER: &str = "default-src 'none'; connect-src 'self'";

/// Where the data goes.
const PLACE: &str = "<!--hyperscope:data-->";

/// The content of a page.
#[derive(Debug)]
pub struct PageReport {
    /// Its heading.
    pub title: String,
    /// The report of all exits.
    pub exits: ExitsReport,
    /// The report of nested guests, if there are any.
    pub nested: Option<NestedReport>,
    /// Advice, each piece with the index of its recording.
    pub advice: Vec<(usize, Advice)>,
    /// How the guests' clocks were aligned, if guests were recorded.
    pub align: Option<AlignReport>,
    /// Times of exits over time.
    pub latencies: Latencies,
    /// Individual exits by recording, if there are not too many.
    pub each_exit: Vec<ExitList>,
    /// The lanes of the timeline.
    pub lanes: LaneSet,
    /// Wake-ups between threads.
    pub arrows: Arrows,
    /// CPU use.
    pub cpu: CpuReport,
    /// Handlers of interrupts, if their events were recorded.
    pub irqs: Option<IrqsReport>,
    /// The profile of vCPUs, if there are samples.
    pub profile: Option<PageProfile>,
    /// Which functions ran, if their calls were recorded.
    pub calls: Option<CallsReport>,
    /// The paths of requests.
    pub path: Option<PathReport>,
    /// The waits of a task, if requested.
    pub critical: Option<CriticalReport>,
    /// Boots and shutdowns of guests, if recorded.
    pub boot: Option<BootReport>,
    /// A comparison with another run.
    pub diff: Option<DiffReport>,
    /// Whether the page can request more data from its server.
    pub served: bool,
}

impl PageReport {
    /// Writes the page.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let (head, tail) = halves(PAGE)?;
        if self.served {
            out.write_all(head.replacen(ASKS_NOTHING, ASKS_ITS_SERVER, 1).as_bytes())?
        } else {
            out.write_all(head.as_bytes())?
        }
        let origin_ns = self.origin_ns();
        let heat_rows = self.latencies.by_row();
        let findings = findings::collect(self);
        let document = document::document(self, &findings, &heat_rows, origin_ns);
        write_json("hyperscope-report", &document, out)?;
        drop(document);
        heat::write(&self.latencies, &heat_rows, out)?;
        drop(heat_rows);
        for list in &self.each_exit {
            each_exit::write(list, out)?;
        }
        if let Some(profile) = &self.profile {
            profile.write(out)?;
        }
        if let Some(path) = &self.path {
            requests::write(&path.paths, out)?;
        }
        write_spans(&self.lanes, origin_ns, out)?;
        arrows::write(&self.arrows, origin_ns, out)?;
        out.write_all(tail.as_bytes())
    }

    /// The time of the page: from its origin to its end.
    #[must_use]
    pub fn times_ns(&self) -> TimeRange {
        let (from_ns, to_ns) = self.lanes.range_ns().unwrap_or_default();
        TimeRange { from_ns, to_ns: to_ns.saturating_add(1) }
    }

    /// The origin of the page's times.
    fn origin_ns(&self) -> u64 {
        self.lanes.range_ns().map_or(0, |(first_ns, _)| first_ns)
    }
}

/// Writes another page, with one document as its data in the named element.
///
/// # Errors
/// Those of `out`; when the page has no place for data.
pub fn write_page(
    page: &str,
    id: &str,
    document: &impl Serialize,
    out: &mut dyn Write,
) -> io::Result<()> {
    let (head, tail) = halves(page)?;
    out.write_all(head.as_bytes())?;
    write_json(id, document, out)?;
    out.write_all(tail.as_bytes())
}

/// The page before the place of data, and after it.
fn halves(page: &str) -> io::Result<(&str, &str)> {
    page.split_once(PLACE)
        .ok_or_else(|| io::Error::other("the page template has no placeholder for data"))
}

/// The lanes of a part of a recording.
#[derive(Serialize)]
struct LanesDocument<'p> {
    schema: &'static str,
    timeline: Timeline<'p>,
}

/// Writes the lanes of a part of a recording, in the same form as those of a complete page:
/// `hyperscope.report-lanes/1`.
///
/// # Errors
/// Those of `out`.
pub fn write_lanes(set: &LaneSet, origin_ns: u64, out: &mut dyn Write) -> io::Result<()> {
    let schema = "hyperscope.report-lanes/1";
    let document = LanesDocument { schema, timeline: Timeline::new(set) };
    write_json("hyperscope-lanes", &document, out)?;
    write_spans(set, origin_ns, out)
}

fn write_json(id: &str, document: &impl Serialize, out: &mut dyn Write) -> io::Result<()> {
    write!(out, "<script type=\"application/json\" id=\"{id}\">")?;
    serde_json::to_writer(io::BufWriter::new(Harmless(&mut *out)), document)?;
    writeln!(out, "</script>")
}

fn write_spans(set: &LaneSet, origin_ns: u64, out: &mut dyn Write) -> io::Result<()> {
    let mut lanes = set.lanes().iter().enumerate();
    lanes.try_for_each(|(at, lane)| lanes::write(at, lane, origin_ns, out))
}

/// Writes JSON without any character that has a meaning in HTML.
struct Harmless<'o>(&'o mut dyn Write);

impl Write for Harmless<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let is_harmful = |byte: &u8| matches!(byte, b'<' | b'>' | b'&');
        for piece in bytes.split_inclusive(is_harmful) {
            match piece.split_last() {
                Some((last, before)) if is_harmful(last) => {
                    self.0.write_all(before)?;
                    write!(self.0, "\\u{last:04x}")?;
                }
                _ => self.0.write_all(piece)?,
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    #[test]
    fn the_page_has_one_place_for_data() {
        assert_eq!(PAGE.matches(PLACE).count(), 1);
    }

    #[test]
    fn the_page_asks_for_nothing_from_elsewhere() {
        for word in ["http:", "https:", " src=", "<link", "@import", "url("] {
            let found = PAGE.find(word).map(|at| PAGE.get(at.saturating_sub(40)..at + 60));
            // The namespace of SVG is a name that nothing fetches.
            let harmless = found.flatten().is_some_and(|text| text.contains("www.w3.org/2000/svg"));
            assert!(found.is_none() || harmless, "{word}: {found:?}");
        }
        assert_eq!(PAGE.matches(ASKS_NOTHING).count(), 1);
    }

    #[test]
    fn names_of_threads_stay_data() {
        let name = serde_json::json!({"comm": "</script><script>alert(1)</script>&<!--"});
        let mut text = Vec::new();
        serde_json::to_writer(Harmless(&mut text), &name).unwrap();
        let text = String::from_utf8(text).unwrap();
        assert!(!text.contains(['<', '>', '&']));
        assert!(text.contains("\\u003c/script\\u003e"), "{text}");
        assert_eq!(serde_json::from_str::<Value>(&text).ok(), Some(name));
    }
}
