//! `hyperscope lab corpus`: recordings with planted causes of slowness, and healthy ones.

use std::io::{self, Write};
use std::process::ExitCode;

use anyhow::bail;
use experiment::corpus::{CauseFile, CorpusPlan, RecordingKind};
use lab::{Cache, Lab, Step, UpOptions};

use super::interrupted;
use crate::args::lab_corpus::LabCorpusArgs;
use crate::lab_steps::LabSteps;

/// Makes the corpus in a lab of its own.
///
/// # Errors
/// When causes make no sense, the lab does not come up, or nothing can be written.
pub(crate) fn run(cache: &Cache, args: &LabCorpusArgs) -> anyhow::Result<ExitCode> {
    let files = CauseFile::find(&args.only)?;
    let Some(folder) = args.output.as_ref().filter(|_| !args.list) else { return list(&files) };
    if folder.join("labels.json").exists() {
        bail!("{} already holds a corpus: name another folder with -o", folder.display());
    }
    let kinds: Vec<RecordingKind> = args.kinds.iter().map(|&kind| kind.into()).collect();
    let plan = CorpusPlan {
        files,
        seed: args.seed,
        variants: args.variants,
        kinds,
        counterfactuals: args.counterfactuals,
    };
    let items = experiment::corpus::plan(&plan);
    let Some(machines) = experiment::corpus::first_machines(&items) else {
        bail!("no recording of these causes is of these kinds")
    };
    let lab = Lab::named(cache, &format!("corpus-{}", std::process::id()))?;
    let guard = interrupted::end_when_interrupted(&lab)?;
    let steps = LabSteps::new();
    let report = |text: String| steps.show(&Step { text, usual: None });
    let options = UpOptions { offline: args.offline, snapshot: true };
    let made = lab
        .up(machines, &options, &|step| steps.show(&step))
        .map_err(experiment::bench::BenchError::from)
        .and_then(|_| experiment::corpus::run(&items, args.seed, folder, &lab, &report));
    steps.finish();
    drop(guard);
    lab.down()?;
    let corpus = made?;
    write!(io::stdout().lock(), "{corpus}")?;
    Ok(if corpus.failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn list(files: &[CauseFile]) -> anyhow::Result<ExitCode> {
    let mut stdout = io::stdout().lock();
    let width = files.iter().map(|file| file.name.len()).max().unwrap_or(0);
    for file in files {
        writeln!(stdout, "{:<width$}  {}", file.name, file.summary)?;
    }
    Ok(ExitCode::SUCCESS)
}
