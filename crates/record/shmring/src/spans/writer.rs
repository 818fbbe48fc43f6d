//! The host's side: lays the area out, and writes spans. It reads two words that a guest can write, and trusts neither.

use std::io;
use std::sync::Arc;

use sys::SharedMap;

use super::area::{Area, MAGIC, SpansError, VERSION, head, names, ring, slot};
use super::span::Span;
use crate::layout::{self, Layout, header};
use crate::slots::{complete, filling};

/// Values of the state word.
pub(super) const RUNNING: u64 = 1;
pub(super) const ENDED: u64 = 2;

/// The time range in which a vCPU's spans are complete.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Coverage {
    /// The ring has all spans from this time on, on the guest's TSC.
    pub from_tsc: u64,
    /// The ring has all spans up to this time.
    pub to_tsc: u64,
    /// Number of events that the host has lost so far; the time of a loss is unknown.
    pub lost_events: u64,
}

/// The only writer of an area.
#[derive(Debug)]
pub struct SpanWriter {
    map: Arc<SharedMap>,
    area: Area,
    epoch: u64,
    beats: u64,
    /// The position of each vCPU's next span.
    positions: Vec<u64>,
    names: usize,
}

impl SpanWriter {
    /// Lays the area out for vCPUs with these numbers. `ticks_per_second` is the frequency of the guest's TSC, 0 if
    /// unknown; `interval_ns` is the max time for spans to arrive.
    ///
    /// # Errors
    /// When the memory is too small, or an agent's region reaches into the area.
    pub fn lay_out(
        map: Arc<SharedMap>,
        vcpus: &[u32],
        ticks_per_second: u64,
        interval_ns: u64,
    ) -> Result<Self, SpansError> {
        let area = Area::for_memory(map.len_bytes(), vcpus.len())?;
        if map.load(header::MAGIC) == layout::MAGIC
            && Layout::load(&map).is_ok_and(|layout| layout.region_bytes > area.at)
        {
            return Err(SpansError::InUse);
        }
        let epoch = map.load(area.head(head::EPOCH)).wrapping_add(1).max(1);
        map.store(area.head(head::MAGIC), 0);
        SharedMap::publish();
        map.store(area.head(head::EPOCH), epoch);
        let words = [
            (head::VERSION, VERSION),
            (head::AREA_BYTES, area.bytes as u64),
            (head::VCPUS, vcpus.len() as u64),
            (head::TICKS_PER_SECOND, ticks_per_second),
            (head::INTERVAL_NS, interval_ns),
            (head::STATE, RUNNING),
            (head::BEATS, 0),
            (head::NAMES, 0),
        ];
        words.iter().for_each(|(at, word)| map.store(area.head(*at), *word));
        for (index, vcpu) in vcpus.iter().enumerate() {
            for offset in (0..ring::SLOTS).step_by(8) {
                map.store(area.ring(index, offset), 0);
            }
            map.store(area.ring(index, ring::VCPU), u64::from(*vcpu));
            for position in 0..area.slots() {
                map.store(area.slot(index, position, slot::SEQUENCE), 0);
            }
        }
        SharedMap::publish();
        map.store(area.head(head::MAGIC), MAGIC);
        let positions = vec![0; vcpus.len()];
        Ok(Self { map, area, epoch, beats: 0, positions, names: 0 })
    }

    /// Adds a span of the vCPU at `index`, replacing the oldest one. Readers see it after the next
    /// [`SpanWriter::announce`].
    pub fn push(&mut self, index: usize, span: &Span) {
        let Some(position) = self.positions.get_mut(index) else { return };
        let word = |offset| self.area.slot(index, *position, offset);
        self.map.store(word(slot::SEQUENCE), filling(*position));
        SharedMap::publish();
        self.map.store(word(slot::START), span.start_tsc);
        self.map.store(word(slot::TICKS), span.ticks);
        self.map.store(word(slot::WHAT), span.word());
        SharedMap::publish();
        self.map.store(word(slot::SEQUENCE), complete(*position));
        *position += 1;
    }

    /// Announces the time up to which a vCPU's spans are complete.
    pub fn announce(&self, index: usize, coverage: Coverage) {
        let Some(position) = self.positions.get(index) else { return };
        let store = |offset, word| self.map.store(self.area.ring(index, offset), word);
        SharedMap::publish();
        store(ring::POSITION, *position);
        store(ring::LOST_EVENTS, coverage.lost_events);
        store(ring::KNOWN_FROM, coverage.from_tsc);
        SharedMap::publish();
        store(ring::KNOWN_TO, coverage.to_tsc);
    }

    /// Adds the name of an exit, if there is room.
    pub fn name(&mut self, isa: u8, code: u32, name: &str) {
        if self.names >= names::MOST {
            return;
        }
        let at = self.area.name(self.names);
        let mut text = [0; names::TEXT_BYTES];
        text.iter_mut().zip(name.bytes()).for_each(|(to, from)| *to = from);
        self.map.store(at, u64::from(code) | u64::from(isa) << 32);
        for (index, word) in text.chunks_exact(8).enumerate() {
            let word = word.first_chunk().map_or(0, |word| u64::from_le_bytes(*word));
            self.map.store(at + names::TEXT + index * 8, word);
        }
        self.names += 1;
        SharedMap::publish();
        self.map.store(self.area.head(head::NAMES), self.names as u64);
    }

    /// Increments the heartbeat. False if another writer has laid the area out meanwhile, or the guest has overwritten
    /// it: this one must stop.
    #[must_use]
    pub fn beat(&mut self) -> bool {
        self.beats += 1;
        self.map.store(self.area.head(head::BEATS), self.beats);
        self.map.load(self.area.head(head::EPOCH)) == self.epoch
    }

    /// Whether the memory still reaches the guest.
    ///
    /// # Errors
    /// When its file was truncated while it was mapped.
    pub fn check(&self) -> io::Result<()> {
        self.map.check()
    }

    /// Announces the end.
    pub fn end(self) {
        if self.map.load(self.area.head(head::EPOCH)) == self.epoch {
            SharedMap::publish();
            self.map.store(self.area.head(head::STATE), ENDED);
        }
    }
}
