//! Compares the outputs of two builds of Hyperscope for the bundled recordings: a refactoring must
//! cause 0 differences.

mod cases;
mod outputs;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use anyhow::{Context, Result, ensure};
use parking_lot::Mutex;

use self::cases::{Case, cases};
use self::outputs::{Outputs, outputs};
use crate::repository;

/// Arguments of `cargo xtask same-outputs`.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The build to compare with.
    old: PathBuf,
    /// The build to check.
    new: PathBuf,
    /// Run only command lines that contain one of these texts.
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Run only every Nth command line: for a quick check.
    #[arg(long, default_value_t = 1)]
    each: usize,
    /// Number of command lines that run in parallel.
    #[arg(long, default_value_t = 2)]
    jobs: usize,
}

/// Runs both builds with all command lines, and lists differing outputs.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let programs = [&arguments.old, &arguments.new];
    let programs =
        programs.map(|path| path.canonicalize().with_context(|| path.display().to_string()));
    let [old, new] = programs;
    let (old, new) = (old?, new?);
    let is_wanted = |case: &Case| {
        arguments.only.is_empty() || arguments.only.iter().any(|text| case.line().contains(text))
    };
    let all: Vec<Case> = cases(&repository::root().join("fixtures"))?;
    let all: Vec<Case> = all.into_iter().step_by(arguments.each.max(1)).filter(is_wanted).collect();
    ensure!(!all.is_empty(), "no command line contains any of these texts");
    let found = Found::default();
    thread::scope(|scope| {
        for _ in 0..arguments.jobs.max(1) {
            scope.spawn(|| found.compare_rest(&all, &old, &new));
        }
    });
    found.conclude(all.len())
}

/// Results so far, shared by the threads.
#[derive(Default)]
struct Found {
    next: AtomicUsize,
    faults: Mutex<Vec<String>>,
    /// Command lines that both builds complete, by verb: a comparison of errors alone proves
    /// little.
    completed: Mutex<BTreeMap<String, usize>>,
}

impl Found {
    fn compare_rest(&self, all: &[Case], old: &Path, new: &Path) {
        while let Some(case) = all.get(self.next.fetch_add(1, Ordering::Relaxed)) {
            let both = outputs(old, case).and_then(|before| Ok((before, outputs(new, case)?)));
            match both {
                Ok((before, after)) => self.note(case, &before, &after),
                Err(error) => self.add_fault(format!("{}: {error:#}", case.line())),
            }
        }
    }

    fn note(&self, case: &Case, before: &Outputs, after: &Outputs) {
        if let Some(difference) = before.difference(after) {
            self.add_fault(format!("hyperscope {}: {difference}", case.line()));
        }
        if before.succeeded {
            *self.completed.lock().entry(case.verb().to_owned()).or_default() += 1;
        }
    }

    fn add_fault(&self, fault: String) {
        self.faults.lock().push(fault);
    }

    fn conclude(self, cases: usize) -> Result<()> {
        let completed = self.completed.into_inner();
        let by_verb = completed.iter().map(|(verb, count)| format!("{verb} {count}"));
        println!("completed: {}", by_verb.collect::<Vec<_>>().join(", "));
        let mut faults = self.faults.into_inner();
        faults.sort();
        repository::conclude(&format!("same outputs ({cases} command lines)"), &faults)
    }
}
