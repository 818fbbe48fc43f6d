//! Reads a recording of a run: the guest's times, and the advice.

use std::path::Path;

use analyses::advice::{Advice, EvidenceOf, SavingOf, Spent, advise};
use analyses::cpu::{TakenCpu, cpu};
use analyses::exit_question::ask;
use analyses::nested::OfLevelTwo;
use analyses::view::View;

use super::switches::Switch;
use crate::bench::error::{BenchError, Result};

/// A run of a workload.
#[derive(Clone, Debug)]
pub(super) struct AdvisedRun {
    /// The guest's times.
    pub spent: Spent,
    /// The advice for the run.
    pub advice: Vec<Advice>,
}

/// The advice on one switch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct GivenAdvice {
    pub(super) pieces: u64,
    pub(super) least_ns: u64,
    pub(super) most_ns: u64,
}

/// Reads a recording.
pub(super) fn read(file: &Path) -> Result<AdvisedRun> {
    let unreadable = |source| BenchError::Recording { variant: "hyperscope record", source };
    let recording = sources::open(file).map_err(unreadable)?;
    let (exits, nested) = ask(&recording, &(EvidenceOf, OfLevelTwo), &|_| ());
    let cpus = cpu(View::on_own_clocks(std::slice::from_ref(&recording)), &[], &|_| ()).takers;
    let cpus: Vec<&TakenCpu> = cpus.iter().collect();
    let advice = advise(&exits, &nested.rows, &cpus);
    Ok(AdvisedRun { spent: exits.spent(), advice })
}

impl AdvisedRun {
    /// The advice on a switch.
    pub(super) fn advice_on(&self, switch: &Switch) -> GivenAdvice {
        let mut sum = GivenAdvice::default();
        for advice in self.advice.iter().filter(|advice| switch.concerns(advice)) {
            sum.pieces += 1;
            sum.least_ns = sum.least_ns.saturating_add(advice.saving_at_least_ns);
            sum.most_ns = sum.most_ns.saturating_add(advice.saving_at_most_ns);
        }
        sum
    }

    /// The base of a switch's savings.
    pub(super) fn whole_ns(&self, saving: SavingOf) -> u64 {
        if saving == SavingOf::Waiting { self.spent.waited_ns } else { self.spent.outside_ns }
    }
}
