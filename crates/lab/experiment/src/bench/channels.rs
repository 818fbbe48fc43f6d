//! Measures the cost of recording a guest over each channel.
//!
//! A *variant* is a way to record the guest, or a step towards it. Each measurement of a variant is a pair of
//! consecutive runs of one workload, with and without it, in random order. The difference between the runs of many
//! pairs is the cost of the variant. Exits by device and sustained rates are measured separately.

mod arrived;
mod outcome;
mod plan;
mod recording;
mod render;
mod run;
mod summary;
mod sustained;

use lab::{Arch, Description, Lab};

use self::run::{Run, RunOptions, run as run_once};
use self::summary::{Pair, Runs};
use crate::bench::error::Result;
use crate::bench::machines::BootedMachines;
use crate::bench::restarting_lab::{Folder, RestartingLab};
use crate::bench::shape;
use crate::bench::surroundings::Surroundings;

pub use self::outcome::{Attributed, Conditions, Outcome, Row, Sustained};
pub use self::plan::ChannelsPlan;
pub(crate) use self::run::float;
pub use crate::bench::restarting_lab::ProgressFn;
pub use crate::bench::variant::Variant;
use stats::Chance;

/// The guest's CPUs.
const GUEST_CPUS: u32 = 2;
/// Approximate number of events per switch of the load: the switch, and a wake-up.
const EVENTS_A_SWITCH: u64 = 2;

/// The lab that a plan needs.
#[must_use]
pub fn description(plan: &ChannelsPlan) -> Description {
    let mut description = Description::new(Arch::X86_64, 2);
    description.guest.cpus = GUEST_CPUS;
    if plan.counts_instructions {
        shape::count_instructions(&mut description);
        description.guest.cpus = 1;
    }
    description.guest.shm_mib = Some(shape::SHARED_MIB);
    description
}

/// Measures in a lab that is up as [`description`] specifies.
///
/// # Errors
/// When a machine, or a program in it, fails.
pub fn run(plan: &ChannelsPlan, lab: &Lab, report: ProgressFn<'_>) -> Result<Outcome> {
    let surroundings = Surroundings::begin_in(lab)?;
    let mut bench = Bench {
        restarting_lab: RestartingLab::new(
            lab,
            description(plan),
            report,
            &BootedMachines::prepare,
        ),
        folder: Folder::make()?,
        options: RunOptions {
            time: plan.time,
            switches: plan.rate / EVENTS_A_SWITCH,
            with_score: true,
            with_exits: false,
            buffer_kib: plan.buffer_kib,
            counts_instructions: plan.counts_instructions,
        },
    };
    let mut all: Vec<Runs> = plan.variants.iter().copied().map(Runs::new).collect();
    bench.rounds(plan, &mut all)?;
    let without = bench.exits(&mut all)?;
    if plan.with_search {
        bench.search(&mut all)?;
    }
    let devices =
        bench.restarting_lab.machines.as_ref().map_or(&[][..], |machines| &machines.devices);
    Ok(Outcome {
        schema: "hyperscope.bench-channels/1",
        conditions: Conditions {
            surroundings: surroundings.end(),
            rounds: plan.rounds,
            seconds: plan.time.as_secs_f64(),
            rate: plan.rate,
            seed: plan.seed,
            host_cpus: bench.restarting_lab.wanted().cpus,
            guest_cpus: bench.restarting_lab.wanted().guest.cpus,
            buffer_kib: plan.buffer_kib,
            repeated_runs: bench.restarting_lab.repeated_runs,
        },
        variants: all.iter().map(|runs| runs.row(devices, Some(&without))).collect(),
    })
}

struct Bench<'a> {
    restarting_lab: RestartingLab<'a, BootedMachines>,
    folder: Folder,
    options: RunOptions,
}

impl Bench<'_> {
    /// Measures each variant once per round, in random order, and with random order in each pair.
    fn rounds(&mut self, plan: &ChannelsPlan, all: &mut [Runs]) -> Result<()> {
        let mut chance = Chance::new(plan.seed);
        // Discards the first run, whose caches are cold.
        self.run(Variant::None, self.options)?;
        for round in 1..=plan.rounds {
            let mut order: Vec<&mut Runs> = all.iter_mut().collect();
            chance.shuffle(&mut order);
            let count = order.len();
            for (at, runs) in order.into_iter().enumerate() {
                let (at, name) = (at + 1, runs.variant.name());
                (self.restarting_lab.report)(format!(
                    "round {round} of {}: {name} ({at} of {count})",
                    plan.rounds
                ));
                runs.pairs.push(self.pair(runs.variant, chance.coin())?);
            }
        }
        Ok(())
    }

    fn pair(&mut self, variant: Variant, with_first: bool) -> Result<Pair> {
        let options = self.options;
        if with_first {
            let with = self.run(variant, options)?;
            Ok(Pair { without: self.run(Variant::None, options)?, with })
        } else {
            let without = self.run(Variant::None, options)?;
            Ok(Pair { without, with: self.run(variant, options)? })
        }
    }

    /// One run of each channel in which the host records its exits, and returns one without a channel.
    fn exits(&mut self, all: &mut [Runs]) -> Result<Run> {
        let options = RunOptions { with_exits: true, ..self.options };
        (self.restarting_lab.report)("exits by device: none".into());
        let without = self.run(Variant::None, options)?;
        for runs in all.iter_mut().filter(|runs| runs.variant.is_channel()) {
            (self.restarting_lab.report)(format!("exits by device: {}", runs.variant.name()));
            runs.with_exits = Some(self.run(runs.variant, options)?);
        }
        Ok(without)
    }

    fn search(&mut self, all: &mut [Runs]) -> Result<()> {
        for runs in all.iter_mut().filter(|runs| runs.variant.is_channel()) {
            (self.restarting_lab.report)(format!(
                "highest rate without a loss: {}",
                runs.variant.name()
            ));
            let options = RunOptions { with_score: false, ..self.options };
            runs.sustained =
                Some(sustained::search(options, &mut |options| self.run(runs.variant, options))?);
        }
        Ok(())
    }

    fn run(&mut self, variant: Variant, options: RunOptions) -> Result<Run> {
        let folder = self.folder.path();
        self.restarting_lab
            .run(variant.name(), &mut |machines| run_once(variant, options, machines, folder))
    }
}
