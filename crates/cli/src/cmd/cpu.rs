//! `hyperscope cpu`: the users of the CPUs, and their purpose.

use std::process::ExitCode;

use analyses::cpu::cpu;
use anyhow::bail;
use report::{CpuBy, CpuReport};
use session::{Misuse, Selection, Session};

use crate::args::cpu::CpuArgs;
use command::output;
use command::progress::reading;
use command::verb::{Memory, Range, VerbArgs};

/// Tables shown by default.
const DEFAULT: [CpuBy; 3] = [CpuBy::Vcpu, CpuBy::Taken, CpuBy::Thread];

impl VerbArgs for CpuArgs {
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

fn run(args: &CpuArgs) -> anyhow::Result<()> {
    let mut session = Session::open(&args.files, &args.part.vms.names.of_one_session())?;
    let out = output::open(args.output.output.as_deref(), session.recordings())?;
    session.select_on_host_clock(&Selection::from(&args.part), args.method.method())?;
    session.say_unaligned();
    let processes = session.processes();
    let cpu = reading(&session, 1, |progress| cpu(session.view(), &processes, progress));
    if cpu.tasks.is_empty() && args.by.iter().any(|arg| arg.0 == CpuBy::Task) {
        bail!(Misuse(
            "--by task needs a guest recording with sched_switch: name it together with its host's"
                .to_owned()
        ));
    }
    let report = CpuReport {
        sources: session.paths(),
        cpu,
        by: tables(args),
        idle: args.idle,
        top: args.top,
        recorder_cost: session.recorder_cost(),
    };
    output::write_part(&report, session.part(), &args.output, out)
}

/// The requested tables, each once.
fn tables(args: &CpuArgs) -> Vec<CpuBy> {
    let mut by: Vec<CpuBy> = Vec::new();
    for arg in &args.by {
        if !by.contains(&arg.0) {
            by.push(arg.0);
        }
    }
    if by.is_empty() { DEFAULT.to_vec() } else { by }
}
