//! Makes a corpus: one recording after the other, in machines that are started once for all that need the same.

use std::fs;
use std::path::Path;

use lab::{Description, Lab};

use super::label::{Corpus, Failure};
use super::machines::CorpusMachines;
use super::plan::CorpusItem;
use super::recorder::{self, Made};
use crate::bench::restarting_lab::{ProgressFn, RestartingLab};
use crate::bench::{BenchError, Result};

/// How often a recording is made whose cause takes no effect: other programs of this system disturb some.
const ATTEMPTS: u32 = 3;

/// The machines that have to be up when a corpus begins.
#[must_use]
pub fn first_machines(items: &[CorpusItem]) -> Option<&Description> {
    items.first().map(|item| &item.machines)
}

/// Makes the recordings in a lab that is up as [`first_machines`] says; each is on disk before the next begins. One that fails is
/// reported, and the others are made.
///
/// # Errors
/// When nothing can be written.
pub fn run(
    items: &[CorpusItem],
    seed: u64,
    to: &Path,
    lab: &Lab,
    report: ProgressFn<'_>,
) -> Result<Corpus> {
    fs::create_dir_all(to).map_err(BenchError::io("cannot make", to))?;
    let mut corpus = Corpus::new(seed);
    let Some(first) = first_machines(items) else { return Ok(corpus) };
    let prepare = |lab: &Lab| CorpusMachines::set_up(lab);
    let mut machines = RestartingLab::new(lab, first.clone(), report, &prepare);
    for (at, item) in items.iter().enumerate() {
        let title = format!("{} of {}: {}", at + 1, items.len(), item.title);
        report(title.clone());
        let made = machines.change(item.machines.clone()).and_then(|()| {
            machines.run(&title, &mut |machines| {
                corpus.kernel_release.get_or_insert_with(|| machines.kernel_release.clone());
                attempts(machines, item, to, report)
            })
        });
        let failure = match made {
            Ok(Made::Recording(label)) => {
                corpus.recordings.push(*label);
                None
            }
            Ok(Made::NoEffect(why)) => Some(format!("the cause took no effect: {why}")),
            Err(error) => Some(error.to_string()),
        };
        if let Some(why) = failure {
            report(format!("{}: {why}", item.title));
            corpus.failed.push(Failure { item: item.title.clone(), why });
        }
        corpus.write(to)?;
    }
    Ok(corpus)
}

/// Makes a recording, again if its cause took no effect.
fn attempts(
    machines: &mut CorpusMachines,
    item: &CorpusItem,
    to: &Path,
    report: ProgressFn<'_>,
) -> Result<Made> {
    let mut made = recorder::record(machines, item, to)?;
    for _ in 1..ATTEMPTS {
        let Made::NoEffect(why) = &made else { break };
        report(format!("{}: {why}; trying again", item.title));
        made = recorder::record(machines, item, to)?;
    }
    Ok(made)
}
