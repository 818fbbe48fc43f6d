//! `hyperscope exits`: accounts for every VM exit.

use std::path::PathBuf;
use std::process::ExitCode;

use analyses::exits::exits;
use analyses::group::By;
use clap::builder::PossibleValue;
use clap::{Args, ValueEnum};
use report::{ExitsReport, Source};
use session::{Selection, Session};

use crate::args::{MemoryArgs, OutputArgs, PartArgs};
use command::output;
use command::progress::reading;
use command::verb::{Conflict, Memory, Range, VerbArgs};

/// Arguments of `exits`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    hyperscope exits trace.dat                       by VM, level and reason\n  \
    hyperscope exits --by reason,msr trace.dat       which MSRs\n  \
    hyperscope exits --by vcpu,reason trace.dat      per vCPU\n  \
    hyperscope exits --by symbol host.dat guest.dat  by guest function")]
pub(crate) struct ExitsArgs {
    /// Recordings; a guest's own recording names guest functions for --by symbol
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) memory: MemoryArgs,
    #[command(flatten)]
    pub(crate) part: PartArgs,
    /// Group exits by these, separated by commas [default: vm,level,reason]
    #[arg(long, value_name = "KEY,…", value_delimiter = ',', hide_default_value = true)]
    pub(crate) by: Vec<ByArg>,
    /// Sort by a column of the CSV: cost, time, count, p99 … [default: cost, or time if the cost is
    /// unknown]
    #[arg(long, value_name = "COLUMN", hide_default_value = true)]
    pub(crate) sort: Option<String>,
    /// Show only the first N rows of each table, and the sum of the rest
    #[arg(long, value_name = "N")]
    pub(crate) top: Option<usize>,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// A grouping property under its command-line name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ByArg(pub(crate) By);

impl ValueEnum for ByArg {
    fn value_variants<'a>() -> &'a [Self] {
        const ALL: [ByArg; By::NAMES.len()] = {
            let mut all = [ByArg(By::Vm); By::NAMES.len()];
            let mut at = 0;
            while at < all.len() {
                all[at] = ByArg(By::NAMES[at].1);
                at += 1;
            }
            all
        };
        &ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        let (name, _) = By::NAMES.iter().find(|(_, by)| *by == self.0)?;
        Some(PossibleValue::new(*name).help(self.help()))
    }
}

impl ByArg {
    const fn help(self) -> &'static str {
        match self.0 {
            By::Vm => "Virtual machine",
            By::Vcpu => "vCPU, with its VM",
            By::Level => "1: guests of the recorded machine, 2: nested guests",
            By::Reason => "Exit reason, by the kernel's name",
            By::Code => "Exit reason, by its raw code",
            By::Msr => "Model-specific register (kvm_msr)",
            By::Port => "I/O port (kvm_pio)",
            By::Gpa => "Guest physical address (kvm_page_fault, kvm_mmio, kvm_guest_fault)",
            By::Hypercall => "Hypercall number (kvm_hypercall, kvm_hvc_arm64)",
            By::CpuidLeaf => "CPUID leaf (kvm_cpuid)",
            By::Symbol => "Guest function at the exit; needs the guest's own recording",
            By::Task => "vCPU thread",
        }
    }
}

impl VerbArgs for ExitsArgs {
    fn memory(&self) -> Memory {
        Memory::Limits(self.memory)
    }

    fn range(&self) -> Range {
        (&self.part).into()
    }

    fn run(&self) -> anyhow::Result<ExitCode> {
        run(self).map(|()| ExitCode::SUCCESS)
    }
}

fn run(args: &ExitsArgs) -> anyhow::Result<()> {
    let by = grouping(args);
    let mut session = Session::open(&args.files, &args.part.vms.names.of_one_session())?;
    session.select_on_own_clocks(&Selection::from(&args.part))?;
    if by.contains(&By::Symbol) {
        session.name_guest_functions()?;
    }
    let out = output::open(args.output.output.as_deref(), session.recordings())?;
    let sources = reading(&session, 1, |progress| sources(&session, &by, progress));
    let mut report = ExitsReport { sources, top: args.top, sorted_by: None };
    if let Some(column) = &args.sort {
        report.sort_by(column).map_err(Conflict)?;
    }
    output::write_part(&report, session.part(), &args.output, out)
}

fn sources(session: &Session, by: &[By], progress: &(dyn Fn(u64) + Sync)) -> Vec<Source> {
    let all = session.recordings().iter().zip(session.reported());
    all.map(|(recording, reported)| Source {
        path: recording.path().display().to_string(),
        exits: exits(recording, by, progress),
        of_guest: session.is_of_guest(recording),
        recorder_cost: reported.cost.clone(),
        processes: reported.processes.clone(),
    })
    .collect()
}

/// The requested grouping, each property once. A vCPU's id needs its VM to be unique.
fn grouping(args: &ExitsArgs) -> Vec<By> {
    let requested: Vec<By> = args.by.iter().map(|by| by.0).collect();
    let mut by = Vec::new();
    for property in &requested {
        if *property == By::Vcpu && !requested.contains(&By::Vm) && !by.contains(&By::Vm) {
            by.push(By::Vm);
        }
        if !by.contains(property) {
            by.push(*property);
        }
    }
    if by.is_empty() { By::DEFAULT.to_vec() } else { by }
}
