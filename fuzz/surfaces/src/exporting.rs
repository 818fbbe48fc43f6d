//! Exports of a recording: JSON is valid, and a file written from the records has all of them.

use std::io::Cursor;
use std::path::Path;

use analyses::contents::Contents;
use analyses::view::View;
use export::{
    ChromeWriter, FirefoxWriter, PerfettoWriter, Question, TimelineWriter, TraceDatExport, Window,
    write_timeline,
};
use sources::Recording;
use timeline::event_filter::Filter;

/// Maximum JSON bytes to parse again.
const MAX_PARSED: usize = 1 << 20;

/// Exports a recording in every format.
pub(crate) fn check(recording: &Recording, contents: &Contents) {
    repack(recording, contents);
    let events = ["*".to_owned()];
    let question = Question {
        view: View::on_own_clocks(std::slice::from_ref(recording)),
        window: Window::default(),
        events: &events,
        waits: &[],
    };
    let mut out = Vec::new();
    json(&question, &mut ChromeWriter::new(&mut out));
    parse(&out);
    out.clear();
    json(&question, &mut FirefoxWriter::new(&mut out));
    parse(&out);
    out.clear();
    json(&question, &mut PerfettoWriter::new(&mut out));
    assert!(!out.is_empty(), "a trace without a head");
}

fn json(question: &Question<'_>, writer: &mut impl TimelineWriter) {
    if let Err(error) = write_timeline(question, writer, &|_| ()) {
        panic!("memory can't be written: {error}");
    }
}

fn parse(text: &[u8]) {
    if text.len() <= MAX_PARSED {
        let parsed: Result<serde_json::Value, _> = serde_json::from_slice(text);
        assert!(parsed.is_ok(), "{parsed:?}");
    }
}

/// Writes every readable record to a page, and reads it back.
fn repack(recording: &Recording, contents: &Contents) {
    let filter = Filter { from_ns: Some(0), ..Filter::default() };
    let export = TraceDatExport { recording, filter: &filter, on_clock: None };
    let mut file = Cursor::new(Vec::new());
    // The writer refuses what no file can hold: a duplicate CPU, or an invalid number.
    let Ok(written) = export.write(&mut file, &|_| ()) else { return };
    assert_eq!(written.events, contents.total(), "every event");
    let again = match sources::open_bytes(Path::new("again"), file.into_inner()) {
        Ok(again) => again,
        Err(error) => panic!("a file of one's own is refused: {error}"),
    };
    let found = analyses::contents::contents(&again, &|_| ());
    assert_eq!(found.total(), contents.total(), "events of the file");
    assert_eq!(found.events, contents.events, "events by name");
}
