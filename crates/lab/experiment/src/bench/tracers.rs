//! Measures the cost of tracing a guest for its programs, by tracer and by part.
//!
//! A *subject* is a program that causes events and does little else. A tracer is measured in *steps*, each of which
//! adds one thing to the previous one: a probe that returns at once, packing, the hypercall, the host's event of it,
//! the host's file. Each round runs every step once, and the untraced subject once, in random order; the differences
//! within a round are the costs of the parts.

mod guest_side;
mod host_side;
mod ladder;
mod outcome;
mod plan;
mod render;
mod run;
mod subject;
mod tracer;
mod volume;

use lab::{Arch, Description, Lab};
use stats::Chance;

use self::ladder::{Ladder, Of, Round};
use self::run::{Run, RunOptions, run as run_once};
use self::tracer::Setup;
use crate::bench::error::Result;
use crate::bench::machines::BootedMachines;
use crate::bench::restarting_lab::{Folder, RestartingLab};
use crate::bench::shape;
use crate::bench::surroundings::Surroundings;

pub use self::outcome::{Conditions, Outcome, PartCost, Row, Volume};
pub use self::plan::TracersPlan;
pub use self::subject::Subject;
pub use self::tracer::{Part, Tracer};
pub use crate::bench::restarting_lab::ProgressFn;

/// Memory of the guest: perf and its libraries are in it twice during boot.
const GUEST_MIB: u32 = 512;
/// Memory of the innermost guest's host, with three levels.
const MIDDLE_MIB: u32 = 1536;
/// Memory of the first machine, with three levels.
const FIRST_MIB: u32 = 4608;

/// The lab that a plan needs.
#[must_use]
pub fn description(plan: &TracersPlan) -> Description {
    let mut description = Description::new(Arch::X86_64, plan.levels);
    description.guest.memory_mib = GUEST_MIB;
    if plan.levels > 2 {
        description.guest.memory_mib = MIDDLE_MIB;
        description.memory_mib = FIRST_MIB;
    }
    description.guest.tools = plan.tracers.iter().filter_map(|tracer| tracer.tool()).collect();
    if plan.tracers.contains(&Tracer::Shm) {
        description.guest.shm_mib = Some(shape::SHARED_MIB);
    }
    if plan.counts_instructions {
        shape::count_instructions(&mut description);
    }
    description
}

/// Measures in a lab that is up as [`description`] specifies.
///
/// # Errors
/// When a machine, or a program in it, fails.
pub fn run(plan: &TracersPlan, lab: &Lab, report: ProgressFn<'_>) -> Result<Outcome> {
    let surroundings = Surroundings::begin_in(lab)?;
    let prepare = |lab: &Lab| -> Result<Vec<BootedMachines>> {
        (2..=plan.levels).map(|level| BootedMachines::with_module(lab, level)).collect()
    };
    let restarting_lab = RestartingLab::new(lab, description(plan), report, &prepare);
    let mut bench = Bench { plan, restarting_lab, folder: Folder::make()? };
    let mut ladders = ladders(plan);
    bench.rounds(&mut ladders)?;
    Ok(Outcome {
        schema: "hyperscope.bench-tracers/1",
        conditions: Conditions {
            surroundings: surroundings.end(),
            rounds: plan.rounds,
            iterations: plan.iterations,
            seed: plan.seed,
            host_cpus: bench.restarting_lab.wanted().cpus,
            repeated_runs: bench.restarting_lab.repeated_runs,
        },
        tracers: rows(plan, &ladders),
        volumes: ladders.iter().flat_map(Ladder::volumes).collect(),
    })
}

/// The ladders of a plan.
fn ladders(plan: &TracersPlan) -> Vec<Ladder> {
    let mut ladders = Vec::new();
    for &subject in &plan.subjects {
        for level in 2..=plan.levels {
            let wanted = |tracer: &&Tracer| level == 2 || tracer.can_be_nested();
            let tracers = plan.tracers.iter().filter(wanted);
            ladders.extend(tracers.map(|&tracer| Ladder::of_tracer(subject, level, tracer)));
        }
        if plan.with_volumes {
            ladders.push(Ladder::of_volumes(subject));
        }
    }
    ladders
}

fn rows(plan: &TracersPlan, ladders: &[Ladder]) -> Vec<Row> {
    let tracer = |ladder: &Ladder| match ladder.purpose {
        Of::Tracer(tracer, _) => Some(tracer),
        Of::Volumes => None,
    };
    let below = |ladder: &Ladder| {
        ladders.iter().find(|candidate| {
            candidate.subject == ladder.subject
                && candidate.level + 1 == ladder.level
                && tracer(candidate) == tracer(ladder)
        })
    };
    let measured = ladders.iter().filter_map(|ladder| ladder.row(below(ladder)));
    let without = plan.subjects.iter().flat_map(|&subject| {
        plan.missing.iter().map(move |(tracer, why)| Row::without(subject, *tracer, why))
    });
    measured.chain(without).collect()
}

struct Bench<'a> {
    plan: &'a TracersPlan,
    /// Hosts and guests, outermost first.
    restarting_lab: RestartingLab<'a, Vec<BootedMachines>>,
    folder: Folder,
}

impl Bench<'_> {
    /// Runs each ladder once per round, in random order, and with random order of its steps.
    fn rounds(&mut self, ladders: &mut [Ladder]) -> Result<()> {
        let mut chance = Chance::new(self.plan.seed);
        for round in 1..=self.plan.rounds {
            let mut order: Vec<&mut Ladder> = ladders.iter_mut().collect();
            chance.shuffle(&mut order);
            let count = order.len();
            for (at, ladder) in (1..).zip(order) {
                let (name, rounds) = (ladder.name(), self.plan.rounds);
                (self.restarting_lab.report)(format!(
                    "round {round} of {rounds}: {name} ({at} of {count})"
                ));
                let ran = self.round(ladder, round == 1, &mut chance)?;
                ladder.rounds.push(ran);
            }
        }
        Ok(())
    }

    /// One run of each step, and one without tracing.
    fn round(&mut self, ladder: &Ladder, first: bool, chance: &mut Chance) -> Result<Round> {
        let mut order: Vec<usize> = (0..=ladder.setups.len()).collect();
        chance.shuffle(&mut order);
        let mut runs: Vec<(usize, Run)> = Vec::new();
        for place in order {
            // The first of them is the one without tracing.
            let setup = place.checked_sub(1).and_then(|step| ladder.setups.get(step).copied());
            let setup = setup.unwrap_or(Setup::NONE);
            runs.push((place, self.run(ladder, setup, first)?));
        }
        runs.sort_unstable_by_key(|(place, _)| *place);
        let mut runs = runs.into_iter().map(|(_, run)| run);
        let without = match runs.next() {
            Some(run) => run,
            None => self.run(ladder, Setup::NONE, first)?,
        };
        Ok(Round { without, with: runs.collect() })
    }

    fn run(&mut self, ladder: &Ladder, setup: Setup, counts: bool) -> Result<Run> {
        let options = RunOptions { iterations: self.plan.iterations, level: ladder.level, counts };
        let folder = self.folder.path();
        self.restarting_lab.run(&ladder.name(), &mut |machines: &mut Vec<BootedMachines>| {
            let place = usize::from(ladder.level.saturating_sub(2));
            let Some(machines) = machines.get_mut(place) else {
                let text = format!("level {} does not exist", ladder.level);
                return Err(lab::LabError::Usage(text).into());
            };
            run_once(ladder.subject, setup, options, machines, folder)
        })
    }
}
