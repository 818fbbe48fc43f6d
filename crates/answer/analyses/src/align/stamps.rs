//! Event times of a guest by CPU, without those that are no exact clock readings.

use std::collections::{BTreeMap, HashMap};
use std::ops::ControlFlow;

use sources::{Block, Damage, Recording};
use timeline::rounds::{self, Batch, Consume, Decode, Input};

/// Max stored events per CPU; of more events, an evenly spread subset is stored.
const MAX_STAMPS: usize = 1 << 22;

/// Distinct event times of one CPU, ascending.
#[derive(Clone, Debug, Default)]
pub(super) struct CpuStamps {
    pub(super) cpu: u32,
    /// Raw timestamps.
    pub(super) raw: Vec<u64>,
    /// Times on the guest's own clock, in its unit.
    pub(super) own_ns: Vec<i64>,
    /// One in this many events is stored.
    pub(super) one_in: u64,
    /// Timestamp of the last event, and the number of events that share it.
    last: Option<(u64, u64)>,
    skipped: u64,
}

/// Times of all events of a guest.
#[derive(Clone, Debug, Default)]
pub(super) struct GuestStamps {
    cpus: Vec<CpuStamps>,
    /// Indexes in `cpus` by CPU number.
    places: HashMap<u32, usize>,
}

impl GuestStamps {
    /// Reads the largest buffer that uses the recording's clock.
    pub(super) fn read(recording: &Recording, progress: &(dyn Fn(u64) + Sync)) -> Self {
        let inputs = Input::on_clock_of(recording);
        let mut pages: BTreeMap<usize, u64> = BTreeMap::new();
        for input in &inputs {
            *pages.entry(input.stream.buffer()).or_default() += input.stream.stored_len();
        }
        let largest = pages.iter().max_by_key(|(_, bytes)| **bytes).map(|(buffer, _)| *buffer);
        let inputs: Vec<Input<'_>> =
            inputs.iter().copied().filter(|input| Some(input.stream.buffer()) == largest).collect();
        let empty =
            |input: &Input<'_>| CpuStamps { cpu: input.stream.cpu(), one_in: 1, ..<_>::default() };
        let mut gather = StampConsumer { cpus: inputs.iter().map(empty).collect() };
        rounds::run(&inputs, &Stamps, &mut gather, progress);
        for (stamps, input) in gather.cpus.iter_mut().zip(&inputs) {
            stamps.finish();
            let own_clock = recording.correction(input.stream).on_own_clock();
            let on_own =
                |&raw: &u64| i64::try_from(own_clock.ns(raw, stamps.cpu)).unwrap_or(i64::MAX);
            stamps.own_ns = stamps.raw.iter().map(on_own).collect();
        }
        gather.cpus.retain(|cpu| cpu.own_ns.is_sorted() && !cpu.raw.is_empty());
        let places = gather.cpus.iter().enumerate().rev().map(|(at, cpu)| (cpu.cpu, at)).collect();
        Self { cpus: gather.cpus, places }
    }

    pub(super) fn cpus(&self) -> impl Iterator<Item = &CpuStamps> {
        self.cpus.iter()
    }

    pub(super) fn cpu_stamps(&self, cpu: u32) -> Option<&CpuStamps> {
        self.cpus.get(*self.places.get(&cpu)?)
    }
}

impl CpuStamps {
    /// Adds the timestamp of the next event.
    ///
    /// Timestamps that several events share are dropped: the kernel gives an event that interrupts the recording
    /// of another event the same timestamp, and its `local` and `global` clocks stand still instead of going
    /// backwards. These events happened later, at an unknown time.
    fn add(&mut self, stamp: u64) {
        match &mut self.last {
            Some((last, times)) if *last == stamp => *times += 1,
            // A decreasing timestamp is damage.
            Some((last, _)) if *last > stamp => {}
            _ => {
                self.keep_last();
                self.last = Some((stamp, 1));
            }
        }
    }

    fn keep_last(&mut self) {
        let Some((stamp, 1)) = self.last.take() else { return };
        self.skipped += 1;
        if self.skipped < self.one_in {
            return;
        }
        self.skipped = 0;
        self.raw.push(stamp);
        if self.raw.len() >= MAX_STAMPS {
            let mut at = 0;
            self.raw.retain(|_| {
                at += 1;
                at % 2 == 0
            });
            self.one_in *= 2;
        }
    }

    fn finish(&mut self) {
        self.keep_last();
        self.raw.shrink_to_fit();
    }
}

/// Decodes only timestamps.
struct Stamps;

#[derive(Debug, Default)]
struct StampBatch(Vec<u64>);

impl Batch for StampBatch {
    fn clear(&mut self) {
        self.0.clear();
    }

    fn last_stamp_ns(&self) -> Option<u64> {
        // No order across CPUs is needed.
        None
    }

    fn set_unreadable(&mut self, _: Damage) {}
}

impl Decode for Stamps {
    type Batch = StampBatch;

    fn decode(&self, _: usize, _: Input<'_>, block: &Block<'_>, batch: &mut StampBatch) {
        for (_, packet) in block.packets() {
            let Ok(packet) = packet else { continue };
            // Records before a damaged one are valid.
            let _ = packet.for_each(|record| batch.0.push(record.stamp));
        }
    }
}

struct StampConsumer {
    cpus: Vec<CpuStamps>,
}

impl Consume<StampBatch> for StampConsumer {
    fn take(&mut self, input: usize, batch: StampBatch) {
        if let Some(cpu) = self.cpus.get_mut(input) {
            batch.0.into_iter().for_each(|stamp| cpu.add(stamp));
        }
    }

    fn advance(&mut self, _: u64, _: &mut Vec<StampBatch>) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_that_several_events_have_are_left_out() {
        let mut cpu = CpuStamps { one_in: 1, ..CpuStamps::default() };
        [1, 2, 2, 2, 3, 5, 4, 6, 6].into_iter().for_each(|stamp| cpu.add(stamp));
        cpu.finish();
        assert_eq!(cpu.raw, [1, 3, 5]);
    }

    #[test]
    fn of_too_many_events_some_are_kept() {
        let mut cpu = CpuStamps { one_in: 1, ..CpuStamps::default() };
        (0..3 * MAX_STAMPS as u64).for_each(|stamp| cpu.add(stamp));
        cpu.finish();
        assert!(cpu.raw.len() < MAX_STAMPS && cpu.raw.len() >= MAX_STAMPS / 2);
        assert!(cpu.raw.windows(2).all(|two| two[1] - two[0] <= 8), "{}", cpu.one_in);
    }
}
