//! The guest's side: reads spans, and writes nothing. It tolerates any content of the memory.

use std::sync::Arc;

use sys::SharedMap;

use super::area::{Area, SpansError, head, names, ring, slot};
use super::span::Span;
use super::writer::{Coverage, RUNNING};
use crate::slots::complete;

/// A reader; there may be any number.
#[derive(Debug)]
pub struct SpanReader {
    map: Arc<SharedMap>,
    area: Area,
    epoch: u64,
    vcpus: Vec<Vcpu>,
}

/// Read state of a vCPU.
#[derive(Clone, Copy, Debug, Default)]
struct Vcpu {
    number: u32,
    /// Position of the next span.
    position: u64,
}

/// New spans of a vCPU.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct News {
    /// Spans in order. From [`Coverage::to_tsc`] on they may be incomplete.
    pub spans: Vec<Span>,
    /// The time that the host has covered.
    pub coverage: Coverage,
    /// Spans directly before the first one that were overwritten before they were read.
    pub missed: u64,
    /// Number of slots with invalid content.
    pub damage: u64,
}

impl SpanReader {
    /// Starts with the next announced spans, or with all existing ones if `from_oldest`.
    ///
    /// # Errors
    /// When the memory has no valid area.
    pub fn attach(map: Arc<SharedMap>, from_oldest: bool) -> Result<Self, SpansError> {
        let area = Area::load(&map)?;
        let epoch = map.load(area.head(head::EPOCH));
        let vcpu = |index| {
            let position = map.load(area.ring(index, ring::POSITION));
            let oldest = position.saturating_sub(area.slots());
            let number = map.load(area.ring(index, ring::VCPU)) as u32;
            Vcpu { number, position: if from_oldest { oldest } else { position } }
        };
        let vcpus = (0..area.vcpus).map(vcpu).collect();
        Ok(Self { map, area, epoch, vcpus })
    }

    /// Numbers of the vCPUs, in the order of the rings.
    pub fn vcpus(&self) -> impl Iterator<Item = u32> {
        self.vcpus.iter().map(|vcpu| vcpu.number)
    }

    /// Frequency of the guest's TSC; `None` if the host does not know it.
    #[must_use]
    pub fn ticks_per_second(&self) -> Option<u64> {
        let ticks = self.map.load(self.area.head(head::TICKS_PER_SECOND));
        (ticks > 0).then_some(ticks)
    }

    /// Max time for spans to arrive, in nanoseconds.
    #[must_use]
    pub fn interval_ns(&self) -> u64 {
        self.map.load(self.area.head(head::INTERVAL_NS))
    }

    /// Whether another writer has laid the area out since: a new reader is needed.
    #[must_use]
    pub fn is_replaced(&self) -> bool {
        self.map.load(self.area.head(head::EPOCH)) != self.epoch
            || Area::load(&self.map).as_ref() != Ok(&self.area)
    }

    /// The host's heartbeat count; `None` once it has ended in order.
    #[must_use]
    pub fn beats(&self) -> Option<u64> {
        let is_running = self.map.load(self.area.head(head::STATE)) == RUNNING;
        is_running.then(|| self.map.load(self.area.head(head::BEATS)))
    }

    /// Reads new spans of the vCPU at `index`. Reads each slot of its ring at most once.
    pub fn read(&mut self, index: usize) -> News {
        let mut news = News::default();
        let Some(vcpu) = self.vcpus.get_mut(index) else { return news };
        let load = |offset| self.map.load(self.area.ring(index, offset));
        // The writer stores spans before the position, and the position before these words.
        news.coverage.to_tsc = load(ring::KNOWN_TO);
        SharedMap::settle();
        news.coverage.from_tsc = load(ring::KNOWN_FROM);
        news.coverage.lost_events = load(ring::LOST_EVENTS);
        let position = load(ring::POSITION);
        if position < vcpu.position {
            // A writer never goes back.
            news.damage += 1;
            vcpu.position = position;
        }
        let oldest = position.saturating_sub(self.area.slots());
        if vcpu.position < oldest {
            news.missed = oldest - vcpu.position;
            vcpu.position = oldest;
        }
        while vcpu.position < position {
            match slot(&self.map, &self.area, index, vcpu.position) {
                SlotRead::Span(span) => news.spans.push(span),
                // Spans before it are too old as well.
                SlotRead::Overwritten => {
                    news.missed += 1 + news.spans.len() as u64;
                    news.spans.clear();
                }
                SlotRead::Damage => news.damage += 1,
            }
            vcpu.position += 1;
        }
        news
    }

    /// The exit names that the host has sent, by `isa` and code.
    #[must_use]
    pub fn names(&self) -> Vec<((u8, u32), String)> {
        let count = usize::try_from(self.map.load(self.area.head(head::NAMES)));
        let count = count.unwrap_or(usize::MAX).min(names::MOST);
        (0..count).map(|index| self.name(index)).collect()
    }

    fn name(&self, index: usize) -> ((u8, u32), String) {
        let at = self.area.name(index);
        let key = self.map.load(at);
        let words = (names::TEXT..names::BYTES).step_by(8).map(|word| self.map.load(at + word));
        let text: Vec<u8> = words.flat_map(u64::to_le_bytes).collect();
        // Names go to terminals and files: allows only characters of real names.
        let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"_-:. ".contains(byte);
        let text = text.iter().copied().take_while(is_plain).map(char::from).collect();
        (((key >> 32) as u8, key as u32), text)
    }
}

enum SlotRead {
    Span(Span),
    Overwritten,
    Damage,
}

fn slot(map: &SharedMap, area: &Area, index: usize, position: u64) -> SlotRead {
    let word = |offset| map.load(area.slot(index, position, offset));
    let wanted = complete(position);
    let sequence = word(slot::SEQUENCE);
    if sequence != wanted {
        return if sequence > wanted { SlotRead::Overwritten } else { SlotRead::Damage };
    }
    SharedMap::settle();
    let span = Span::of_words(word(slot::START), word(slot::TICKS), word(slot::WHAT));
    SharedMap::settle();
    match span {
        _ if word(slot::SEQUENCE) != wanted => SlotRead::Overwritten,
        Some(span) => SlotRead::Span(span),
        None => SlotRead::Damage,
    }
}
