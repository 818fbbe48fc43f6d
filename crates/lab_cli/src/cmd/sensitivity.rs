//! `hyperscope sensitivity`: how much a workload slows down per nanosecond of an exit.

use std::io;
use std::process::ExitCode;
use std::process::ExitStatus;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread::available_parallelism;
use std::time::{Duration, Instant};

use analyses::sensitivity::sensitivity;
use anyhow::{Context, bail};
use experiment::Group;
use live::delayer::{
    CodeTable, DelayPlan, DelayedThread, Delayer, NoSuchReason, Progress, SlicePlan,
};
use report::{RecorderCost, SensitivityReport};
use timeline::delays::DelaySlice;
use vms::Vm;

use crate::args::sensitivity::SensitivityArgs;
use command::notice::say;
use command::output;
use command::signals::stop_at_signals;
use command::verb::{Memory, Range, VerbArgs};
use session::Misuse;

/// Interval of checking whether the workload still runs.
const LOOK: Duration = Duration::from_millis(20);

impl VerbArgs for SensitivityArgs {
    fn memory(&self) -> Memory {
        Memory::Unbounded
    }

    fn range(&self) -> Range {
        Range::Whole
    }

    fn run(&self) -> anyhow::Result<ExitCode> {
        run(self).map(|()| ExitCode::SUCCESS)
    }
}

fn run(args: &SensitivityArgs) -> anyhow::Result<()> {
    let delays: Vec<Duration> =
        args.delays.iter().copied().filter(|delay| !delay.is_zero()).collect();
    if delays.is_empty() {
        bail!(Misuse("--delays: at least one must be longer than 0".to_owned()));
    }
    let out = output::open_page(args.output.output.as_deref(), args.output.is_page(), &[])?;
    let vms = vms::running();
    let vm = vm(&vms, &args.vm)?;
    let plan = plan(args, vm)?;
    let (mut delayer, start) = (Delayer::new(&plan)?, Instant::now());
    let (over, is_over) = mpsc::channel();
    stop_at_signals(over)?;
    let mut workload = Workload::start(&args.workload)?;
    let end = args.time().map(|time| Instant::now() + time);
    let slice_plan = SlicePlan {
        reasons: plan.reasons.len(),
        delays,
        slice: args.slice,
        progress: args.counter().map_or(Progress::Exits, Progress::Counter),
        seed: args.seed,
    };
    let mut wait = |time| is_done(time, end, &is_over, &mut workload);
    let slices = live::delayer::run(&mut delayer, &slice_plan, &mut wait)?;
    let recorder_cost = cost(&mut delayer, &slices, start.elapsed());
    drop(delayer);
    workload.end()?;
    let report = SensitivityReport {
        vm: vm.name.clone(),
        reasons: args.reason.clone(),
        progress: args.progress.clone(),
        slice_ns: args.slice.as_nanos() as u64,
        seed: args.seed,
        sensitivity: sensitivity(&slices, plan.reasons.len(), slice_plan.slices_a_block()),
        recorder_cost: Some(recorder_cost),
    };
    if report.sensitivity.blocks == 0 {
        bail!("the run ended before each delay had a slice of {:?}: let it run longer", args.slice);
    }
    if args.output.is_page() {
        output::write_page(&report.page(), out)
    } else {
        output::write(&report, &args.output, out)
    }
}

/// CPU time of this process and its programs without the delays, if the kernel counts it.
fn cost(delayer: &mut Delayer, slices: &[DelaySlice], duration: Duration) -> RecorderCost {
    let of_slice = |slice: &DelaySlice| {
        let (reason, _) = slice.delay_ns?;
        Some(slice.counts.by_reason.get(reason)?.delay_ns)
    };
    let delays_ns = slices.iter().filter_map(of_slice).fold(0, u64::saturating_add);
    let programs_ns = delayer.run_time_ns().unwrap_or(0).saturating_sub(delays_ns);
    RecorderCost {
        cpu_ns: sys::process_cpu_ns().saturating_add(programs_ns),
        duration_ns: u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX),
        cpus: available_parallelism().map_or(1, usize::from) as u64,
        agents: Vec::new(),
    }
}

/// The VM of this name.
fn vm<'v>(vms: &'v [Vm], name: &str) -> anyhow::Result<&'v Vm> {
    vms::called(vms, name)?.with_context(|| {
        let names: Vec<&str> = vms.iter().map(|vm| vm.name.as_str()).collect();
        if names.is_empty() {
            format!("no VM has the name {name}; this user sees no running VM")
        } else {
            format!("no VM has the name {name}; running: {}", names.join(", "))
        }
    })
}

/// The settings of the BPF programs.
fn plan(args: &SensitivityArgs, vm: &Vm) -> anyhow::Result<DelayPlan> {
    let table = CodeTable::of_host()?;
    let codes = |reason: &String| table.codes(reason).map(<[u64]>::to_vec).map_err(no_reason);
    let reasons = args.reason.iter().map(codes).collect::<anyhow::Result<Vec<_>>>()?;
    let progress = match (&args.progress, args.counter()) {
        (Some(reason), None) => codes(reason)?,
        (Some(_), Some(_)) => Vec::new(),
        (None, _) => reasons.concat(),
    };
    let is_delayed = |vcpu: u32| args.vcpu.as_ref().is_none_or(|vcpus| vcpus.contains(vcpu));
    let thread =
        |vcpu: &vms::Vcpu| DelayedThread { tid: vcpu.tid, is_delayed: is_delayed(vcpu.vcpu) };
    let threads: Vec<DelayedThread> = vm.vcpus.iter().map(thread).collect();
    if !threads.iter().any(|thread| thread.is_delayed) {
        bail!("{} does not have this vCPU", vm.name);
    }
    Ok(DelayPlan { threads, reasons, progress })
}

fn no_reason(none: NoSuchReason) -> anyhow::Error {
    anyhow::anyhow!(Misuse(format!(
        "unknown exit reason {} on this machine; use one of: {}",
        none.reason,
        none.known.join(", ")
    )))
}

/// Waits for this time; true if everything is over before.
fn is_done(
    time: Duration,
    end: Option<Instant>,
    is_over: &Receiver<()>,
    workload: &mut Workload,
) -> bool {
    let until = Instant::now() + time;
    loop {
        let remaining = until.saturating_duration_since(Instant::now());
        let received = match workload.group {
            Some(_) => is_over.recv_timeout(remaining.min(LOOK)),
            None => is_over.recv_timeout(remaining),
        };
        if received != Err(RecvTimeoutError::Timeout) || workload.has_ended() {
            return true;
        }
        let now = Instant::now();
        if end.is_some_and(|end| now >= end) {
            return true;
        }
        if now >= until {
            return false;
        }
    }
}

/// The program that drives the VM, if any.
struct Workload {
    group: Option<Group>,
    ended: Option<ExitStatus>,
}

impl Workload {
    /// Starts it; its output goes to standard error.
    fn start(argv: &[String]) -> anyhow::Result<Self> {
        let start = |program| {
            let started = Group::start(argv, io::stderr());
            started.with_context(|| format!("cannot run {program}"))
        };
        Ok(Self { group: argv.first().map(start).transpose()?, ended: None })
    }

    fn has_ended(&mut self) -> bool {
        if let (Some(group), None) = (&mut self.group, self.ended) {
            self.ended = group.try_wait().ok().flatten();
        }
        self.ended.is_some()
    }

    /// Ends it. If it has ended by itself, its failure is returned.
    fn end(mut self) -> anyhow::Result<()> {
        if self.has_ended() {
            let failed = self.ended.filter(|status| !status.success());
            return failed.map_or(Ok(()), |status| bail!("the workload ended with {status}"));
        }
        if self.group.is_some() {
            say("stopping the workload");
        }
        Ok(())
    }
}

impl Drop for Workload {
    fn drop(&mut self) {
        if !self.has_ended()
            && let Some(group) = &mut self.group
        {
            group.kill();
        }
    }
}
