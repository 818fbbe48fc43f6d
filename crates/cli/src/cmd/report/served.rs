//! `hyperscope report --serve`: serves the page to a browser of this machine, and answers its requests: the events of
//! an interval, and its lanes in more detail than the page holds.

mod picked;

use std::fs::{self, File};
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::path::PathBuf;
use std::sync::Arc;

use analyses::lanes::LaneRoom;
use analyses::over_time::lanes_over_time;
use anyhow::{Context, bail};
use httpd::{Answer, Body, Bounds, Query, Server};
use parking_lot::Mutex;
use printable::messages;
use report::events::{Machine, Style, write_events};
use report::html::{PageReport, write_lanes};
use session::{Misuse, Session};
use sources::{Recording, TimeRange};
use timeline::event_filter::Filter;

use super::known::PageFacts;
use picked::Picked;

/// Default max events of a reply.
const MAX_EVENTS: usize = 2000;

/// Max spans of a reply, and the memory for them: beyond that, adjacent spans are merged as in a page.
const LANES: LaneRoom = LaneRoom { spans: 200_000, bytes: 4 << 20 };

/// Max bytes of pages that are read for the lanes of a reply: about a second's work.
const MAX_STORED_BYTES: u64 = 64 << 20;

/// Also reads time before an interval, to know the states at its begin: a part of its length, at least this.
const MARGIN_PART: u64 = 2;
const MIN_MARGIN_NS: u64 = 1_000_000;

/// Refuses recordings that can't be read twice.
///
/// # Errors
/// When there is such a recording.
pub(super) fn refuse_pipes(recordings: &[Recording]) -> anyhow::Result<()> {
    let is_kept = |recording: &Recording| {
        fs::metadata(recording.path()).is_ok_and(|metadata| metadata.is_file() || metadata.is_dir())
    };
    match recordings.iter().find(|recording| !is_kept(recording)) {
        None => Ok(()),
        Some(pipe) => bail!(Misuse(format!(
            "--serve reads recordings repeatedly: {} is not a file",
            pipe.path().display()
        ))),
    }
}

/// Serves until the process ends.
///
/// # Errors
/// When the page can't be stored, or the port is in use.
pub(super) fn serve(
    port: u16,
    page: PageReport,
    (session, files): (Session, Vec<PathBuf>),
    known: PageFacts,
) -> anyhow::Result<()> {
    let (file, len) = write_temporary(&page).context("cannot keep the page in a temporary file")?;
    let times = page.times_ns();
    // The file has the page, so its memory can be freed.
    drop(page);
    let server = Server::bind(port, Bounds::default())
        .with_context(|| format!("cannot listen on port {port} of 127.0.0.1"))?;
    writeln!(io::stdout(), "{}", server.address())?;
    io::stdout().flush()?;
    let _ = writeln!(
        messages(),
        "hyperscope: open this address in a browser on this machine; anyone who knows it can read the recordings until you stop this command"
    );
    let served = Served { session, files, known, times, one_at_a_time: Mutex::new(()) };
    let page = Arc::new(file);
    server.serve(&|query| match query.name.as_str() {
        "" => Answer {
            status: 200,
            content_type: "text/html; charset=utf-8",
            body: Body::File(Arc::clone(&page), len),
        },
        "events" => served.answer(query, Served::events),
        "lanes" => served.answer(query, Served::lanes),
        _ => Answer::sentence(404, "there is no such page"),
    });
    Ok(())
}

/// The page in an unnamed file.
fn write_temporary(page: &PageReport) -> io::Result<(File, u64)> {
    let mut file = tempfile::tempfile()?;
    let mut out = BufWriter::new(&mut file);
    page.write(&mut out)?;
    out.flush()?;
    drop(out);
    let len = file.seek(SeekFrom::End(0))?;
    Ok((file, len))
}

struct Served {
    /// The session of the page. Skipped blocks are no longer in memory, so files are opened again for each reply.
    session: Session,
    files: Vec<PathBuf>,
    known: PageFacts,
    /// The range of the page.
    times: TimeRange,
    /// Replies are made one at a time: each may use the whole memory limit.
    one_at_a_time: Mutex<()>,
}

impl Served {
    fn answer(
        &self,
        query: &Query,
        respond: fn(&Self, &Query, TimeRange) -> anyhow::Result<Answer>,
    ) -> Answer {
        let Some(range) = self.range(query) else {
            return Answer::sentence(
                400,
                "from and to must be nanoseconds from the beginning of the page",
            );
        };
        // A failed reply leaves no state behind.
        let _only_this = self.one_at_a_time.lock();
        respond(self, query, range).unwrap_or_else(|error| {
            let _ = writeln!(messages(), "hyperscope: no answer: {error:#}");
            Answer::sentence(500, "cannot read the recordings: see the output of hyperscope")
        })
    }

    /// The requested interval, limited to the page's range.
    fn range(&self, query: &Query) -> Option<TimeRange> {
        let at = |name| Some(self.times.from_ns.saturating_add(query.number(name)?));
        let (from_ns, to_ns) = (at("from")?, at("to")?.min(self.times.to_ns));
        (from_ns <= to_ns).then_some(TimeRange { from_ns, to_ns })
    }

    /// Events that contain all of some words, in order of time.
    fn events(&self, query: &Query, range: TimeRange) -> anyhow::Result<Answer> {
        let session = self.session.opened_again(&self.files, range)?;
        let machines = Machine::of_all(session.view());
        let limit = query.number("limit").and_then(|limit| usize::try_from(limit).ok());
        let limit = limit.unwrap_or(MAX_EVENTS).min(MAX_EVENTS);
        let words = query.get("words").unwrap_or_default();
        let mut picked = Picked::new(words, limit, self.times.from_ns);
        let (filter, style) = (Filter::default(), Style::JsonText);
        let written =
            write_events(session.recordings(), &machines, &filter, style, &mut picked, &|_| ());
        if let Err(error) = written
            && !picked.is_full()
        {
            return Err(error.into());
        }
        Ok(Answer::json(picked.json()))
    }

    /// The lanes of an interval.
    fn lanes(&self, _: &Query, range: TimeRange) -> anyhow::Result<Answer> {
        let margin_ns = ((range.to_ns - range.from_ns) / MARGIN_PART).max(MIN_MARGIN_NS);
        let wide = TimeRange {
            from_ns: range.from_ns.saturating_sub(margin_ns),
            to_ns: range.to_ns.saturating_add(margin_ns),
        };
        let session = self.session.opened_again(&self.files, wide)?;
        if session.view().stored_len() > MAX_STORED_BYTES {
            return Ok(Answer::sentence(413, "too much data for one answer: zoom in"));
        }
        let lanes = lanes_over_time(session.view(), &self.known.machines, LANES, &|_| ());
        let mut body = Vec::new();
        write_lanes(&lanes, self.times.from_ns, &mut body)?;
        // Plain text, so that a browser does not render it: only the page reads it.
        let content_type = "text/plain; charset=utf-8";
        Ok(Answer { status: 200, content_type, body: Body::Bytes(body) })
    }
}
