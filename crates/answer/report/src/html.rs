//! The report as one page: tables, figures and timelines in a file that opens in a browser and asks
//! no network for anything.
//!
//! The page itself is built from `web/` and kept in `web/dist`; here its data is put in the place
//! that it has for it. `docs/formats/report.md` says what that data is, byte by byte. Nothing from
//! a recording becomes part of the page's own text: strings are in JSON in which no `<` occurs, and
//! all else is base64.

mod arrows;
mod columns;
mod document;
mod each_exit;
mod findings;
mod gzip;
mod heat;
mod lanes;
mod profile;

use std::io::{self, Write};

use analyses::{Arrows, ExitList, LaneSet, Latencies};

use crate::{
    AlignReport, BootReport, CallsReport, CpuReport, DiffReport, ExitsReport, NestedReport,
    PathReport,
};

pub use findings::{Finding, Link, Piece, Weight};
pub use profile::PageProfile;

/// The page without data, as `make web` built it.
const PAGE: &str = include_str!("../../../../web/dist/report.html");

/// Where the data goes.
const PLACE: &str = "<!--hyperscope:data-->";

/// All that a page shows.
#[derive(Debug)]
pub struct PageReport {
    /// Its heading.
    pub title: String,
    /// What is said about all exits.
    pub exits: ExitsReport,
    /// What is said about nested guests, if there are any.
    pub nested: Option<NestedReport>,
    /// How the guests' clocks were aligned, if guests were recorded.
    pub align: Option<AlignReport>,
    /// How long exits took, when.
    pub latencies: Latencies,
    /// Every exit by itself, by recording, where there are not too many.
    pub each_exit: Vec<ExitList>,
    /// What happened when.
    pub lanes: LaneSet,
    /// Who made whom go on.
    pub arrows: Arrows,
    /// Who used the CPUs.
    pub cpu: CpuReport,
    /// Which code vCPUs ran, if there are any.
    pub profile: Option<PageProfile>,
    /// Which functions ran, if their calls were recorded.
    pub calls: Option<CallsReport>,
    /// Which ways requests took.
    pub path: Option<PathReport>,
    /// How guests boot and go down, if any does.
    pub boot: Option<BootReport>,
    /// A comparison with another run.
    pub diff: Option<DiffReport>,
}

impl PageReport {
    /// Writes the page.
    ///
    /// # Errors
    /// What `out` gives.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let Some((head, tail)) = PAGE.split_once(PLACE) else {
            return Err(io::Error::other("the page has no place for data"));
        };
        out.write_all(head.as_bytes())?;
        let origin_ns = self.origin_ns();
        let document = document::document(self, origin_ns);
        write!(out, "<script type=\"application/json\" id=\"hyperscope-report\">")?;
        serde_json::to_writer(io::BufWriter::new(Harmless(&mut *out)), &document)?;
        drop(document);
        writeln!(out, "</script>")?;
        heat::write(&self.latencies, out)?;
        for list in &self.each_exit {
            each_exit::write(list, out)?;
        }
        if let Some(profile) = &self.profile {
            profile.write(out)?;
        }
        for (at, lane) in self.lanes.lanes().iter().enumerate() {
            lanes::write(at, lane, origin_ns, out)?;
        }
        arrows::write(&self.arrows, origin_ns, out)?;
        out.write_all(tail.as_bytes())
    }

    /// The moment that the page's times are relative to.
    fn origin_ns(&self) -> u64 {
        self.lanes.range_ns().map_or(0, |(first_ns, _)| first_ns)
    }
}

/// Writes JSON in which no character means anything to a reader of HTML.
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
            // The namespace of SVG is a name, nothing that is fetched.
            let harmless = found.flatten().is_some_and(|text| text.contains("www.w3.org/2000/svg"));
            assert!(found.is_none() || harmless, "{word}: {found:?}");
        }
        assert!(PAGE.contains("default-src 'none'"));
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
