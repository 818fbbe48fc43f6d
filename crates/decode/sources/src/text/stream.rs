//! The lines of a CPU, which are converted to records on demand.

use std::sync::Arc;

use ftrace::ringbuf::Missed;

use super::graph::GraphLine;
use super::line::{EventLine, Line, Read};
use super::{LineAt, Text};
use raw_bytes::counted;

use crate::Damage;
use crate::records::{RecordList, RecordSource};

/// Lines per block.
const BLOCK_LINES: usize = 2048;
/// Approximate bytes of a line and its record.
const LINE_BYTES: u64 = 128;
/// Flag of a loss in [`CpuLines::places`].
const IS_LOSS: u64 = 1 << 63;

/// File offsets of the lines of a CPU.
#[derive(Debug, Default)]
pub(super) struct CpuLines {
    /// Offsets of events in the file; a loss is [`IS_LOSS`] with its index in `losses`.
    places: Vec<u64>,
    losses: Vec<Loss>,
    /// Offsets of lines with returns that do not name their function, with that function.
    returned: Vec<(u64, u32)>,
}

#[derive(Clone, Copy, Debug)]
struct Loss {
    offset: u64,
    count: Option<u64>,
}

impl CpuLines {
    pub(super) fn event(&mut self, offset: usize) {
        self.places.push(offset as u64);
    }

    /// The line of an event is the return of this function.
    pub(super) fn returned(&mut self, offset: usize, function: u32) {
        self.returned.push((offset as u64, function));
    }

    /// Events were lost before the first one.
    pub(super) fn begins_after(&mut self, offset: u64, count: u64) {
        self.places.insert(0, IS_LOSS | self.losses.len() as u64);
        self.losses.push(Loss { offset, count: Some(count) });
    }

    /// Adds a loss, or extends an adjacent one.
    pub(super) fn lost(&mut self, offset: usize, count: Option<u64>) {
        let last = self.places.last().filter(|place| **place & IS_LOSS != 0);
        if let (Some(_), Some(loss)) = (last, self.losses.last_mut()) {
            loss.count =
                loss.count.zip(count).map(|(earlier, other)| earlier.saturating_add(other));
            return;
        }
        self.places.push(IS_LOSS | self.losses.len() as u64);
        self.losses.push(Loss { offset: offset as u64, count });
    }
}

/// A CPU of a text.
#[derive(Debug)]
pub(super) struct TextStream {
    cpu: u32,
    text: Arc<Text>,
    lines: CpuLines,
}

impl TextStream {
    pub(super) fn new(cpu: u32, text: Arc<Text>, lines: CpuLines) -> Self {
        Self { cpu, text, lines }
    }

    fn block(&self, block: usize) -> &[u64] {
        let from = block.saturating_mul(BLOCK_LINES).min(self.lines.places.len());
        let to = from.saturating_add(BLOCK_LINES).min(self.lines.places.len());
        self.lines.places.get(from..to).unwrap_or(&[])
    }

    /// Time of the event at a place; `None` if it is not an event.
    fn stamp(&self, place: u64) -> Option<u64> {
        let line = LineAt::at(&self.text.file, usize::try_from(place).ok()?)?;
        match Read::new(&line.text()).line {
            Line::Event(event) => Some(event.time.stamp),
            _ => None,
        }
    }

    fn loss(&self, place: u64) -> Option<Loss> {
        let at = usize::try_from(place & !IS_LOSS).ok().filter(|_| place & IS_LOSS != 0)?;
        self.lines.losses.get(at).copied()
    }

    fn event(&self, place: u64, block: &mut Block<'_>) -> Option<()> {
        let line = LineAt::at(&self.text.file, usize::try_from(place).ok()?)?;
        let text = line.text();
        let Line::Event(event) = Read::new(&text).line else { return None };
        block.begin(event.time.stamp);
        match GraphLine::from_line(&event) {
            Some(line) => self.call(place, &event, &line, block),
            None => self.write(&event, |write| block.list.push(event.time.stamp, place, write)),
        }
    }

    /// Passes `put` a function that appends the record of an event.
    fn write(&self, event: &EventLine<'_>, put: impl FnOnce(&dyn Fn(&mut Vec<u8>))) -> Option<()> {
        let Text { events, reasons, functions, .. } = &*self.text;
        let known = events.get(event)?;
        put(&|out| known.write(event, (reasons, functions), out));
        Some(())
    }

    /// The events of a line with a call. A leaf function returns before the next event.
    fn call(
        &self,
        place: u64,
        event: &EventLine<'_>,
        line: &GraphLine<'_>,
        block: &mut Block<'_>,
    ) -> Option<()> {
        let of_line = |(offset, _): &(u64, u32)| *offset;
        let returned = self.lines.returned.binary_search_by_key(&place, of_line).ok();
        let returned = returned.and_then(|at| self.lines.returned.get(at));
        let name = returned.and_then(|(_, function)| self.text.functions.name(*function));
        for call_event in line.events(event, name) {
            let mut record = TextRecord { stamp: call_event.stamp, place, bytes: Vec::new() };
            self.write(&call_event.line(event), |write| write(&mut record.bytes))?;
            if call_event.stamp > event.time.stamp {
                block.later = Some(record);
            } else {
                record.put(block.list);
            }
        }
        Some(())
    }
}

/// A record made from a line.
struct TextRecord {
    stamp: u64,
    place: u64,
    bytes: Vec<u8>,
}

impl TextRecord {
    fn put(&self, list: &mut RecordList) {
        list.push(self.stamp, self.place, |out| out.extend_from_slice(&self.bytes));
    }
}

/// A block during reading.
struct Block<'l> {
    list: &'l mut RecordList,
    /// Events were lost before the next one.
    lost: Option<Loss>,
    /// A return that precedes the next event: its time is the call's time plus its duration, both
    /// rounded.
    later: Option<TextRecord>,
}

impl Block<'_> {
    /// Called before each event.
    fn begin(&mut self, stamp: u64) {
        self.put_later(Some(stamp));
        if let Some(loss) = self.lost.take() {
            self.list.missed(missed(loss), stamp, loss.offset);
        }
    }

    fn put_later(&mut self, next: Option<u64>) {
        if let Some(mut record) = self.later.take() {
            let call = self.list.last_stamp();
            record.stamp = record.stamp.min(next.unwrap_or(u64::MAX)).max(call);
            record.put(self.list);
        }
    }
}

fn missed(loss: Loss) -> Missed {
    loss.count.map_or(Missed::Unknown, Missed::Events)
}

impl RecordSource for TextStream {
    fn block_count(&self) -> usize {
        self.lines.places.len().div_ceil(BLOCK_LINES)
    }

    fn stored_len(&self, block: usize) -> u64 {
        self.block(block).len() as u64 * LINE_BYTES
    }

    fn unpacked_len(&self, block: usize) -> u64 {
        self.block(block).len() as u64 * LINE_BYTES
    }

    fn read(&self, block: usize, list: &mut RecordList) -> Result<(), Damage> {
        let places = self.block(block);
        let mut unreadable = 0;
        let mut reading = Block { list, lost: None, later: None };
        for &place in places {
            match self.loss(place) {
                Some(loss) => {
                    reading.put_later(None);
                    reading.lost = Some(loss);
                }
                None if self.event(place, &mut reading).is_none() => unreadable += 1,
                None => {}
            }
        }
        let next = block.saturating_add(1).saturating_mul(BLOCK_LINES);
        let next = self.lines.places.get(next).and_then(|&place| self.stamp(place));
        reading.put_later(next);
        if let Some(loss) = reading.lost {
            // No event follows in this block: place the loss after the previous event, which is
            // followed by at most one loss.
            let first = block.saturating_mul(BLOCK_LINES);
            let all = self.lines.places.get(..first + places.len()).unwrap_or(&[]);
            let before = all.iter().rev().find_map(|&place| self.stamp(place));
            let stamp = before.unwrap_or(0).max(list.last_stamp());
            list.missed(missed(loss), stamp, loss.offset);
        }
        if unreadable > 0 {
            // The file could be read on opening, so it has changed since.
            let what = counted(unreadable, "line", "lines") + " changed while the file was read";
            return Err(Damage::on_cpu(self.cpu, 0, what));
        }
        Ok(())
    }
}
