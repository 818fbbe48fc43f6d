//! The times of a guest's events, per CPU, as far as they are readings of its clock.

use std::collections::{BTreeMap, HashMap};
use std::ops::ControlFlow;

use sources::{Block, Damage, Recording};
use timeline::rounds::{self, Batch, Consume, Decode, Input};

/// Events kept of one CPU; of more, evenly spread ones.
const MAX_STAMPS: usize = 1 << 22;

/// Times of events of one CPU, ascending, each once.
#[derive(Clone, Debug, Default)]
pub(super) struct CpuStamps {
    pub(super) cpu: u32,
    /// As recorded.
    pub(super) raw: Vec<u64>,
    /// On the guest's own clock, in its unit.
    pub(super) own_ns: Vec<i64>,
    /// One in this many events is kept.
    pub(super) one_in: u64,
    /// Of the last event, and how many events had it.
    last: Option<(u64, u64)>,
    skipped: u64,
}

/// Times of all events of a guest.
#[derive(Clone, Debug, Default)]
pub(super) struct GuestStamps {
    cpus: Vec<CpuStamps>,
    /// Places in `cpus`, by number of the CPU.
    places: HashMap<u32, usize>,
}

impl GuestStamps {
    /// Reads the buffer with most pages among those on the recording's clock.
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
    /// Takes the time of the event after those before.
    ///
    /// Times that several events have are left out, all of them: the kernel gives an event that
    /// interrupts the recording of another the time of that one, and its `local` and `global`
    /// clocks stand still where they would run back. The events happened later, but when is unknown.
    fn add(&mut self, stamp: u64) {
        match &mut self.last {
            Some((last, times)) if *last == stamp => *times += 1,
            // A stamp that goes back is a damaged one.
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

/// Decodes nothing but times.
struct Stamps;

#[derive(Debug, Default)]
struct StampBatch(Vec<u64>);

impl Batch for StampBatch {
    fn clear(&mut self) {
        self.0.clear();
    }

    fn last_stamp_ns(&self) -> Option<u64> {
        // CPUs need not be put in order.
        None
    }

    fn set_unreadable(&mut self, _: Damage) {}
}

impl Decode for Stamps {
    type Batch = StampBatch;

    fn decode(&self, _: usize, _: Input<'_>, block: &Block<'_>, batch: &mut StampBatch) {
        for (_, packet) in block.packets() {
            let Ok(packet) = packet else { continue };
            // Records up to a damaged one are good.
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
