//! A recording as other tools are given it: JSON is JSON, and a file made of its records has them
//! all.

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

/// Bytes of JSON that are parsed again.
const MAX_PARSED: usize = 1 << 20;

/// Exports a recording in every way.
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

/// Every record that can be read is put on a page of its own kind, and read again from there.
fn repack(recording: &Recording, contents: &Contents) {
    let filter = Filter { from_ns: Some(0), ..Filter::default() };
    let export = TraceDatExport { recording, filter: &filter, on_clock: None };
    let mut file = Cursor::new(Vec::new());
    // What no file can hold is refused: a CPU given twice, or a number that is none.
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
