//! Merges finished lines of all streams by time and writes them.

use std::collections::VecDeque;
use std::io::{self, IoSlice, Write};
use std::ops::{ControlFlow, Range};

use timeline::rounds::{Consume, Lanes, in_order};
use timeline::stamps::StreamStamps;

use super::line_batch::LineBatch;
use super::names::Names;
use super::neighbours::Neighbours;

/// Batches of one stream that have not been written yet.
#[derive(Debug, Default)]
struct Lane {
    batches: VecDeque<LineBatch>,
    /// Lines of the first batch that have been written.
    written: usize,
    /// Index of the recording.
    owner: usize,
    stamps: StreamStamps,
}

impl Lane {
    fn next_stamp(&self) -> Option<u64> {
        let line = self.batches.front()?.lines.get(self.written)?;
        Some(line.stamp_ns)
    }

    /// Whether all lines of the first batch have been written.
    fn is_written(&self) -> bool {
        self.batches.front().is_some_and(|batch| self.written >= batch.lines.len())
    }

    /// Drops batches whose lines have all been written.
    fn release(&mut self, spent: &mut Vec<LineBatch>) {
        while self.is_written() {
            spent.extend(self.batches.pop_front());
            self.written = 0;
        }
    }
}

/// Bytes to collect before a write.
const WRITE_BYTES: usize = 1 << 20;
/// Pieces to collect before a write: as many as one call to the kernel accepts.
const WRITE_PIECES: usize = 1024;

/// The next text to write: a part of a lane's first batch, or of text made for the output.
#[derive(Debug)]
struct Piece {
    lane: Option<usize>,
    text: Range<usize>,
}

/// Collects pieces, and writes many at once without a copy.
struct Output<'o> {
    out: &'o mut (dyn Write + Send),
    pieces: Vec<Piece>,
    bytes: usize,
    /// Text that is in no lane in its final form.
    made: Vec<u8>,
    result: io::Result<()>,
}

impl Output<'_> {
    /// Adds a part of the text of a lane's first batch.
    fn add(&mut self, lane: usize, text: Range<usize>) {
        self.bytes += text.len();
        match self.pieces.last_mut() {
            Some(last) if last.lane == Some(lane) && last.text.end == text.start => {
                last.text.end = text.end;
            }
            _ => self.pieces.push(Piece { lane: Some(lane), text }),
        }
    }

    /// Copies a text and adds it.
    fn add_made(&mut self, text: &[u8]) {
        let begin = self.made.len();
        self.made.extend_from_slice(text);
        self.bytes += text.len();
        match self.pieces.last_mut() {
            Some(last) if last.lane.is_none() => last.text.end = self.made.len(),
            _ => self.pieces.push(Piece { lane: None, text: begin..self.made.len() }),
        }
    }

    fn is_full(&self) -> bool {
        self.bytes >= WRITE_BYTES || self.pieces.len() >= WRITE_PIECES
    }

    /// Writes the collected pieces.
    fn flush(&mut self, lanes: &[Lane]) {
        let text_of = |piece: &Piece| match piece.lane {
            Some(lane) => lanes.get(lane)?.batches.front()?.text.get(piece.text.clone()),
            None => self.made.get(piece.text.clone()),
        };
        let texts = self.pieces.iter().filter_map(text_of).filter(|text| !text.is_empty());
        let mut texts: Vec<IoSlice<'_>> = texts.map(IoSlice::new).collect();
        if self.result.is_ok() {
            self.result = write_all(self.out, &mut texts);
        }
        self.pieces.clear();
        self.made.clear();
        self.bytes = 0;
    }
}

/// Writes all texts, none of which is empty.
fn write_all(out: &mut dyn Write, mut texts: &mut [IoSlice<'_>]) -> io::Result<()> {
    while !texts.is_empty() {
        match out.write_vectored(texts) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => IoSlice::advance_slices(&mut texts, written),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Writes lines in the order of their times.
pub(super) struct Merger<'o> {
    lanes: Vec<Lane>,
    /// By recording, names learned so far.
    names: Vec<Names>,
    output: Output<'o>,
    /// Selects requested lines and those near them; `None`: all lines.
    near: Option<Neighbours>,
    events: u64,
    damaged: u64,
}

impl<'o> Merger<'o> {
    /// Merges lanes; `owners` has the recording of each.
    pub(super) fn new(
        owners: &[usize],
        near: Option<Neighbours>,
        out: &'o mut (dyn Write + Send),
    ) -> Self {
        let recordings = owners.iter().max().map_or(0, |last| last + 1);
        Self {
            lanes: owners.iter().map(|&owner| Lane { owner, ..Lane::default() }).collect(),
            names: (0..recordings).map(|_| Names::default()).collect(),
            output: Output { out, pieces: Vec::new(), bytes: 0, made: Vec::new(), result: Ok(()) },
            near,
            events: 0,
            damaged: 0,
        }
    }

    /// Writes the rest; returns the number of printed events and of damaged places.
    pub(super) fn finish(mut self) -> io::Result<(u64, u64)> {
        self.output.flush(&self.lanes);
        self.output.result?;
        self.output.out.flush()?;
        let events = self.near.map_or(self.events, |near| near.printed());
        Ok((events, self.damaged))
    }

    /// Writes lines of a lane with times before `until_ns`.
    fn write(&mut self, at: usize, until_ns: u64) {
        let Some(lane) = self.lanes.get_mut(at) else { return };
        let Some(batch) = lane.batches.front_mut() else { return };
        let begin = lane.written;
        let lines = batch.lines.get(begin..).unwrap_or(&[]);
        // Stamps of a damaged page may decrease: taking at least one line guarantees progress.
        let count = lines.iter().take_while(|line| line.stamp_ns < until_ns).count().max(1);
        let start =
            begin.checked_sub(1).and_then(|at| batch.lines.get(at)).map_or(0, |line| line.end);
        let end = lines.get(count - 1).map_or(start, |line| line.end);
        lane.written = begin + count;
        if let Some(near) = &mut self.near {
            let names = self.names.get_mut(lane.owner);
            near_lines(batch, names, (begin, count, start), near, &mut self.output);
            return;
        }
        match (&mut batch.names, self.names.get_mut(lane.owner)) {
            (Some(block_names), Some(names)) => {
                let add = |text: &[u8]| self.output.add_made(text);
                block_names.fill(names, lane.written, (&batch.text, start..end), add);
            }
            _ => self.output.add(at, start..end),
        }
        if self.output.is_full() {
            self.output.flush(&self.lanes);
        }
    }
}

/// Passes lines of a batch one by one to the selection.
fn near_lines(
    batch: &mut LineBatch,
    mut names: Option<&mut Names>,
    (begin, count, mut start): (usize, usize, usize),
    near: &mut Neighbours,
    output: &mut Output<'_>,
) {
    let mut text = Vec::new();
    for at in begin..begin.saturating_add(count) {
        let Some(end) = batch.lines.get(at).map(|line| line.end) else { return };
        text.clear();
        match (&mut batch.names, &mut names) {
            (Some(block_names), Some(names)) => {
                block_names.fill(names, at + 1, (&batch.text, start..end), |part| {
                    text.extend_from_slice(part);
                });
            }
            _ => text.extend_from_slice(batch.text.get(start..end).unwrap_or(&[])),
        }
        // Names are learned with lines that have no text.
        if !text.is_empty() {
            let is_wanted = batch.wanted.binary_search(&at).is_ok();
            near.line(&text, is_wanted, &mut |text| output.add_made(text));
        }
        start = end;
    }
    if output.is_full() {
        output.flush(&[]);
    }
}

impl Consume<LineBatch> for Merger<'_> {
    fn take(&mut self, input: usize, batch: LineBatch) {
        self.events += batch.events;
        self.damaged += batch.damaged;
        if let Some(lane) = self.lanes.get_mut(input) {
            let step = lane.stamps.block(0, &batch.stamps).flatten();
            self.damaged += u64::from(step.is_some());
            lane.batches.push_back(batch);
        }
    }

    fn advance(&mut self, horizon_ns: u64, spent: &mut Vec<LineBatch>) -> ControlFlow<()> {
        in_order(self, horizon_ns, spent)
    }
}

impl Lanes<LineBatch> for Merger<'_> {
    fn count(&self) -> usize {
        self.lanes.len()
    }

    fn next_stamp_ns(&self, lane: usize) -> Option<u64> {
        self.lanes.get(lane)?.next_stamp()
    }

    fn release(&mut self, lane: usize, spent: &mut Vec<LineBatch>) {
        if self.lanes.get(lane).is_some_and(Lane::is_written) {
            // The collected pieces refer to the first batches.
            self.output.flush(&self.lanes);
        }
        if let Some(lane) = self.lanes.get_mut(lane) {
            lane.release(spent);
        }
    }

    fn give(&mut self, lane: usize, until_ns: u64) -> ControlFlow<()> {
        self.write(lane, until_ns);
        match self.output.result {
            Ok(()) => ControlFlow::Continue(()),
            Err(_) => ControlFlow::Break(()),
        }
    }
}
