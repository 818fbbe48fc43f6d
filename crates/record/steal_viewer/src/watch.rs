//! Polls the spans, and shows each interval.

use std::collections::BTreeMap;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use shmring::spans::SpanReader;
use shmring::{Access, PCI_DEVICES, SharedMap, shared_memory_devices};

use crate::error::{Result, StealError};
use crate::follow::Follower;
use crate::own_steal::stolen_ns;
use crate::rate::Rate;
use crate::recording::Recording;
use crate::table::{Names, TableContext};
use crate::{jsonl, table};

/// The output format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Text tables; on a terminal, a table that is redrawn.
    Table,
    /// One JSON object per line.
    Jsonl,
}

/// What to show, and how.
#[derive(Clone, Debug)]
pub struct Options {
    /// The PCI address of the shared memory, or a file; `None`: the first device.
    pub at: Option<String>,
    /// Interval, at least ten milliseconds.
    pub interval: Duration,
    /// Max time to run.
    pub time: Option<Duration>,
    /// The output format.
    pub format: Format,
    /// A trace.dat to write as well.
    pub record: Option<PathBuf>,
}

/// Poll interval, independent of the output interval: a ring must not overflow between two polls.
const LOOK: Duration = Duration::from_millis(100);
/// Min and max interval.
const SHORTEST: Duration = Duration::from_millis(10);
const LONGEST: Duration = Duration::from_secs(24 * 3600);
/// A host without a heartbeat for this many of its intervals, and a second, has stopped.
const SILENT_INTERVALS: u32 = 10;

/// Shows the published spans until the time is over, or `leave` returns true: it gets the time to wait, and returns
/// whether to end.
///
/// # Errors
/// When the host publishes nothing, or the output can't be written.
pub fn watch(
    options: &Options,
    out: &mut impl Write,
    leave: &mut dyn FnMut(Duration) -> bool,
) -> Result<()> {
    let map = open(options.at.as_deref())?;
    let reader = SpanReader::attach(Arc::clone(&map), false)?;
    let rate = Rate::new(reader.ticks_per_second()).ok_or(StealError::NoRate)?;
    let recording = options.record.as_deref().map(|path| Recording::begin(path, &reader, rate));
    let follower = Follower::new(&reader);
    let mut watched = Watched {
        map,
        reader,
        rate,
        follower,
        recording: recording.transpose()?,
        names: Names::new(),
        own_ns: stolen_ns(),
        alive: (0, Instant::now()),
        warning: None,
    };
    let ended = watched.run(options, out, leave);
    let recorded = watched.recording.take().map(|recording| recording.end(&watched.names));
    ended.and(recorded.unwrap_or(Ok(())))
}

fn open(at: Option<&str>) -> Result<Arc<SharedMap>> {
    let path = match at {
        Some(path) if path.starts_with('/') => PathBuf::from(path),
        at => device(at)?,
    };
    let map = SharedMap::open(&path, Access::Read).map_err(StealError::Memory)?;
    Ok(Arc::new(map))
}

fn device(at: Option<&str>) -> Result<PathBuf> {
    let devices = shared_memory_devices(Path::new(PCI_DEVICES)).unwrap_or_default();
    let matches_address =
        |address: &str| at.is_none_or(|at| address.trim_start_matches("0000:") == at);
    let device = devices
        .into_iter()
        .find(|device| matches_address(&device.address))
        .ok_or(StealError::NoMemory)?;
    device.enable().map_err(StealError::Memory)?;
    Ok(device.memory_combining.unwrap_or(device.memory))
}

struct Watched {
    map: Arc<SharedMap>,
    reader: SpanReader,
    rate: Rate,
    follower: Follower,
    recording: Option<Recording>,
    names: Names,
    own_ns: BTreeMap<u32, u64>,
    /// The host's last heartbeat, and when it was seen.
    alive: (u64, Instant),
    warning: Option<&'static str>,
}

impl Watched {
    fn run(
        &mut self,
        options: &Options,
        out: &mut impl Write,
        leave: &mut dyn FnMut(Duration) -> bool,
    ) -> Result<()> {
        let interval = options.interval.clamp(SHORTEST, LONGEST);
        let end = options.time.and_then(|time| Instant::now().checked_add(time));
        let mut next = Instant::now() + interval;
        let is_drawn = options.format == Format::Table && std::io::stdout().is_terminal();
        loop {
            let now = Instant::now();
            let until = end.map_or(next, |end| end.min(next));
            let is_over = leave(LOOK.min(until.saturating_duration_since(now)));
            self.look()?;
            let now = Instant::now();
            let is_late = end.is_some_and(|end| now >= end);
            if now >= next || is_late || is_over {
                self.show(options.format, is_drawn, out).map_err(StealError::Output)?;
                next = now.max(next + interval);
            }
            if is_over || is_late {
                return Ok(());
            }
        }
    }

    fn look(&mut self) -> Result<()> {
        let looked = self.look_at_memory();
        // Truncated memory reads as zeros, which looks like a host that has ended.
        self.map.check().map_err(StealError::Memory)?;
        looked
    }

    fn look_at_memory(&mut self) -> Result<()> {
        if self.reader.is_replaced() {
            self.warning = Some("the host's publisher was restarted");
            match SpanReader::attach(Arc::clone(&self.map), false) {
                Ok(reader) => {
                    (self.follower, self.reader) = (Follower::new(&reader), reader);
                    self.alive = (0, Instant::now());
                }
                // A new host may just be laying the area out.
                Err(_) => return Ok(()),
            }
        }
        let (recording, mut written) = (&mut self.recording, Ok(()));
        self.follower.look(&mut self.reader, &mut |index, span| {
            if let (Some(recording), Ok(())) = (recording.as_mut(), &written) {
                written = recording.span(index, span);
            }
        });
        if let Some(recording) = &mut self.recording {
            recording.known(self.follower.known())?;
        }
        written?;
        self.look_for_life();
        Ok(())
    }

    fn look_for_life(&mut self) {
        let host_ms = u32::try_from(self.reader.interval_ns() / 1_000_000).unwrap_or(u32::MAX);
        let patience = Duration::from_millis(host_ms.into()) * SILENT_INTERVALS;
        match self.reader.beats() {
            None => self.warning = Some("the host's publisher has ended: no more data will arrive"),
            Some(beats) if beats != self.alive.0 => self.alive = (beats, Instant::now()),
            Some(_) if self.alive.1.elapsed() > patience + Duration::from_secs(1) => {
                self.warning = Some("the host's publisher does not respond");
            }
            Some(_) => {}
        }
    }

    fn show(
        &mut self,
        format: Format,
        is_drawn: bool,
        out: &mut impl Write,
    ) -> std::io::Result<()> {
        let interval = self.follower.interval();
        let now_ns = stolen_ns();
        let since =
            |(cpu, now): (&u32, &u64)| Some((*cpu, now.saturating_sub(*self.own_ns.get(cpu)?)));
        let own_steal_ns = now_ns.iter().filter_map(since).collect();
        self.own_ns = now_ns;
        self.names = self.reader.names().into_iter().collect();
        let warning = self.warning.take();
        let (rate, names) = (self.rate, &self.names);
        let context = TableContext { rate, names, own_steal_ns: &own_steal_ns, warning };
        match format {
            Format::Jsonl => writeln!(out, "{}", jsonl::line(&interval, &context))?,
            Format::Table => {
                let lines = table::lines(&interval, &context);
                if is_drawn { draw(&lines, out)? } else { writeln!(out, "{}\n", lines.join("\n"))? }
            }
        }
        out.flush()
    }
}

/// Draws lines over the previous ones, as far as the terminal has room.
fn draw(lines: &[String], out: &mut impl Write) -> std::io::Result<()> {
    let size = rustix::termios::tcgetwinsize(std::io::stdout());
    let (columns, rows) = size.map_or((80, 24), |size| (size.ws_col, size.ws_row));
    let lines = lines.iter().flat_map(|line| line.split('\n'));
    // From the top left corner; clears each line after its end, and the screen below the last one.
    let mut text = String::from("\u{1b}[H");
    for line in lines.take(usize::from(rows).saturating_sub(1).max(1)) {
        text.extend(line.chars().take(usize::from(columns).max(1)));
        text.push_str("\u{1b}[K\r\n");
    }
    text.push_str("\u{1b}[J");
    out.write_all(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use std::error::Error;
    use std::fs::File;

    use shmring::spans::SpanWriter;

    use super::*;

    #[test]
    fn memory_that_is_cut_is_an_error_that_says_so() {
        let folder = tempfile::tempdir().unwrap();
        let (path, recording) = (folder.path().join("memory"), folder.path().join("steal.dat"));
        for to_bytes in [0, 4096] {
            let file = File::create(&path).unwrap();
            file.set_len(1 << 20).unwrap();
            let map = Arc::new(SharedMap::open(&path, Access::ReadWrite).unwrap());
            let _writer = SpanWriter::lay_out(map, &[0, 1], 1_000_000_000, 0).unwrap();
            let options = Options {
                at: Some(path.to_str().unwrap().to_owned()),
                interval: Duration::from_millis(10),
                time: Some(Duration::from_secs(60)),
                format: Format::Jsonl,
                record: Some(recording.clone()),
            };
            let (mut out, mut waits) = (Vec::new(), 0);
            let mut wait = |_: Duration| {
                waits += 1;
                if waits == 3 {
                    file.set_len(to_bytes).unwrap();
                }
                false
            };
            let error = watch(&options, &mut out, &mut wait).unwrap_err();
            let cause = error.source().map(ToString::to_string).unwrap_or_default();
            assert!(
                cause.contains("was truncated while it was mapped"),
                "{to_bytes}: {error}: {cause}"
            );
            assert_eq!(waits, 3, "{to_bytes}: at once");
            assert!(std::fs::metadata(&recording).unwrap().len() > 0);
        }
    }
}
