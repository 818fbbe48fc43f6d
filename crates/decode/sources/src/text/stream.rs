//! The lines of one CPU, which become records when they are asked for.

use std::sync::Arc;

use ftrace::ringbuf::Missed;

use super::line::{Line, Read};
use super::{LineAt, Text};
use raw_bytes::counted;

use crate::Damage;
use crate::records::{RecordList, RecordSource};

/// Lines of a block.
const BLOCK_LINES: usize = 2048;
/// Bytes that a line and its record take, about.
const LINE_BYTES: u64 = 128;
/// Set in the place of a loss.
const IS_LOSS: u64 = 1 << 63;

/// Where the lines of one CPU stand in the file.
#[derive(Debug, Default)]
pub(super) struct CpuLines {
    /// Offsets of events in the file; a loss is [`IS_LOSS`] and its index in `losses`.
    places: Vec<u64>,
    losses: Vec<Loss>,
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

    /// Events were lost before the first one.
    pub(super) fn begins_after(&mut self, offset: u64, count: u64) {
        self.places.insert(0, IS_LOSS | self.losses.len() as u64);
        self.losses.push(Loss { offset, count: Some(count) });
    }

    /// Losses one after another are one.
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

/// One CPU of a text.
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

    /// Time of the event at a place; `None`: it is no event.
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

    fn event(&self, place: u64, list: &mut RecordList, lost: &mut Option<Loss>) -> Option<()> {
        let line = LineAt::at(&self.text.file, usize::try_from(place).ok()?)?;
        let text = line.text();
        let Line::Event(event) = Read::new(&text).line else { return None };
        let known = self.text.events.get(&event)?;
        if let Some(loss) = lost.take() {
            list.missed(missed(loss), event.time.stamp, loss.offset);
        }
        list.push(event.time.stamp, place, |out| {
            known.write(&event, &self.text.reasons, out);
        });
        Some(())
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
        let (mut lost, mut unreadable) = (None, 0);
        for &place in places {
            match self.loss(place) {
                Some(loss) => lost = Some(loss),
                None if self.event(place, list, &mut lost).is_none() => unreadable += 1,
                None => {}
            }
        }
        if let Some(loss) = lost {
            // Nothing follows in this block: it comes after the event before, of which there is at most
            // one loss behind.
            let first = block.saturating_mul(BLOCK_LINES);
            let all = self.lines.places.get(..first + places.len()).unwrap_or(&[]);
            let before = all.iter().rev().find_map(|&place| self.stamp(place));
            list.missed(missed(loss), before.unwrap_or(0), loss.offset);
        }
        if unreadable > 0 {
            // The file was read when it was opened: it has changed since.
            let what = counted(unreadable, "line", "lines") + " changed while the file was read";
            return Err(Damage::on_cpu(self.cpu, 0, what));
        }
        Ok(())
    }
}
