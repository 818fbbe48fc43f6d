//! Summarises the runs of a variant in one row.

use crate::bench::channels::Variant;
use crate::bench::channels::outcome::{Attributed, Row, Sustained};
use crate::bench::channels::run::{Run, float};
use crate::bench::device::Device;
use stats::Estimate;

/// Two consecutive runs.
#[derive(Clone, Debug)]
pub(crate) struct Pair {
    pub(crate) without: Run,
    pub(crate) with: Run,
}

/// The runs of a variant.
#[derive(Clone, Debug)]
pub(crate) struct Runs {
    pub(crate) variant: Variant,
    pub(crate) pairs: Vec<Pair>,
    /// A run in which the host recorded its exits.
    pub(crate) with_exits: Option<Run>,
    pub(crate) sustained: Option<Sustained>,
}

impl Runs {
    pub(crate) fn new(variant: Variant) -> Self {
        Self { variant, pairs: Vec::new(), with_exits: None, sustained: None }
    }

    /// The row of this variant; `without` is a run without a variant in which the host recorded exits.
    pub(crate) fn row(&self, devices: &[Device], without: Option<&Run>) -> Row {
        let ratio = self.estimate(|pair| Some(pair.with.score / pair.without.score));
        let overhead = |ratio: Estimate| ratio.map(|ratio| (1.0 - ratio) * 100.0);
        let device = devices.iter().find(|device| device.carries(self.variant));
        let is_channel = self.variant.is_channel();
        let bytes = self.sum(|run| run.arrived.bytes);
        let seconds: f64 = self.pairs.iter().map(|pair| pair.with.seconds).sum();
        let events = self.sum(|run| run.arrived.events);
        let per_mb = |pair: &Pair, difference: f64| {
            (is_channel && pair.with.arrived.bytes > 0)
                .then(|| difference * pair.with.seconds / megabytes(pair.with.arrived.bytes))
        };
        Row {
            variant: self.variant,
            score_ratio: ratio,
            overhead_percent: ratio.map(overhead),
            guest_overhead_percent: self
                .estimate(|pair| Some(pair.with.guest_score / pair.without.guest_score))
                .map(overhead),
            instructions_per_event: self.instructions(|run| run.score),
            guest_instructions_per_event: self.instructions(|run| run.guest_score),
            wall_overhead_percent: self
                .estimate(|pair| Some(pair.with.wall_score / pair.without.wall_score))
                .map(overhead),
            events,
            events_per_s: if seconds > 0.0 { float(events) / seconds } else { 0.0 },
            events_lost: is_channel
                .then(|| self.sum(|run| run.arrived.events_lost + run.arrived.uncounted_losses)),
            load_missing: is_channel.then(|| self.sum(Run::missing)),
            bytes,
            agent_cpu_ms_per_mb: share(float(self.sum(|run| run.agent_cpu_ns)) / 1e6, bytes),
            host_cpu_ms_per_mb: self.estimate(|pair| {
                let more = pair.with.host_cpu_ns_per_s - pair.without.host_cpu_ns_per_s;
                per_mb(pair, more / 1e6)
            }),
            exits_per_mb: self
                .estimate(|pair| per_mb(pair, pair.with.exits_per_s - pair.without.exits_per_s)),
            attributed: device.and_then(|device| self.attributed(device, without)),
            interrupts_per_mb: device
                .and_then(|device| share(float(self.sum(|run| interrupts(device, run))), bytes)),
            agent_wakeups_per_s: (is_channel && seconds > 0.0)
                .then(|| float(self.sum(|run| run.agent_wakeups)) / seconds),
            sustained: self.sustained,
        }
    }

    fn sum(&self, count: impl Fn(&Run) -> u64) -> u64 {
        self.pairs.iter().map(|pair| count(&pair.with)).sum()
    }

    fn estimate(&self, value: impl Fn(&Pair) -> Option<f64>) -> Option<Estimate> {
        Estimate::from_values(&self.pairs.iter().filter_map(value).collect::<Vec<_>>())
    }

    /// Additional instructions per event, from scores per 10^9 instructions.
    fn instructions(&self, score: impl Fn(&Run) -> f64) -> Option<Estimate> {
        self.estimate(|pair| {
            let (with, without) = (&pair.with, &pair.without);
            let each_pass = 1e9 / score(with) - 1e9 / score(without);
            let events = with.arrived.events + with.arrived.events_lost;
            (with.counts_instructions && events > 0)
                .then(|| each_pass * float(with.passes) / float(events))
        })
    }

    fn attributed(&self, device: &Device, without: Option<&Run>) -> Option<Attributed> {
        let with = self.with_exits.as_ref()?;
        let exits_of = |run: &Run| {
            let entry = run.exits_by_device.iter().find(|(address, _)| *address == device.address);
            entry.map(|(_, exits)| *exits)
        };
        let exits = exits_of(with)?;
        let exits_without =
            without.and_then(exits_of).map_or(0, |exits| exits.memory + exits.ports);
        let bytes = with.arrived.bytes;
        let more = (exits.memory + exits.ports).saturating_sub(exits_without);
        Some(Attributed {
            device: device.address.clone(),
            memory_exits: exits.memory,
            port_exits: exits.ports,
            exits_without,
            all_exits: exits.all,
            bytes,
            exits_per_mb: share(float(more), bytes),
        })
    }
}

fn interrupts(device: &Device, run: &Run) -> u64 {
    let counts = run.interrupts.iter().filter(|(name, _)| device.has_interrupt(name));
    counts.map(|(_, count)| count).sum()
}

/// Millions of bytes.
fn megabytes(bytes: u64) -> f64 {
    float(bytes) / 1e6
}

/// Amount per million bytes; `None` for no bytes.
fn share(amount: f64, bytes: u64) -> Option<f64> {
    (bytes > 0).then(|| amount / megabytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::channels::arrived::Arrived;

    fn run(score: f64, exits_per_s: f64, bytes: u64) -> Run {
        let arrived =
            Arrived { events: 1000, load_switches: Some(400), bytes, ..Arrived::default() };
        Run {
            seconds: 2.0,
            score,
            wall_score: score,
            guest_score: score,
            passes: 2000,
            counts_instructions: false,
            switches: 410,
            switches_asked: 400,
            arrived,
            agent_cpu_ns: 3_000_000,
            agent_wakeups: 8,
            host_cpu_ns_per_s: 5e6,
            exits_per_s,
            interrupts: Vec::new(),
            exits_by_device: Vec::new(),
        }
    }

    #[test]
    fn pairs_are_compared_within_themselves() {
        let mut runs = Runs::new(Variant::Vsock);
        // The second pair ran on a machine half as fast: this does not affect the ratio.
        for (without, with) in [(100.0, 90.0), (50.0, 45.0)] {
            let without = run(without, 100.0, 0);
            runs.pairs.push(Pair { without, with: run(with, 150.0, 4_000_000) });
        }
        let row = runs.row(&[], None);
        let overhead = row.overhead_percent.unwrap();
        assert!((overhead.mean - 10.0).abs() < 1e-9 && overhead.n == 2);
        assert!((overhead.high.unwrap() - overhead.low.unwrap()).abs() < 1e-9);
        // 50 exits per second more, for 2 seconds and 4 MB.
        assert!((row.exits_per_mb.unwrap().mean - 25.0).abs() < 1e-9);
        assert!((row.agent_cpu_ms_per_mb.unwrap() - 0.75).abs() < 1e-9);
        assert_eq!((row.events, row.load_missing), (2000, Some(20)));
        assert_eq!(row.agent_wakeups_per_s, Some(4.0));
    }

    #[test]
    fn instructions_are_those_that_the_same_work_takes_more() {
        let counted = |score: f64| Run { counts_instructions: true, ..run(score, 1.0, 0) };
        let mut runs = Runs::new(Variant::KernelBuffer);
        // 1000 instructions per pass become 1250: 2000 passes need half a million more, for 1000 events.
        runs.pairs.push(Pair { without: counted(1e6), with: counted(0.8e6) });
        let row = runs.row(&[], None);
        assert!((row.instructions_per_event.unwrap().mean - 500.0).abs() < 1e-6);
        assert!((row.guest_instructions_per_event.unwrap().mean - 500.0).abs() < 1e-6);
        assert!((row.overhead_percent.unwrap().mean - 20.0).abs() < 1e-9);
        let mut runs = Runs::new(Variant::KernelBuffer);
        runs.pairs.push(Pair { without: run(1e6, 1.0, 0), with: run(0.8e6, 1.0, 0) });
        assert!(runs.row(&[], None).instructions_per_event.is_none());
    }

    #[test]
    fn what_stays_in_the_guest_has_no_cost_a_megabyte() {
        let mut runs = Runs::new(Variant::KernelBuffer);
        runs.pairs.push(Pair { without: run(1.0, 1.0, 0), with: run(1.0, 1.0, 0) });
        let row = runs.row(&[], None);
        assert!(row.exits_per_mb.is_none() && row.agent_cpu_ms_per_mb.is_none());
        assert!(row.events_lost.is_none() && row.load_missing.is_none());
    }
}
