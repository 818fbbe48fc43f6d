//! A page about a fleet: what changed, on which hosts, since when, and the command that opens a session's report.
//!
//! The page is built from `web/` and kept in `web/dist`, like that of `hyperscope report`; this module inserts the
//! data.

mod document;

use std::io::{self, Write};

use report::html;

pub(crate) use self::document::Document;

use crate::diff_report::FleetReport;
use crate::since_report::SinceReport;

/// The page without data, as `make web` built it.
const PAGE: &str = include_str!("../../../../web/dist/fleet.html");

/// The content of a page.
#[derive(Debug)]
pub struct FleetPage {
    /// Its heading.
    pub title: String,
    /// The comparison, made with [`crate::Question::per_host`].
    pub diff: FleetReport,
    /// The same sessions day by day.
    pub since: SinceReport,
}

impl FleetPage {
    /// Writes the page.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        html::write_page(PAGE, "hyperscope-fleet", &Document::new(self), out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_asks_for_nothing_from_elsewhere() {
        for word in ["http:", "https:", " src=", "<link", "@import", "url("] {
            let found = PAGE.find(word).map(|at| PAGE.get(at.saturating_sub(40)..at + 60));
            // The namespace of SVG is a name that nothing fetches.
            let harmless = found.flatten().is_some_and(|text| text.contains("www.w3.org/2000/svg"));
            assert!(found.is_none() || harmless, "{word}: {found:?}");
        }
        assert_eq!(PAGE.matches("default-src 'none'").count(), 1);
    }
}
