//! `hyperscope why`: what VMs did with their time, and the causes of slowness, the costliest first.

use std::process::ExitCode;

use analyses::why::{PASSES, Why, why};
use anyhow::bail;
use clap::Args;
use report::{WhyQuestion, WhyReport};
use session::{Misuse, Selection, Session};

use crate::args::ReportArgs;
use command::output;
use command::progress::reading;
use command::verb::{Memory, Range, VerbArgs};

/// Arguments of `why`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    hyperscope why NAME.hscope                     a host and its guests\n  \
    hyperscope why --vm web --from +2 host.dat     one VM, from the third second on\n  \
    hyperscope why --format json NAME.hscope       all causes with their evidence, for scripts")]
pub(crate) struct WhyArgs {
    #[command(flatten)]
    report: ReportArgs,
}

impl VerbArgs for WhyArgs {
    fn memory(&self) -> Memory {
        Memory::Limits(self.report.memory)
    }

    fn range(&self) -> Range {
        (&self.report.part).into()
    }

    fn run(&self) -> anyhow::Result<ExitCode> {
        run(self).map(|()| ExitCode::SUCCESS)
    }
}

fn run(WhyArgs { report: args }: &WhyArgs) -> anyhow::Result<()> {
    let mut session = Session::open(&args.files, &args.part.vms.names.of_one_session())?;
    let out = output::open(args.output.output.as_deref(), session.recordings())?;
    let vms = &args.part.vms;
    if vms.vcpu.is_some() {
        bail!(Misuse("why explains whole VMs: leave out --vcpu".to_owned()));
    }
    // Other VMs are read as well: they may be what takes a VM's CPUs.
    session.select_on_host_clock(&Selection::from(&args.part).times_alone(), None)?;
    session.say_unaligned();
    let processes = session.processes();
    let mut why = reading(&session, PASSES, |progress| why(session.view(), &processes, progress));
    select_vms(&mut why, &vms.vm)?;
    let vm = match vms.vm.as_slice() {
        [vm] => Some(vm.clone()),
        _ => None,
    };
    let report = WhyReport { sources: session.paths(), question: WhyQuestion { vm }, why };
    output::write_part(&report, session.part(), &args.output, out)
}

/// Keeps the answers for these VMs; none named: all.
fn select_vms(why: &mut Why, names: &[String]) -> anyhow::Result<()> {
    let known: Vec<&str> = why.vms.iter().map(|answer| answer.vm.as_str()).collect();
    if let Some(unknown) = names.iter().find(|name| !known.contains(&name.as_str())) {
        bail!(Misuse(format!("no VM is called {unknown}; the VMs are: {}", known.join(", "))));
    }
    if !names.is_empty() {
        why.vms.retain(|answer| names.contains(&answer.vm));
    }
    Ok(())
}
